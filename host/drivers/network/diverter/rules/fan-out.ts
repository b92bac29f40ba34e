import type { GlobalNetwork } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { member, word } from "../program/layout.ts";
import { type BpfMap, createArray, openInner } from "../program/libbpf.ts";
import type { DeviceOf } from "../taps/slots.ts";
import { isOfGroup, type Joined, Lists, type ListsOfCell } from "./lists.ts";

/**
 * Who may get a copy of what is sent to many: one list for each subnet, and one for each group of a subnet or a cell. A list
 * says who is there; whether rules let a member have a copy is judged for each packet. Members here come first, then those
 * of one host behind one another, so that a host gets one copy.
 */
export interface FanOut {
  /** Lists of subnets; those of groups come behind. */
  isInForce(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): boolean;
  /** All lists of subnets, and some of groups. */
  implement(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): void;
  /** Some more lists of groups, where any are not as they should be. */
  catchUp(global: GlobalNetwork, deviceOf: DeviceOf, joined: Joined): void;
  /** As far as is known without looking: some lists of groups have yet to be written. */
  isBehind(): boolean;
  doubt(): void;
}
/** By cell and key. */
type ListsInForce = Map<number, Map<string, Buffer>>;
/** Its cell is a key's first word. */
const cellOf = (key: string): number => word.decode(Buffer.from(key.slice(0, 2 * word.size), "hex")).value;
function noteIn(all: ListsInForce, key: string, list: Buffer | undefined): void {
  const cell = cellOf(key);
  const lists = all.get(cell) ?? new Map<string, Buffer>();
  if (list === undefined) lists.delete(key);
  else lists.set(key, list);
  if (lists.size === 0) all.delete(cell);
  else all.set(cell, lists);
}
function readLists({ maps }: Dataplane): ListsInForce {
  const lists: ListsInForce = new Map();
  for (const key of maps.fanout.keys()) {
    const id = maps.fanout.get(key);
    const list = id === null ? null : openInner(word.decode(id).value, 4, member.size);
    if (list === null) continue;
    noteIn(lists, key.toString("hex"), Buffer.concat(list.entries().map(({ value }) => value)));
    list.close();
  }
  return lists;
}

/**
 * The kernel waits for all that might still walk a former list, some ten milliseconds in which this process does nothing else: once for
 * all that is written together. Each list is open meanwhile.
 */
const listsTogether = 256;
/** So many lists of groups are written at a look. A guest joins and leaves as often as it likes. */
const writesAtATime = 32;

/** Whose turn it is: one list of each cell after the other, and within a cell as well. */
export class Turns {
  #lastCell = -1;
  readonly #lastKeys = new Map<number, string>();

  take(keys: readonly string[], count: number): readonly string[] {
    const byCell = new Map<number, string[]>();
    for (const [cell, own] of Map.groupBy(keys, cellOf))
      byCell.set(
        cell,
        rotated(own.sort(), (key) => key > (this.#lastKeys.get(cell) ?? "")),
      );
    const taken: string[] = [];
    const cells = [...byCell.keys()].sort((one, other) => one - other);
    const order = rotated(cells, (cell) => cell > this.#lastCell);
    for (let round = 0; taken.length < Math.min(count, keys.length); round += 1)
      for (const cell of order) {
        const key = byCell.get(cell)?.[round];
        if (key === undefined || taken.length >= count) continue;
        taken.push(key);
        this.#lastCell = cell;
        this.#lastKeys.set(cell, key);
      }
    return taken;
  }
}
/** Those behind the last one that had its turn, and then from the beginning. */
const rotated = <T>(all: readonly T[], isBehind: (each: T) => boolean): T[] => {
  const at = all.findIndex(isBehind);
  return at <= 0 ? [...all] : [...all.slice(at), ...all.slice(0, at)];
};

type Wanted = ReadonlyMap<number, ListsOfCell>;

export function createFanOut(dataplane: Dataplane): FanOut {
  const { maps } = dataplane;
  const turns = new Turns();
  const lists = new Lists();
  /** What this process wrote, or found; null: nobody knows what is there. */
  let inForce: ListsInForce | null = null;
  /** Lists of cells that were found to be in force, all of them. */
  const settled = new Map<number, ListsOfCell>();
  let behind = false;

  const changed = (wanted: Wanted): readonly string[] => {
    if (inForce === null) settled.clear();
    inForce ??= readLists(dataplane);
    const all: string[] = [];
    for (const cell of new Set([...inForce.keys(), ...wanted.keys()])) {
      const [found, own] = [inForce.get(cell) ?? new Map<string, Buffer>(), wanted.get(cell) ?? new Map()];
      if (settled.get(cell) === own) continue;
      const gone = [...found.keys()].filter((key) => !own.has(key));
      const others = [...own].flatMap(([key, list]) => (found.get(key)?.equals(list) === true ? [] : [key]));
      all.push(...gone, ...others);
      if (gone.length + others.length === 0) settled.set(cell, own);
      else settled.delete(cell);
    }
    return all;
  };
  const wantedAt = (wanted: Wanted, key: string): Buffer | undefined => wanted.get(cellOf(key))?.get(key);
  const writeTogether = (keys: readonly string[], wanted: Wanted): void => {
    const some = keys.flatMap((key) => {
      const list = wantedAt(wanted, key);
      return list === undefined ? [] : [{ key: Buffer.from(key, "hex"), list }];
    });
    const made: BpfMap[] = [];
    try {
      for (const { list } of some) made.push(createArray("member_list", member.size, list));
      maps.fanout.setAll(some.map(({ key }, at) => ({ key, value: word.encode({ value: made[at]?.fd ?? 0 }) })));
    } finally {
      for (const each of made) each.close();
    }
    maps.fanout.deleteAll(
      keys.filter((key) => wantedAt(wanted, key) === undefined).map((key) => Buffer.from(key, "hex")),
    );
  };
  const write = (keys: readonly string[], wanted: Wanted): void => {
    if (keys.length === 0) return;
    const found = inForce;
    // Until it is written, nobody knows what is there.
    inForce = null;
    for (let at = 0; at < keys.length; at += listsTogether) writeTogether(keys.slice(at, at + listsTogether), wanted);
    if (found !== null) for (const key of keys) noteIn(found, key, wantedAt(wanted, key));
    inForce = found;
  };
  const writeSome = (wanted: Wanted, all: readonly string[]): void => {
    const groups = all.filter(isOfGroup);
    write(turns.take(groups, writesAtATime), wanted);
    behind = groups.length > writesAtATime;
  };
  return {
    isInForce: (global, deviceOf, joined) => changed(lists.of(global, deviceOf, joined)).every(isOfGroup),
    implement: (global, deviceOf, joined) => {
      const wanted = lists.of(global, deviceOf, joined);
      const all = changed(wanted);
      write(
        all.filter((key) => !isOfGroup(key)),
        wanted,
      );
      writeSome(wanted, all);
    },
    catchUp: (global, deviceOf, joined) => {
      const wanted = lists.of(global, deviceOf, joined);
      writeSome(wanted, changed(wanted));
    },
    isBehind: () => behind,
    doubt: () => {
      inForce = null;
    },
  };
}
