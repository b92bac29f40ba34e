import type { ModelSource, ModelVersion } from "../../../model/contract/versions.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { unifiedDifferences } from "../../../model/editor/line-differences.ts";
import type { Client } from "../../connection/client.ts";
import { type Context, printJson } from "../../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { type Paint, table } from "../../terminal/terminal.ts";
import { apply, plan, type WaitOptions } from "./change.ts";

/** `cells versions`, `cells diff` and `cells rollback`: the texts that a cell's model was sent as, and the way back to one. */

const numberIn = (text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw usage(`\`${text}\` is no version: \`cells versions CELL\` shows their numbers`);
  return Number(text);
};
const sourceOf = (client: Client, cell: string, version?: number): Promise<ModelSource> =>
  client.ask("readSource", { parameters: { cell }, query: { version } });
const listOf = (client: Client, cell: string) => client.ask("listVersions", { parameters: { cell } });

const done = { create: "created", change: "changed", restart: "restarted", replace: "replaced", delete: "deleted" };
const planWords = ({ changes, parts, lost = [] }: ModelVersion): string => {
  const counts = Object.entries(changes).map(
    ([action, count]) => `${count} ${done[action as keyof typeof done] ?? action}`,
  );
  const words = counts.length > 0 ? counts.join(", ") : parts.length > 0 ? "the cell itself" : "the text alone";
  return lost.length === 0 ? words : `${words}; the data of ${lost.map(printable).join(", ")} went`;
};
const howWords = ({ verb, target, text }: ModelVersion): string =>
  printable(text === undefined ? `${verb} ${target}` : text.main);

export const versions = async (context: Context, cell: string): Promise<void> => {
  const { terminal } = context;
  const list = await listOf(context.client(), cell);
  if (context.json) return printJson(context, list);
  if (list.versions.length === 0) {
    terminal.print(
      list.version === 0
        ? `${cell} has no model yet: \`cells apply FILE\` gives it one`
        : `nothing is kept of how ${cell} came to its version ${list.version}; the next change is`,
    );
    return;
  }
  const head = ["VERSION", "SINCE", "BY", "SENT AS", "ITS PLAN"].map((word) => terminal.paint("grey", word));
  const rows = list.versions.map((each) => [
    `${each.version}`,
    each.time,
    printable(each.who),
    howWords(each),
    planWords(each),
  ]);
  for (const line of table([head, ...rows])) terminal.print(line);
  const again = list.versions.find(({ sent }) => sent !== undefined);
  if (again?.sent !== undefined)
    terminal.print(
      printable(
        `The text of ${again.version} was sent ${again.sent.time} by ${again.sent.who}, and changed nothing else.`,
      ),
    );
};

/** What the text does not say, since the model was changed in other ways. */
const sinceLines = (cell: string, { version, since, unknown }: ModelSource): readonly string[] =>
  [
    ...since.map((each) => {
      const parts = each.parts.map(({ path, action }) => `${path} (${action})`);
      return printable(
        `  version ${each.version}, ${each.verb} by ${each.who}: ${parts.join(", ") || "the text alone"}`,
      );
    }),
    ...(unknown === 0 ? [] : [`  ${unknown} changes that are not kept`]),
  ].map((line, at) =>
    at === 0 ? `Changed since the text of version ${version} of ${cell}, and not in it:\n${line}` : line,
  );

interface FileDifference {
  readonly file: string;
  /** In the unified format. */
  readonly lines: readonly string[];
}
const differencesOf = (from: ModelSource, to: ModelSource): readonly FileDifference[] =>
  [...new Set([...Object.keys(from.files), ...Object.keys(to.files)])].sort().flatMap((file) => {
    const textIn = (source: ModelSource) => ({ name: `${source.version}/${file}`, text: source.files[file] ?? "" });
    const lines = unifiedDifferences(textIn(from), textIn(to));
    return lines.length === 0 ? [] : [{ file, lines }];
  });
const colours = { "+": "green", "-": "red", "@": "blue" } as const;
const painted = (line: string, paint: Paint): string => {
  const colour = colours[line[0] as keyof typeof colours];
  return colour === undefined || line.startsWith("+++") || line.startsWith("---") ? line : paint(colour, line);
};

/** The newest version with a text that is older than this one. */
const textBefore = async (client: Client, cell: string, version: number): Promise<number> => {
  const { versions: all } = await listOf(client, cell);
  const found = all.find((each) => each.version < version && each.text !== undefined);
  if (found !== undefined) return found.version;
  throw new CommandFailure(
    exitCodes.refused,
    `no text of ${cell} is kept from before version ${version}: \`cells versions ${cell}\` shows what there is`,
  );
};

/** @param one @param other versions; with one alone it is compared with the newest text, without any that with the one before */
export const diff = async (context: Context, cell: string, one?: string, other?: string): Promise<void> => {
  const client = context.client();
  const [first, second] = [one, other].map((word) => (word === undefined ? undefined : numberIn(word)));
  const to = await sourceOf(client, cell, second);
  const from = await sourceOf(client, cell, first ?? (await textBefore(client, cell, to.version)));
  const files = differencesOf(from, to);
  const since = second === undefined ? to.since : [];
  if (context.json) {
    const both = { from: from.version, to: to.version };
    printJson(context, { ...both, files, since, unknown: second === undefined ? to.unknown : 0 });
    return;
  }
  const { terminal } = context;
  if (files.length === 0) terminal.print(`the texts of ${from.version} and ${to.version} are the same`);
  for (const { lines } of files) for (const line of lines) terminal.print(painted(printable(line), terminal.paint));
  if (second === undefined) for (const line of sinceLines(cell, to)) terminal.print(line);
};

export interface RollbackOptions extends WaitOptions {
  readonly dryRun: boolean;
}
/** Applies an earlier text as if it were a file. Without a version: the newest text from before the model as it is now. */
export const rollback = async (
  context: Context,
  cell: string,
  version: string | undefined,
  { dryRun, ...options }: RollbackOptions,
): Promise<void> => {
  const client = context.client();
  const asked = version === undefined ? undefined : numberIn(version);
  const wanted = asked ?? (await textBefore(client, cell, (await listOf(client, cell)).version));
  const { main, files } = await sourceOf(client, cell, wanted);
  const specified = {
    bundle: { main, files },
    called: `${main} of version ${wanted}`,
    again: `\`cells rollback ${cell} ${wanted} --dry-run\``,
  };
  if (!context.json) context.terminal.print(`Back to version ${wanted} of ${cell}, ${printable(main)}:`);
  if (dryRun) await plan(context, specified, { all: false, cell });
  else await apply(context, specified, { ...options, cell });
};
