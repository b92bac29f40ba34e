/** Marsaglia's xorshift32: enough to choose whom to ask or to tell, and one number to keep. Never 0. */
interface Randomness {
  random: number;
}
/** @returns 0 ≤ x < 1; advances the state */
export const nextRandom = (state: Randomness): number => {
  let x = state.random;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  state.random = x;
  return (x >>> 0) / 0x1_0000_0000;
};
/** A state from any number, also from neighbouring ones. */
export const seedOf = (seed: number): number => {
  let x = Math.imul((seed | 0) ^ 0x5bd1e995, 0x9e3779b1);
  x = Math.imul(x ^ (x >>> 15), 0x85ebca6b);
  x ^= x >>> 13;
  return x === 0 ? 1 : x;
};
export const below = (state: Randomness, limit: number): number => Math.floor(nextRandom(state) * limit);
/** FNV-1a over the text's code units, 32 bits with a sign. */
export const hashText = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
};
/** 0 ≤ x < 1, the same for the same text. */
export const fractionOf = (text: string): number => nextRandom({ random: seedOf(hashText(text)) });
