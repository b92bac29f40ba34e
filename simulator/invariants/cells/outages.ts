import { goodQuality } from "../../kernel/network.ts";
import type { AnyProcess, Installation } from "../../world/installation.ts";

const lookEveryMs = 100;
/** A connection that broke is noticed, and made anew, within this long. */
const reconnectMs = 45_000;
/** Of outages that follow each other so closely nothing is heard between them. */
const pauseMs = 5_000;

/** When some of these processes did not run, or could not hear each other: a change that is made then is heard later. */
export class Outages {
  readonly #all: { readonly fromMs: number; toMs: number; isSilent: boolean }[] = [];

  /** `whose`: asked at each look. */
  constructor({ kernel }: Installation, whose: () => readonly AnyProcess[]) {
    const { clock, network } = kernel;
    const look = (): void => {
      clock.after(lookEveryMs, look);
      const all = whose();
      const isApart = all.some((one) => all.some((other) => !network.isOpen(one.machine, other.machine)));
      const isSilent = isApart || network.quality !== goodQuality || all.some((each) => each.isPaused);
      if (!isSilent && all.every((each) => each.isRunning)) return;
      const last = this.#all.at(-1);
      if (last === undefined || last.toMs + pauseMs < clock.nowMs)
        this.#all.push({ fromMs: clock.nowMs - lookEveryMs, toMs: clock.nowMs, isSilent });
      else Object.assign(last, { toMs: clock.nowMs, isSilent: isSilent || last.isSilent });
    };
    clock.after(lookEveryMs, look);
  }

  /** How much later than usual a change of then may have been heard, in ms. `usualMs`: how late it is else. */
  delayOf(atMs: number, usualMs: number): number {
    const during = this.#all.filter(({ fromMs, toMs }) => fromMs - usualMs <= atMs && atMs <= toMs + usualMs);
    return Math.max(0, ...during.map(({ toMs, isSilent }) => toMs - atMs + (isSilent ? reconnectMs : 0)));
  }
}
