import { setTimeout as sleep } from "node:timers/promises";
import type { CellSummary } from "../../model/api.ts";
import { saidStanding } from "../../model/contract/values.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { Observer } from "../../runtime/observation/observer.ts";
import { controllerOf, isChildName } from "../requests/cell-names.ts";
import type { Way } from "../requests/forward.ts";
import { answerAs } from "../requests/peer-answer.ts";
import type { Registry, Summary } from "./registry.ts";

/** Which cells there are, and the life of their controllers. */
export interface Cells
  extends Pick<Registry, "names" | "has" | "isMade" | "make" | "mayEnd" | "mayMake" | "empties" | "firstVersion"> {
  /**
   * Of all cells, or of these alone, of which nothing is said unless their controllers know the credential. A cell that was
   * deleted is there no longer once nothing is left of it, though its controller has yet to end.
   *
   * @param areKnown somebody else has said that whoever asks may see these: of one whose controller does not answer that is said
   */
  summaries(authorization: string, only: readonly string[] | null, areKnown?: boolean): Promise<readonly CellSummary[]>;
  /** Runs `work` while nothing else makes or ends this cell's controller. */
  exclusively<T>(cell: string, work: () => Promise<T>): Promise<T>;
  /** Ends a cell that was made and never got a model. To be called inside `exclusively`. */
  discardUnused(cell: string, authorization: string): Promise<void>;
  /** Sees to the end of a cell whose users deleted all of it, in the background where that takes a while. */
  endWhenEmpty(cell: string, authorization: string): Promise<void>;
  stop(): Promise<void>;
}

const summaryTimeoutMs = 2_000;
/** Of a controller in a VM, whose emulated processor may have other things to do. */
const vmTimeoutMs = 20_000;
const pollMs = 500;
/** A deletion may wait for a server that is away. After this, listing the cells goes on with it. */
const longestPolls = 1_200;

/** `freed`: a cell has ended, by who shows this. */
export function createCells(
  { configuration, present }: Way,
  registry: Registry,
  log: Observer["log"],
  freed: (cell: string, authorization: string) => Promise<void>,
): Cells {
  const busy = new Map<string, Promise<unknown>>();
  const ending = new Map<string, Promise<void>>();
  /** Nothing is left of them, and their controllers are being ended. */
  const removing = new Set<string>();
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
  const remove = async (cell: string, authorization: string): Promise<void> => {
    removing.add(cell);
    try {
      await registry.end(cell, authorization);
    } finally {
      removing.delete(cell);
    }
    log("cell/ended", { cell });
    // Should this be lost, its name stays its account's, until the operator makes a cell of it.
    if (!isChildName(cell)) await freed(cell, authorization).catch(() => undefined);
  };
  const isGone = async (cell: string): Promise<boolean> => removing.has(cell) || !(await registry.has(cell));

  /** `unknown`: its controller knows nothing of it, or not this credential. `silent`: it does not answer. */
  const askedOf = async (cell: string, authorization: string): Promise<Summary | "unknown" | "silent"> => {
    try {
      const timeout = AbortSignal.timeout(registry.empties ? vmTimeoutMs : summaryTimeoutMs);
      const answer = await present(cell, authorization, (shown) =>
        peerRequest(configuration, controllerOf(cell), {
          method: "GET",
          path: `/cells/${encodeURIComponent(cell)}`,
          headers: { authorization: shown },
          signal: AbortSignal.any([timeout, stopping.signal]),
        }),
      );
      const text = await answer.text();
      if (answer.status === 200) return { ...answerAs(saidStanding, text, controllerOf(cell)), cell };
      return [401, 403, 404].includes(answer.status) ? "unknown" : "silent";
    } catch {
      return "silent";
    }
  };
  /** null: its controller does not answer. */
  const summaryOf = async (cell: string, authorization: string): Promise<Summary | null> => {
    const said = await askedOf(cell, authorization);
    return typeof said === "string" ? null : said;
  };
  /** True when the cell's controller has ended, or lives on with a new model. */
  const endIfEmpty = (cell: string, authorization: string): Promise<boolean> =>
    exclusively(cell, async () => {
      if (!(await registry.has(cell))) return true;
      const summary = await summaryOf(cell, authorization);
      if (summary?.empty !== true) return false;
      await remove(cell, authorization);
      return true;
    });
  const follow = async (cell: string, authorization: string): Promise<void> => {
    for (let polls = 0; polls < longestPolls && !stopping.signal.aborted; polls += 1) {
      if (await endIfEmpty(cell, authorization).catch(() => false)) return;
      await sleep(pollMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const endWhenEmpty = async (cell: string, authorization: string): Promise<void> => {
    if (ending.has(cell) || stopping.signal.aborted || !registry.mayEnd(authorization)) return;
    if (registry.empties) {
      // Should this be lost, whoever lists the cells finds an empty one.
      await exclusively(cell, () => remove(cell, authorization)).catch(() => undefined);
      return;
    }
    const following = follow(cell, authorization).finally(() => ending.delete(cell));
    ending.set(cell, following);
  };

  const namesFor = async (authorization: string, only: readonly string[] | null): Promise<readonly string[]> => {
    if (only === null) return registry.names(authorization);
    const there = await Promise.all(only.map((cell) => registry.has(cell)));
    return only.filter((_cell, index) => there[index]);
  };
  const { names, has, isMade, mayEnd, mayMake, empties, firstVersion } = registry;
  return {
    names,
    has,
    isMade,
    mayEnd,
    mayMake,
    empties,
    firstVersion,
    exclusively,
    endWhenEmpty,
    make: async (cell, authorization, signal) => {
      await registry.make(cell, authorization, signal);
      log("cell/made", { cell });
    },
    summaries: async (authorization, only, areKnown = false) => {
      const all = await Promise.all(
        (await namesFor(authorization, only)).map(async (cell): Promise<CellSummary | null> => {
          const summary = await askedOf(cell, authorization);
          if (typeof summary === "string") {
            const isSaid = only === null || (areKnown && summary === "silent");
            return !isSaid || (await isGone(cell))
              ? null
              : { cell, version: 0, phases: { unreachable: 1 }, elements: 0 };
          }
          const { empty, ...told } = summary;
          if (!empty || told.version === 0) return told;
          // Left over by a gateway that ended while it followed the deletion.
          void endWhenEmpty(cell, authorization);
          return null;
        }),
      );
      return all.filter((summary) => summary !== null);
    },
    discardUnused: async (cell, authorization) => {
      const summary = await summaryOf(cell, authorization);
      if (summary?.elements === 0 && summary.version === firstVersion) await remove(cell, authorization);
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(ending.values());
    },
  };
}
