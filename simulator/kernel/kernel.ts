import { createHash } from "node:crypto";
import type { Frame } from "../../core/distribution/node/frames.ts";
import type { Effect, Input, Service } from "../../core/env.ts";
import type { Json } from "../../model/json/json.ts";
import { Clock } from "./clock.ts";
import { Network } from "./network.ts";
import { createRandom, type Random } from "./random.ts";

export interface LogFields {
  readonly [key: string]: Json;
}
/** Looks on; what it is told of has just happened. */
export interface Watcher {
  log?(who: string, event: string, fields: LogFields): void;
  /** A process begins a life. */
  began?(who: string): void;
  /** A service has taken an input; nothing of what follows from it is durable yet. */
  stepped?(who: string, input: Input, effects: readonly Effect[]): void;
  /** A frame arrives. */
  frame?(from: string, to: string, frame: Frame): void;
}

/** Time, chance, the network and the log of one run. */
export class Kernel {
  readonly clock = new Clock();
  readonly random: Random;
  readonly network: Network;
  readonly watchers: Watcher[] = [];
  readonly #hash = createHash("sha256");
  readonly #lines: string[] = [];
  readonly #keepLog: boolean;
  #poked = false;
  lines = 0;
  /** Somebody who looks on has seen enough. */
  isOver = false;

  constructor(seed: number, keepLog: boolean) {
    this.random = createRandom(seed);
    this.network = new Network(this.clock, this.random.fork("network"), (from, to, frame) => {
      for (const watcher of this.watchers) watcher.frame?.(from, to, frame);
    });
    this.#keepLog = keepLog;
  }

  log(who: string, event: string, fields: LogFields): void {
    const line = `${this.clock.nowMs.toFixed(3)} ${who} ${event} ${JSON.stringify(fields)}\n`;
    this.lines += 1;
    this.#hash.update(line);
    if (this.#keepLog) this.#lines.push(line);
    for (const watcher of this.watchers) watcher.log?.(who, event, fields);
  }

  began(who: string): void {
    for (const watcher of this.watchers) watcher.began?.(who);
  }

  /** The same service, looked at from outside. */
  watched<State>(who: string, service: Service<State>): Service<State> {
    return {
      ...service,
      step: (state, input, now) => {
        const step = service.step(state, input, now);
        for (const watcher of this.watchers) watcher.stepped?.(who, input, step.effects);
        return step;
      },
    };
  }

  /** A promise may have been settled: what waits for it goes on before time does. */
  poke(): void {
    this.#poked = true;
  }

  /** Lets everything happen that is due until then, or until it is over. */
  async runUntil(untilMs: number): Promise<void> {
    await this.#drain();
    for (;;) {
      const next = this.clock.nextMs;
      if (next === null || next > untilMs) break;
      this.clock.step();
      if (this.#poked) await this.#drain();
      if (this.isOver) return;
    }
    this.clock.nowMs = Math.max(this.clock.nowMs, untilMs);
  }

  /** SHA-256 of the log so far. */
  digest(): string {
    return this.#hash.copy().digest("hex");
  }
  text(): string {
    return this.#lines.join("");
  }

  async #drain(): Promise<void> {
    this.#poked = false;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
