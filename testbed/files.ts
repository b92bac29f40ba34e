import { readFileSync, renameSync, writeFileSync } from "node:fs";

/** Readers see the old text or the new one, never a part. */
export const writeAtomically = (file: string, text: string, mode = 0o644): void => {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, text, { mode });
  renameSync(draft, file);
};

export const writeJson = (file: string, value: unknown, mode = 0o644): void =>
  writeAtomically(file, `${JSON.stringify(value, null, 2)}\n`, mode);

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";

/** Undefined when there is no such file. The caller names the type: these are our own files. */
export const readJson = <T>(file: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new Error(`cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};
