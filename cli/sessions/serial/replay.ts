/**
 * Terminals answer some control sequences by sending bytes as if they were typed (ECMA-48 DSR and DA, xterm's reports).
 * In a recording they were meant for somebody else's terminal, long ago.
 */
const escapeCharacter = "\u001b";
const queries = new RegExp(
  [
    // Device status and attributes: ESC [ … n, ESC [ … c; size and state reports: ESC [ … t, ESC [ … $ p.
    `${escapeCharacter}\\[[0-9;?>=]*(?:[nc]|\\$p)`,
    `${escapeCharacter}\\[(?:1[1-9]|2[01])t`,
    `${escapeCharacter}Z`,
    // Colours and the like: ESC ] … ? BEL or ST; requests in ESC P … ST.
    `${escapeCharacter}\\][0-9;]*\\?(?:\u0007|${escapeCharacter}\\\\)`,
    `${escapeCharacter}P[^${escapeCharacter}]*${escapeCharacter}\\\\`,
    // Enquiry.
    "\u0005",
  ].join("|"),
  "g",
);

/** Recorded output that can be shown on any terminal without being answered. */
export const withoutQueries = (bytes: Buffer): Buffer =>
  // Latin-1 keeps every byte as it is.
  Buffer.from(bytes.toString("latin1").replace(queries, ""), "latin1");
