import type { ElementPath } from "../../cell/identifiers.ts";

/** An element in a list over cells (`GET /elements`). */
export interface ListedElement {
  /** Whole name. */
  readonly cell: string;
  /** Whose the cell is, by its path. Absent: the operator's, or it was not asked for. */
  readonly account?: string;
  readonly path: ElementPath;
  /** Later versions have more types. */
  readonly type: string;
  readonly uid: string;
  /** The last part of its path. */
  readonly name: string;
  readonly phase: "waiting" | "working" | "ready" | "failed" | "deleting";
  /** In words. */
  readonly reason: string | null;
  /** ISO 8601. */
  readonly since: string;
}
/** Absent: any. */
export interface ElementFilter {
  readonly type?: string | undefined;
  readonly uid?: string | undefined;
  readonly phase?: string | undefined;
  readonly name?: string | undefined;
}
export interface ElementPage {
  readonly items: readonly ListedElement[];
  /** Cursor of the next page; null: this is the last one. */
  readonly next: string | null;
}
export const usualPage = 100;
