/**
 * Texts that somebody has written and not applied. They outlive a sign-in that is over, another page and a reload, in this tab alone: whoever
 * signs in there as somebody else does not see them, and a sign-out by hand takes them away.
 */
export interface Draft {
  readonly text: string;
  readonly main: string;
  /** Of the model that the text was written against. */
  readonly version: number;
}
/** A browser's `sessionStorage`. */
interface Kept {
  readonly length: number;
  key(at: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

const prefix = "cells-draft ";
const longestText = 1024 * 1024;
const keyOf = (who: string, cell: string): string => `${prefix}${JSON.stringify([who, cell])}`;

/** False: it is too long to be kept, or there is no room. */
export function keepDraft(kept: Kept, who: string, cell: string, draft: Draft): boolean {
  try {
    if (draft.text.length > longestText) throw new Error("too long");
    kept.setItem(keyOf(who, cell), JSON.stringify(draft));
    return true;
  } catch {
    // An older text in its place would be taken for this one.
    kept.removeItem(keyOf(who, cell));
    return false;
  }
}
export function draftOf(kept: Kept, who: string, cell: string): Draft | null {
  try {
    const { text, main, version } = JSON.parse(kept.getItem(keyOf(who, cell)) ?? "") as Partial<Draft>;
    if (typeof text !== "string" || typeof main !== "string" || typeof version !== "number") return null;
    return { text, main, version };
  } catch {
    return null;
  }
}
export const dropDraft = (kept: Kept, who: string, cell: string): void => kept.removeItem(keyOf(who, cell));
export function dropDrafts(kept: Kept): void {
  const keys = Array.from({ length: kept.length }, (_, at) => kept.key(at));
  for (const key of keys) if (key?.startsWith(prefix) === true) kept.removeItem(key);
}
