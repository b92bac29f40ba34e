import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clangVersion, compile, readRecord, sourceHash } from "./build.ts";
import { objectFile } from "./dataplane.ts";
import { declared, dropReasons, type MapName, mapSizes } from "./layout.ts";

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

interface BtfType {
  readonly id: number;
  readonly kind: string;
  readonly name: string;
  readonly size?: number;
  readonly nr_elems?: number;
  readonly type_id?: number;
  readonly members?: readonly { readonly name: string; readonly bits_offset: number; readonly type_id: number }[];
  readonly values?: readonly { readonly name: string; readonly val: number }[];
}
function btf(): readonly BtfType[] {
  const text = execFileSync("bpftool", ["-j", "btf", "dump", "file", objectFile], { encoding: "utf8" });
  return (JSON.parse(text) as { types: readonly BtfType[] }).types;
}

test("the committed object was made from the committed source", () => {
  assert.equal(readRecord().source, sourceHash(), "run `node host/drivers/network/diverter/program/build.ts`");
});

test("compiling the source again gives the committed object", { skip: !has("clang") }, (t) => {
  if (clangVersion() !== readRecord().clang) return t.skip("another version of clang than the recorded one");
  const directory = mkdtempSync(join(tmpdir(), "diverter-"));
  try {
    compile(join(directory, "diverter.o"));
    assert.ok(readFileSync(join(directory, "diverter.o")).equals(readFileSync(objectFile)));
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("the layouts in TypeScript are those of the object", { skip: !has("bpftool") }, () => {
  const types = btf();
  for (const layout of declared) {
    const found = types.find(({ kind, name }) => kind === "STRUCT" && name === layout.name);
    assert.ok(found, `struct ${layout.name} is not in the object`);
    assert.equal(found.size, layout.size, `size of ${layout.name}`);
    const members = Object.fromEntries((found.members ?? []).map(({ name, bits_offset }) => [name, bits_offset / 8]));
    assert.deepEqual(members, layout.offsets, `fields of ${layout.name}`);
  }
  const reasons = types.find(({ name }) => name === "drop_reason")?.values ?? [];
  const names = reasons
    .filter(({ val }) => val > 0 && val < 16)
    .map(({ name }) => name.toLowerCase().replaceAll("_", "-"));
  assert.deepEqual(names, dropReasons);
});

test("the maps in TypeScript have the keys and values of the object's", { skip: !has("bpftool") }, () => {
  const types = new Map(btf().map((type) => [type.id, type]));
  const sizeOf = (id: number): number => {
    const type = types.get(id);
    return type?.size ?? (type?.type_id === undefined ? 0 : sizeOf(type.type_id));
  };
  const pointed = (id: number): number => types.get(id)?.type_id ?? 0;
  for (const [name, sizes] of Object.entries(mapSizes) as [MapName, readonly [number, number]][]) {
    const variable = [...types.values()].find((type) => type.kind === "VAR" && type.name === name);
    const members = types.get(variable?.type_id ?? 0)?.members ?? [];
    const size = (member: string): number => sizeOf(pointed(members.find((m) => m.name === member)?.type_id ?? 0));
    assert.equal(size("key"), sizes[0], `key of ${name}`);
    // Of a map of maps the value is another one's number.
    if (!["rules", "flows", "openings", "fanout"].includes(name))
      assert.equal(size("value"), sizes[1], `value of ${name}`);
  }
});
