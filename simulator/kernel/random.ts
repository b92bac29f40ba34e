/**
 * Chance from a seed (sfc32 over FNV-1a of a name): the same seed and name give the same numbers for ever. Each part of the
 * simulation has a stream of its own, so that a number more drawn in one place changes nothing in another.
 */
export interface Random {
  /** From 0 up to, without, 1. */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  /** Throws where there is nothing to choose from. */
  pick<T>(values: readonly T[]): T;
  /** Another stream, independent of how far this one has been read. */
  fork(name: string): Random;
}

const hash = (text: string, seed: number): number => {
  let value = seed >>> 0;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
};

export const createRandom = (seed: number, name = ""): Random => {
  let a = hash(name, seed ^ 0x811c9dc5);
  let b = hash(name, seed ^ 0x9e3779b9);
  let c = hash(name, Math.floor(seed / 2 ** 32) ^ 0x243f6a88);
  let counter = 1;
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let round = 0; round < 12; round += 1) next();
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick: (values) => {
      const value = values[between(0, values.length - 1)];
      if (value === undefined) throw new Error("nothing to choose from");
      return value;
    },
    fork: (inner) => createRandom(seed, `${name}/${inner}`),
  };
};
