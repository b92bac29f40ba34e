import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { limits } from "../../../model/limits.ts";
import { typescriptDeclarations } from "../../../model/reference/typescript-declarations.ts";

/*
 * Asks the author's own TypeScript compiler, where there is one in their project: it is a program that they installed and
 * run themselves, so it needs no walls. Only the command line does this; what is applied goes by the schema's checks.
 */
const longestMs = 60_000;

/** `node_modules/.bin/tsc` in the directory of the file or above; null if there is none. */
export function compilerFor(file: string): string | null {
  for (let directory = dirname(resolve(file)); ; directory = dirname(directory)) {
    const found = join(directory, "node_modules/.bin/tsc");
    if (existsSync(found)) return found;
    if (directory === dirname(directory)) return null;
  }
}

const options = {
  target: "es2024",
  lib: ["es2024"],
  types: [],
  module: "esnext",
  moduleResolution: "bundler",
  strict: true,
  exactOptionalPropertyTypes: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  noEmit: true,
  skipLibCheck: true,
};

/** Errors of the compiler in a specification and what it imports, with our types and not those that may lie beside it. */
export async function typeFaults(compiler: string, file: string): Promise<readonly Diagnostic[]> {
  const directory = mkdtempSync(join(tmpdir(), "cells-types-"));
  try {
    writeFileSync(join(directory, "cells-model.d.ts"), typescriptDeclarations());
    const files = [join(directory, "cells-model.d.ts"), resolve(file)];
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }));
    // Names in its answer are relative to where it runs.
    const output = await outputOf(compiler, ["-p", directory, "--pretty", "false"], directory);
    return faultsIn(output, directory, dirname(resolve(file)));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function faultsIn(output: string, from: string, root: string): readonly Diagnostic[] {
  const faults: Diagnostic[] = [];
  for (const line of output.split("\n")) {
    const [, name, row, column, code, message] = /^(.+)\((\d+),(\d+)\): error (TS\d+): (.*)$/.exec(line) ?? [];
    if (name === undefined || message === undefined) continue;
    const file = relative(root, resolve(from, name)).split(sep).join("/");
    if (file.startsWith("../") || faults.length >= limits.diagnostics) continue;
    faults.push({
      code: "typescript/types",
      message: `${message} (${code})`,
      position: { file, line: Number(row), column: Number(column), length: 1 },
    });
  }
  return faults;
}

/** What it printed, whatever it ended with: it ends with 1 or 2 where it finds errors. Empty if it cannot be run. */
function outputOf(command: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((done) => {
    const child = spawn(process.execPath, [command, ...args], {
      cwd,
      stdio: ["ignore", "pipe", "ignore"],
      timeout: longestMs,
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(0, 1024 * 1024);
    });
    child.once("error", () => done(""));
    child.once("close", () => done(output));
  });
}
