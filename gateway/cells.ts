import { setTimeout as sleep } from "node:timers/promises";
import type { CellSummary } from "../model/api.ts";
import { peerRequest } from "../runtime/https.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import type { Observer } from "../runtime/observer.ts";
import { controllerOf } from "./forward.ts";
import { askSupervisor } from "./supervisor.ts";

/** Which cells there are, and the life of their controllers. */
export interface Cells {
  names(): Promise<readonly string[]>;
  /** Makes the cell's controller; idempotent. */
  make(cell: string): Promise<void>;
  /** Of all cells, or of one alone: then nothing is said of it unless its controller knows the credential. */
  summaries(authorization: string, only: string | null): Promise<readonly CellSummary[]>;
  /** Runs `work` while nothing else makes or ends this cell's controller. */
  exclusively<T>(cell: string, work: () => Promise<T>): Promise<T>;
  /** Ends a controller that never got a model. To be called inside `exclusively`. */
  discardUnused(cell: string, authorization: string): Promise<void>;
  /** Follows a cell's deletion in the background and ends its controller when nothing is left. */
  endWhenEmpty(cell: string, authorization: string): void;
  stop(): Promise<void>;
}
type Summary = CellSummary & { readonly empty: boolean };

const summaryPatienceMs = 2_000;
const pollMs = 500;
/** A deletion may wait for a server that is away. After this, listing the cells goes on with it. */
const longestPolls = 1_200;

export function createCells(
  configuration: ProcessConfiguration,
  supervisorSocket: string,
  log: Observer["log"],
): Cells {
  const busy = new Map<string, Promise<unknown>>();
  const ending = new Map<string, Promise<void>>();
  const stopping = new AbortController();

  const exclusively = async <T>(cell: string, work: () => Promise<T>): Promise<T> => {
    const before = busy.get(cell) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {});
    busy.set(cell, settled);
    try {
      return await mine;
    } finally {
      if (busy.get(cell) === settled) busy.delete(cell);
    }
  };
  const names = async (): Promise<readonly string[]> =>
    (await askSupervisor(supervisorSocket, "GET", "/cells")) as readonly string[];
  const remove = async (cell: string): Promise<void> => {
    await askSupervisor(supervisorSocket, "DELETE", `/cells/${encodeURIComponent(cell)}`);
    log("cell/ended", { cell });
  };

  /** null: its controller does not answer. */
  const summaryOf = async (cell: string, authorization: string): Promise<Summary | null> => {
    try {
      const answer = await peerRequest(configuration, controllerOf(cell), {
        method: "GET",
        path: `/cells/${encodeURIComponent(cell)}`,
        headers: { authorization },
        signal: AbortSignal.any([AbortSignal.timeout(summaryPatienceMs), stopping.signal]),
      });
      const text = await answer.text();
      return answer.status === 200 ? (JSON.parse(text) as Summary) : null;
    } catch {
      return null;
    }
  };
  /** True when the cell's controller has ended, or lives on with a new model. */
  const endIfEmpty = (cell: string, authorization: string): Promise<boolean> =>
    exclusively(cell, async () => {
      if (!(await names()).includes(cell)) return true;
      const summary = await summaryOf(cell, authorization);
      if (summary?.empty !== true) return false;
      await remove(cell);
      return true;
    });
  const follow = async (cell: string, authorization: string): Promise<void> => {
    for (let polls = 0; polls < longestPolls && !stopping.signal.aborted; polls += 1) {
      if (await endIfEmpty(cell, authorization).catch(() => false)) return;
      await sleep(pollMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const endWhenEmpty = (cell: string, authorization: string): void => {
    if (ending.has(cell) || stopping.signal.aborted) return;
    const following = follow(cell, authorization).finally(() => ending.delete(cell));
    ending.set(cell, following);
  };

  return {
    names,
    exclusively,
    endWhenEmpty,
    make: async (cell) => {
      await askSupervisor(supervisorSocket, "POST", `/cells/${encodeURIComponent(cell)}`);
      log("cell/made", { cell });
    },
    summaries: async (authorization, only) => {
      const all = await Promise.all(
        (await names()).map(async (cell): Promise<CellSummary | null> => {
          if (only !== null && only !== cell) return null;
          const summary = await summaryOf(cell, authorization);
          if (summary === null)
            return only === null ? { cell, version: 0, phases: { unreachable: 1 }, elements: 0 } : null;
          const { empty, ...told } = summary;
          // Left over by a gateway that ended while it followed the deletion.
          if (empty && told.version > 0) endWhenEmpty(cell, authorization);
          return told;
        }),
      );
      return all.filter((summary) => summary !== null);
    },
    discardUnused: async (cell, authorization) => {
      const summary = await summaryOf(cell, authorization);
      if (summary?.empty === true && summary.version === 0) await remove(cell);
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(ending.values());
    },
  };
}
