/**
 * A command that somebody copies into a shell, of words some of which a tenant chose. Each of them stays one word there, whatever is in it.
 * Null: there is none, since a word has characters that nobody sees or that begin another line, or would be taken for an option.
 * @param command what the page itself says, as it is written
 * @param words of which nothing is known
 */
export function commandOf(command: string, ...words: readonly string[]): string | null {
  if (words.some((word) => unseen.test(word) || word.startsWith("-"))) return null;
  return [command, ...words.map(quoted)].join(" ");
}
/** Control and format characters (these turn a line about, or are not shown), ends of lines and paragraphs. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** POSIX shell (IEEE 1003.1, 2.2.2): between single quotes each character stands for itself, but for a single quote. */
const quoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** An option is what the page itself says; the word behind it is not. */
export function withOptions(command: string, first: string, options: readonly (readonly string[])[]): string | null {
  const parts = [commandOf(command, first), ...options.map(([option = "", word = ""]) => commandOf(option, word))];
  return parts.includes(null) ? null : parts.join(" ");
}
