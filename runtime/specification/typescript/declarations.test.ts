import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { typescriptDeclarations } from "../../../model/reference/typescript-declarations.ts";
import { compilerFor, typeFaults } from "./compiler.ts";

const root = join(import.meta.dirname, "../../..");
const exampleFolder = join(root, "examples/shop-typescript");

/** Errors of the compiler, as `line: TS1234`, for a text with the types beside it. */
function compiled(text: string): readonly string[] {
  const directory = mkdtempSync(join(tmpdir(), "cells-types-"));
  try {
    writeFileSync(join(directory, "cells-model.d.ts"), typescriptDeclarations());
    writeFileSync(join(directory, "shop.ts"), text);
    writeFileSync(join(directory, "tsconfig.json"), readFileSync(join(exampleFolder, "tsconfig.json"), "utf8"));
    const tsc = spawnSync(
      process.execPath,
      [join(root, "node_modules/typescript/lib/tsc.js"), "-p", directory, "--pretty", "false"],
      {
        encoding: "utf8",
      },
    );
    assert.ok(tsc.status !== null, String(tsc.error));
    return [...tsc.stdout.matchAll(/^.*\((\d+),\d+\): error (TS\d+)/gm)].map(([, line, code]) => `${line}: ${code}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
const head = `import { type AnyElement, cell, connection, controller, grant, ref, rule, subnet, vif, vm, volume, volumeCopy } from "cells/model";
const web = vm({ memory: 128 }), disk = volume({ size: 64 }), net = subnet({ size: 16 });
`;

test("what is right compiles", () => {
  const text = `${head}const copy = volumeCopy({ image: disk });
const all: Record<string, AnyElement> = {};
for (let i = 0; i < 3; i++) all["vm" + i] = vm({ memory: 64 + i, liveness: { protocol: "udp", port: 53 }, placement: { pool: "fast" } }, { i });
export default cell("shop", {
  web, disk, net, copy, group: { all, note: "mine", list: [1, net] },
  boot: connection({ vm: web, volume: copy, busType: "scsi" }), card: vif({ vm: web, subnet: net, requires: false }),
  out: rule({ address1: net, address2: "internet", port2: "80-90" }), in: rule({ address1: ref("//a.b/c"), address2: web, port1: 1 }),
  open: grant({ volume: disk, cell: ref("//a.b/"), grant: "copy" }), kid: controller({ cell: cell("kid", {}) }),
}, { policy: { deploy: "all-or-none" }, limits: { vms: 3 } });
console.log("fine");
`;
  assert.deepEqual(compiled(text), []);
});

test("what is wrong does not compile, each at its line", () => {
  const wrong: readonly (readonly [text: string, code: string])[] = [
    ["vm({ memory: 128, memry: 1 });", "TS2561"],
    ["vm({ memory: 128, colour: 1 });", "TS2353"],
    ['vm({ memory: "128" });', "TS2322"],
    ['vm({ memory: 128, desiredState: "sleeping" });', "TS2322"],
    ["connection({ vm: web, volume: net });", "TS2322"],
    ["connection({ vm: disk, volume: disk });", "TS2322"],
    ['connection({ vm: "web", volume: disk });', "TS2322"],
    ["vm({});", "TS2741"],
    ["vm({ memory: 1, liveness: { prtocol: 1 } });", "TS2561"],
    ["rule({ address1: disk, address2: net });", "TS2322"],
    ['cell("x", {}, { limits: { vm: 1 } });', "TS2353"],
    ['cell("x", { f: () => 1 });', "TS2322"],
    ['cell("x", { n: undefined });', "TS2322"],
    ["vm({ memory: 128, cpus: undefined });", "TS2379"],
    ["Date.parse(fetch);", "TS2304"],
    ["disk.size;", "TS2339"],
  ];
  const text = `${head}${wrong.map(([line]) => line).join("\n")}\nexport default cell("shop", {});\n`;
  assert.deepEqual(
    compiled(text),
    wrong.map(([, code], index) => `${index + 3}: ${code}`),
  );
});

test("the author's own compiler is asked where there is one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-compiler-"));
  try {
    mkdirSync(join(directory, "sub"));
    const file = join(directory, "sub", "shop.ts");
    writeFileSync(file, `import { tier } from "./tier.ts";\n${head}export default cell("shop", { web, t: tier() });\n`);
    writeFileSync(
      join(directory, "sub", "tier.ts"),
      'import { vm } from "cells/model";\nexport const tier = () => vm({ memry: 1 });\n',
    );
    assert.equal(compilerFor(file), null);
    mkdirSync(join(directory, "node_modules/.bin"), { recursive: true });
    symlinkSync(join(root, "node_modules/typescript/bin/tsc"), join(directory, "node_modules/.bin/tsc"));
    const compiler = compilerFor(file);
    assert.equal(compiler, join(directory, "node_modules/.bin/tsc"));
    const faults = await typeFaults(compiler ?? "", file);
    assert.deepEqual(
      faults.map(({ code, position }) => [code, position?.file, position?.line]),
      [["typescript/types", "tier.ts", 2]],
    );
    assert.match(faults[0]?.message ?? "", /memry.*memory/);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("the types beside the example are those of the table", () => {
  assert.equal(readFileSync(join(exampleFolder, "cells-model.d.ts"), "utf8"), typescriptDeclarations());
});
