import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Editor, type Place, startServer } from "../../cli/language-server/testing/client.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";
import { measuredNode } from "./specification.ts";
import { elementsText, smartFrogText } from "./specification-texts.ts";

const cells = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

/** A large text with a component at its end in which somebody writes. */
interface Large {
  readonly name: string;
  readonly text: string;
  /** What is written there, at its end the cursor. */
  readonly started: string;
  readonly expected: string;
}

const inCell = (text: string, added: string): string => text.replace(/\}\s*$/, `${added}\n}\n`);

function texts(vms: number): readonly Large[] {
  const link = 'late extends VolumeConnection { x.volume "<ref:/shop/image>"; x.vm "<ref:../vm1';
  const template = smartFrogText(vms);
  const links = elementsText(4 * vms + 2, 64);
  return [
    { name: "an attribute", text: template, started: "late extends Server { x.c", expected: "x.cpus" },
    {
      name: "a path among them",
      text: template,
      started: 'late extends VolumeConnection { x.vm "<ref:/shop/vm1',
      expected: "vm1",
    },
    { name: "a path, four elements for each machine", text: links, started: link, expected: "vm1" },
  ];
}

const end = (text: string): Place => {
  const lines = text.split("\n");
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
};

/** One letter more or less and then the question what could stand there: as long as an author waits for the list. */
async function keystrokes(
  directory: string,
  large: Large,
  rounds: number,
  say: BenchOptions["say"],
): Promise<readonly Figure[]> {
  const closing = large.started.includes('"<ref') ? '>"; }' : " }";
  const text = inCell(large.text, `${large.started}${closing}`);
  const file = join(directory, "large.sf");
  // As `cells spec check` finds it: without what is only begun.
  writeFileSync(file, large.text);
  const place = end(text.slice(0, text.lastIndexOf(large.started) + large.started.length));
  const editor = new Editor(startServer({ NODE_COMPILE_CACHE: join(directory, "compiled") }));
  try {
    await editor.initialize([directory]);
    await editor.open(file, text);
    let longer = false;
    const before = { line: place.line, character: place.character - 1 };
    const letter = large.started.at(-1) ?? "";
    const keystroke = async (): Promise<number> => {
      const start = process.hrtime.bigint();
      if (longer) await editor.change(file, before, before, letter);
      else await editor.change(file, before, place, "");
      const labels = await editor.labels(file, longer ? place : before);
      const ms = Number(process.hrtime.bigint() - start) / 1e6;
      if (!labels.includes(large.expected)) throw new Error(`${large.expected} is not among ${labels.slice(0, 9)}`);
      longer = !longer;
      return ms;
    };
    const check = async (): Promise<number> =>
      (await measuredNode(join(directory, "compiled"), [cells, "spec", "check", file])).ms;
    for (let round = 0; round < 3; round++) await keystroke();
    await check();
    say(`${large.name}: ${Math.round(text.length / 1024)} KiB`);
    const measured = await interleave(rounds, { keystroke, check });
    await editor.shutdown();
    const share = ratios(measured.keystroke, measured.check);
    const { name } = large;
    return [
      { what: `${name}: keystroke / check`, unit: "×", value: median(share), range: rangeOf(share), atMost: 0.1 },
      { what: name, unit: "ms", value: median(measured.keystroke), range: rangeOf(measured.keystroke), atMost: 100 },
      {
        what: "cells spec check",
        unit: "ms",
        value: median(measured.check),
        range: rangeOf(measured.check),
        atMost: null,
      },
    ];
  } finally {
    await editor.kill();
  }
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "cells-bench-serve-")));
  try {
    const figures: Figure[] = [];
    for (const large of texts(quick ? 500 : 5000))
      figures.push(...(await keystrokes(directory, large, quick ? 3 : 7, say)));
    return figures;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const languageServer: Bench = {
  title: "Completion in a text of 5,000 machines",
  method:
    "From one letter, sent to the running server as a change, to the list of what could stand there, which is of the new " +
    "text; against `cells spec check` of the same text as a whole process, in turn.",
  run,
};
