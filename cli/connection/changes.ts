import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "./client.ts";

/**
 * Tells when something may have changed, so that a command need not poll. It follows a stream of events and reconnects. The
 * content of an event does not matter: the caller reads the whole state.
 */
export interface Changes {
  /**
   * Resolves when something may have changed since the last call, or after `limitMs`. Events that come close together count
   * as one.
   */
  next(limitMs: number): Promise<void>;
  close(): void;
}

/** Events come in groups: when a VM starts, its disks and interfaces change too. */
const coalesceMs = 100;
/** Some things change without an event, such as a load: the state is read again after this time at the latest. */
export const longestSilenceMs = 10_000;
const reconnectMs = { first: 250, last: 2_000 } as const;

/** @param open opens a stream of events without past ones, and calls `opened` once it is connected */
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
        // Something may have changed before it was connected.
        pauseMs = reconnectMs.first;
        tell();
      };
      try {
        for await (const _event of open(signal, opened)) tell();
      } catch {
        // If something is wrong, the next request of the caller says what.
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
