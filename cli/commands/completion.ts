import type { Command } from "commander";
import { type Candidate, offerOf } from "../completion/candidates.ts";
import { namesInTime } from "../completion/names.ts";
import { joined, partsOffered } from "../completion/parts.ts";
import { type Shell, scripts } from "../completion/scripts.ts";
import type { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";

export const printScript = ({ terminal }: Context, shell: Shell): void => terminal.print(scripts[shell].trimEnd());

/** A name with blanks or control characters is none that Cells gives; descriptions are one line. */
const lineOf = ({ value, what }: Candidate): readonly string[] =>
  /^[!-~]+$/.test(value) ? [`${value}\t${what.replace(/[^ -~]+/g, " ")}`] : [];

/**
 * Prints what may stand where the last of `words` is typed: a line for each, with a tab and what it is. `:files` alone says that the shell
 * offers files.
 */
export const complete = async (
  { terminal }: Pick<Context, "terminal">,
  program: Command,
  typed: readonly string[],
  client: () => Client,
): Promise<void> => {
  const { words, cut } = joined(typed);
  const { candidates, names, parts } = offerOf(program, words);
  if (names === "file") {
    terminal.print(":files");
    return;
  }
  const more = names === null ? [] : await namesInTime(client, names, words.at(-1) ?? "");
  const inside = parts === undefined ? [] : await partsOffered(parts, client);
  const shown = [...candidates, ...more, ...inside].map(({ value, what }) => ({ value: value.slice(cut), what }));
  const lines = shown.flatMap(lineOf);
  if (lines.length > 0) terminal.print(lines.join("\n"));
};
