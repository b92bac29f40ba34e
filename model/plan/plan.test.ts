import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import type { Cell } from "../cell/cell.ts";
import { replaceAt } from "../cell/document.ts";
import { elementPath } from "../cell/identifiers.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { checkDocument, readSpecification } from "../specification/specification.ts";
import { identify } from "./identity.ts";
import { dependenciesOf, isEmptyPlan, planChange } from "./plan.ts";
import { planFaults } from "./plan-check.ts";
import type { Plan, PlanStep } from "./plan-types.ts";
import { renderPlan } from "./render-plan.ts";

const example = (name: string): string => readFileSync(new URL(`../../examples/shop/${name}`, import.meta.url), "utf8");
function shop(change: (text: string) => string = (text) => text): Cell {
  const files = { "shop.sf": change(example("shop.sf")), "tier.sf": example("tier.sf") };
  const result = readSpecification({ main: "shop.sf", files });
  assert.deepEqual(result.ok ? [] : result.error, []);
  assert.ok(result.ok);
  return result.value;
}
function cell(text: string): Cell {
  const result = readSpecification({ main: "a.sf", files: { "a.sf": `c extends Cell { ${text} }` } });
  assert.deepEqual(result.ok ? [] : result.error, []);
  assert.ok(result.ok);
  return result.value;
}
const steps = (plan: Plan): PlanStep[] => plan.steps.filter((step) => step.action !== "none");
const brief = (plan: Plan): string[] => steps(plan).map(({ action, path }) => `${action} ${path}`);
function checkOrder({ steps }: Plan): void {
  const done = new Set<string>();
  for (const step of steps) {
    for (const need of step.waitsFor) assert.ok(done.has(need), `${step.path} comes after ${need}`);
    done.add(step.path);
  }
}

const base = `s extends Subnet { x.size 8; } vol extends Volume { x.size 10; } copy extends VolumeCopy { x.image "<ref:../vol>"; }
  vm extends VM { x.memory 128; d extends VolumeConnection { x.vm "<ref:..>"; x.volume "<ref:/c/copy>"; }
  i extends VirtualInterface { x.vm "<ref:..>"; x.subnet "<ref:/c/s>"; } }`;

test("creation goes from subnets and volumes over links to VMs, deletion back", () => {
  const plan = planChange(null, shop());
  checkOrder(plan);
  assert.ok(plan.steps.every(({ action, causes }) => action === "create" && causes.length === 0));
  const vm = plan.steps.find(({ path }) => path === "shop/web/vm");
  assert.deepEqual(vm?.waitsFor, ["shop/web/bootvol", "shop/web/subnet"]);
  const away = planChange(shop(), null);
  checkOrder(away);
  assert.ok(away.steps.every(({ action }) => action === "delete"));
  assert.deepEqual(away.steps.find(({ path }) => path === "shop/web/bootvol")?.waitsFor, [
    "shop/web/vm",
    "shop/web/disk",
  ]);
  assert.deepEqual(away.steps.find(({ path }) => path === "shop/web/disk")?.waitsFor, ["shop/web/vm"]);
  assert.equal(away.steps.filter(({ losesData }) => losesData).length, 3, "the golden image cannot be written");
  assert.equal(dependenciesOf(shop()).size, shop().elements.size);
});

test("a parameter that changes restarts the VMs that refer to it, and nothing else", () => {
  const plan = planChange(
    shop(),
    shop((text) => text.replace("memory 128", "memory 256")),
  );
  assert.deepEqual(brief(plan), ["restart shop/web/vm", "restart shop/app/vm", "restart shop/db/vm"]);
  assert.deepEqual(steps(plan)[0]?.causes, [{ attribute: "x.memory", from: 128, to: 256 }]);
});

test("a rule's port changes in place", () => {
  const plan = planChange(
    shop(),
    shop((text) => text.replace("app 8080", "app 8081")),
  );
  assert.deepEqual(brief(plan), ["change shop/rules/webToApp", "restart shop/app/vm"]);
});

test("links that come and go restart their VM, which names them as the cause", () => {
  const more = cell(
    `${base} w extends Volume { x.size 5; } e extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../w>"; }`,
  );
  const plan = planChange(cell(base), more);
  assert.deepEqual(brief(plan), ["create c/w", "create c/e", "restart c/vm"]);
  assert.deepEqual(steps(plan)[2]?.causes, [{ attribute: "c/e", from: null, to: "c/w" }]);
  const back = planChange(more, cell(base));
  assert.deepEqual(brief(back), ["restart c/vm", "delete c/e", "delete c/w"]);
  assert.deepEqual(steps(back)[0]?.causes, [{ attribute: "c/e", from: "c/w", to: null }]);
  assert.deepEqual(steps(back)[1]?.waitsFor, ["c/vm"], "a disk goes when its VM has let go of it");
  assert.deepEqual(steps(back)[2]?.waitsFor, ["c/vm", "c/e"]);
});

test("a volume grows in place; what is replaced takes what depends on it along", () => {
  assert.deepEqual(brief(planChange(cell(base), cell(base.replace("x.size 10", "x.size 20")))), ["change c/vol"]);
  const plan = planChange(cell(base), cell(base.replace("x.size 10;", 'x.size 10; x.import "tiny";')));
  assert.deepEqual(brief(plan), ["replace c/vol", "replace c/copy", "replace c/vm/d", "restart c/vm"]);
  assert.deepEqual(
    steps(plan).map(({ losesData }) => losesData),
    [true, true, false, false],
  );
  const subnet = planChange(cell(base), cell(base.replace("x.size 8", "x.size 16")));
  assert.deepEqual(brief(subnet), ["replace c/s", "replace c/vm/i", "restart c/vm"]);
});

test("x.movedFrom renames without creating anew, with everything inside", () => {
  const moved = base.replace("vm extends VM { x.memory 128;", 'box extends VM { x.memory 128; x.movedFrom "c/vm";');
  const plan = planChange(cell(base), cell(moved));
  assert.deepEqual(brief(plan), []);
  assert.equal(isEmptyPlan(plan), false);
  assert.equal(plan.steps.find(({ path }) => path === "c/box/d")?.movedFrom, "c/vm/d");
  const before = identify(new Map(), planChange(null, cell(base)), "ab12", 1);
  const after = identify(before.uids, plan, "ab12", before.nextNumber);
  assert.equal(after.uids.get(elementPath("c/box")), before.uids.get(elementPath("c/vm")));
  assert.equal(after.nextNumber, before.nextNumber);
  assert.equal(isEmptyPlan(planChange(cell(moved), cell(moved))), true);
});

test("identities: replaced elements get new ones, numbers are never used again", () => {
  const first = identify(new Map(), planChange(null, cell(base)), "ab12", 1);
  assert.deepEqual(
    [...first.uids.values()].sort(),
    [1, 2, 3, 4, 5, 6].map((n) => `ab12-${n}`),
  );
  const plan = planChange(cell(base), cell(base.replace("x.size 8", "x.size 16")));
  const second = identify(first.uids, plan, "ab12", first.nextNumber);
  assert.equal(second.uids.get(elementPath("c/vm")), first.uids.get(elementPath("c/vm")));
  assert.notEqual(second.uids.get(elementPath("c/s")), first.uids.get(elementPath("c/s")));
  assert.equal(second.nextNumber, 9);
});

test("the cell's policy shows as a change of the cell and of its subnets", () => {
  const plan = planChange(cell(base), cell(`x.policy.subnetConnectivity true; ${base}`));
  assert.deepEqual(brief(plan), ["change c/s"]);
  const cause = { attribute: "x.policy.subnetConnectivity", from: null, to: true };
  assert.deepEqual(plan.cell, { path: "c", action: "change", causes: [cause] });
});

test("limits and policies are the cell's own: it changes, and no element does", () => {
  const after = cell(`x.limits.memory 4096; x.policy.deploy "all-or-none"; ${base}`);
  const plan = planChange(cell(`x.limits.vms 3; ${base}`), after);
  assert.deepEqual(brief(plan), []);
  assert.deepEqual(plan.cell?.causes, [
    { attribute: "x.policy.deploy", from: "as-possible", to: "all-or-none" },
    { attribute: "x.limits.vms", from: 3, to: null },
    { attribute: "x.limits.memory", from: null, to: 4096 },
  ]);
  assert.ok(!isEmptyPlan(plan));
  assert.equal(planChange(null, after).cell?.action, "create");
  assert.equal(planChange(after, null).cell?.action, "delete");
});

test("a plan reads like a diff with counts at the end", () => {
  const plan = planChange(
    shop(),
    shop((text) => text.replace("memory 128", "memory 256")),
  );
  const text = renderPlan(plan, { color: false });
  assert.match(text, /^! shop\/web\/vm {2}VM {2}is started again\n {4}x\.memory: 128 → 256\n/);
  assert.match(text, /\nPlan: 3 to restart, \d+ unchanged\.$/);
  assert.match(renderPlan(planChange(shop(), shop()), { color: false }), /^Nothing to do/);
  assert.ok(renderPlan(plan, { color: true, all: true }).includes("\u001b["));
});

/** Cells with a few of everything, connected at random. */
const anyCell: fc.Arbitrary<Cell> = fc
  .record({
    volumes: fc.array(fc.record({ size: fc.integer({ min: 1, max: 9 }), origin: fc.option(fc.nat(9)) }), {
      minLength: 1,
      maxLength: 5,
    }),
    subnets: fc.array(fc.integer({ min: 4, max: 16 }), { minLength: 1, maxLength: 3 }),
    vms: fc.array(
      fc.record({
        memory: fc.integer({ min: 64, max: 70 }),
        disks: fc.uniqueArray(fc.nat(4)),
        net: fc.option(fc.nat(2)),
      }),
      { maxLength: 4 },
    ),
    open: fc.boolean(),
  })
  .map(({ volumes, subnets, vms, open }) => {
    const made: Record<string, Json> = { "x.type": "Cell", "x.policy.subnetConnectivity": open };
    volumes.forEach(({ size, origin }, n) => {
      const copied = origin !== null && origin < n;
      made[`vol${n}`] = copied
        ? { "x.type": "VolumeCopy", "x.image": `<ref:../vol${origin}>` }
        : { "x.type": "Volume", "x.size": size };
    });
    subnets.forEach((size, n) => {
      made[`net${n}`] = { "x.type": "Subnet", "x.size": size };
    });
    vms.forEach(({ memory, disks, net }, n) => {
      const vm: Record<string, Json> = { "x.type": "VM", "x.memory": memory };
      for (const disk of disks)
        if (disk < volumes.length)
          vm[`d${disk}`] = { "x.type": "VolumeConnection", "x.vm": "<ref:..>", "x.volume": `<ref:/c/vol${disk}>` };
      if (net !== null && net < subnets.length)
        vm.i = { "x.type": "VirtualInterface", "x.vm": "<ref:..>", "x.subnet": `<ref:/c/net${net}>` };
      made[`vm${n}`] = vm;
    });
    const result = checkDocument({ c: made });
    assert.ok(result.ok, JSON.stringify(result));
    return result.value;
  });

test("a cell into itself is an empty plan, also after the document went through JSON", () => {
  fc.assert(
    fc.property(anyCell, (one) => {
      assert.ok(isEmptyPlan(planChange(one, one)));
      const stored = checkDocument(JSON.parse(JSON.stringify(one.document)));
      assert.ok(stored.ok);
      const plan = planChange(one, stored.value);
      assert.ok(isEmptyPlan(plan) && plan.steps.length === one.elements.size);
    }),
  );
});

test("any change is a plan in an order that can be executed, over every element once", () => {
  fc.assert(
    fc.property(anyCell, anyCell, (from, to) => {
      const plan = planChange(from, to);
      checkOrder(plan);
      const paths = plan.steps.map(({ path }) => path);
      assert.equal(new Set(paths).size, paths.length);
      assert.deepEqual(new Set(paths), new Set([...from.elements.keys(), ...to.elements.keys()]));
      for (const step of plan.steps) {
        const expected = !to.elements.has(step.path) ? "delete" : !from.elements.has(step.path) ? "create" : null;
        if (expected) assert.equal(step.action, expected);
        else assert.ok(step.action === "none" || step.causes.length > 0);
      }
    }),
  );
});

test("a part that is put back in place is no change", () => {
  const one = shop();
  const part = (one.document as JsonObject).params;
  assert.ok(part !== undefined);
  const document = replaceAt(one.document, "params", part);
  assert.ok(document.ok);
  const again = checkDocument(document.value);
  assert.ok(again.ok && isEmptyPlan(planChange(one, again.value)));
});

test("a group is renamed by one x.movedFrom on it, with everything below", () => {
  const inside = `net extends Subnet { x.size 8; } inner extends { vm extends VM { x.memory 64;
    card extends VirtualInterface { x.vm "<ref:..>"; x.subnet "<ref:../../../net>"; } } }`;
  const moves = (plan: Plan): string[] =>
    plan.steps.map(({ action, path, movedFrom }) => `${action} ${path} ${movedFrom ?? "-"}`).sort();
  const before = cell(`web extends { ${inside} }`);
  const renamed = ["net", "inner/vm", "inner/vm/card"].map((name) => `none c/front/${name} c/web/${name}`).sort();
  for (const former of ["c/web", "/c/web"])
    assert.deepEqual(moves(planChange(before, cell(`front extends { x.movedFrom "${former}"; ${inside} }`))), renamed);
  // What is new in it is made, and one that says more itself is taken at its word, with what is inside of it.
  const more = `extra extends Subnet { x.size 8; } ${inside.replace("x.memory 64;", 'x.memory 64; x.movedFrom "c/old";')}`;
  const two = planChange(
    cell(`net extends Subnet { x.size 8; } old extends VM { x.memory 64;
      card extends VirtualInterface { x.vm "<ref:..>"; x.subnet "<ref:../../net>"; } }`),
    cell(`front extends { x.movedFrom "c"; ${more} }`),
  );
  assert.deepEqual(moves(two), [
    "create c/front/extra -",
    "none c/front/inner/vm c/old",
    "none c/front/inner/vm/card c/old/card",
    "none c/front/net c/net",
  ]);
  const tier = (name: string, says: string): Cell => {
    const text = `Tier extends { ${inside} } c extends Cell { ${name} extends Tier { ${says} } }`;
    const read = readSpecification({ main: "a.sf", files: { "a.sf": text } });
    assert.ok(read.ok, JSON.stringify(read));
    return read.value;
  };
  assert.deepEqual(moves(planChange(tier("web", ""), tier("front", 'x.movedFrom "c/web";'))), renamed);
  // The closest group decides.
  const nested = `front extends { x.movedFrom "c/web"; ${inside.replace("inner extends {", 'core extends { x.movedFrom "c/web/inner";')} }`;
  assert.deepEqual(
    moves(planChange(before, cell(nested))),
    ["net", "inner/vm", "inner/vm/card"]
      .map((name) => `none c/front/${name.replace("inner", "core")} c/web/${name}`)
      .sort(),
  );
});

test("a group that says where it was is told when that cannot be", () => {
  const faults = (text: string): string[] => {
    const read = readSpecification({ main: "a.sf", files: { "a.sf": `c extends Cell { ${text} }` } });
    return read.ok ? [] : read.error.map(({ code, path = "" }) => `${code} ${path}`.trim());
  };
  const net = "net extends Subnet { x.size 8; }";
  assert.deepEqual(faults(`a extends { ${net} } b extends { x.movedFrom "c/a"; ${net} }`).length, 1);
  assert.match(faults(`a extends { ${net} } b extends { x.movedFrom "c/a"; ${net} }`).join(), /^cell\/moved/);
  assert.match(faults(`b extends { x.movedFrom 7; ${net} }`).join(), /^schema\//);
  assert.equal(faults(`b extends { x.movedFrom 7; ${net} more extends Subnet { x.size 8; } }`).length, 1, "told once");
  assert.match(faults(`b extends { x.size 7; ${net} }`).join(), /^schema\/no-type/);
});

const cellOf = (made: JsonObject): Cell => {
  const result = checkDocument({ c: made });
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
};

test("an unwritten volume goes without loss, a copy of a written one only while that one stays", () => {
  const data = { "x.type": "Volume", "x.size": 8 };
  const copy = { "x.type": "VolumeCopy", "x.image": "<ref:/c/data>" };
  const second = { "x.type": "VolumeCopy", "x.image": "<ref:/c/backup>" };
  const from = cellOf({ "x.type": "Cell", data, backup: copy, second });
  const lost = (to: JsonObject | null, ...unwritten: string[]): readonly string[] => {
    const cell = to === null ? null : cellOf({ "x.type": "Cell", ...to });
    const set = new Set(unwritten.map((name) => elementPath(`c/${name}`)));
    const plan = planChange(from, cell, set);
    assert.deepEqual(planFaults(from, cell, plan, set), []);
    return plan.steps.filter(({ losesData }) => losesData).map(({ path }) => path);
  };
  assert.deepEqual(lost({ data, backup: copy }, "second"), []);
  assert.deepEqual(lost({ data, backup: copy }), ["c/second"]);
  assert.deepEqual(lost({ data }, "backup", "second"), [], "the origin stays");
  assert.deepEqual(lost({}, "backup", "second"), ["c/second", "c/backup", "c/data"], "a backup goes with its original");
  assert.deepEqual(lost(null, "backup", "second", "data"), []);
  assert.deepEqual(lost({ data: { ...data, "x.size": 4 }, backup: copy, second }, "backup", "second"), [
    "c/data",
    "c/backup",
    "c/second",
  ]);
});

test("a path whose link becomes something else starts its VM anew", () => {
  const parts: JsonObject = {
    "x.type": "Cell",
    vol: { "x.type": "Volume", "x.size": 8 },
    vm: { "x.type": "VM", "x.memory": 64 },
  };
  const disk = { "x.type": "VolumeConnection", "x.vm": "<ref:/c/vm>", "x.volume": "<ref:/c/vol>" };
  const [from, to] = [cellOf({ ...parts, a: disk }), cellOf({ ...parts, a: { "x.type": "Volume", "x.size": 8 } })];
  const plan = planChange(from, to);
  assert.equal(plan.steps.find(({ path }) => path === "c/vm")?.action, "restart");
  assert.deepEqual(planFaults(from, to, plan), []);
});
