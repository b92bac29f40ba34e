import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { usage } from "../terminal/failure.ts";

/** What somebody would rather not have in an argument list: from a file, or else from standard input. A last line end is none of it. */
export const readSecret = async (file: string | undefined, option: string): Promise<string> => {
  const read =
    file === undefined
      ? await text(process.stdin)
      : await readFile(file, "utf8").catch((error: Error) => {
          throw usage(`${file} cannot be read: ${error.message}`);
        });
  const secret = read.replace(/\r?\n$/, "");
  if (secret === "") throw usage(`nothing is there: ${option} FILE, or standard input`);
  return secret;
};
