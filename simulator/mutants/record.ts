import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { type JudgeName, judgeNames } from "./judges.ts";

/** What is known of one mutant. */
export interface Finding {
  /** Of the mutant: the file, what reads how before and after, and which of several. Lines move, and are not in it. */
  readonly id: string;
  readonly outcome: "killed" | "lives" | "changes nothing" | "undecided";
  /** Who looked at it and noticed nothing. */
  readonly passed: readonly JudgeName[];
  /** Who killed it, or why it changes nothing. */
  readonly by: string;
  /** The code that it was tried with. */
  readonly commit: string;
}

const isFinding = (value: unknown): value is Finding => {
  const { id, outcome, passed, by } = (value ?? {}) as Partial<Record<keyof Finding, unknown>>;
  const isPassed = Array.isArray(passed) && passed.every((name) => judgeNames.includes(name));
  return typeof id === "string" && typeof outcome === "string" && typeof by === "string" && isPassed;
};

/** One JSON text a line; of each mutant the last one holds. A line that was not written whole is none. */
export function readRecord(file: string | null): ReadonlyMap<string, Finding> {
  const found = new Map<string, Finding>();
  if (file === null || !existsSync(file)) return found;
  for (const line of readFileSync(file, "utf8").split("\n")) {
    let value: unknown = null;
    try {
      value = JSON.parse(line);
    } catch {
      continue;
    }
    if (isFinding(value)) found.set(value.id, value);
  }
  return found;
}

/** A line begins anew, whatever a process that ended in the midst of one has left. */
export const addToRecord = (file: string, finding: Finding): void =>
  appendFileSync(file, `\n${JSON.stringify(finding)}`);
