import type { Rows } from "../../../model/contract/follow/follow.ts";
import { deltaOf } from "../../../model/contract/follow/reduce.ts";
import {
  type CellEvent,
  type CellNews,
  mostEvents,
  type NoticeKind,
} from "../../../model/contract/tenancy/subscriptions.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";

/*
 * What has become of a cell between two looks at it, for who has subscribed to that. It goes by what is so and by no event: whatever came and
 * went in between is not told, and nothing is told twice because a look was.
 */
const kindOf = (row: Json | undefined): NoticeKind | null => {
  const type = isObject(row) ? row.type : null;
  if (type === "VM") return "vm";
  return type === "Volume" || type === "VolumeCopy" ? "volume" : null;
};
const stateOf = (row: Json | undefined): JsonObject => (isObject(row) && isObject(row.state) ? row.state : {});
const textIn = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);
const phaseOf = (row: Json | undefined): string | null => textIn(stateOf(row).phase);

/** What of an element is told: what else changes of it is nobody's news. */
const toldOf = (row: Json | undefined): string => {
  const { phase = null, power = null, sizeMiB = null } = stateOf(row);
  return JSON.stringify([phase, power, kindOf(row) === "volume" ? sizeMiB : null]);
};

/** `ready`: all of it is; `failed`: something has; `working`: something is not there yet. */
export function cellPhase(rows: Rows): "ready" | "failed" | "working" {
  const phases = Object.values(rows).map(phaseOf);
  if (phases.includes("failed")) return "failed";
  return phases.every((phase) => phase === "ready") ? "ready" : "working";
}

/** What begins to be watched. */
export const began = (cell: string, rows: Rows): CellNews => ({
  kind: "began",
  cell,
  events: [{ event: "cell", path: null, phase: cellPhase(rows), before: null }],
  more: 0,
});
export const gone = (cell: string): CellNews => ({
  kind: "gone",
  cell,
  events: [{ event: "cell", path: null, phase: null, before: null }],
  more: 0,
});

/** Null: nothing that is told. */
export function happened(cell: string, before: Rows, after: Rows, kinds: readonly NoticeKind[]): CellNews | null {
  const delta = deltaOf(before, after);
  if (delta === null) return null;
  const [was, is] = [cellPhase(before), cellPhase(after)];
  const events: CellEvent[] =
    was === is || !kinds.includes("cell") ? [] : [{ event: "cell", path: null, phase: is, before: was }];
  for (const path of [...Object.keys(delta.rows), ...delta.gone].sort()) {
    const event = kindOf(after[path] ?? before[path]);
    if (event === null || !kinds.includes(event) || toldOf(before[path]) === toldOf(after[path])) continue;
    const { reason, power, sizeMiB } = stateOf(after[path]);
    events.push({
      event,
      path: path.slice(0, 1024),
      phase: phaseOf(after[path]),
      before: phaseOf(before[path]),
      ...(typeof reason === "string" ? { reason: reason.slice(0, 400) } : {}),
      ...(typeof power === "string" && event === "vm" ? { power } : {}),
      ...(typeof sizeMiB === "number" && event === "volume" ? { sizeMiB } : {}),
    });
  }
  if (events.length === 0) return null;
  return {
    kind: "changed",
    cell,
    events: events.slice(0, mostEvents),
    more: Math.max(0, events.length - mostEvents),
  };
}
