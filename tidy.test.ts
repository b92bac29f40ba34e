import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { test } from "node:test";

/**
 * The house rules that a machine can check. Every ban names what to use instead; the reasons stand in docs/STYLE.md.
 * Each rule is tried on a text that breaks it, so that none can fall silent unnoticed.
 */
const layers = ["model", "core", "runtime", "host", "gateway", "cli"] as const;
/** What stands on top of the layers, and which of the others there each may use. */
const onTop: Readonly<Record<string, readonly string[]>> = {
  web: ["simulator"],
  image: ["web"],
  simulator: [],
  testbed: ["image", "web"],
  bench: ["image", "simulator", "testbed", "web"],
};
const maximumLines = 520;
const maximumFunctionLines = 80;

interface Source {
  readonly path: string;
  readonly text: string;
}
/** A test, or what only tests use: both stand beside what they are about. */
const isTest = (path: string): boolean => /\.(test|testing)\.ts$/.test(path);
/** What runs in a browser: of ours it knows the model alone, as any client of the contract. */
const isPage = (path: string): boolean => /^web\/(?:data|pages|parts|state|main)\b/.test(path) && !isTest(path);

const list = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: import.meta.dirname,
  encoding: "utf8",
});
const tracked = list.split("\n").filter((path) => path !== "" && existsSync(join(import.meta.dirname, path)));
const read = (path: string): Source => ({ path, text: readFileSync(join(import.meta.dirname, path), "utf8") });
const sources: readonly Source[] = tracked.filter((path) => /\.tsx?$/.test(path) && path !== "tidy.test.ts").map(read);
/** Whatever may name a file that it runs or reads. */
const texts: readonly Source[] = tracked
  .filter((path) =>
    /\.(ts|json|service|sh|c|cjs)$|^(cells|\.ci\/run|testbed\/run-tests|docs\/.*|README\.md)$/.test(path),
  )
  .map(read);

/** Comments and strings say whatever they like; the bans are about code. */
function codeOnly(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " "))
    .replace(/(^|\s)\/\/.*$/gm, "$1");
}

/** @param dynamic those too that are asked for while it runs */
function importsOf({ path, text }: Source, dynamic = true): readonly string[] {
  const found: string[] = [];
  const statements = /(?:^|\n)\s*(?:import|export)\s(?:[^"';]*?\sfrom\s)?"([^"]+)"|\bimport\(\s*"([^"]+)"/g;
  for (const match of codeOnly(text).matchAll(statements)) {
    const target = match[1] ?? (dynamic ? match[2] : undefined) ?? "";
    if (target === "") continue;
    found.push(target.startsWith(".") ? normalize(join(dirname(path), target)) : target);
  }
  return found;
}

/** A layer imports from itself and from those below; the pure ones from nothing outside. */
function layerFaults(source: Source): readonly string[] {
  const folder = source.path.split("/")[0] ?? "";
  const level = layers.indexOf(folder as (typeof layers)[number]);
  if (level < 0) return isTest(source.path) ? [] : topFaults(source, folder);
  const pure = (folder === "model" || folder === "core") && !isTest(source.path);
  return importsOf(source).flatMap((target) => {
    const other = target.split("/")[0] ?? "";
    const otherLevel = layers.indexOf(other as (typeof layers)[number]);
    const entry =
      /^cli\/(?:commands\/(?:up|simulate|demo\/(?:out-and-in|pictures))|program\/simulate-program)\.ts$/.test(
        source.path,
      );
    if (otherLevel > level)
      return [`${source.path} imports ${target}: ${folder}/ is below ${other}/; move the shared part down`];
    if (Object.hasOwn(onTop, other) && !isTest(source.path) && !entry)
      return [`${source.path} imports ${target}: nothing imports from ${other}/; it stands on top`];
    if (pure && otherLevel < 0)
      return [
        `${source.path} imports ${target}: model/ and core/ have no dependencies; take what you need as an argument`,
      ];
    return [];
  });
}

function topFaults(source: Source, folder: string): readonly string[] {
  if (isPage(source.path))
    return importsOf(source).flatMap((target) =>
      /^(?:\.|react|@xterm\/xterm|@novnc\/novnc|model\/|web\/)/.test(target)
        ? []
        : [`${source.path} imports ${target}: the page is a client of model/contract/ like any other`],
    );
  const allowed = onTop[folder];
  if (allowed === undefined) return [];
  return importsOf(source).flatMap((target) => {
    const other = target.split("/")[0] ?? "";
    return other === folder || !Object.hasOwn(onTop, other) || allowed.includes(other)
      ? []
      : [`${source.path} imports ${target}: ${folder}/ does not stand on ${other}/; give what both need a layer below`];
  });
}

/**
 * Where a rename or a link is no matter of durability: what lies in a run directory, a log that turns over, and what is
 * found again where it came from.
 */
const volatile = [
  "runtime/process/durable-files.ts",
  "host/drivers/hypervisor/process/accelerator.ts",
  "host/drivers/hypervisor/guest/console.ts",
  "host/drivers/hypervisor/launch.ts",
  "host/drivers/hypervisor/guest/kept-consoles.ts",
  "host/drivers/storage/driver-nbd.ts",
];
const mustLast = (path: string): boolean =>
  /^(core|runtime|host|gateway)\//.test(path) && !isTest(path) && !volatile.includes(path);

interface Ban {
  readonly pattern: RegExp;
  readonly instead: string;
  readonly where: (path: string) => boolean;
  readonly breaks: string;
}
const everywhere = (): boolean => true;
/** A specification in TypeScript gives its cell as the default export. */
const ours = (path: string): boolean => !path.startsWith("examples/");
const pureCode = (path: string): boolean => /^(model|core)\//.test(path) && !isTest(path);
const bans: readonly Ban[] = [
  { pattern: /\bDate\b/, instead: "the Instant that the step was given", where: pureCode, breaks: "Date.now()" },
  {
    pattern: /\bset(Timeout|Interval|Immediate)\b/,
    instead: "a timer effect",
    where: pureCode,
    breaks: "setTimeout(f)",
  },
  { pattern: /\bMath\.random\b/, instead: "a number that was handed in", where: pureCode, breaks: "Math.random()" },
  { pattern: /\bprocess\./, instead: "an argument", where: pureCode, breaks: "process.env" },
  { pattern: /\bconsole\./, instead: "a log effect", where: pureCode, breaks: "console.log()" },
  {
    pattern: /(:|<|\bas)\s*any\b(?!\s*:)/,
    instead: "unknown and a check, or the real type",
    where: everywhere,
    breaks: "x as any",
  },
  { pattern: /@ts-(ignore|expect-error|nocheck)/, instead: "the right type", where: everywhere, breaks: "@ts-ignore" },
  {
    pattern: /\bimport \{[^}]*\b(rename|link)(Sync)?\b[^}]*\} from/,
    instead: "`renameDurably` and `linkDurably` of runtime/process/durable-files.ts, which a power cut does not undo",
    where: mustLast,
    breaks: 'import { rename } from "node:fs/promises"',
  },
  { pattern: /\.{3}\{/, instead: "the fields themselves, a line each", where: everywhere, breaks: "({ ...{ a: 1 } })" },
  { pattern: /biome-ignore/, instead: "code that the linter accepts", where: everywhere, breaks: "biome-ignore" },
  { pattern: /^export default\b/m, instead: "a named export", where: ours, breaks: "export default 1" },
  {
    pattern: /^export \*/m,
    instead: "an import of the file that defines it",
    where: everywhere,
    breaks: 'export * from "./a.ts"',
  },
  {
    pattern: /\b(test|it|describe)\.(skip|only|todo)\b/,
    instead: "a test that runs",
    where: everywhere,
    breaks: "test.only()",
  },
];

function banFaults({ path, text }: Source): readonly string[] {
  const code = codeOnly(text).replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '""');
  return bans.flatMap((ban) =>
    ban.where(path) && (ban.pattern.test(code) || (/@ts|biome/.test(ban.breaks) && ban.pattern.test(text)))
      ? [`${path}: ${ban.breaks} is not used here; use ${ban.instead}`]
      : [],
  );
}

function sizeFaults({ path, text }: Source): readonly string[] {
  const lines = text.split("\n");
  const faults: string[] = [];
  // Declarations are written by a command, one line for each attribute.
  if (lines.length > maximumLines && !path.endsWith(".d.ts"))
    faults.push(`${path} has ${lines.length} lines; look for the second concept in it`);
  if (isTest(path)) return faults;
  lines.forEach((line, index) => {
    const opening =
      /^(\s*)(?:.* => \{$|(export )?(async )?(function\b|(private |public |protected |static |async )*[\w#]+\(.*\{$))/.exec(
        line,
      );
    if (opening === null || !line.trimEnd().endsWith("{") || /^\s*(if|for|while|switch|catch)\b/.test(line)) return;
    const indent = opening[1] ?? "";
    const end = lines.findIndex((later, at) => at > index && later.startsWith(`${indent}}`));
    // A factory that only holds an object's methods is as long as these are together.
    const first = lines
      .slice(0, index + 1)
      .findLast((before) => before.startsWith(indent) && /^[^\s)]/.test(before.slice(indent.length)));
    const limit = /(function|const) create[A-Z]/.test(first ?? line) ? 2 * maximumFunctionLines : maximumFunctionLines;
    if (end - index > limit)
      faults.push(`${path}:${index + 1}: a function of ${end - index} lines; split it where its purpose changes`);
  });
  return faults;
}

/** Files that import one another in a circle: what one knows belongs into a third. */
function circleFaults(all: readonly Source[]): readonly string[] {
  const known = new Map(all.map((source) => [source.path, source]));
  const done = new Set<string>();
  const faults: string[] = [];
  const visit = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0)
      faults.push(`${[...way.slice(at), path].join(" → ")}: a circle; give what both need a file of its own`);
    const source = known.get(path);
    if (at >= 0 || source === undefined || done.has(path)) return;
    for (const target of importsOf(source, false)) visit(target, [...way, path]);
    done.add(path);
  };
  for (const { path } of all) visit(path, []);
  return faults;
}

/**
 * Folders beside one another that know each other both ways are one folder. What both need belongs into a folder below them, or
 * beside them in the folder that holds them. A test may look anywhere.
 */
function folderCircleFaults(all: readonly Source[]): readonly string[] {
  /** By folder and by folder beside it that it imports from, one such import. */
  const arrows = new Map<string, Map<string, string>>();
  for (const source of all.filter(({ path }) => !isTest(path)))
    for (const target of importsOf(source, false)) {
      const [from, to] = [source.path.split("/"), target.split("/")];
      const depth = from.findIndex((part, at) => part !== to[at]) + 1;
      if (depth === 0 || from.length <= depth || to.length <= depth) continue;
      const own = arrows.get(from.slice(0, depth).join("/")) ?? new Map<string, string>();
      arrows.set(from.slice(0, depth).join("/"), own);
      const other = to.slice(0, depth).join("/");
      if (!own.has(other)) own.set(other, `${source.path} imports ${target}`);
    }
  const done = new Set<string>();
  const faults: string[] = [];
  const visit = (folder: string, way: readonly string[]): void => {
    const at = way.indexOf(folder);
    if (at >= 0) {
      const circle = [...way.slice(at), folder];
      const why = circle.slice(1).map((other, index) => arrows.get(circle[index] ?? "")?.get(other));
      faults.push(`${circle.join(" → ")}: a circle of folders: ${why.join("; ")}`);
    }
    if (at >= 0 || done.has(folder)) return;
    for (const other of arrows.get(folder)?.keys() ?? []) visit(other, [...way, folder]);
    done.add(folder);
  };
  for (const folder of arrows.keys()) visit(folder, []);
  return faults;
}

/** Lists of many of one kind, which nobody looks through. */
const collections = ["model/cases", "simulator/mutations", "simulator/scenarios", "decisions"];
const maximumEntries = 20;
/** Git, the package manager, the linter, the compiler, the build and who looks for licences look for these in the root and nowhere else (decision 75). */
const forTools = [".ci", ".gitignore", "LICENSE", "biome.json", "package-lock.json", "package.json", "tsconfig.json"];
/** A folder is looked through at one glance, and the root, where everybody begins, too. */
function folderFaults(paths: readonly string[]): readonly string[] {
  const entries = new Map<string, Set<string>>();
  for (const path of paths)
    for (let below = path; below !== "."; below = dirname(below))
      if (!forTools.includes(below)) entries.set(dirname(below), (entries.get(dirname(below)) ?? new Set()).add(below));
  return [...entries].flatMap(([folder, { size }]) =>
    size > maximumEntries && !collections.includes(folder)
      ? [`${folder}/ has ${size} entries; look for the parts that it is made of`]
      : [],
  );
}

/**
 * Within core/, services do not import each other: they say what they want and what is so, in documents. What every one may use
 * stands at the top; who follows another's protocol is named here.
 */
const shared = ["documents", "telemetry"];
const followers: Readonly<Record<string, readonly string[]>> = {
  controller: ["bootstrap", "presence"],
  placer: ["presence"],
  ha: ["presence"],
  eucalyptus: ["presence"],
  presence: ["distribution"],
  identity: ["distribution"],
};
function coreFaults(source: Source): readonly string[] {
  const [layer, own = "", ...rest] = source.path.split("/");
  if (layer !== "core" || /\.(test|testing)\.ts$/.test(source.path)) return [];
  const allowed = rest.length === 0 ? shared : [own, ...shared, ...(followers[own] ?? [])];
  return importsOf(source).flatMap((target) => {
    const [of, folder = "", ...below] = target.split("/");
    if (of !== "core" || below.length === 0 || allowed.includes(folder)) return [];
    if (commonFiles.includes(target)) return [];
    return [`${source.path} imports ${target}: a service of core/ knows others by their documents alone`];
  });
}
/** Limits of what may be said, wherever it is said, and how what is larger than a document is said. */
const commonFiles = [
  "core/distribution/limits.ts",
  "core/distribution/views/slices.ts",
  "core/distribution/views/view.ts",
];

/** Nobody imports it, names it or starts it. */
function deadFaults(all: readonly Source[], texts: readonly Source[]): readonly string[] {
  const imported = new Set(all.flatMap((source) => importsOf(source)));
  return all.flatMap(({ path, text }) => {
    if (imported.has(path) || path.endsWith(".test.ts") || /\bimport\.meta\.main\b/.test(text)) return [];
    const name = basename(path);
    const isNamed = texts.some((other) => other.path !== path && other.text.includes(name));
    return isNamed ? [] : [`${path} is used by nothing; delete it`];
  });
}

/** Documents that were the work's own and are no part of the repository. */
const elsewhere = [
  "BEYOND",
  "EUCALYPTUS",
  "LANGUAGE",
  "MACHINE",
  "NETWORK",
  "PERSONALITIES",
  "PLACEMENT",
  "SELF-HOSTING",
  "STATE",
  "STORAGE",
  "TENANCY",
];
const ofElsewhere = new RegExp(`(?<![\\w"'\`-])(?:${elsewhere.join("|")})(?![\\w"'\`=-])`, "g");
/** What comments and documents point at is here: whoever follows it finds the rule, and not a name. */
function pointerFaults({ path, text }: Source, all: readonly string[]): readonly string[] {
  const prose = path.endsWith(".md") ? text.replace(/```[\s\S]*?```/g, "") : commentsOf(text);
  const says = "say the rule itself, or name the decision (`decision 31`) that holds it";
  const gone = [...prose.matchAll(ofElsewhere)].map(([name]) => `${path}: ${name} is not in this repository; ${says}`);
  const documents = [...prose.matchAll(/\b[A-Z][A-Z0-9-]+\.md\b/g)].flatMap(([name]) =>
    all.some((known) => basename(known) === name) ? [] : [`${path}: there is no ${name} in this repository; ${says}`],
  );
  const decisions = [...prose.matchAll(/\bdecisions?[ /]0*(\d+)\b/g)].flatMap(([pointer, number = ""]) =>
    all.some((known) => known.startsWith(`decisions/${number.padStart(4, "0")}-`))
      ? []
      : [`${path}: there is no ${pointer}; look in decisions/`],
  );
  return [...gone, ...documents, ...decisions];
}
/** A decision that nobody finds is taken a second time. */
const decisionFaults = (paths: readonly string[], index: string): readonly string[] => {
  const numbers = new Map<string, string>();
  return paths.flatMap((path) => {
    const number = /^decisions\/(\d{4})-/.exec(path)?.[1];
    if (number === undefined) return [];
    const other = numbers.get(number);
    numbers.set(number, path);
    const listed = index.includes(`](${basename(path)})`);
    return [
      ...(listed ? [] : [`${path} is not in decisions/README.md; list it there, as \`[number. title](file)\``]),
      ...(other === undefined ? [] : [`${path} has the number of ${other}; take the next free one`]),
    ];
  });
};
const commentsOf = (text: string): string => (text.match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm) ?? []).join("\n");

const report = (faults: readonly string[]): void => assert.equal(faults.join("\n"), "");

test("layers import only from those below them", () => report(sources.flatMap(layerFaults)));
test("what is banned has its replacement", () => report(sources.flatMap(banFaults)));
test("files and functions stay small", () => report(sources.flatMap(sizeFaults)));
test("no files import each other in a circle", () => report(circleFaults(sources)));
test("no folders import each other in a circle", () => report(folderCircleFaults(sources)));
test("a folder has few entries", () => report(folderFaults(tracked)));
test("services of core/ know each other by documents", () => report(sources.flatMap(coreFaults)));
test("every file is used", () => report(deadFaults(sources, texts)));
test("comments and documents point at what is here", () => {
  const speaking = tracked.filter((path) => /\.(ts|c|h|md)$/.test(path) && path !== "tidy.test.ts").map(read);
  report(speaking.flatMap((source) => pointerFaults(source, tracked)));
});
test("every decision is in the index, with a number of its own", () =>
  report(decisionFaults(tracked, read("decisions/README.md").text)));
test("each mutation still takes out what it names", () => {
  const unfit = (file: string): boolean => {
    const [, test] = /^# test: (\S+)/m.exec(read(file).text) ?? [];
    if (test !== undefined && !tracked.includes(test)) return true;
    return spawnSync("patch", ["-p1", "--dry-run", "-s", "-f", "-i", file], { cwd: import.meta.dirname }).status !== 0;
  };
  const mutations = tracked.filter((path) => /^simulator\/mutations\/.*\.patch$/.test(path));
  assert.notEqual(mutations.length, 0);
  report(
    mutations
      .filter(unfit)
      .map((file) => `${file}: the code or its test is another one now; say anew what is taken out`),
  );
});
test("each rule catches what breaks it", () => {
  assert.equal(layerFaults({ path: "model/a.ts", text: 'import { x } from "../core/b.ts";' }).length, 1);
  assert.equal(layerFaults({ path: "core/a.ts", text: 'import { x } from "node:fs";' }).length, 1);
  assert.equal(layerFaults({ path: "host/a.ts", text: 'import { x } from "../testbed/b.ts";' }).length, 1);
  assert.equal(layerFaults({ path: "host/a.ts", text: 'import { x } from "../core/b.ts";' }).length, 0);
  assert.equal(layerFaults({ path: "simulator/a.ts", text: 'import { x } from "../testbed/b.ts";' }).length, 1);
  assert.equal(layerFaults({ path: "web/pages/a.tsx", text: 'import { x } from "../../runtime/b.ts";' }).length, 1);
  assert.equal(layerFaults({ path: "web/pages/a.tsx", text: 'import { x } from "../../model/b.ts";' }).length, 0);
  assert.equal(layerFaults({ path: "bench/a.ts", text: 'import { x } from "../testbed/b.ts";' }).length, 0);
  const one = { path: "core/a.ts", text: 'import { x } from "./b.ts";' };
  assert.equal(circleFaults([one, { path: "core/b.ts", text: 'import type { y } from "./a.ts";' }]).length, 1);
  assert.equal(circleFaults([one, { path: "core/b.ts", text: 'const y = await import("./a.ts");' }]).length, 0);
  const [up, down] = ["../c/d.ts", "../a/b.ts"].map((other) => `import { x } from "${other}";`);
  const folders = ["core/a/b.ts", "core/c/d.ts"].map((path, at) => ({ path, text: [up, down][at] ?? "" }));
  assert.equal(folderCircleFaults(folders).length, 1);
  assert.equal(folderCircleFaults(folders.slice(1)).length, 0);
  assert.equal(folderCircleFaults([...folders.slice(1), { path: "core/a/b.test.ts", text: up ?? "" }]).length, 0);
  assert.equal(folderFaults(Array.from({ length: maximumEntries + 1 }, (_, number) => `a/${number}/b.ts`)).length, 1);
  const rooted = Array.from({ length: maximumEntries }, (_, number) => `${number}.md`);
  assert.equal(folderFaults([...rooted, "biome.json", ".ci/run"]).length, 0);
  assert.equal(folderFaults([...rooted, "more.json"]).length, 1);
  assert.equal(coreFaults({ path: "core/dns/a.ts", text: 'import { x } from "../storage/bin.ts";' }).length, 1);
  assert.equal(coreFaults({ path: "core/dns/a.ts", text: 'import { x } from "../documents/bin.ts";' }).length, 0);
  for (const pointer of ["(STATE.md, Presence)", '"STORAGE". NETWORK, "One writer"', "PLAN.md", "decision 9999"])
    assert.ok(pointerFaults({ path: "core/a.ts", text: `/** ${pointer} */` }, []).length > 0, pointer);
  assert.deepEqual(pointerFaults({ path: "core/a.ts", text: 'const STATE = "decision 9";' }, []), []);
  assert.deepEqual(pointerFaults({ path: "a.md", text: "decision 9" }, ["decisions/0009-a.md"]), []);
  assert.equal(decisionFaults(["decisions/0009-a.md", "decisions/0008-b.md"], "[8. B](0008-b.md)").length, 1);
  assert.equal(decisionFaults(["decisions/0008-a.md", "decisions/0008-b.md"], "](0008-a.md) ](0008-b.md)").length, 1);
  assert.deepEqual(deadFaults([one], [one]).length, 1);
  assert.deepEqual(deadFaults([one], [one, { path: "cells", text: "run core/a.ts" }]).length, 0);
  for (const ban of bans) assert.equal(banFaults({ path: "core/a.ts", text: `${ban.breaks}\n` }).length, 1, ban.breaks);
  assert.equal(sizeFaults({ path: "a.ts", text: "\n".repeat(maximumLines + 1) }).length, 1);
  for (const opening of ["function f() {", "const f = (): number => {", "  watch: (view) => {"]) {
    const end = `${/^ */.exec(opening)?.[0] ?? ""}}\n`;
    assert.equal(
      sizeFaults({ path: "a.ts", text: `${opening}\n${"\n".repeat(maximumFunctionLines + 1)}${end}` }).length,
      1,
    );
  }
});
test("licence, change log and documents are there", () => {
  for (const name of ["LICENSE", "README.md", "ARCHITECTURE.md", "docs/STYLE.md", "CHANGELOG.md"])
    assert.ok(readFileSync(join(import.meta.dirname, name), "utf8").length > 100, name);
});
