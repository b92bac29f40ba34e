import type { InstallationStatus } from "../../../model/api.ts";
import type { Trial } from "../../../model/contract/operator/placement.ts";

/** What stands where, as hosts say it, and what would come of it if one of them went elsewhere. Pure. */
export interface StandingMachine {
  /** As people call it: its cell's whole name first. */
  readonly vm: string;
  readonly cell: string;
  /** Its path in the cell's document. */
  readonly path: string;
  readonly memoryMiB: number;
  readonly isRunning: boolean;
}
export interface StandingHost {
  readonly host: string;
  readonly isHeard: boolean;
  /** Why it takes nothing new; null: it does. */
  readonly administration: string | null;
  readonly usedMiB: number;
  readonly memoryMiB: number;
  readonly machines: readonly StandingMachine[];
}

export function standingIn({ hosts }: InstallationStatus): readonly StandingHost[] {
  const order = new Intl.Collator("en", { numeric: true });
  return [...hosts]
    .sort((one, other) => order.compare(one.host, other.host))
    .map(({ host, state, administration = null, usedMiB, memoryMiB, reservedMiB = 0, machines = [] }) => ({
      host,
      isHeard: state !== "unreachable",
      administration,
      usedMiB,
      memoryMiB: Math.max(0, memoryMiB - reservedMiB),
      machines: machines
        .map(({ cell, path, memoryMiB, stage }) => ({
          vm: [cell, ...path.split("/").slice(1)].join("/"),
          cell,
          path,
          memoryMiB,
          isRunning: stage === "running",
        }))
        .sort((one, other) => order.compare(one.vm, other.vm)),
    }));
}

/** What is said of a move before it is made. */
export interface Foretold {
  /** The host takes it now; else the sentence why not, and until when it waits. */
  readonly waits: string | null;
  readonly alerts: readonly string[];
}
export function foretoldBy({ refusal, alerts }: Pick<Trial, "refusal" | "alerts">): Foretold {
  const until = refusal === undefined || refusal.lifts === "" ? "" : `, until ${refusal.lifts}`;
  return {
    waits: refusal === undefined ? null : `${refusal.why}. It would run on where it is${until}`,
    alerts: alerts.map(({ kind, says }) => `Alert ${kind}: ${says}`),
  };
}
