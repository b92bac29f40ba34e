import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { Command } from "commander";
import { moreOf } from "../program/assembled.ts";
import { createProgram } from "../program/program.ts";
import { manualPages } from "./manual.ts";

const program = createProgram();
const pages = manualPages(program, { version: "cells 1.2.3", behind: moreOf });

/** As a person reads it. */
const read = (text: string): { readonly shown: string; readonly warnings: string } => {
  const { stdout, stderr, error } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-P-cbu", "-rLL=200n"], {
    input: text,
    encoding: "utf8",
  });
  assert.equal(error, undefined, "groff (Debian's groff-base) is here: ./cells setup");
  return { shown: stdout, warnings: stderr };
};

test("each command has a page, or a part of one, with all of its options and examples", () => {
  const family = (command: Command): readonly Command[] =>
    command
      .createHelp()
      .visibleCommands(command)
      .flatMap((each) => [each, ...family(each)]);
  const top = program
    .createHelp()
    .visibleCommands(program)
    .filter((each) => each.name() !== "help");
  assert.deepEqual([...pages.keys()].sort(), ["cells.1", ...top.map((each) => `cells-${each.name()}.1`)].sort());
  for (const command of top) {
    const { shown, warnings } = read(pages.get(`cells-${command.name()}.1`) ?? assert.fail());
    assert.equal(warnings, "", command.name());
    const flat = shown.replace(/\s+/g, " ");
    for (const each of [command, ...family(command)].filter(({ commands }) => commands.length === 0)) {
      for (const { flags } of each.options) assert.ok(flat.includes(flags), `${each.name()} ${flags}`);
      for (const example of moreOf(each).examples)
        assert.ok(flat.includes(example.replace(/\s+/g, " ")), `${each.name()}: ${example}`);
    }
  }
});

test("the overview names all commands", () => {
  const { shown, warnings } = read(pages.get("cells.1") ?? assert.fail());
  assert.equal(warnings, "");
  for (const { name } of program
    .createHelp()
    .visibleCommands(program)
    .map((each) => ({ name: each.name() })))
    if (name !== "help") assert.match(shown, new RegExp(`cells-${name}\\(1\\)`));
});

test("text is shown as it is, whatever troff would make of it", () => {
  const odd = new Command("cells");
  odd.command("odd").description(".so /etc/passwd\n'br \\n[.g] – “end”");
  const { shown, warnings } = read(manualPages(odd, { version: "", behind: moreOf }).get("cells-odd.1") ?? "");
  assert.equal(warnings, "");
  assert.match(shown, /\.so \/etc\/passwd 'br \\n\[\.g\] – “end”/);
});
