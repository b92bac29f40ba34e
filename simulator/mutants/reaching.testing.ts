import { writeFileSync } from "node:fs";
import { afterEach, beforeEach } from "node:test";
import type { Reached } from "./reach.ts";

/**
 * Loaded before tests by `reach.ts`: writes down which of them come to which of the expressions that stand in a call of
 * `cellsReached`, and how long each test takes. What is reached before the first one is reached by loading a file.
 */
interface Taken {
  readonly file: string;
  readonly name: string;
  cpuMs: number;
}
const tests: Taken[] = [{ file: "", name: "", cpuMs: 0 }];
const numbers = new Map<string, number>();
const reached = new Map<number, Set<number>>();
let current = 0;
let since = 0;
/** Of each expression, the test that came to it last: most come there again and again. */
const last: number[] = [];

const spentMs = (): number => process.cpuUsage().user / 1000;

Object.assign(globalThis, {
  cellsReached: (expression: number): void => {
    if (last[expression] === current) return;
    last[expression] = current;
    const by = reached.get(expression) ?? new Set();
    reached.set(expression, by.add(current));
  },
});

beforeEach((context) => {
  // Parts of a test count as the test.
  const file = "filePath" in context ? String(context.filePath) : "";
  const name = "fullName" in context ? (String(context.fullName).split(" > ")[0] ?? "") : "";
  const key = `${file}\n${name}`;
  const known = numbers.get(key);
  current = known ?? tests.length;
  if (known === undefined) {
    numbers.set(key, current);
    tests.push({ file, name, cpuMs: 0 });
  }
  since = spentMs();
});
afterEach(() => {
  const now = spentMs();
  const test = tests[current];
  if (test !== undefined) test.cpuMs += now - since;
  since = now;
});

process.on("exit", () => {
  const out = process.env.CELLS_REACHED;
  if (out === undefined) return;
  const by = [...reached].map(([expression, of]): [number, readonly number[]] => [expression, [...of]]);
  writeFileSync(out, JSON.stringify({ tests, by } satisfies Reached));
});
