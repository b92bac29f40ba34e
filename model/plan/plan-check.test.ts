import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Cell } from "../cell/cell.ts";
import { describedAttributes, describedCell } from "../cell/described.ts";
import { type ElementPath, elementPath } from "../cell/identifiers.ts";
import type { Json } from "../json/json.ts";
import { sameJson } from "../json/same.ts";
import { checkDocument } from "../specification/specification.ts";
import { isEmptyPlan, planChange } from "./plan.ts";
import { planFaults } from "./plan-check.ts";
import type { Plan, PlanAction, PlanStep } from "./plan-types.ts";

const seed = Number(process.env.CELLS_SEED ?? Date.now() % 2 ** 31);
console.log(`CELLS_SEED=${seed}`);
const runs = (numRuns: number): fc.Parameters<unknown> => ({ seed, numRuns });

type Open = Record<string, Json>;
const cellOf = (made: Open): Cell => {
  const result = checkDocument({ c: made });
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
};

const volume = fc.record({
  size: fc.integer({ min: 2, max: 9 }),
  origin: fc.option(fc.nat(9)),
  readOnly: fc.boolean(),
  image: fc.option(fc.constantFrom("tiny", "debian")),
  moves: fc.boolean(),
});
const machine = fc.record({
  memory: fc.integer({ min: 64, max: 66 }),
  priority: fc.integer({ min: 0, max: 2 }),
  disks: fc.uniqueArray(fc.nat(4)),
  order: fc.integer({ min: 0, max: 2 }),
  requires: fc.boolean(),
  net: fc.option(fc.nat(2)),
  name: fc.constantFrom("one", "two"),
  moves: fc.boolean(),
  data: fc.jsonValue({ maxDepth: 1 }),
});
/** Any path that something may say it had, rightly or not. */
const claimed = fc.constantFrom("c/net0", "c/net1", "c/net2", "c/spare", "c/vm0/i", "c/vol0", "c/late0");
const spare = fc.constantFrom("none", "volume", "subnet", "connection", "interface", "vm");

/**
 * Cells with a few of everything, connected at random. Elements that "move" are at another path, which is renamed from
 * the first; what is called `spare` is of any type, so that a path changes its type too.
 */
const anyCell: fc.Arbitrary<Cell> = fc
  .record({
    volumes: fc.array(volume, { minLength: 1, maxLength: 5 }),
    subnets: fc.array(fc.record({ size: fc.integer({ min: 4, max: 6 }), claims: fc.option(claimed, { freq: 3 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
    late: fc.array(claimed, { maxLength: 2 }),
    foreign: fc.option(fc.constantFrom("a", "b")),
    vms: fc.array(machine, { maxLength: 4 }),
    rules: fc.array(fc.record({ port: fc.integer({ min: 80, max: 82 }), at: fc.nat(3) }), { maxLength: 2 }),
    grants: fc.array(fc.nat(4), { maxLength: 2 }),
    spare,
    open: fc.boolean(),
    most: fc.option(fc.integer({ min: 90, max: 92 })),
    remark: fc.constantFrom("old", "new"),
  })
  .map(({ volumes, subnets, vms, rules, grants, spare, open, late, foreign, most, remark }) => {
    const made: Open = { "x.type": "Cell", "x.policy.subnetConnectivity": open, remark };
    if (most !== null) made["x.limits.vms"] = most;
    if (most === 90) made["x.policy.deploy"] = "all-or-none";
    if (most === 91) made["x.policy.forward"] = true;
    if (most !== 92) made["x.limits.memory"] = 90_000;
    const names = volumes.map(({ moves }, n) => (moves ? `disk${n}` : `vol${n}`));
    const was = (moves: boolean, path: string): Open => (moves ? { "x.movedFrom": path } : {});
    volumes.forEach(({ size, origin, readOnly, image, moves }, n) => {
      const copied = origin !== null && origin < n;
      made[names[n] ?? ""] = {
        ...(copied
          ? { "x.type": "VolumeCopy", "x.image": `<ref:../${names[origin]}>` }
          : { "x.type": "Volume", "x.size": size, "x.access": readOnly ? "ro" : "rw" }),
        ...(copied || image === null ? {} : { "x.import": image }),
        ...was(moves, `c/vol${n}`),
      };
    });
    subnets.forEach(({ size, claims }, n) => {
      made[`net${n}`] = { "x.type": "Subnet", "x.size": size, ...(claims === null ? {} : { "x.movedFrom": claims }) };
    });
    late.forEach((claims, n) => {
      made[`late${n + late.length}`] = { "x.type": "Subnet", "x.size": 8, "x.movedFrom": claims };
    });
    if (foreign !== null) {
      const other = `<ref://${foreign}.cells.internal/x/y>`;
      made.theirs = { "x.type": "VolumeCopy", "x.image": other };
      made.rule = { "x.type": "NetworkRule", "x.address1": other, "x.address2": "<ref:/c/net0>" };
      made.child = { "x.type": "CellController", "x.name": "child", "x.cell": { "x.type": "Cell", own: foreign } };
      made.given = {
        "x.type": "VolumeGrant",
        "x.volume": `<ref:/c/${names[0]}>`,
        "x.grant": "copy",
        ...(foreign.length % 2 === 0
          ? { "x.cell": `<ref://${foreign}.cells.internal/>` }
          : { "x.account": `ROOT/${foreign}/a` }),
      };
    }
    vms.forEach(({ memory, priority, disks, order, requires, net, name, moves, data }, n) => {
      const vm: Open = { "x.type": "VM", "x.memory": memory, "x.priority": priority, "x.data": data as Json };
      if (order > 0) vm["x.liveness.protocol"] = order > 1 ? "icmp" : "udp";
      if (order === 1) vm["x.liveness.port"] = 7000 + priority;
      if (requires) vm["x.placement.pool"] = name;
      for (const disk of disks)
        if (disk < volumes.length)
          vm[`d${disk}`] = {
            "x.type": "VolumeConnection",
            "x.vm": "<ref:..>",
            "x.volume": `<ref:/c/${names[disk]}>`,
            "x.bootOrder": order,
            "x.requires": requires,
          };
      if (net !== null && net < subnets.length)
        vm.i = {
          "x.type": "VirtualInterface",
          "x.vm": "<ref:..>",
          "x.subnet": `<ref:/c/net${net}>`,
          "x.requires": requires,
          "x.vifName": `${name}${n}`,
        };
      made[moves ? `box${n}` : `vm${n}`] = { ...vm, ...was(moves, `c/vm${n}`) };
    });
    const first = vms[0]?.moves ? "box0" : "vm0";
    rules.forEach(({ port, at }, n) => {
      if (at < subnets.length)
        made[`rule${n}`] = {
          "x.type": "NetworkRule",
          "x.address1": "internet",
          "x.address2": `<ref:/c/net${at}>`,
          "x.protocol": "tcp",
          "x.port2": port,
        };
    });
    grants.forEach((at, n) => {
      if (at < volumes.length && vms.length > 0)
        made[`grant${n}`] = {
          "x.type": "VolumeGrant",
          "x.volume": `<ref:/c/${names[at]}>`,
          "x.vm": `<ref:/c/${first}>`,
          "x.grant": n === 0 ? "copy" : "connect",
        };
    });
    if (spare === "volume") made.spare = { "x.type": "Volume", "x.size": 5 };
    if (spare === "subnet") made.spare = { "x.type": "Subnet", "x.size": 8 };
    if (spare === "vm") made.spare = { "x.type": "VM", "x.memory": 64 };
    if (spare === "connection" && vms.length > 0 && !vms[0]?.disks.includes(0))
      made.spare = {
        "x.type": "VolumeConnection",
        "x.vm": `<ref:/c/${first}>`,
        "x.volume": `<ref:/c/${names[0]}>`,
      };
    if (spare === "interface" && vms.length > 0)
      made.spare = { "x.type": "VirtualInterface", "x.vm": `<ref:/c/${first}>`, "x.subnet": "<ref:/c/net0>" };
    return cellOf(withTrueClaims(made));
  });

/** Leaves out that something was at a path where an element still is, or where another says it was: that is refused. */
function withTrueClaims(made: Open): Open {
  const taken = new Set(Object.keys(made).map((name) => `c/${name}`));
  for (const [name, part] of Object.entries(made))
    for (const inner of Object.keys(part as Open)) taken.add(`c/${name}/${inner}`);
  const kept = Object.entries(made).map(([name, part]): [string, Json] => {
    if (typeof part !== "object" || part === null || !("x.movedFrom" in part)) return [name, part];
    const { "x.movedFrom": said, ...rest } = part as Open;
    if (taken.has(String(said))) return [name, rest];
    taken.add(String(said));
    return [name, part];
  });
  return Object.fromEntries(kept);
}

/** What an element is to somebody who only does what plans say. */
interface Thing {
  readonly identity: number;
  readonly type: string;
  readonly attributes: Map<string, Json>;
}
let identities = 0;
const thingOf = (cell: Cell, path: ElementPath): Thing => {
  const element = cell.elements.get(path);
  assert.ok(element, `${path} is to be made and is in the new cell`);
  identities += 1;
  return { identity: identities, type: element.type, attributes: new Map(describedAttributes(element)) };
};
const thingsOf = (cell: Cell): Map<string, Thing> =>
  new Map([...cell.elements.keys()].map((path) => [path, thingOf(cell, path)]));
const contents = (things: ReadonlyMap<string, Thing>): unknown =>
  Object.fromEntries(
    [...things].map(([path, { type, attributes }]) => [path, { type, ...Object.fromEntries(attributes) }]),
  );

/** Executes a plan step by step. What is made is read from the new cell; everything else comes from the plan alone. */
function execute(things: Map<string, Thing>, plan: Plan, to: Cell): Map<string, Thing> {
  const renamed = new Map(plan.steps.flatMap(({ path, movedFrom }) => (movedFrom ? [[movedFrom, path]] : [])));
  const found = new Map<string, Thing>();
  const links = ["x.vm", "x.volume", "x.subnet", "x.image", "x.address1", "x.address2"];
  for (const [path, { attributes, ...thing }] of things) {
    const moved = [...attributes].map(([name, value]): [string, Json] => [
      name,
      links.includes(name) ? (renamed.get(value as ElementPath) ?? value) : value,
    ]);
    found.set(renamed.get(path as ElementPath) ?? path, { ...thing, attributes: new Map(moved) });
  }
  for (const { path, action, causes } of plan.steps) {
    if (action === "delete") {
      for (const [user, { attributes }] of found)
        for (const name of ["x.volume", "x.subnet", "x.image"])
          assert.notEqual(attributes.get(name), path, `${path} goes while ${user} rests on it`);
      found.delete(path);
    } else if (action === "create" || action === "replace") {
      const made = thingOf(to, path);
      for (const name of ["x.volume", "x.subnet", "x.image"]) {
        const end = made.attributes.get(name);
        const elsewhere = end === undefined || String(end).startsWith("//");
        assert.ok(elsewhere || found.has(String(end)), `${path} is made before ${String(end)}`);
      }
      found.set(path, made);
    } else {
      for (const { attribute, from, to: value } of causes) {
        const attributes = found.get(path)?.attributes;
        if (!attribute.startsWith("x.") || attribute.startsWith("x.policy.")) continue;
        assert.ok(sameJson(attributes?.get(attribute) ?? null, from), `${path} had another ${attribute}`);
        if (value === null && attribute !== "x.data") attributes?.delete(attribute);
        else attributes?.set(attribute, value);
      }
    }
  }
  return found;
}

const anyChange = fc.tuple(fc.option(anyCell, { freq: 8 }), fc.option(anyCell, { freq: 8 }));

test("a plan, carried out, makes the one cell the other, and what it keeps keeps its identity", () => {
  fc.assert(
    fc.property(anyCell, anyCell, (from, to) => {
      const plan = planChange(from, to);
      const before = thingsOf(from);
      const identityOf = new Map([...before].map(([path, { identity }]) => [path, identity]));
      const after = execute(before, plan, to);
      assert.deepEqual(contents(new Map([...after].sort())), contents(new Map([...thingsOf(to)].sort())));
      const settings = new Map(describedCell(from));
      for (const { attribute, from: old, to: now } of plan.cell?.causes ?? []) {
        assert.equal(settings.get(attribute) ?? null, old);
        if (now === null) settings.delete(attribute);
        else settings.set(attribute, now);
      }
      assert.deepEqual(settings, describedCell(to));
      for (const { path, action, movedFrom } of plan.steps)
        if (action === "none" || action === "change" || action === "restart")
          assert.equal(after.get(path)?.identity, identityOf.get(movedFrom ?? path), path);
    }),
    runs(300),
  );
});

test("the plan of a cell into itself is empty, and right", () => {
  fc.assert(
    fc.property(anyCell, (cell) => {
      const plan = planChange(cell, cell);
      assert.ok(isEmptyPlan(plan));
      assert.deepEqual(planFaults(cell, cell, plan), []);
    }),
    runs(100),
  );
});

test("a text that says the same in other words is a plan without steps", () => {
  const parts: Open = { "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 64 } };
  const from = cellOf(parts);
  const planned = (made: Open): Plan => {
    const to = cellOf(made);
    const plan = planChange(from, to);
    assert.deepEqual(planFaults(from, to, plan), []);
    return plan;
  };
  const remark = planned({ ...parts, remark: "of its author" });
  assert.ok(isEmptyPlan(remark));
  assert.equal(remark.textOnly, true);
  const { textOnly, ...quiet } = remark;
  assert.deepEqual(planFaults(from, cellOf({ ...parts, remark: 1 }), quiet), ["c: its text is another one"]);
  const inOtherOrder = planned({ vm: { "x.memory": 64, "x.type": "VM" }, "x.type": "Cell" });
  assert.deepEqual(inOtherOrder, planChange(from, from));
  const limited = planned({ ...parts, remark: 1, "x.limits.vms": 3 });
  assert.ok(!isEmptyPlan(limited), "the cell itself changes");
  assert.equal(limited.textOnly, undefined);
});

test("the schedule of backups comes, changes and goes, and the checker knows all of it", () => {
  const bare = cellOf({ "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 64 } });
  // Only a root cell may say so, which `c` is not: its fields are as those of one.
  const first: Cell = { ...bare, backup: { publicKey: "k1", periodMinutes: 360, keep: 14 } };
  const second: Cell = { ...bare, backup: { publicKey: "k2", periodMinutes: 60, keep: 3 } };
  for (const [from, to, causes] of [
    [bare, first, 3],
    [first, second, 3],
    [second, bare, 3],
    [first, first, 0],
  ] as const) {
    const plan = planChange(from, to);
    assert.equal(plan.cell?.causes.length ?? 0, causes);
    assert.deepEqual(planFaults(from, to, plan), []);
  }
});

test("settings of the HA Manager are causes like others, and the checker knows them", () => {
  const bare = cellOf({ "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 64 } });
  const set: Cell = { ...bare, ha: { syncInterval: 30, maxRetries: 3 } };
  const plan = planChange(bare, set);
  assert.deepEqual(
    plan.cell?.causes.map(({ attribute, to }) => [attribute, to]),
    [
      ["x.ha.syncInterval", 30],
      ["x.ha.maxRetries", 3],
    ],
  );
  assert.deepEqual(planFaults(bare, set, plan), []);
  assert.deepEqual(planFaults(set, bare, planChange(set, bare)), []);
  assert.notDeepEqual(planFaults(bare, { ...set, ha: { syncInterval: 31 } }, plan), []);
});

test("the checker finds nothing wrong with what the planner makes, whatever was never written", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(anyChange, fc.array(fc.nat(4)), fc.array(fc.nat(4)), ([from, to], ...kept) => {
      const [unwritten, held] = kept.map((each) => new Set(each.map((n) => elementPath(`c/vol${n}`))));
      const plan = planChange(from, to, unwritten, held);
      for (const { action, movedFrom } of plan.steps) seen.add(action).add(movedFrom === undefined ? "stays" : "moves");
      assert.deepEqual(planFaults(from, to, plan, unwritten, held), []);
    }),
    runs(600),
  );
  assert.equal(seen.size, 8, "every action came up, and renaming");
});

/** Ways to spoil a plan; null: this one cannot be spoiled so. `pick` chooses a step among those that can. */
type Spoil = (plan: Plan, pick: (steps: readonly PlanStep[]) => PlanStep | undefined) => Plan | null;
const others: readonly PlanAction[] = ["create", "change", "restart", "replace", "delete", "none"];
const altered =
  (can: (step: PlanStep, plan: Plan) => boolean, change: (step: PlanStep, plan: Plan) => PlanStep): Spoil =>
  (plan, pick) => {
    const chosen = pick(plan.steps.filter((step) => can(step, plan)));
    return chosen === undefined
      ? null
      : { ...plan, steps: plan.steps.map((step) => (step === chosen ? change(step, plan) : step)) };
  };
const always = (): boolean => true;
const alteredCell =
  (can: (plan: Plan) => boolean, change: (plan: Plan) => Plan): Spoil =>
  (plan) =>
    can(plan) ? change(plan) : null;
const cellPath = elementPath("c");
const spoils: Readonly<Record<string, Spoil>> = {
  "a step is missing": ({ steps, ...plan }, pick) => {
    const chosen = pick(steps);
    return chosen === undefined ? null : { ...plan, steps: steps.filter((step) => step !== chosen) };
  },
  "a step comes twice": ({ steps, ...plan }, pick) => {
    const chosen = pick(steps);
    return chosen === undefined ? null : { ...plan, steps: [...steps, chosen] };
  },
  "a step is of no element": ({ steps, ...plan }, pick) => {
    const chosen = pick(steps);
    return chosen === undefined
      ? null
      : { ...plan, steps: [...steps, { ...chosen, path: elementPath("c/stray"), waitsFor: [] }] };
  },
  ...Object.fromEntries(
    others.map((action): [string, Spoil] => [
      `the action is ${action}`,
      altered(
        (step) => step.action !== action,
        (step) => ({ ...step, action }),
      ),
    ]),
  ),
  "a type is wrong": altered(always, (step) => ({ ...step, type: step.type === "VM" ? "Subnet" : "VM" })),
  "an old value is wrong": altered(
    ({ causes }) => causes.length > 0,
    (step) => ({ ...step, causes: step.causes.map((cause) => ({ ...cause, from: { no: cause.from } })) }),
  ),
  "a new value is wrong": altered(
    ({ causes }) => causes.length > 0,
    (step) => ({ ...step, causes: step.causes.map((cause) => ({ ...cause, to: { no: cause.to } })) }),
  ),
  "causes are missing": altered(
    ({ causes }) => causes.length > 0,
    (step) => ({ ...step, causes: [] }),
  ),
  "a cause is invented": altered(always, (step) => ({
    ...step,
    causes: [...step.causes, { attribute: "x.colour", from: 1, to: 2 }],
  })),
  "a cause comes twice": altered(
    ({ causes }) => causes.length > 0,
    (step) => ({ ...step, causes: [...step.causes, ...step.causes] }),
  ),
  "a loss is kept quiet": altered(
    ({ losesData }) => losesData,
    ({ loss: _loss, ...step }) => ({ ...step, losesData: false }),
  ),
  "a loss is invented": altered(
    ({ losesData }) => !losesData,
    (step) => ({ ...step, losesData: true, loss: { sizeMiB: 1 } }),
  ),
  "a loss is told smaller than it is": altered(
    ({ losesData }) => losesData,
    (step) => ({ ...step, loss: { sizeMiB: 1 } }),
  ),
  "a renamed element is made anew": altered(
    ({ movedFrom }) => movedFrom !== undefined,
    ({ movedFrom: _movedFrom, ...step }) => ({ ...step, action: "create", causes: [] }),
  ),
  "a renamed element goes on from nothing": altered(
    ({ movedFrom }) => movedFrom !== undefined,
    ({ movedFrom: _movedFrom, ...step }) => step,
  ),
  "an element goes on from another": altered(
    ({ movedFrom }) => movedFrom === undefined,
    (step, { steps }) => ({ ...step, movedFrom: steps.find(({ path }) => path !== step.path)?.path ?? step.path }),
  ),
  "a step does not wait": altered(
    ({ waitsFor }) => waitsFor.length > 0,
    (step) => ({ ...step, waitsFor: step.waitsFor.slice(1) }),
  ),
  "a step waits for itself": altered(always, (step) => ({ ...step, waitsFor: [...step.waitsFor, step.path] })),
  "a step waits for what comes later": altered(
    (step, { steps }) => step !== steps.at(-1),
    (step, { steps }) => ({ ...step, waitsFor: [...step.waitsFor, (steps.at(-1) as PlanStep).path] }),
  ),
  "a step comes before what it waits for": ({ steps, ...plan }, pick) => {
    const chosen = pick(steps.filter(({ waitsFor }) => waitsFor.length > 0));
    return chosen === undefined ? null : { ...plan, steps: [chosen, ...steps.filter((step) => step !== chosen)] };
  },
  "who rests on a replaced element stays as it is": (plan, pick) => {
    const replaced = new Set(plan.steps.flatMap(({ action, path }) => (action === "replace" ? [path] : [])));
    const rests = ({ type, action, causes }: PlanStep): boolean =>
      type !== "VM" &&
      action === "replace" &&
      causes.every(({ from, to }) => from === to && replaced.has(to as ElementPath));
    return altered(rests, (step) => ({ ...step, action: "none", causes: [], losesData: false, waitsFor: [] }))(
      plan,
      pick,
    );
  },
  "a change of the cell is kept quiet": alteredCell(
    ({ cell }) => cell !== undefined,
    ({ cell: _cell, ...plan }) => plan,
  ),
  "a change of the cell is invented": alteredCell(
    ({ cell }) => cell === undefined,
    (plan) => ({
      ...plan,
      cell: { path: cellPath, action: "change", causes: [{ attribute: "x.limits.vms", from: 98, to: 99 }] },
    }),
  ),
  "a cause of the cell's change is missing": alteredCell(
    ({ cell }) => (cell?.causes.length ?? 0) > 0,
    ({ cell, ...plan }) => ({ ...plan, ...(cell ? { cell: { ...cell, causes: cell.causes.slice(1) } } : {}) }),
  ),
  "a value of the cell's is wrong": alteredCell(
    ({ cell }) => (cell?.causes.length ?? 0) > 0,
    ({ cell, ...plan }) => ({
      ...plan,
      ...(cell ? { cell: { ...cell, causes: cell.causes.map((cause) => ({ ...cause, to: "other" })) } } : {}),
    }),
  ),
  "another cell is meant": alteredCell(
    ({ cell }) => cell !== undefined,
    ({ cell, ...plan }) => ({ ...plan, ...(cell ? { cell: { ...cell, path: elementPath("d") } } : {}) }),
  ),
  "only the text is said to change": alteredCell(
    ({ textOnly }) => textOnly === undefined,
    (plan) => ({ ...plan, textOnly: true }),
  ),
};

for (const [how, spoil] of Object.entries(spoils))
  test(`the checker finds it when ${how}`, () => {
    let spoiled = 0;
    const spoiling = fc.property(anyChange, fc.nat(), ([from, to], choice) => {
      const plan = planChange(from, to);
      const wrong = spoil(plan, (steps) => steps[choice % Math.max(1, steps.length)]);
      if (wrong === null) return;
      spoiled += 1;
      assert.notDeepEqual(planFaults(from, to, wrong), [], JSON.stringify(wrong));
    });
    // Some ways need a change of a kind that eighty do not always have.
    for (let more = 0; more < 20 && spoiled === 0; more += 1) fc.assert(spoiling, { seed: seed + more, numRuns: 80 });
    assert.ok(spoiled > 0, "some plan could be spoiled so");
  });
