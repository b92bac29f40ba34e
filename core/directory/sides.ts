import type { Network } from "../../model/addresses/addresses.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import { networksOf, type Side } from "./agreement.ts";

/**
 * Rules of one cell with ends in one other, to be asked which of them may agree with a rule of the other cell. Both have to name
 * addresses of each other, so who names nothing of a rule's own, or has nothing that it names, is not looked at: a new rule
 * costs as much as it has counterparts, and not all rules between the two cells.
 */
export class Sides {
  readonly #sides = new Map<Uid, Indexed>();
  /** By what they name in the other cell. */
  readonly #naming = new Networks();
  /** By what they have themselves. */
  readonly #having = new Networks();

  get isEmpty(): boolean {
    return this.#sides.size === 0;
  }
  get(uid: Uid): Side | undefined {
    return this.#sides.get(uid)?.side;
  }
  set(uid: Uid, side: Side): void {
    this.delete(uid);
    const indexed = { uid, side, names: networksOf(side.names), has: networksOf(side.reach.networks) };
    this.#sides.set(uid, indexed);
    this.#naming.add(indexed, indexed.names);
    this.#having.add(indexed, indexed.has);
  }
  delete(uid: Uid): void {
    const indexed = this.#sides.get(uid);
    if (indexed === undefined) return;
    this.#sides.delete(uid);
    this.#naming.remove(indexed, indexed.names);
    this.#having.remove(indexed, indexed.has);
  }

  /**
   * Those that may agree with a rule of the other cell, and maybe some more.
   * @param looked is told of each that was looked at
   */
  counterpartsOf({ reach, names }: Side, looked: () => void): readonly { readonly uid: Uid; readonly side: Side }[] {
    // Of the two that have to be so the one that fewer fulfil: many rules may have one end in common.
    const ways = [this.#naming.meeting(networksOf(reach.networks)), this.#having.meeting(networksOf(names))];
    const found = ways.map(() => new Set<Indexed>());
    for (;;)
      for (const [at, way] of ways.entries()) {
        const { value, done } = way.next();
        if (done === true) return [...(found[at] ?? [])];
        looked();
        found[at]?.add(value);
      }
  }
}

interface Indexed {
  readonly uid: Uid;
  readonly side: Side;
  readonly names: readonly Network[];
  readonly has: readonly Network[];
}
/**
 * Who is at which network. Of two networks that have an address in common one lies in the other: those around a network are
 * found by their own text, and those inside it stand side by side when all are sorted by their first address.
 */
class Networks {
  readonly #at = new Map<string, { readonly network: Network; readonly who: Set<Indexed> }>();
  /** First addresses, each once. */
  readonly #sorted: number[] = [];
  readonly #byFirst = new Map<number, Set<string>>();

  add(who: Indexed, networks: readonly Network[]): void {
    for (const network of networks) {
      const key = keyOf(network.first, network.prefixLength);
      const there = this.#at.get(key);
      if (there !== undefined) {
        there.who.add(who);
        continue;
      }
      this.#at.set(key, { network, who: new Set([who]) });
      const same = this.#byFirst.get(network.first);
      if (same !== undefined) {
        same.add(key);
        continue;
      }
      this.#byFirst.set(network.first, new Set([key]));
      this.#sorted.splice(this.#placeOf(network.first), 0, network.first);
    }
  }
  remove(who: Indexed, networks: readonly Network[]): void {
    for (const { first, prefixLength } of networks) {
      const key = keyOf(first, prefixLength);
      const there = this.#at.get(key);
      there?.who.delete(who);
      if (there?.who.size !== 0) continue;
      this.#at.delete(key);
      const same = this.#byFirst.get(first);
      same?.delete(key);
      if (same?.size !== 0) continue;
      this.#byFirst.delete(first);
      this.#sorted.splice(this.#placeOf(first), 1);
    }
  }
  *meeting(networks: readonly Network[]): Generator<Indexed, undefined> {
    for (const { first, last, prefixLength } of networks) {
      for (let length = 0; length < prefixLength; length += 1)
        yield* this.#at.get(keyOf(startOf(first, length), length))?.who ?? [];
      for (let at = this.#placeOf(first); (this.#sorted[at] ?? Number.POSITIVE_INFINITY) <= last; at += 1)
        for (const key of this.#byFirst.get(this.#sorted[at] ?? 0) ?? []) {
          const there = this.#at.get(key);
          if (there !== undefined && there.network.prefixLength >= prefixLength) yield* there.who;
        }
    }
    return undefined;
  }

  /** Of the first that is not smaller. */
  #placeOf(first: number): number {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#sorted[middle] ?? 0) < first) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

const keyOf = (first: number, prefixLength: number): string => `${first}/${prefixLength}`;
/** Of the network of that length around an address. */
const startOf = (address: number, prefixLength: number): number => {
  const size = 2 ** (32 - prefixLength);
  return Math.floor(address / size) * size;
};
