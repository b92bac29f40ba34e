/** What is in memory of the answers of changes that may be asked for again (`once.ts`): which there are, oldest first. */
export interface Answers {
  readonly numbers: Map<string, number>;
  readonly kept: Map<number, { readonly name: string; readonly wallMs: number; readonly characters: number }>;
  characters: number;
  next: number;
}
