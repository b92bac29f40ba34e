import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BuildRecord, clangVersion, compileSource } from "../../diverter/program/build.ts";

/** Compiles learn.c; the object is committed with the record of what it was made from. `node build.ts` renews both. */
const directory = import.meta.dirname;
const recordFile = join(directory, "learn.build.json");

export const sourceHash = (): string =>
  createHash("sha256")
    .update(readFileSync(join(directory, "learn.c")))
    .digest("hex");
export const readRecord = (): BuildRecord => JSON.parse(readFileSync(recordFile, "utf8")) as BuildRecord;
export const compile = (output: string, source = directory): void => compileSource("learn.c", output, source);

if (import.meta.main) {
  compile(join(directory, "learn.o"));
  writeFileSync(recordFile, `${JSON.stringify({ source: sourceHash(), clang: clangVersion() }, null, 2)}\n`);
}
