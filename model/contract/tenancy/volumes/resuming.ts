/*
 * When whoever sends a file goes on with it by himself. It is the same for everybody who does, since the gateway and its storage servers keep what came
 * of it for as long.
 */
/** Tries in a row that bring it no further, and the pauses before them. */
export const mostTries = 12;
export const pauseMs = (tries: number): number => Math.min(15_000, 250 * 2 ** tries);
/** Where nothing is taken for so long it has broken off. The gateway gives up whom it hears nothing of for 15 s. */
export const stalledMs = 60_000;

export interface RefusedUpload {
  readonly status: number;
  readonly code: string;
}
/** Whether it is the way that failed, and not what is sent. @param before it has failed before: who is busy now is asked again */
export const isOfTheWay = ({ status, code }: RefusedUpload, before: boolean): boolean =>
  [502, 504, ...(before ? [503] : [])].includes(status) ||
  ["upload/broken", "image/under-way", "image/offset"].includes(code);
