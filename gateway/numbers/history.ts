import type { InstallationStatus } from "../../model/api.ts";
import {
  type History,
  type MachineHistory,
  type MachineMoment,
  type Moment,
  momentOf,
  type Series,
} from "../../model/contract/operator/numbers/history.ts";
import { everyMs, SeriesRing } from "./series.ts";

type Status = Pick<InstallationStatus, "hosts">;

/** Of hosts and cells, for the operator. */
export class HistoryRing {
  readonly #ring: SeriesRing;

  constructor(most?: number) {
    this.#ring = new SeriesRing(most);
  }

  /** @param status null: nothing was heard at this moment */
  add(status: Status | null, nowMs: number): void {
    this.#ring.add(numbersOf(status), nowMs);
  }
  read(): History {
    const { until, moments, leftOut, names } = this.#ring;
    const of = (kind: keyof Moment): Readonly<Record<string, Series>> =>
      Object.fromEntries(
        names
          .filter((name) => name.startsWith(`${kind} `))
          .map((name) => [name.slice(kind.length + 1), this.#ring.of(name)]),
      );
    return { everyMs, until, moments, load: of("load"), usedMiB: of("usedMiB"), running: of("running"), leftOut };
  }
}
/** By kind and name. */
function numbersOf(status: Status | null): ReadonlyMap<string, number> {
  if (status === null) return new Map();
  const kinds = Object.entries(momentOf(status));
  return new Map(kinds.flatMap(([kind, all]) => [...all].map(([name, value]) => [`${kind} ${name}`, value] as const)));
}

/** Of each machine, for whoever may read it: four series, so some 2,900 machines, and no cell's at another one's cost. */
export class MachineRing {
  readonly #ring: SeriesRing;

  constructor(most?: number) {
    this.#ring = new SeriesRing(most, cellIn);
  }

  /**
   * @param status null: nothing was heard at this moment
   * @param lifeOf by the name of a cell, which of that name it is: a later one is shown nothing of an earlier one's machines
   */
  add(status: Status | null, lifeOf: (cell: string) => string, nowMs: number): void {
    const numbers = new Map<string, number>();
    for (const { state, machines = [] } of status?.hosts ?? []) {
      if (state === "unreachable") continue;
      for (const { cell, path, ...said } of machines)
        for (const kind of kinds) {
          const value = said[kind] ?? null;
          if (value !== null) numbers.set(`${kind} ${lifeOf(cell)} ${cell} ${path}`, value);
        }
    }
    this.#ring.add(numbers, nowMs);
  }
  /** Of a machine of which nothing is known all is null. */
  read(cell: string, path: string, life: string): MachineHistory {
    const { until, moments, leftOut } = this.#ring;
    const of = (kind: keyof MachineMoment): Series => this.#ring.of(`${kind} ${life} ${cell} ${path}`);
    const numbers = { load: of("load"), residentMiB: of("residentMiB"), network: of("network"), disk: of("disk") };
    return { everyMs, until, moments, ...numbers, isWhole: leftOut === 0 };
  }
}
/** Of whichever life: who has a name anew has what the one before had. */
const cellIn = (name: string): string => name.split(" ")[2] ?? "";
const kinds = ["load", "residentMiB", "network", "disk"] as const satisfies readonly (keyof MachineMoment)[];
