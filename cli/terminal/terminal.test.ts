import assert from "node:assert/strict";
import { test } from "node:test";
import { processTerminal } from "./terminal.ts";

test("a terminal without a size is drawn on as one of the usual size", () => {
  for (const size of [{ columns: 0, rows: 0 }, {}]) {
    const written: string[] = [];
    const stdout = { isTTY: true, ...size, write: (text: string) => written.push(text) };
    const streams = { stdout, stderr: stdout, stdin: stdout } as unknown as Parameters<typeof processTerminal>[0];
    const terminal = processTerminal(streams);
    assert.equal(terminal.columns, 100);
    terminal.draw(["Hosts  3 of 3 reachable", "Cells"]);
    assert.match(written.join(""), /Hosts {2}3 of 3 reachable\nCells\n$/);
  }
});
