import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Bundle } from "../cell/cell.ts";
import { readSpecification } from "../specification/specification.ts";
import { closestName } from "./closest-name.ts";
import type { Diagnostic, Position } from "./diagnostic.ts";
import { diagnosticPages } from "./diagnostic-codes.ts";

/*
 * A hint is followed as its reader would, and what it was given for is then gone. Those that say what to write are followed
 * here by what they say; those that leave a choice, by the mended example of their page.
 */
const faultsOf = (bundle: Bundle): readonly Diagnostic[] => {
  const read = readSpecification(bundle);
  return read.ok ? [] : read.error;
};
const replaced = (bundle: Bundle, { file, line, column, length }: Position, by: string): Bundle => {
  const lines = (bundle.files[file] ?? "").split("\n");
  const text = lines[line - 1] ?? "";
  lines[line - 1] = text.slice(0, column - 1) + by + text.slice(column - 1 + length);
  return { ...bundle, files: { ...bundle.files, [file]: lines.join("\n") } };
};
const textAt = (bundle: Bundle, { file, line, column, length }: Position): string =>
  ((bundle.files[file] ?? "").split("\n")[line - 1] ?? "").slice(column - 1, column - 1 + length);

/** What stands there afterwards, by what the hint says; undefined: it is no hint of this kind. */
type Follow = (there: string, match: RegExpExecArray, fault: Diagnostic) => string | undefined;
const quoted = (there: string, text: string): string => (/^".*"$/.test(there) ? `"${text}"` : text);
/** Of a path, a placement or a reference only the part that the message names is another. */
const partly = (there: string, meant: string, { message }: Diagnostic): string => {
  const part = /`([^`]+)` (?:in|here|to )|no `([^`]+)`|`([^`]+)` is/.exec(message)?.slice(1).find(Boolean) ?? there;
  return there !== part && there.includes(part) ? there.replace(part, meant) : quoted(there, meant);
};
const forms: readonly (readonly [RegExp, Follow])[] = [
  [/^Did you mean (?:the type )?`([^`]+)`\?/, (there, [, meant = ""], fault) => partly(there, meant, fault)],
  [/is written (\d+) here\.$/, (_, [, number]) => number],
  [/: write (\d+), without quotes and unit\.$/, (_, [, number]) => number],
  [/^Write it as a (?:text|string): (".*")\.$/, (_, [, text]) => text],
  [/^A text stands in double quotes: (".*")\.$/, (_, [, text]) => text],
  [/^Write `(true|false|null)`, in lower case\.$/, (_, [, word]) => word],
  [/^Write it without quotes/, (there) => there.slice(1, -1)],
  [/^The only such element is `([^`]+)`\.$/, (_, [, link]) => `"${link}"`],
  [/^A backslash itself is written `\\\\`\.$/, (there) => `\\${there}`],
  [/^If it is meant as a text, write it in double quotes: (".*")\.$/, (_, [, text]) => text],
];
const followed = (bundle: Bundle, fault: Diagnostic): Bundle | null => {
  const { hint, position } = fault;
  if (hint === undefined || position === undefined) return null;
  for (const [form, follow] of forms) {
    const match = form.exec(hint);
    const by = match === null ? undefined : follow(textAt(bundle, position), match, fault);
    if (by !== undefined) return replaced(bundle, position, by);
  }
  return null;
};
const sameOf = ({ code, message, position: at }: Diagnostic): string =>
  `${code} ${message}${at === undefined ? "" : ` (${at.file}:${at.line}:${at.column})`}`;
const shown = (bundle: Bundle): string => Object.values(bundle.files).join("\n---\n");

/** Follows hints until none is left that says what to write; each lets its fault go. */
function followAll(start: Bundle): { readonly bundle: Bundle; readonly left: readonly Diagnostic[]; steps: number } {
  let bundle = start;
  for (let steps = 0; ; steps += 1) {
    const faults = faultsOf(bundle);
    let next: Bundle | null = null;
    for (const fault of faults) {
      next = followed(bundle, fault);
      if (next === null) continue;
      const after = faultsOf(next).map(sameOf);
      assert.ok(!after.includes(sameOf(fault)), `${sameOf(fault)}\n${fault.hint}\nleads nowhere:\n${shown(next)}`);
      break;
    }
    if (next === null) return { bundle, left: faults, steps };
    assert.ok(steps < 30, `hints lead in a circle:\n${shown(bundle)}\n${faults.map(sameOf).join("\n")}`);
    bundle = next;
  }
}

test("what the hint of each page's example says to write mends it", () => {
  let count = 0;
  for (const [code, { wrong }] of diagnosticPages) {
    if (wrong.kind !== "bundle" || !/\.(sf|json)$/.test(wrong.bundle.main)) continue;
    const { left, steps } = followAll(wrong.bundle);
    if (steps === 0) continue;
    count += 1;
    assert.deepEqual(left.map(sameOf), [], code);
  }
  assert.ok(count >= 8, `${count} of them say what to write`);
});

const cell = (inside: string, main = "shop.sf"): Bundle => ({ main, files: { [main]: inside } });
const sf = (inside: string): Bundle => cell(`shop extends Cell { ${inside} }`);
const json = (inside: string): Bundle => cell(`{"shop": {"x.type": "Cell", ${inside}}}`, "shop.json");

test("numbers with units, words without quotes, and what else people write first, become what they meant", () => {
  const starts: readonly Bundle[] = [
    ...["96M", "96MiB", "2G", "2GB", "65536k", "2GiB"].map((size) => sf(`vm extends VM { x.memory ${size}; }`)),
    ...['"96M"', '"2 GiB"', '"2048"'].map((size) => sf(`vm extends VM { x.memory ${size}; }`)),
    ...["96M", "2GiB", '"96M"'].map((size) => json(`"vm": {"x.type": "VM", "x.memory": ${size}}`)),
    sf("volume extends Volume { x.size 1T; }"),
    sf("Size extends { size 96M; } vm extends VM { x.memory 64; }"),
    sf("vm extends VM { x.memory 64; x.desiredState off; }"),
    sf("vm extends VM { x.memory 64; x.desiredState offf; }"),
    sf("vm extends VM { x.memory 64; x.restartOnFailure yes; }"),
    sf("vm extends VN { x.memory 64; }"),
    sf("vm extends VM { x.memroy 64; x.memory 64; }"),
    sf(
      'vm extends VM { x.memory 64; } disk extends Volume { x.size 64; } c extends VolumeConnection { x.vm "<ref:../disk>"; x.volume "<ref:../disk>"; }',
    ),
    json(`"vm": {"x.type": "VM", "x.memory": 64, "x.restartOnFailure": True}`),
    json(`"vm": {"x.type": "VM", "x.memory": 64, "x.desiredState": on}`),
  ];
  for (const start of starts) {
    const { left, steps, bundle } = followAll(start);
    assert.ok(steps > 0, `something is said of ${shown(start)}: ${JSON.stringify(faultsOf(start))}`);
    assert.deepEqual(
      left.map((fault) => `${sameOf(fault)} ${fault.hint}`),
      [],
      shown(bundle),
    );
  }
});

const examples = (folder: string): Bundle => {
  const directory = join(import.meta.dirname, "../../examples", folder);
  const names = readdirSync(directory).filter((name) => name.endsWith(".sf"));
  return {
    main: `${folder}.sf`,
    files: Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), "utf8")])),
  };
};

test("each name of an example, misspelt in one of the usual ways: following the hints ends, and none leads nowhere", () => {
  const shop = examples("shop");
  assert.deepEqual(faultsOf(shop), []);
  const tally = { mended: 0, left: 0 };
  for (const [file, text] of Object.entries(shop.files)) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, (comment) => comment.replace(/[^\n]/g, " "));
    for (const { 0: word, index } of code.matchAll(/[A-Za-z_][\w.]{3,}/g)) {
      const middle = word.length - 2;
      const spellings = [
        word.slice(0, middle) + word.slice(middle + 1),
        `${word.slice(0, middle)}q${word.slice(middle)}`,
        `${word.slice(0, middle)}${word[middle + 1]}${word[middle]}`,
      ];
      const spelt = spellings[index % spellings.length] ?? "";
      if (spelt === word) continue;
      const files = { ...shop.files, [file]: text.slice(0, index) + spelt + text.slice(index + word.length) };
      const { left } = followAll({ ...shop, files });
      if (left.length === 0) tally.mended += 1;
      else tally.left += 1;
    }
  }
  assert.ok(tally.mended > tally.left, JSON.stringify(tally));
});

test("names that have nothing in common are not taken for each other", () => {
  const attributes = ["x.vm", "x.mac", "x.size", "x.cidr", "x.memory", "x.subnet"];
  for (const name of ["x.ip", "x.os", "x.net", "x.disk", "x.cost", "x.a", "x.data", "x.host", "x.rate"])
    assert.equal(closestName(name, attributes), undefined, name);
  for (const [name, other] of [
    ["a", "b"],
    ["db", "vm"],
    ["net", "web"],
    ["test", "next"],
    ["up", "get"],
  ] as const)
    assert.equal(closestName(name, [other]), undefined, name);
  for (const [name, meant] of [
    ["x.memroy", "x.memory"],
    ["x.sizes", "x.size"],
    ["X.VM", "x.vm"],
    ["x.cdir", "x.cidr"],
    ["x.subnett", "x.subnet"],
  ] as const)
    assert.equal(closestName(name, attributes), meant, name);
  assert.equal(closestName("vn", ["vm", "net"]), "vm");
  assert.equal(closestName("wbe", ["web", "app"]), "web");
});
