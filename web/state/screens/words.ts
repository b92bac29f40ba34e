const esc = "\u001b";
/** What moves a terminal, and is no word: ECMA-48 sequences, titles and the like up to their end, and control characters but the ends of lines and tabs. */
const movements = new RegExp(
  [
    `${esc}\\[[0-?]*[ -/]*[@-~]`,
    `${esc}[\\]PX^_][^\u0007${esc}]*(?:\u0007|${esc}\\\\|$)`,
    `${esc}[ -/]*[0-~]?`,
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f]",
  ].join("|"),
  "g",
);

/** The words of a record, for who reads and does not sit at the terminal that they were said to. */
export const wordsOf = (said: Uint8Array): string =>
  new TextDecoder().decode(said).replaceAll("\r\n", "\n").replace(movements, "");
