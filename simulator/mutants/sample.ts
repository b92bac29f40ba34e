import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { changeNothing, whyNothing } from "./changes-nothing.ts";
import { textsBelow } from "./imports.ts";
import { type Judge, type JudgeName, judgeNames, judgesOf, Reach, runTests } from "./judges.ts";
import { type Mutant, mutantsIn } from "./mutants.ts";
import { addToRecord, type Finding, readRecord } from "./record.ts";

/**
 * What would the tests not notice? Of all operators of a folder some are drawn by a seed, and each is exchanged for another,
 * alone and in a copy of the code. Of the tests those are run that come to it: of its folder first, and where these pass those that
 * use the file, the scenarios and some seeds, each time up to the first that fails. What lives is printed: it is a line that no test holds, or one that says the same in both ways. Which of the
 * two, a reader has to judge, and writes it down in `changes-nothing.ts`.
 *
 * The guards of `mutations/` are chosen, and each is run with every test; this draws from all that there is.
 */
const usage = `Usage: node simulator/mutants/sample.ts [FOLDER | FILE…] [--minutes N] [--count N] [--skip N] [--seed N]
                                            [--judges NAMES] [--record FILE] [--again]

Exchanges operators of these files one at a time, and says of each who notices it; core and model without FOLDER. --minutes: for
as long, 10 without. --count: so many at most. --skip: without so many of the first, which another run has. --judges: these
alone, of ${judgeNames.join(",")}. --record: writes each finding there, and goes on from what is there already: what is killed is
not tried again, and what lives only by who has not looked at it yet. --again: these judges look at what lives there again.`;

const root = join(import.meta.dirname, "../..");
/** Tests of core and model read what other folders log and show, too. */
const notCopied = ["node_modules", ".git"];
const isTest = (name: string): boolean => /\.(test|testing|fuzz)\.ts$|\/testing\//.test(name);

const makeCopy = (): string => {
  const copy = mkdtempSync(join(tmpdir(), "cells-mutants-"));
  for (const name of readdirSync(root))
    if (!notCopied.includes(name)) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  // The tests of documents ask it which files there are.
  execFileSync("git", ["init", "--quiet"], { cwd: copy });
  return copy;
};

const commitOf = (): string => {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { cwd: root, encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
};

/** The same wherever it stands in its file. */
export const idOf = ({ file, before, after, nth }: Mutant): string => JSON.stringify([file, before, after, nth]);

/** An order that a seed gives. What is added to the code or taken from it moves nothing else. */
export function drawn(mutants: readonly Mutant[], seed: number): readonly Mutant[] {
  const at = (mutant: Mutant): string =>
    createHash("sha256")
      .update(`${seed} ${idOf(mutant)}`)
      .digest("hex");
  return mutants
    .map((mutant) => ({ mutant, at: at(mutant) }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .map(({ mutant }) => mutant);
}

interface Wanted {
  readonly folders: readonly string[];
  readonly minutes: number;
  readonly count: number;
  readonly skip: number;
  readonly seed: number;
  readonly judges: readonly JudgeName[];
  readonly record: string | null;
  readonly again: boolean;
}

/** Who has to look at it still; none: what is known of it stays. */
function remaining(judges: readonly Judge[], known: Finding | undefined, wanted: Wanted): readonly Judge[] {
  if (known?.outcome === "killed") return [];
  const asked = judges.filter(({ name }) => wanted.judges.includes(name));
  return wanted.again ? asked : asked.filter(({ name }) => known?.passed.includes(name) !== true);
}

/** Throws where a test fails without any change, too: it would kill all. */
async function assertGreen(copy: string, file: string | null, green: Set<string>): Promise<void> {
  if (file === null || green.has(file)) return;
  const { kind } = await runTests(copy, [file]);
  if (kind !== "passes") throw new Error(`${file} ${kind} without any change`);
  green.add(file);
}

/** So many are asked about in one run of all tests. */
const together = 200;
/** So a finding says it. */
const neverEnds = "does not end";

interface Trial {
  /** It stays as it was when it was made, whatever becomes of the code meanwhile. */
  readonly copy: string;
  readonly texts: ReadonlyMap<string, string>;
  readonly commit: string;
  readonly green: Set<string>;
}

async function tryMutant(
  mutant: Mutant,
  judges: readonly Judge[],
  known: Finding | undefined,
  trial: Trial,
): Promise<Finding> {
  const { copy, texts, commit, green } = trial;
  const [path, text] = [join(copy, mutant.file), texts.get(mutant.file) ?? ""];
  const passed = new Set(known?.passed ?? []);
  const finding = (outcome: Finding["outcome"], by: string): Finding => ({
    id: idOf(mutant),
    outcome,
    passed: [...passed],
    by,
    commit,
  });
  for (const { name, run } of judges) {
    writeFileSync(path, mutant.text);
    const verdict = await run(copy);
    writeFileSync(path, text);
    if (verdict.kind === "undecided")
      return finding("undecided", `${name}: no end in time, on a busy machine or for ever`);
    if (verdict.kind === "never ends") return finding("killed", `${name}: ${neverEnds}: ${verdict.why}`);
    if (verdict.kind === "fails") {
      await assertGreen(copy, verdict.file, green);
      return finding("killed", `${name}: ${verdict.file ?? ""} ${verdict.what}`);
    }
    passed.add(name);
  }
  return finding("lives", "");
}

const placeOf = ({ file, line, column, before, after }: Mutant): string =>
  `${file}:${line}:${column}\n    ${before}\n    ${after}`;
const told = ({ outcome, by }: Finding): string => (by === "" ? outcome : `${outcome} (${by})`);

function sumOf(found: readonly Finding[], all: readonly Mutant[]): readonly string[] {
  const of = (outcome: Finding["outcome"]): readonly Finding[] => found.filter((each) => each.outcome === outcome);
  const by = new Map<string, number>();
  for (const finding of of("killed")) {
    const [who = ""] = finding.by.split(":");
    const name = finding.by.includes(neverEnds) ? "never ending" : who;
    by.set(name, (by.get(name) ?? 0) + 1);
  }
  const each = [...by].map(([name, count]) => `${name} ${count}`).join(", ");
  const ids = new Set(all.map(({ file, before, after }) => JSON.stringify([file, before, after])));
  const stale = changeNothing.filter(({ file, before, after }) => !ids.has(JSON.stringify([file, before, after])));
  const killed = of("killed").length;
  const changing = killed + of("lives").length;
  return [
    `${killed} of ${changing} that change behaviour killed (${each}), ${of("lives").length} live; besides ${of("changes nothing").length} that change nothing and ${of("undecided").length} undecided; there are ${all.length}`,
    ...stale.map(({ file, before }) => `not there any more, but in changes-nothing.ts: ${file}: ${before}`),
  ];
}

async function sample(wanted: Wanted, print: (line: string) => void): Promise<void> {
  const { folders, minutes, count, skip, seed, record } = wanted;
  const texts = textsBelow(root);
  const isWanted = (name: string): boolean => folders.some((at) => name === at || name.startsWith(`${at}/`));
  for (const folder of folders)
    if (![...texts.keys()].some((name) => name === folder || name.startsWith(`${folder}/`)))
      throw new Error(`${folder} is no file or folder with any, below ${root}`);
  const all = mutantsIn(
    root,
    [...texts.keys()].filter((name) => isWanted(name) && !isTest(name)),
  );
  const known = readRecord(record);
  const trial: Trial = { copy: makeCopy(), texts, commit: commitOf(), green: new Set() };
  const found: Finding[] = [];
  try {
    // The time is what drawing takes; each that was begun is ended.
    const endMs = performance.now() + minutes * 60_000;
    const mutants = drawn(all, seed).slice(skip, skip + count);
    let reach = new Reach([], texts);
    for (const [index, mutant] of mutants.entries()) {
      if (index % together === 0) reach = new Reach(mutants.slice(index, index + together), texts);
      const before = known.get(idOf(mutant));
      const why = whyNothing(mutant);
      const judges = why === null ? remaining(judgesOf(mutant, texts, reach), before, wanted) : [];
      const nothing: Finding | null =
        why === null
          ? null
          : { id: idOf(mutant), outcome: "changes nothing", passed: [], by: why, commit: trial.commit };
      const stays = nothing ?? (judges.length === 0 ? before : undefined);
      if (stays === undefined && performance.now() > endMs) break;
      const finding = stays ?? (await tryMutant(mutant, judges, before, trial));
      if (record !== null && finding !== before) addToRecord(record, finding);
      found.push(finding);
      print(`${skip + index + 1}. ${told(finding)}: ${placeOf(mutant)}`);
    }
  } finally {
    rmSync(trial.copy, { recursive: true, force: true });
  }
  const from = skip === 0 ? "" : `, without the first ${skip}`;
  print(`seed ${seed}${from}, commit ${trial.commit}, the first ${found.length}:`);
  for (const line of sumOf(found, all)) print(line);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "10" },
      count: { type: "string", default: "Infinity" },
      skip: { type: "string", default: "0" },
      seed: { type: "string", default: "1" },
      judges: { type: "string", default: judgeNames.join(",") },
      record: { type: "string" },
      again: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const print = (line: string): void => console.log(line);
  if (values.help) return print(usage);
  const folders = (positionals.length === 0 ? ["core", "model"] : positionals).map((name) =>
    relative(root, resolve(name)),
  );
  const [minutes, count] = [Number(values.minutes), Number(values.count)];
  const [skip, seed] = [Number(values.skip), Number(values.seed)];
  const { again, record = null } = values;
  const asked = values.judges.split(",");
  const judges = judgeNames.filter((name) => asked.includes(name));
  if (judges.length !== asked.length) throw new Error(`--judges are of ${judgeNames.join(",")}`);
  await sample({ folders, minutes, count, skip, seed, judges, record, again }, print);
}

if (import.meta.main) await main();
