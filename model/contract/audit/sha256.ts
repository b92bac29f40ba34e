/**
 * SHA-256 (FIPS 180-4), as lower-case hexadecimal, of the UTF-8 of a text. The chain of an audit is made where nothing may be
 * imported from outside; what guards secrets uses the platform's own.
 */
export function sha256(text: string): string {
  const state = [...initial];
  const words = new Array<number>(64);
  const blocks = padded(text);
  for (let at = 0; at < blocks.length; at += 16) compress(state, words, blocks, at);
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The first 32 bits of the fractional parts of a root of each of the first primes: 2 for the state, 3 for the rounds. */
const fractions = (count: number, root: number): readonly number[] => {
  const found: number[] = [];
  for (let each = 2; found.length < count; each += 1) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= each; divisor += 1) if (each % divisor === 0) isPrime = false;
    if (!isPrime) continue;
    const value = root === 2 ? Math.sqrt(each) : Math.cbrt(each);
    found.push(Math.floor((value - Math.floor(value)) * 2 ** 32) | 0);
  }
  return found;
};
const initial = fractions(8, 2);
const rounds = fractions(64, 3);

const turn = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** The text, a one, zeros, and its length in bits, in words of 32 bits. */
function padded(text: string): readonly number[] {
  const octets = utf8(text);
  const words = new Array<number>((((octets.length + 8) >> 6) + 1) * 16).fill(0);
  const put = (at: number, octet: number): void => {
    words[at >> 2] = (words[at >> 2] ?? 0) | (octet << (24 - 8 * (at & 3)));
  };
  for (const [at, octet] of octets.entries()) put(at, octet);
  put(octets.length, 0x80);
  words[words.length - 2] = Math.floor(octets.length / 2 ** 29);
  words[words.length - 1] = (octets.length << 3) | 0;
  return words;
}

function utf8(text: string): readonly number[] {
  const octets: number[] = [];
  for (const character of text) {
    const found = character.codePointAt(0) ?? 0;
    // Half of a pair stands for nothing, as an encoder has it.
    const code = found >= 0xd800 && found <= 0xdfff ? 0xfffd : found;
    if (code < 0x80) octets.push(code);
    else if (code < 0x800) octets.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) octets.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else octets.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return octets;
}

function compress(state: number[], words: number[], blocks: readonly number[], from: number): void {
  const word = (index: number): number => words[index] ?? 0;
  for (let index = 0; index < 64; index += 1) {
    if (index < 16) words[index] = blocks[from + index] ?? 0;
    else {
      const [early, late] = [word(index - 15), word(index - 2)];
      const one = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
      const other = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
      words[index] = (word(index - 16) + one + word(index - 7) + other) | 0;
    }
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let index = 0; index < 64; index += 1) {
    const mixed = (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g));
    const one = (h + mixed + (rounds[index] ?? 0) + word(index)) | 0;
    const other = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + other) | 0];
  }
  for (const [index, added] of [a, b, c, d, e, f, g, h].entries()) state[index] = ((state[index] ?? 0) + added) | 0;
}
