import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../cli/connection/client.ts";
import type { ServiceEvent } from "../../model/api.ts";

/** The installation's events as they are told, from when it is made until `stop`. */
export class TimeLine {
  readonly #events = new Map<string, ServiceEvent>();
  readonly #listeners = new Set<(event: ServiceEvent) => void>();
  readonly #end = new AbortController();
  readonly #following: Promise<void>;

  constructor(client: Pick<Client, "stream">) {
    this.#following = this.#follow(client, new Date().toISOString());
  }

  async #follow(client: Pick<Client, "stream">, since: string): Promise<void> {
    const { signal } = this.#end;
    // The gateway ends a stream whose reader is too slow; what was told is told again then, and known by its id.
    while (!signal.aborted) {
      try {
        const asking = { parameters: {}, query: { follow: true, since }, signal };
        for await (const event of client.stream("followServices", asking)) this.#take(event);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Error)) throw error;
      }
      await sleep(500, undefined, { signal }).catch(() => undefined);
    }
  }

  #take(event: ServiceEvent): void {
    const key = `${event.service} ${event.id}`;
    if (this.#events.has(key)) return;
    this.#events.set(key, event);
    for (const listener of this.#listeners) listener(event);
  }

  events(): readonly ServiceEvent[] {
    return [...this.#events.values()];
  }

  /** Asks again at every event. Resolves with the first answer that is not null; rejects after the time. */
  until<T>(what: string, ask: () => T | null, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        clearTimeout(timer);
        this.#listeners.delete(look);
      };
      const look = (): void => {
        const answer = ask();
        if (answer === null) return;
        over();
        resolve(answer);
      };
      const timer = setTimeout(() => {
        over();
        reject(new Error(`still not so after ${Math.round(timeoutMs / 1000)} s: ${what}`));
      }, timeoutMs);
      this.#listeners.add(look);
      look();
    });
  }

  /** The first event since then that is so. */
  event(what: string, sinceMs: number, is: (event: ServiceEvent) => boolean, timeoutMs: number): Promise<ServiceEvent> {
    const found = (): ServiceEvent | null =>
      this.events().find((event) => Date.parse(event.time) >= sinceMs && is(event)) ?? null;
    return this.until(what, found, timeoutMs);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#following;
  }
}
