import type { CellSummary, ElementState, InstallationStatus } from "../../model/api.ts";
import type { Rows } from "../../model/contract/follow/follow.ts";
import type { Followed } from "../../model/contract/follow/reduce.ts";
import { statusOfRows } from "../../model/contract/follow/rows.ts";
import type { HaAlert, HaItem, HaReport } from "../../model/contract/operator/ha.ts";
import type { InterfaceCounted, RuleCounted } from "../../model/contract/operator/numbers/counters.ts";

/** What topics hold, by their types; null: it has not come yet. */
export const rowsOf = (followed: Followed, topic: string): Rows | null => followed.topics.get(topic)?.rows ?? null;

export function cellsIn(followed: Followed): readonly CellSummary[] | null {
  const rows = rowsOf(followed, "cells");
  if (rows === null) return null;
  const all = Object.values(rows) as unknown as readonly CellSummary[];
  return [...all].sort((one, other) => (one.cell < other.cell ? -1 : 1));
}
/**
 * Why nothing is known of a cell's elements, nor will be as things are; null: they are waited for, or there. Of a cell that is another's
 * nobody says whether it is there.
 * @param cell null: of none in particular
 */
export function whyNoElements(followed: Followed, cell: string | null): string | null {
  const cells = cellsIn(followed);
  if (cells === null) return null;
  if (cell === null) return cells.length === 0 ? "There is no cell yet that you may see." : null;
  if (!cells.some((each) => each.cell === cell)) return `There is no cell ${cell} that you may see.`;
  return followed.ended.get(`cell:${cell}`) ?? null;
}
export function statusIn(followed: Followed): InstallationStatus | null {
  const rows = rowsOf(followed, "status");
  return rows === null ? null : statusOfRows(rows);
}

export interface KnownHa extends Pick<HaReport, "protected" | "storm"> {
  readonly alerts: readonly HaAlert[];
  readonly items: readonly HaItem[];
}
/** Null: it has not come yet, or there is no HA Manager. */
export function haIn(followed: Followed): KnownHa | null {
  const { summary, ...rows } = rowsOf(followed, "ha") ?? {};
  if (summary === undefined) return null;
  const of = (kind: string): never =>
    Object.entries(rows).flatMap(([key, row]) => (key.startsWith(`${kind}/`) ? [row] : [])) as never;
  return { ...(summary as unknown as Pick<HaReport, "protected" | "storm">), alerts: of("alert"), items: of("item") };
}

/** What a cell's rules, interfaces and machines count, by their paths. */
export interface CountersKnown {
  readonly rules: ReadonlyMap<string, RuleCounted>;
  readonly interfaces: ReadonlyMap<string, InterfaceCounted>;
  /** How many hosts do not say; which, for the operator. */
  readonly missing: number;
  readonly silent: readonly string[];
}
/** Null: it has not come yet. */
export function countersIn(followed: Followed, cell: string): CountersKnown | null {
  const rows = rowsOf(followed, `counters:${cell}`);
  if (rows === null) return null;
  const of = <T extends { readonly path: string }>(kind: string): ReadonlyMap<string, T> =>
    new Map(
      Object.entries(rows).flatMap(([key, row]) =>
        key.startsWith(`${kind}/`) ? [[key.slice(kind.length + 1), row as unknown as T]] : [],
      ),
    );
  const { missing = 0, silent = [] } = (rows.summary ?? {}) as unknown as Partial<Omit<CountersKnown, "rules">>;
  return { rules: of("rule"), interfaces: of("interface"), missing, silent };
}

export interface Element {
  readonly cell: string;
  readonly path: string;
  readonly type: string;
  readonly state: ElementState;
}
/** Elements of all cells that are followed, by their paths. */
export function elementsIn(followed: Followed): readonly Element[] {
  const all: Element[] = [];
  for (const [topic, { rows }] of followed.topics) {
    if (!topic.startsWith("cell:")) continue;
    const cell = topic.slice("cell:".length);
    for (const [path, row] of Object.entries(rows)) {
      const { type, state } = row as unknown as Pick<Element, "type" | "state">;
      all.push({ cell, path, type, state });
    }
  }
  return all;
}

/** How a phase is drawn: a sign beside its word, so that no colour is needed. */
export const phaseSigns: Readonly<Record<string, string>> = {
  ready: "✓",
  working: "◔",
  waiting: "…",
  failed: "✕",
  deleting: "−",
};

/** `3 s`, `4 min`, `2 h`, `5 d`. */
export function ago(sinceMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
