import type { InstallationStatus } from "../../../api.ts";
import { boolean, dictionary, integer, list, nullable, number, record, time } from "../../schema.ts";

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

/** What a moment of one machine is worth. */
export interface MachineMoment {
  /** Processors that it keeps busy. */
  readonly load: Series;
  /** Of its process on the host. */
  readonly residentMiB: Series;
  /** Octets a second, both ways. */
  readonly network: Series;
  readonly disk: Series;
}
/** `GET /cells/{cell}/history`: of one machine. Of one of which nothing is known all is null. */
export interface MachineHistory extends MachineMoment {
  readonly everyMs: number;
  readonly until: string;
  readonly moments: number;
  /** Every machine had room; false: this may be one that had none. */
  readonly isWhole: boolean;
}

const values = list(nullable(number));
const series = dictionary(values);
export const machineHistory = record<MachineHistory>(
  {
    everyMs: integer(),
    until: time,
    moments: integer(),
    load: values,
    residentMiB: values,
    network: values,
    disk: values,
    isWhole: boolean,
  },
  "MachineHistory",
);
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
