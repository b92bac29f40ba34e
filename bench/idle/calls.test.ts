import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { countCalls } from "./calls.ts";

const skip = process.getuid?.() === 0 ? false : "needs root, for counting in other processes";
const source = `
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int wanted(int number) { __asm__ volatile(""); return number + 1; }
int main(void) {
    for (int times; scanf("%d", &times) == 1; fflush(stdout)) {
        for (int at = 0; at < times; at += 1) wanted(at);
        puts("done");
    }
    return 0;
}
`;

test("calls are counted by process, from the beginning to the end and of this function alone", { skip }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-calls-"));
  const program = join(directory, "program");
  writeFileSync(`${program}.c`, source);
  execFileSync("clang", ["-O1", "-rdynamic", "-o", program, `${program}.c`]);
  const children = [0, 1].map(() => spawn(program, { stdio: ["pipe", "pipe", "ignore"] }));
  const call = async (which: number, times: number): Promise<void> => {
    children[which]?.stdin?.write(`${times}\n`);
    await once(children[which]?.stdout ?? assert.fail(), "data");
  };
  const pids = children.map(({ pid }) => pid ?? assert.fail());
  try {
    await call(0, 5);
    const counter = await countCalls(program, "wanted", [...pids, 4_194_303]);
    await call(0, 1000);
    await call(1, 70);
    await call(0, 234);
    assert.deepEqual(await counter.stop(), [1234, 70, null]);
    await assert.rejects(countCalls(program, "unwanted", pids), /it does not export unwanted/);
    await assert.rejects(countCalls(`${program}.c`, "wanted", pids), /no program/);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
});
