import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Block, blocksOf, type Entry, entriesOf, isShown, wordsOf } from "../../docs/testing/documents.testing.ts";
import type { Testbed } from "../harness.ts";

/*
 * Pages are carried out as their reader would, and what they show is what is printed. Numbers that are given out, addresses and places are
 * compared by their shape. What an apply says on its way depends on when it looks: each such line has to be printed or to stand in the cell's
 * events. What needs no cloud is compared by `docs/docs.test.ts`.
 */
const root = join(import.meta.dirname, "../..");

/** What a number or an address is elsewhere and another time, and how many blanks stand before it, is left out. */
const shapeOf = (line: string): string =>
  line
    .replace(/\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, "<mac>")
    .replace(/\b\d+\.\d+\.\d+\.\d+\b/g, "<address>")
    .replace(/\b([hs])\d+\b/g, "$1<n>")
    .replace(/\b(device|rule|cell|version|behind|identity) \d+(?:(, |\/)\d+)*/g, "$1 <n>")
    .replace(/\bis \d+, \d+, \d+ in cell/g, "is <n> in cell")
    .replace(/^((?:Mem|Swap):)[ \d]+$/, "$1 <n>")
    .replace(/\s+/g, " ")
    .trim();
const shapes = (lines: readonly string[]): readonly string[] => lines.map(shapeOf);

/** Said on the way, whenever somebody looks; or at the end, by what a command prints last. */
const isOnTheWay = (line: string): boolean => /^[…·] (?:working|waiting) /.test(line);

/** What is shown and was neither printed nor said in the cell's events. */
export function faultsOf(
  page: string,
  entry: Entry,
  printed: readonly string[],
  events: readonly string[],
): readonly string[] {
  const shown = shapes(entry.output.filter((line) => !isOnTheWay(line)));
  const real = shapes(printed.filter((line) => !isOnTheWay(line)));
  const heading = `${page}:${entry.line}: $ ${entry.command}`;
  const isAll = isShown(shown, real) || (entry.output.some(isOnTheWay) && isShown([...betweenAny(shown)], real));
  const missing = entry.output.filter(isOnTheWay).filter((line) => {
    const [, phase = "", path = "", reason = ""] = /^. (\w+) +(\S+) +\S+ *(.*)$/.exec(line) ?? [];
    const wanted = [phase, path, shapeOf(reason)];
    return ![...printed.filter(isOnTheWay), ...events].some((each) =>
      wanted.every((part) => shapeOf(each).includes(part)),
    );
  });
  return [
    ...(isAll ? [] : [`${heading}\n${printed.join("\n")}`]),
    ...missing.map((line) => `${heading}: nothing says\n${line}`),
  ];
}
/** Elements that were ready on the way are shown where they were, too. */
const betweenAny = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => (line === "…" ? [line] : [line, "…"]));

/** Its commands that a reader with a running cloud carries out: not those on a text that is first made wrong, or on the cloud. */
const isOfReader = ({ language, directive }: Block): boolean => language === "console" && !/\bedit: /.test(directive);
const isOfCloud = (words: readonly string[]): boolean => ["up", "down"].includes(words[0] ?? "");

async function eventsOf(testbed: Testbed, cells: readonly string[]): Promise<readonly string[]> {
  const all = await Promise.all(cells.map((cell) => testbed.cells(["events", cell])));
  return all.flatMap(({ stdout }) => stdout.split("\n"));
}

/** @param cells whose events say what happened on the way @param least so many commands are in it */
export async function carryOut(t: Testbed, page: string, cells: readonly string[], least: number): Promise<void> {
  const document = { path: page, text: readFileSync(join(root, page), "utf8") };
  const entries = blocksOf(document)
    .filter(isOfReader)
    .flatMap((block) => entriesOf(block));
  const faults: string[] = [];
  let count = 0;
  for (const entry of entries) {
    const words = wordsOf(entry.command);
    if (words === null || isOfCloud(words)) continue;
    // What a guest is given 2 s for may take longer on a busy machine.
    let tries = words[0] === "exec" || words[0] === "why" ? 10 : 1;
    let found: readonly string[] = [];
    do {
      const { stdout, stderr } = await t.cells(words);
      const printed = `${stdout}${stderr}`.replace(/\n+$/, "").split("\n");
      const events = entry.output.some(isOnTheWay) ? await eventsOf(t, cells) : [];
      found = faultsOf(page, entry, stdout === "" && stderr === "" ? [] : printed, events);
      tries -= 1;
    } while (found.length > 0 && tries > 0);
    faults.push(...found);
    count += 1;
  }
  assert.ok(count >= least, String(count));
  assert.equal(faults.join("\n\n"), "");
}
