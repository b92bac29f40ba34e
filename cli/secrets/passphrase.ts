import { readFile, stat } from "node:fs/promises";
import { usage } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

/**
 * A passphrase is asked for, or is in a file; it is in no argument and no variable of the environment, which others on the
 * machine can read.
 */
const longest = 1024;

/** Where it comes from, and how often it is asked for. */
export interface Asking {
  readonly file: string | undefined;
  /** What it is, and the option that names its file; absent: a passphrase. */
  readonly what?: "passphrase" | "password" | "new-password" | "code" | "link" | "secret";
  /** It is a new one: it is asked for twice, and has at least so many characters. */
  readonly shortest?: number;
}

export const readPassphrase = async (
  terminal: Terminal,
  { file, shortest, what = "passphrase" }: Asking,
): Promise<string> => {
  const question = `${what[0]?.toUpperCase()}${what.slice(1).replace("-", " ")}: `;
  const given = file === undefined ? await askFor(question, what) : await passphraseIn(file, what, terminal);
  if (given.length > longest) throw usage(`a ${what} has at most ${longest} characters`);
  if (shortest === undefined) return given;
  if ([...given].length < shortest)
    throw usage(`a ${what} of fewer than ${shortest} characters is found by trying: take several words`);
  if (file === undefined && (await askFor("Again: ", what)) !== given) throw usage(`these were two different ${what}s`);
  return given;
};

const passphraseIn = async (file: string, what: string, terminal: Terminal): Promise<string> => {
  const [text, { mode }] = await Promise.all([readFile(file, "utf8"), stat(file)]).catch((error: Error) => {
    throw usage(`the ${what}'s file cannot be read: ${error.message}`);
  });
  if ((mode & 0o077) !== 0) terminal.warn(`${file} can be read by others on this machine: \`chmod 600 ${file}\``);
  return text.split("\n", 1)[0]?.replace(/\r$/, "") ?? "";
};

/** Shows nothing of what is typed. */
const askFor = async (question: string, what: string): Promise<string> => {
  const { stdin, stderr } = process;
  if (stdin.isTTY !== true) throw usage(`nobody can be asked for the ${what} here: use --${what}-file`);
  stderr.write(question);
  stdin.setRawMode(true);
  stdin.resume();
  let typed = "";
  try {
    for await (const part of stdin.iterator({ destroyOnReturn: false })) {
      for (const character of String(part)) {
        if (character === "\r" || character === "\n") return typed;
        if (character === "\u0003" || character === "\u0004") throw usage(`no ${what} was given`);
        typed = character === "\u007f" || character === "\b" ? [...typed].slice(0, -1).join("") : typed + character;
      }
    }
    return typed;
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
};
