import { countRefusal } from "../../core/distribution/node/refuse.ts";
import type { RefusalLog } from "../../core/distribution/node/types.ts";
import type { Refusal } from "../../core/identity/may-connect.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { counter, type Metric, sample } from "../../core/telemetry/metrics.ts";

/** Why a connection was not taken, or was ended; the names under which that is counted. */
export type TransportRefusal =
  | "no certificate of this installation"
  | "superseded certificate"
  | "handshake failed"
  | "handshake too slow"
  | "too many handshakes"
  | "too many connections"
  | "no frame"
  | "no first frame"
  | "frame too slow";

export const reasonOf = ({ because }: { readonly because: Refusal }): TransportRefusal =>
  because === "superseded" ? "superseded certificate" : "no certificate of this installation";

/** Counts what the transport refuses, and logs of each sender and reason one a minute, with how many there were by then. */
export interface Refusals {
  /** @param from a peer's name, or the address of one that has not shown who it is */
  refuse(from: string, reason: TransportRefusal, why: string): void;
  metrics(): readonly Metric[];
}

export const createRefusals = (
  log: (event: EventName, fields: { readonly [key: string]: string | number }) => void,
): Refusals => {
  const counts = new Map<TransportRefusal, number>();
  const logged: RefusalLog = new Map();
  return {
    refuse: (from, reason, why) => {
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const count = countRefusal(logged, `${from} ${reason}`, performance.now());
      if (count !== null) log("transport/refused", { from, reason, why, count });
    },
    metrics: () => [
      counter(
        "cells_distribution_refused_total",
        "Connections, frames and documents that were not taken, by reason.",
        [...counts].map(([reason, count]) => sample(count, { reason })),
      ),
    ],
  };
};
