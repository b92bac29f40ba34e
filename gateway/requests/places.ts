import type { Scope } from "./credentials.ts";

/*
 * What the gateway has little of, places for requests, streams and sessions, is shared out: no cell's people, and nobody
 * without a credential, can keep the others or the operator from it.
 */
export interface PlaceLimits {
  readonly inAll: number;
  /** Of them, for the operator alone. */
  readonly reserved: number;
  readonly perCell: number;
}
/** `share`: the cell has what it may have by now; `full`: nobody of its kind gets one. */
export type NoPlace = "share" | "full";

export class Counts {
  all = 0;
  readonly #each = new Map<string, number>();

  of(name: string): number {
    return this.#each.get(name) ?? 0;
  }
  add(name: string, change: 1 | -1): void {
    this.all += change;
    const count = this.of(name) + change;
    if (count === 0) this.#each.delete(name);
    else this.#each.set(name, count);
  }
}

const operator = "";
/** A user's requests count for his account, whichever cell they are about. */
const ownerOf = (scope: Scope): string =>
  scope.kind === "cell" ? scope.cell : scope.kind === "account" ? `account ${scope.account}` : operator;

/**
 * A cell that has none gets a place as long as there is a free one; one that has some needs twice as many to be free. So a cell
 * alone has all of its share, a few together never have all places, and each newcomer finds one.
 */
export class Places {
  readonly limits: PlaceLimits;
  readonly #taken = new Counts();

  constructor(limits: PlaceLimits) {
    this.limits = limits;
  }

  /** How to give it back, at any time and once; or why there is none. */
  take(scope: Scope): (() => void) | NoPlace {
    const { inAll, reserved, perCell } = this.limits;
    const owner = ownerOf(scope);
    const left = inAll - this.#taken.all;
    if (left <= 0) return "full";
    if (scope.kind !== "operator") {
      const own = this.#taken.of(owner);
      const ofCells = this.#taken.all - this.#taken.of(operator);
      const free = Math.min(left, inAll - reserved - ofCells);
      if (free <= 0) return own > 0 ? "share" : "full";
      if (own >= perCell || 2 * own > free) return "share";
    }
    this.#taken.add(owner, 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#taken.add(owner, -1);
      isTaken = false;
    };
  }
}

/** Questions to controllers for people of whom nothing is known yet. */
export interface QuestionLimits {
  readonly inAll: number;
  readonly perAddress: number;
  readonly perCell: number;
  /** From one address about one cell. */
  readonly perBoth: number;
}

/** Like `Places`, for who has no credential yet that anybody vouched for. */
export class Questions {
  readonly #limits: QuestionLimits;
  readonly #cells = new Counts();
  readonly #addresses = new Counts();
  readonly #both = new Counts();

  constructor(limits: QuestionLimits) {
    this.#limits = limits;
  }

  /** How to end it; null: there are too many. */
  begin(cell: string, address: string): (() => void) | null {
    const both = `${cell} ${address}`;
    const { inAll, perAddress, perCell, perBoth } = this.#limits;
    const isFull =
      this.#cells.all >= inAll ||
      this.#cells.of(cell) >= perCell ||
      this.#addresses.of(address) >= perAddress ||
      this.#both.of(both) >= perBoth;
    if (isFull) return null;
    const count = (change: 1 | -1): void => {
      this.#cells.add(cell, change);
      this.#addresses.add(address, change);
      this.#both.add(both, change);
    };
    count(1);
    return () => count(-1);
  }
}
