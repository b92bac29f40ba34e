import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SourceFile } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

/**
 * Reads files below `root` as trees, in their order. The compiler's own parser does, in a process that ends with this call; nothing
 * is resolved and no type is checked, for which it would have to read the whole of the code.
 */
export function withSources<T>(
  root: string,
  files: readonly string[],
  read: (source: SourceFile, file: string) => T,
): readonly T[] {
  const folder = mkdtempSync(join(tmpdir(), "cells-parser-"));
  const project = join(folder, "tsconfig.json");
  const compilerOptions = { noLib: true, noResolve: true, types: [], allowImportingTsExtensions: true, noEmit: true };
  writeFileSync(project, JSON.stringify({ compilerOptions, files: files.map((file) => join(root, file)) }));
  const api = new API({ cwd: folder });
  try {
    const [opened] = api.updateSnapshot({ openProject: project }).getProjects();
    return files.map((file) => {
      const source = opened?.program.getSourceFile(join(root, file));
      if (source === undefined) throw new Error(`${file} is no file below ${root}`);
      return read(source, file);
    });
  } finally {
    api.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
