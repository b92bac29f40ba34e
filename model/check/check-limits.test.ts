import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { limits } from "../limits.ts";
import { checkDocument, readSpecification } from "../specification/specification.ts";
import { checkKept } from "./check-limits.ts";
import { acceptedBefore, type Supply, unknownSupply } from "./check-supply.ts";

const vm = (memory: number, cpus = 1): JsonObject => ({ "x.type": "VM", "x.memory": memory, "x.cpus": cpus });
const cell = (parts: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...parts } });
const child = (model: JsonObject): JsonObject => ({
  "x.type": "CellController",
  "x.cell": { "x.type": "Cell", ...model },
});
const faults = (parts: JsonObject): readonly Diagnostic[] => {
  const result = checkDocument(cell(parts));
  return result.ok ? [] : result.error;
};
const said = (parts: JsonObject): string =>
  faults(parts)
    .map((one) => `${one.code} ${one.path}: ${one.message}. ${one.hint}`)
    .join("\n");

const whole: JsonObject = {
  a: vm(1024, 2),
  b: { ...vm(512), "x.desiredState": "off" },
  golden: { "x.type": "Volume", "x.size": 100 },
  copy: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" },
  copyOfCopy: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/copy>" },
  larger: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>", "x.size": 150 },
  front: { "x.type": "Subnet", "x.size": 8 },
  back: { "x.type": "Subnet", "x.cidr": "10.64.0.0/28", "x.size": 10 },
  outside: { "x.type": "Subnet", "x.size": 4, "x.addressRange": "external" },
};
/** What `whole` has of each quantity. */
const used: Readonly<Record<string, number>> = {
  vms: 2,
  memory: 1536,
  cpus: 3,
  volumes: 4,
  storage: 450,
  subnets: 3,
  addresses: 28,
  publicAddresses: 4,
};

for (const [name, amount] of Object.entries(used)) {
  test(`x.limits.${name}: as much as there is passes, one less is refused with the count and the limit`, () => {
    assert.deepEqual(faults({ ...whole, [`x.limits.${name}`]: amount }), []);
    const text = said({ ...whole, [`x.limits.${name}`]: amount - 1 });
    assert.match(
      text,
      new RegExp(`^cell/limits shop: The cell \`shop\` asks for ${amount} .*its limit is ${amount - 1}`),
    );
    assert.match(text, new RegExp(`or write \`x.limits.${name} ${amount}\` or more`));
  });
}

test("the place is that of the limit, and every limit that is exceeded is told", () => {
  const text = "shop extends Cell {\n  x.limits.vms 0;\n  x.limits.memory 100;\n  a extends VM { x.memory 128; }\n}\n";
  const result = readSpecification({ main: "shop.sf", files: { "shop.sf": text } });
  assert.ok(!result.ok);
  assert.deepEqual(
    result.error.map(({ code, position }) => [code, position?.line, position?.column]),
    [
      ["cell/limits", 2, 16],
      ["cell/limits", 3, 19],
    ],
  );
});

test("a cell shows its limits, and has none where none are written", () => {
  const limited = checkDocument(cell({ "x.limits.vms": 3, "x.limits.storage": 7 }));
  assert.deepEqual(limited.ok && limited.value.limits, { vms: 3, storageMiB: 7 });
  const free = checkDocument(cell({}));
  assert.ok(free.ok);
  assert.equal("limits" in free.value, false);
});

test("a stored model is read as it was accepted", () => {
  const document = cell({ a: vm(64), "x.limits.vms": 0 });
  assert.equal(checkDocument(document).ok, false);
  assert.equal(checkDocument(document, acceptedBefore).ok, true);
});

test("a child counts with its own limit, or else with what its model asks for", () => {
  assert.deepEqual(faults({ "x.limits.memory": 1000, a: vm(400), kid: child({ a: vm(600) }) }), []);
  assert.match(
    said({ "x.limits.memory": 1000, a: vm(400), kid: child({ a: vm(300), b: vm(301) }) }),
    /cell\/limits shop\/kid: .*`shop\/kid` asks for 601 MiB of memory, and `shop` has 600 of 1000 left.*600 or less.*to 1001/,
  );
  assert.deepEqual(faults({ "x.limits.vms": 5, a: vm(64), kid: child({ "x.limits.vms": 4, a: vm(64) }) }), []);
  assert.match(
    said({ "x.limits.vms": 4, a: vm(64), kid: child({ "x.limits.vms": 4, a: vm(64) }) }),
    /`shop\/kid` may have 4 VMs, and `shop` has 3 of 4 left.*Write `x.limits.vms 3` or less in it/,
  );
});

test("of nothing that is left nobody is told to ask for less", () => {
  const text = said({ "x.limits.memory": 1000, a: vm(1000), kid: child({ a: vm(300) }) });
  assert.match(text, /`shop` has 0 of 1000 left\. Leave it out, or raise `x\.limits\.memory` of `shop` to 1300\./);
});

test("two children share what is left, and the one that goes beyond it is named", () => {
  const kid = (memory: number) => child({ a: vm(memory) });
  assert.match(
    said({ "x.limits.memory": 1000, one: kid(600), two: kid(500) }),
    /^cell\/limits shop\/two: .*400 of 1000/,
  );
});

test("a child that exceeds its own limit, and a grandchild that exceeds its parent's, are told at the child", () => {
  const exceeded = said({ kid: child({ "x.limits.cpus": 1, a: vm(64, 2) }) });
  assert.match(exceeded, /^cell\/limits shop\/kid: The child cell `child` asks for 2 processors, and its limit is 1/);
  const grandchild = child({ "x.limits.vms": 1, grand: child({ a: vm(64), b: vm(64) }) });
  assert.match(said({ kid: grandchild }), /^cell\/limits shop\/kid: .*asks for 2 VMs, and `child` has 1 of 1 left/);
});

test("a child's model may also be a whole document, and one that cannot be read is left to its making", () => {
  const kid = (model: JsonObject): JsonObject => ({ "x.type": "CellController", "x.cell": model });
  const two = { inner: { "x.type": "Cell", a: vm(64), b: vm(64) } };
  assert.match(said({ "x.limits.vms": 1, kid: kid(two) }), /asks for 2 VMs/);
  assert.deepEqual(faults({ "x.limits.vms": 1, kid: kid({ inner: { "x.type": "Cell", a: { "x.type": "VM" } } }) }), []);
});

test("children inside children to any depth take no more than a moment, and are looked at down to the sixteenth", () => {
  let model: JsonObject = { a: vm(64) };
  for (let depth = 0; depth < 60; depth += 1) model = { kid: child(model) };
  assert.deepEqual(faults({ "x.limits.vms": 1, ...model }), []);
});

test("a cell that passes with some limits passes with larger ones", () => {
  const amounts = fc.record({ vms: fc.nat(4), memory: fc.nat(300), cpus: fc.nat(6), more: fc.nat(50) });
  const machines = fc.array(fc.tuple(fc.integer({ min: 16, max: 100 }), fc.integer({ min: 1, max: 3 })), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(amounts, machines, ({ more, ...limits }, list) => {
      const vms = Object.fromEntries(list.map(([memory, cpus], index) => [`vm${index}`, vm(memory, cpus)]));
      const limited = (extra: number) =>
        faults({
          ...vms,
          ...Object.fromEntries(Object.entries(limits).map(([key, value]) => [`x.limits.${key}`, value + extra])),
        });
      const memory = list.reduce((sum, [each]) => sum + each, 0);
      const cpus = list.reduce((sum, [, each]) => sum + each, 0);
      const fits = list.length <= limits.vms && memory <= limits.memory && cpus <= limits.cpus;
      assert.equal(limited(0).length === 0, fits);
      if (fits) assert.deepEqual(limited(more), []);
    }),
  );
});

test("what is kept of deleted volumes counts for who asks for more, and keeps nobody from having less", () => {
  const cellOf = (more: JsonObject): JsonObject => cell({ "x.limits.storage": 100, ...more });
  const disk = (size: number): JsonObject => ({ disk: { "x.type": "Volume", "x.size": size } });
  const check = (more: JsonObject, supply: Partial<Supply>) =>
    checkDocument(cellOf(more), { ...unknownSupply, ...supply });
  const before = check(disk(60), {});
  assert.ok(before.ok);
  const present = before.value;
  assert.equal(check(disk(60), { keptMiB: 40, present }).ok, true);
  assert.equal(check(disk(60), { keptMiB: 500, present }).ok, true, "what is so stays");
  assert.equal(check(disk(50), { keptMiB: 500, present }).ok, true);
  const more = check(disk(61), { keptMiB: 40, present });
  assert.ok(!more.ok);
  assert.match(
    more.error.map(({ message }) => message).join(),
    /asks for 61 MiB of storage, 40 MiB of deleted volumes stay since something of it or of others rests on them, and its limit is 100/,
  );
  assert.equal(check(disk(61), { keptMiB: 39, present }).ok, true);
});

test("a chain of copies has the size of its origin all along, and copies in a circle have none", () => {
  const chain: Record<string, JsonObject> = { golden: { "x.type": "Volume", "x.size": 3 } };
  for (let index = 0; index < 15; index += 1) {
    const origin = index === 14 ? "golden" : `copy${index + 1}`;
    chain[`copy${index}`] = { "x.type": "VolumeCopy", "x.image": `<ref:/shop/${origin}>` };
  }
  assert.deepEqual(faults({ ...chain, "x.limits.storage": 48 }), []);
  assert.match(said({ ...chain, "x.limits.storage": 47 }), /asks for 48 MiB of storage/);
  const circle = (origin: string): JsonObject => ({ "x.type": "VolumeCopy", "x.image": `<ref:/shop/${origin}>` });
  const codes = faults({ a: circle("b"), b: circle("a"), "x.limits.storage": 0 }).map(({ code }) => code);
  assert.ok(codes.length > 0 && codes.every((code) => code === "cell/copy-cycle"));
});

test("what x.data copies over and over may be as much as is allowed altogether, to the last attribute", () => {
  // Each has the one before twice, with which it costs 3 · 2^n - 2.
  const doubled: { [name: string]: Json } = { t0: { x: 1 } };
  for (let n = 1; n <= 18; n += 1) doubled[`t${n}`] = { a: `<ref:/shop/t${n - 1}>`, b: `<ref:/shop/t${n - 1}>` };
  const ofAll = (total: number): string => {
    const last = 1 + 3 * 2 ** 10 - 2;
    const data: { [name: string]: Json } = {};
    let left = total - last;
    for (let n = 18; n >= 8; n -= 1)
      for (const cost = 1 + 3 * 2 ** n - 2; left >= cost; left -= cost) data[`part${left}`] = `<ref:/shop/t${n}>`;
    for (; left > 0; left -= 1) data[`one${left}`] = 1;
    data.last = "<ref:/shop/t10>";
    return said({ ...doubled, a: { ...vm(64), "x.data": data } });
  };
  assert.match(ofAll(limits.attributes), new RegExp(`has ${limits.attributes} attributes and items, and`));
  assert.match(ofAll(limits.attributes + 1), /^limit\/data /);
});

test("what deleted volumes keep counts beside what the cell asks for, unless it asks for no more than before", () => {
  const read = (size: number) => {
    const checked = checkDocument(
      cell({ a: vm(64), golden: { "x.type": "Volume", "x.size": size }, "x.limits.storage": 100 }),
    );
    assert.ok(checked.ok);
    return checked.value;
  };
  const told = (size: number, keptMiB: number, before?: number): readonly string[] => {
    const faults: string[] = [];
    const present = before === undefined ? {} : { present: read(before) };
    checkKept(
      read(size),
      () => assert.fail("it has no child"),
      { keptMiB, ...present },
      (code, message) => {
        faults.push(`${code} ${message}`);
      },
    );
    return faults;
  };
  assert.match(
    told(60, 50).join(),
    /^cell\/limits The cell `shop` asks for 60 MiB of storage, 50 MiB of deleted volumes/,
  );
  assert.deepEqual([told(60, 40), told(60, 0), told(60, 50, 60), told(50, 60, 60)], [[], [], [], []]);
  assert.equal(told(60, 50, 59).length, 1);
});

test("what x.data copies is nested as deeply as is allowed, its own vectors and what they refer to together", () => {
  const nested = (levels: number, leaf: Json): Json => {
    let value = leaf;
    for (let level = 0; level < levels; level += 1) value = [value];
    return value;
  };
  const data = (own: number): JsonObject => ({ list: nested(own, "<ref:/shop/there/list>") });
  // The list itself is one level, and so is what it refers to.
  const most = limits.nesting - 102;
  const of = (own: number): string => said({ there: { list: nested(100, 1) }, a: { ...vm(64), "x.data": data(own) } });
  assert.equal(of(most), "");
  assert.match(of(most + 1), /^limit\/data /);
});
