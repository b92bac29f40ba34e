/**
 * Keys that type a text at a US keyboard, which is the one that QEMU has for who looks at a screen, as the X Window System numbers them (keysyms,
 * X11 protocol, appendix A): signs of ASCII are their own code points. What stands above another sign comes with Shift held, for QEMU presses no key
 * that it was not told of: `:` alone arrives as `;`.
 */
export interface Stroke {
  readonly keysym: number;
  readonly isDown: boolean;
}
export interface Typed {
  /** So much of the text is done by them. */
  readonly length: number;
  /** None: no key types what stands here, and it is left out. */
  readonly strokes: readonly Stroke[];
}
const shift = 0xffe1;
const enter = 0xff0d;
const named: Readonly<Record<string, number>> = { "\n": enter, "\r": enter, "\t": 0xff09 };
const shifted = /[A-Z~!@#$%^&*()_+{}|:"<>?]/;
const isTyped = /[\n\r\t\u0020-\u007e]/;

/** What types the beginning of the text; null: there is no text. */
export function firstTyped(text: string): Typed | null {
  const [sign] = text;
  if (sign === undefined) return null;
  const length = text.startsWith("\r\n") ? 2 : sign.length;
  if (!isTyped.test(sign)) return { length, strokes: [] };
  const keysym = named[sign] ?? sign.charCodeAt(0);
  const key = [
    { keysym, isDown: true },
    { keysym, isDown: false },
  ];
  if (!shifted.test(sign)) return { length, strokes: key };
  return { length, strokes: [{ keysym: shift, isDown: true }, ...key, { keysym: shift, isDown: false }] };
}
/** Signs that are left out, each once. */
export const leftOut = (text: string): readonly string[] => [...new Set(text)].filter((sign) => !isTyped.test(sign));

/**
 * QEMU hands a guest one stroke each 10 ms, and forgets what comes while some 340 wait: of 600 letters at once 174 arrived, at this
 * pace all of them.
 */
export const strokeMs = 12;
