import type { Kernel } from "../kernel/kernel.ts";
import type { Installation } from "../world/installation.ts";
import type { Truth } from "../world/truth.ts";
import type { Users } from "../world/wishes.ts";

/**
 * An invariant looks on from outside: at what is physically so, at what crosses the network, at logs. It shares no code with
 * what it checks, and counts how often its premise held: one whose premise never held has proved nothing.
 */
export interface View {
  readonly kernel: Kernel;
  readonly truth: Truth;
  readonly installation: Installation;
  readonly users: Users;
}
export class Verdict {
  /** How often there was something to check. */
  held = 0;
  readonly violations: string[] = [];
  readonly #kernel: Kernel;
  readonly #name: string;

  constructor(kernel: Kernel, name: string) {
    this.#kernel = kernel;
    this.#name = name;
  }

  /** The premise held; and what it demands does, or not. */
  check(holds: boolean, otherwise: () => string): void {
    this.held += 1;
    if (!holds) this.violate(otherwise());
  }

  violate(sentence: string): void {
    if (this.violations.length >= 10) return;
    this.violations.push(sentence);
    this.#kernel.isOver = true;
    this.#kernel.log("invariant", this.#name, { violated: sentence });
  }
}
export interface Invariant {
  /** 1 to 20: what has to hold whatever fails; above them, what the services promise besides. The list is in `../README.md`. */
  readonly number: number;
  readonly title: string;
  /** Begins to watch. What is returned is called once everything is at rest. */
  readonly watch: (view: View, verdict: Verdict) => (() => void) | undefined;
}
