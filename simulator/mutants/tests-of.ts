import { dirname } from "node:path";
import { distancesFrom } from "./imports.ts";

/** The tests that could notice a change of a file, by what they cost: each list is run where those before it noticed nothing. */
export interface TestsOf {
  /** The file beside it that is named after it. */
  readonly own: readonly string[];
  /** All others of its folder or of the next above that has some. */
  readonly near: readonly string[];
  /** What else of the pure folders uses it: of its service or subject first, and then the nearest. */
  readonly importing: readonly string[];
  /** Of the other folders what uses it nearly directly, and needs neither root nor a testbed. */
  readonly elsewhere: readonly string[];
}

const isPure = (name: string): boolean => /^(core|model)\//.test(name);
/** Others judge by themselves: scenarios and seeds. */
const isOfRuns = (name: string): boolean => /^(simulator|testbed|bench)\//.test(name);
/** Furthest, in imports, of a test elsewhere; and so many of these at most. */
const nearlyDirect = 3;
const mostElsewhere = 12;

export function testsOf(file: string, texts: ReadonlyMap<string, string>): TestsOf {
  const tests = [...texts.keys()].filter((name) => name.endsWith(".test.ts"));
  const below = (folder: string): readonly string[] => tests.filter((name) => name.startsWith(`${folder}/`));
  let folder = dirname(file);
  while (below(folder).length === 0 && folder !== ".") folder = dirname(folder);
  const own = tests.filter((name) => name === file.replace(/\.ts$/, ".test.ts"));
  const near = below(folder).filter((name) => !own.includes(name));
  const distances = distancesFrom(file, texts);
  const of = (name: string): number => distances.get(name) ?? Number.POSITIVE_INFINITY;
  const subject = file.split("/").slice(0, 2).join("/");
  const isBeside = (name: string): boolean => name.startsWith(`${subject}/`);
  const using = tests
    .filter((name) => distances.has(name) && !near.includes(name) && !own.includes(name))
    .sort((a, b) => Number(isBeside(b)) - Number(isBeside(a)) || of(a) - of(b) || a.localeCompare(b));
  const elsewhere = using
    .filter((name) => !isPure(name) && !isOfRuns(name) && !/getuid|\/testbed\//.test(texts.get(name) ?? ""))
    .filter((name) => of(name) <= nearlyDirect || name.startsWith("docs/"));
  return { own, near, importing: using.filter(isPure), elsewhere: elsewhere.slice(0, mostElsewhere) };
}
