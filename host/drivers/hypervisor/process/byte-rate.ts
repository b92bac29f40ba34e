import type { Socket } from "node:net";

/**
 * How much of a guest's talk the Host Manager takes in a second, on one channel. All machines of a host are looked after in
 * one event loop, and a guest must not be able to fill it: what is too much waits in the channel, and the guest with it.
 */
export interface Rate {
  readonly bytesPerSecond: number;
  /** May come at once. */
  readonly burstBytes: number;
}

/** Pauses a socket whose bytes are too many. It goes on by itself, unless `hold` has it wait. */
export class RateBound {
  readonly #socket: Pick<Socket, "pause" | "resume">;
  readonly #rate: Rate;
  readonly #now: () => number;
  #left: number;
  #at: number;
  #timer: NodeJS.Timeout | null = null;
  #held = false;

  /** `now`: milliseconds, monotonic. */
  constructor(socket: Pick<Socket, "pause" | "resume">, rate: Rate, now: () => number = () => performance.now()) {
    this.#socket = socket;
    this.#rate = rate;
    this.#now = now;
    this.#left = rate.burstBytes;
    this.#at = now();
  }

  /** So much has come. */
  take(bytes: number): void {
    const { bytesPerSecond, burstBytes } = this.#rate;
    const now = this.#now();
    this.#left = Math.min(burstBytes, this.#left + ((now - this.#at) / 1000) * bytesPerSecond) - bytes;
    this.#at = now;
    if (this.#left >= 0 || this.#timer !== null) return;
    this.#socket.pause();
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        if (!this.#held) this.#socket.resume();
      },
      Math.ceil((-this.#left / bytesPerSecond) * 1000),
    ).unref();
  }

  /** Nothing is read from now on; with false again, unless it was too much. */
  hold(held: boolean): void {
    this.#held = held;
    if (held) this.#socket.pause();
    else if (this.#timer === null) this.#socket.resume();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#held = true;
  }
}
