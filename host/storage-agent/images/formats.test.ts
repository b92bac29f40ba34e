import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/**
 * Nothing in the sources leaves it to QEMU to find out what a file is: whoever writes the file would decide. Every
 * `qemu-img` says `-f` or names each driver, every block node of QEMU has a `driver`, and `-drive`, which probes, is not
 * there.
 */
const root = join(import.meta.dirname, "../../..");
const sources = execFileSync(
  "git",
  ["ls-files", "--cached", "--others", "--exclude-standard", "host/*.ts", "bench/*.ts"],
  {
    cwd: root,
    encoding: "utf8",
  },
)
  .split("\n")
  .filter((path) => path !== "" && !/\.test(ing)?\.ts$|\/testing\//.test(path));

/** Calls of a tool that opens disks, as the rest of their statement. */
const callsIn = (text: string): readonly string[] => [
  ...[...text.matchAll(/qemuImg\((?!\s*directory:)[^;]*;/g)].map(([call]) => call),
  ...[...text.matchAll(/"qemu-(?:img|io|nbd)",[^;]*;/g)].map(([call]) => call),
];
const namesFormat = (call: string): boolean => /"-f"|source\(|\.\.\.parameters/.test(call);
const probes = (text: string): readonly string[] =>
  [...text.matchAll(/"(-drive|-hd[a-d]|-cdrom|-fda|drive_add)"/g)].map(([, option = ""]) => option);
/** Block nodes without a driver: objects that have a node name, save exports and orders to grow, which refer to a node by it. */
const undriven = (text: string): readonly string[] =>
  [...text.replace(/"block_resize",\s*\{[^{}]*\}/g, "").matchAll(/\{[^{}]*"node-name":[^{}]*/g)]
    .map(([node]) => node)
    .filter((node) => !/\bdriver\b|\btype: "nbd"/.test(node));

test("no tool and no block node is left to guess a format", () => {
  let calls = 0;
  let nodes = 0;
  for (const path of sources) {
    const text = readFileSync(join(root, path), "utf8");
    for (const call of callsIn(text)) {
      calls += 1;
      assert.ok(namesFormat(call), `${path}: say the format in ${call}`);
    }
    assert.deepEqual(probes(text), [], path);
    nodes += text.split('"node-name":').length - 1;
    assert.deepEqual(undriven(text), [], path);
  }
  assert.ok(calls >= 5 && nodes >= 4, `it looked at ${calls} calls and ${nodes} nodes`);
});

test("each rule catches what breaks it", () => {
  assert.equal(callsIn('run("qemu-img", ["convert", a, b]);').filter(namesFormat).length, 0);
  assert.equal(callsIn('await qemuImg(d, ["resize", f]);').filter(namesFormat).length, 0);
  assert.equal(callsIn('run("qemu-img", ["convert", "-f", "raw", a, b]);').filter(namesFormat).length, 1);
  assert.deepEqual(probes('["-drive", x]'), ["-drive"]);
  assert.equal(undriven('{ "node-name": "a", file: f }').length, 1);
  assert.equal(undriven('{ driver: "raw", "node-name": "a" }').length, 0);
});
