import { type WatchdogWord, watchdogSeconds } from "../../../host/heartbeat/watchdog.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Life } from "../../kernel/process.ts";

/** `none`: the host has none; `works`: it resets the host; `dead`: it counts and does nothing, as one of software whose kernel stands still. */
export const watchdogModes = ["none", "works", "dead"] as const;
export type WatchdogMode = (typeof watchdogModes)[number];

/** From a reset until the Host Manager starts. */
const bootMs = 5000;

/**
 * The watchdog of one host (`host/heartbeat/watchdog-device.ts`): it counts on where whoever fed it stands still or has died, and rests when the next Host Manager
 * opens it.
 */
export class HostWatchdog {
  mode: WatchdogMode = "none";
  readonly #host: HostName;
  readonly #kernel: Kernel;
  readonly #reset: (awayMs: number) => void;
  #stop: (() => void) | null = null;

  constructor(host: HostName, kernel: Kernel, reset: (awayMs: number) => void) {
    this.#host = host;
    this.#kernel = kernel;
    this.#reset = reset;
  }

  /** One life of the Host Manager opens it. */
  open(life: Life): (word: WatchdogWord) => void {
    this.rest();
    return (word) => {
      if (!life.isAlive()) return;
      if (word === "rest") this.rest();
      if (word === "feed") this.#feed();
    };
  }

  /** Also where the host has no power any more. */
  rest(): void {
    this.#stop?.();
    this.#stop = null;
  }

  #feed(): void {
    this.rest();
    const event = this.#kernel.clock.after(watchdogSeconds * 1000, () => {
      this.#stop = null;
      if (this.mode === "none") return;
      this.#kernel.log(this.#host, "watchdog", { mode: this.mode });
      if (this.mode === "works") this.#reset(bootMs);
    });
    this.#stop = () => {
      event.cancelled = true;
    };
  }
}
