import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Compiles diverter.c with its parts. The object is committed, so that a host needs no compiler; `node build.ts` renews it
 * together with the record of what it was made from.
 */
export interface BuildRecord {
  /** SHA-256 of the sources, hexadecimal. */
  readonly source: string;
  /** First line of `clang --version`; objects of different compilers differ though both are right. */
  readonly clang: string;
}
const directory = import.meta.dirname;
const recordFile = join(directory, "diverter.build.json");

export const clangVersion = (): string =>
  execFileSync("clang", ["--version"], { encoding: "utf8" }).split("\n")[0] ?? "";
export function sourceHash(): string {
  const parts = readdirSync(join(directory, "parts")).filter((name) => name.endsWith(".h"));
  const hash = createHash("sha256");
  for (const name of ["diverter.c", ...parts.sort().map((part) => `parts/${part}`)])
    hash.update(`${name}\n`).update(readFileSync(join(directory, name)));
  return hash.digest("hex");
}
export const readRecord = (): BuildRecord => JSON.parse(readFileSync(recordFile, "utf8")) as BuildRecord;

/**
 * Compiles to `output`; without line tables of DWARF, with BTF. Relative names keep the object free of this machine's paths.
 * @param source directory of diverter.c and its parts; absent: the committed ones
 * @param more further flags of clang
 */
export const compile = (output: string, source = directory, more: readonly string[] = []): void =>
  compileSource("diverter.c", output, source, more);
/** The same of another program. @param source its directory */
function compileSource(file: string, output: string, source: string, more: readonly string[] = []): void {
  const flags = ["-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", "-Wall", "-Werror", ...more];
  execFileSync("clang", [...flags, "-fdebug-compilation-dir=.", "-c", file, "-o", output], { cwd: source });
  execFileSync("llvm-strip", ["-g", output]);
}

/** Of a program that is one file, `NAME.c`, with its object and the record beside it. */
export function programBuild(folder: string, name: string) {
  const record = join(folder, `${name}.build.json`);
  const build = {
    sourceHash: (): string =>
      createHash("sha256")
        .update(readFileSync(join(folder, `${name}.c`)))
        .digest("hex"),
    readRecord: (): BuildRecord => JSON.parse(readFileSync(record, "utf8")) as BuildRecord,
    compile: (output: string): void => compileSource(`${name}.c`, output, folder),
    renew(): void {
      build.compile(join(folder, `${name}.o`));
      writeRecord(record, build.sourceHash());
    },
  };
  return build;
}
const writeRecord = (file: string, source: string): void =>
  writeFileSync(file, `${JSON.stringify({ source, clang: clangVersion() }, null, 2)}\n`);

if (import.meta.main) {
  compile(join(directory, "diverter.o"));
  writeRecord(recordFile, sourceHash());
}
