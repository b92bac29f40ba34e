import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Arrival } from "./arrival.ts";
import { BadLines } from "./bad-lines.ts";
import { arrivalsFrom } from "./read.ts";

/** A folder with these files in it. */
export async function withFiles(
  files: Readonly<Record<string, string | Uint8Array>>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "cells-trace-"));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What a host offers in these tests. */
export const machine = { memoryMiB: 1000, cpus: 100, guest: (memoryMiB: number) => memoryMiB - 60 };

export async function readTrace(file: string): Promise<{ readonly all: readonly Arrival[]; readonly bad: BadLines }> {
  const [bad, all]: [BadLines, Arrival[]] = [new BadLines(), []];
  for await (const arrival of arrivalsFrom(file, machine, bad)) all.push(arrival);
  return { all, bad };
}
export const numbers = ({ second, account, group, cpus, memoryMiB, endsAt }: Arrival) => [
  second,
  account,
  group,
  cpus,
  memoryMiB,
  endsAt,
];
