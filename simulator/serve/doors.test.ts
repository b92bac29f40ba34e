import assert from "node:assert/strict";
import { test } from "node:test";
import type { ControllerResponse } from "../../core/controller/requests/requests.ts";
import { World } from "../../core/controller/world.testing.ts";
import { changeOf } from "../../examples/lines/lines.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { createRandom, type Random } from "../kernel/random.ts";

/*
 * Three doors at once into one cell, whose controller is the real one: who writes specifications (the whole model, by its version), a client of the
 * contract (JSON Patch that rests on what it has seen), and the small personality of `examples/lines`. Requests and answers are lost, come twice, doors
 * are killed, and the controller crashes. What must come of it is said by a table beside it, which knows nothing of models, patches and keys: each edit
 * that was taken counts once, when it was taken first.
 */
const operations = 1000;
const seeds = [1];
const attempts = 6;

interface Machine {
  readonly memory: number;
  readonly state: string;
}
/** What users have done, as they would say it. */
interface Table {
  readonly machines: Map<string, Machine>;
  readonly marks: string[];
}
interface Asked {
  readonly request: object;
  /** Of a change: by which key, and what it does. */
  readonly change?: { readonly key: string; readonly does: (table: Table) => void };
}
/** Null: no answer came. */
type Door = Generator<Asked, boolean, ControllerResponse | null>;

const machine: JsonObject = { "x.type": "VM", "x.memory": 128, "x.desiredState": "off" };
const machinesIn = (model: JsonObject): readonly (readonly [string, JsonObject])[] =>
  Object.entries(model).filter((entry): entry is [string, JsonObject] => (entry[1] as JsonObject)["x.type"] === "VM");
const set = (table: Table, name: string, change: Partial<Machine>): void => {
  const before = table.machines.get(name) ?? assert.fail(`${name} is not there`);
  table.machines.set(name, { ...before, ...change });
};

/** Asked again under its key, until there is an answer; null: nobody will ever know. */
function* asked(what: Asked): Generator<Asked, ControllerResponse | null, ControllerResponse | null> {
  for (let left = attempts; left > 0; left -= 1) {
    const answer = yield what;
    if (answer !== null) return answer;
  }
  return null;
}
const get: Asked = { request: { method: "GET", path: "" } };
const changeAs = (key: string, request: object, does: (table: Table) => void): Asked => ({
  request: { ...request, path: "", by: { who: "ann@ROOT/acme", door: "gateway" }, once: { key, digest: key } },
  change: { key, does },
});

/** Reads the whole, changes a thing in it, writes the whole. */
function* bySpecification(random: Random, id: string): Door {
  for (let round = 0; round < attempts; round += 1) {
    const read = yield* asked(get);
    if (read === null) return false;
    const { shop } = read.body as { readonly shop: JsonObject };
    const names = machinesIn(shop).map(([name]) => name);
    const isAdded = names.length < 3 || random.chance(0.6);
    const name = isAdded ? `m${id}` : random.pick(names);
    const { [name]: _, ...left } = shop;
    const json = { shop: isAdded ? { ...left, [name]: machine } : left };
    const written = changeAs(`${id}-${round}`, { method: "PUT", json, ifMatch: read.version }, ({ machines }) => {
      if (isAdded) machines.set(name, { memory: 128, state: "off" });
      else machines.delete(name);
    });
    const answer = yield* asked(written);
    if (answer === null || answer.status !== 412) return answer?.status === 200;
  }
  return false;
}

/** Raises a number that it has read, or adds to a list that everybody adds to. */
function* byContract(random: Random, id: string): Door {
  for (let round = 0; round < attempts; round += 1) {
    const mark = random.chance(0.4);
    const read = mark ? null : yield* asked(get);
    const found = read === null ? [] : machinesIn((read.body as { readonly shop: JsonObject }).shop);
    if (!mark && found.length === 0) return false;
    const [name = "", { "x.memory": memory } = {} as JsonObject] = mark ? [] : random.pick(found);
    const path = `/shop/${name}/x.memory`;
    const patch = mark
      ? [{ op: "add", path: "/shop/marks/-", value: id }]
      : [
          { op: "test", path, value: memory },
          { op: "replace", path, value: Number(memory) + 1 },
        ];
    const edit = changeAs(`${id}-${round}`, { method: "PATCH", patch }, (table) => {
      if (mark) table.marks.push(id);
      else set(table, name, { memory: (table.machines.get(name)?.memory ?? Number.NaN) + 1 });
    });
    const answer = yield* asked(edit);
    if (answer === null || answer.status !== 412) return answer?.status === 200;
  }
  return false;
}

function* byLines(random: Random, id: string, names: readonly string[]): Door {
  const [name, state] = [names.length === 0 ? "none" : random.pick(names), random.pick(["on", "off"] as const)];
  const patch = changeOf(["shop", name], state) as unknown as Json;
  const edit = changeAs(id, { method: "PATCH", patch }, (table) => set(table, name, { state }));
  return (yield* asked(edit))?.status === 200;
}

interface Run {
  readonly world: World;
  readonly table: Table;
  /** What was answered with a yes, and what was taken, of each door. */
  readonly confirmed: number;
  readonly taken: number;
}
function run(seed: number): Run {
  const random = createRandom(seed, "doors");
  const world = new World();
  world.put({ shop: { "x.type": "Cell", marks: [] } });
  const table: Table = { machines: new Map(), marks: [] };
  const taken = new Set<string>();
  const deliver = ({ request, change }: Asked): ControllerResponse => {
    const answer = world.ask(request);
    if (change === undefined || answer.status !== 200 || taken.has(change.key)) return answer;
    taken.add(change.key);
    change.does(table);
    return answer;
  };
  const doors: { work: Door; next: IteratorResult<Asked, boolean> }[] = [];
  let [begun, confirmed] = [0, 0];
  while (begun < operations || doors.length > 0) {
    if (begun < operations && doors.length < 6) {
      begun += 1;
      const id = `${begun}`;
      const own = random.fork(id);
      const kind = random.between(0, 2);
      const work =
        kind === 0
          ? bySpecification(own, id)
          : kind === 1
            ? byContract(own, id)
            : byLines(own, id, [...table.machines.keys()]);
      doors.push({ work, next: work.next() });
      continue;
    }
    const at = random.between(0, doors.length - 1);
    const door = doors[at] ?? assert.fail();
    const isKilled = random.chance(0.02);
    if (door.next.done === true || isKilled) {
      if (door.next.done === true && door.next.value) confirmed += 1;
      // What was on its way when it was killed may arrive all the same.
      if (door.next.done !== true && random.chance(0.5)) deliver(door.next.value);
      doors.splice(at, 1);
      continue;
    }
    const what = door.next.value;
    const answer = random.chance(0.1) ? null : deliver(what);
    if (answer !== null && random.chance(0.1)) deliver(what);
    door.next = door.work.next(random.chance(0.15) ? null : answer);
    if (random.chance(0.01)) {
      world.crash();
      world.settle();
    }
    if (random.chance(0.02)) world.settle();
  }
  return { world: world.settle(), table, confirmed, taken: taken.size };
}

for (const seed of seeds)
  test(`three doors at once, with what is lost and killed: no edit is lost, none is done twice (seed ${seed})`, (context) => {
    const { world, table, confirmed, taken } = run(seed);
    const { shop } = world.ask({ method: "GET", path: "" }).body as { readonly shop: JsonObject };
    const machines = machinesIn(shop).map(([name, each]) => [
      name,
      { memory: each["x.memory"], state: each["x.desiredState"] },
    ]);
    assert.deepEqual(Object.fromEntries(machines), Object.fromEntries(table.machines));
    assert.deepEqual(shop.marks, table.marks, "each once, in the order in which they were taken");
    assert.ok(confirmed > operations / 2 && taken >= confirmed, `${confirmed} confirmed, ${taken} taken`);
    // What the other doors show, page by page.
    const listed: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = world.ask({ method: "ELEMENTS", type: "VM", limit: 7, ...(after === undefined ? {} : { after }) });
      const { items, next } = page.body as unknown as { items: readonly { path: string }[]; next: string | null };
      listed.push(...items.map(({ path }) => path));
      if (next === null) break;
      after = next;
    }
    assert.deepEqual(listed.sort(), [...table.machines.keys()].map((name) => `shop/${name}`).sort());
    context.diagnostic(`${taken} edits taken, ${confirmed} confirmed, ${table.machines.size} VMs`);
  });
