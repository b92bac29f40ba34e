import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Uid } from "../../../../model/identifiers.ts";

/** What numbers in the kernel are called, kept on disk so that counters and `why` speak after a restart too. */
export interface Names {
  readonly taps: { readonly [tap: string]: Uid };
  readonly rules: { readonly [cell: string]: { readonly [rule: string]: string } };
}
const fileOf = (directory: string): string => join(directory, "names.json");

export function readNames(directory: string): Names {
  try {
    return JSON.parse(readFileSync(fileOf(directory), "utf8")) as Names;
  } catch {
    return { taps: {}, rules: {} };
  }
}
/** Replaces the file as a whole. Losing it costs names, never enforcement. */
export function writeNames(directory: string, names: Names): void {
  mkdirSync(directory, { recursive: true });
  const temporary = `${fileOf(directory)}.new`;
  writeFileSync(temporary, JSON.stringify(names));
  renameSync(temporary, fileOf(directory));
}
