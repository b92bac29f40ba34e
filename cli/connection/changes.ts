import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "./client.ts";

/**
 * Tells when something may have changed, so that a command looks then and not every moment. It follows a stream of
 * events and reconnects; what an event says does not matter, since whoever is told looks at the whole state.
 */
export interface Changes {
  /**
   * Resolves when something may have changed since the last call, or after `limitMs`. What comes close together is told
   * once.
   */
  next(limitMs: number): Promise<void>;
  close(): void;
}

/** Events come in groups: a VM that starts moves its disks and interfaces along. */
const coalesceMs = 100;
/** Some of what is shown, as a load, changes without an event: it is looked at again after this at the latest. */
export const longestSilenceMs = 10_000;
const reconnectMs = { first: 250, last: 2_000 } as const;

/** @param open a stream of events of the contract, without its past; it calls `opened` when it stands */
const watchStream = (open: (signal: AbortSignal, opened: () => void) => AsyncIterable<unknown>): Changes => {
  const stopping = new AbortController();
  const { signal } = stopping;
  let changed = false;
  let wake: (() => void) | null = null;
  const tell = (): void => {
    changed = true;
    wake?.();
  };
  const listen = async (): Promise<void> => {
    for (let pauseMs: number = reconnectMs.first; !signal.aborted; ) {
      const opened = (): void => {
        // What happened before it stood is not told by it.
        pauseMs = reconnectMs.first;
        tell();
      };
      try {
        for await (const _event of open(signal, opened)) tell();
      } catch {
        // The next look says what is wrong, if something is.
      }
      if (signal.aborted) return;
      tell();
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, reconnectMs.last);
    }
  };
  void listen();
  const wait = (limitMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => done(), Math.min(Math.max(limitMs, 0), longestSilenceMs));
      const done = (): void => {
        clearTimeout(timer);
        wake = null;
        resolve();
      };
      wake = done;
      if (changed) done();
    });
  return {
    next: async (limitMs) => {
      await wait(limitMs);
      if (changed) await sleep(Math.min(coalesceMs, Math.max(limitMs, 0)));
      changed = false;
    },
    close: () => stopping.abort(),
  };
};

export const watchCell = (client: Pick<Client, "stream">, cell: string): Changes => {
  const query = { follow: true, past: false };
  return watchStream((signal, opened) => client.stream("followCell", { parameters: { cell }, query, signal }, opened));
};

/** @param since ISO 8601 */
export const watchServices = (client: Pick<Client, "stream">, since: string): Changes => {
  const query = { follow: true, since };
  return watchStream((signal, opened) => client.stream("followServices", { parameters: {}, query, signal }, opened));
};
