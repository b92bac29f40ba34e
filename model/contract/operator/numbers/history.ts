import type { InstallationStatus } from "../../../api.ts";
import { dictionary, integer, list, nullable, number, record, time } from "../../schema.ts";

/**
 * The last hour as the gateway has seen it: `GET /history`. Each series has one value for each moment, the last one of `until`; null: nothing was heard then.
 */
export interface History {
  readonly everyMs: number;
  /** Of the last moment. */
  readonly until: string;
  readonly moments: number;
  /** By host, processors that its VMs kept busy. */
  readonly load: { readonly [host: string]: Series };
  /** By host, MiB that its VMs have. */
  readonly usedMiB: { readonly [host: string]: Series };
  /** By cell, how many of its VMs ran (figure 6). */
  readonly running: { readonly [cell: string]: Series };
  /** So many more series there was no room for. */
  readonly leftOut: number;
}
export type Series = readonly (number | null)[];

const series = dictionary(list(nullable(number)));
export const history = record<History>(
  {
    everyMs: integer(),
    until: time,
    moments: integer(),
    load: series,
    usedMiB: series,
    running: series,
    leftOut: integer(),
  },
  "History",
);

/** What one status is worth in a history: by kind of series and name. Of a host that is not heard nothing is known, and of what runs there neither. */
export type Moment = Readonly<Record<"load" | "usedMiB" | "running", ReadonlyMap<string, number>>>;
export function momentOf({ hosts }: Pick<InstallationStatus, "hosts">): Moment {
  const [load, usedMiB, running] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  for (const { host, state, load: used, usedMiB: memory, machines = [] } of hosts) {
    if (state === "unreachable") continue;
    if (used !== undefined) load.set(host, used.vms);
    usedMiB.set(host, memory);
    for (const { cell, stage } of machines) running.set(cell, (running.get(cell) ?? 0) + (stage === "running" ? 1 : 0));
  }
  return { load, usedMiB, running };
}
