/**
 * Keys that type a text, as the X Window System numbers them (keysyms, X11 protocol, appendix A): letters of Latin-1 are their own code points,
 * all others stand above 0x1000000. What no keyboard types is left out.
 */
const named: Readonly<Record<string, number>> = { "\n": 0xff0d, "\t": 0xff09 };
export const keysymsOf = (text: string): readonly number[] =>
  [...text.replaceAll("\r\n", "\n").replaceAll("\r", "\n")].flatMap((letter) => {
    const key = named[letter];
    if (key !== undefined) return [key];
    const code = letter.codePointAt(0) ?? 0;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return [];
    return [code < 0x100 ? code : 0x1000000 + code];
  });
