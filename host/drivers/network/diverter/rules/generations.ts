import type { Dataplane } from "../program/dataplane.ts";
import { interfaceState } from "../program/layout.ts";
import { slotCount } from "../taps/slots.ts";

/**
 * After a change, flows that it may concern ask their rule and their way again at their next packet. Each interface has a
 * number for that, and all interfaces of a cell get the next one at once: who changes rules in a loop makes his own flows
 * pay for it, and nobody else's. The program finds an interface's number by its slot, which costs nothing; to look a cell's
 * up in a hash would cost each packet more.
 */
export interface Generations {
  /** For a start: what was killed between a change and this is made up for. */
  renewAll(): void;
  /** Flows of the interfaces of these cells, and of every interface of which nobody can tell whose it is. */
  renew(cells: ReadonlySet<number>): void;
}

/**
 * Numbers stay in the upper half. The lower one was counted by programs that had one number for all interfaces, which an
 * upgrade may go back to: no flow of theirs is ever taken for one that was decided here, nor one from here by them.
 */
const lowest = 2 ** 31;
const every = Uint32Array.from({ length: slotCount }, (_, slot) => slot);
const bytesOf = (words: Uint32Array): Buffer => Buffer.from(words.buffer, words.byteOffset, words.byteLength);

export function createGenerations({ maps }: Dataplane): Generations {
  let last = maps.generations.entries().reduce((most, { value }) => Math.max(most, value.readUInt32LE()), lowest);
  const next = (slots: Uint32Array): void => {
    last = last + 1 < 2 ** 32 ? last + 1 : lowest;
    maps.generations.setMany(bytesOf(slots), bytesOf(new Uint32Array(slots.length).fill(last)));
  };
  return {
    renewAll: () => next(every),
    renew: (cells) => {
      const others = new Set(
        maps.interfaces.entries().flatMap(({ value }) => {
          const { cell, slot } = interfaceState.decode(value);
          return cells.has(cell) ? [] : [slot];
        }),
      );
      const slots = maps.slots.entries().map(({ value }) => value.readUInt32LE());
      next(Uint32Array.from(slots.filter((slot) => !others.has(slot))));
    },
  };
}
