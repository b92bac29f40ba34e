/** Code of the refusal of a program whose evaluation could not be walled in (`typescript/wall.ts`): nothing of it was run. */
export const noWalls = "typescript/no-walls";
