import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementPage, ListedElement } from "../../../model/contract/tenancy/listed-element.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";
import { elementsPage } from "./elements.ts";

const vm: JsonObject = { "x.type": "VM", "x.memory": 128 };
const disk: JsonObject = { "x.type": "Volume", "x.size": 64 };
const machines = (from: number, to: number): JsonObject =>
  Object.fromEntries(Array.from({ length: to - from }, (_, at) => [`vm${from + at}`, vm]));
const cell = (inside: JsonObject): JsonObject => ({ shop: { "x.type": "Cell", ...inside } });
const page = (world: World, more: object = {}): ElementPage => {
  const { status, body } = world.ask({ method: "ELEMENTS", ...more });
  assert.equal(status, 200);
  return body as unknown as ElementPage;
};
const namesOf = (items: readonly ListedElement[]): readonly string[] => items.map(({ name }) => name);

test("elements are listed as they were made, by type, name, UID and phase", () => {
  const world = new World();
  world.put(cell({ web: { vm }, disk, ...machines(0, 2) }));
  world.put(cell({ web: { vm }, disk, ...machines(0, 2), early: vm }));
  const { items, next } = page(world);
  assert.deepEqual([namesOf(items).at(-1), items.length, next], ["early", 5, null]);
  const { since: _, ...first } = page(world, { name: "vm" }).items[0] ?? assert.fail("it is there");
  const uid = world.uidOf("shop/web/vm");
  assert.deepEqual(first, {
    cell: "shop",
    path: "shop/web/vm",
    type: "VM",
    uid,
    name: "vm",
    phase: "ready",
    reason: null,
  });
  assert.deepEqual(namesOf(page(world, { type: "Volume" }).items), ["disk"]);
  assert.deepEqual(namesOf(page(world, { uid }).items), ["vm"]);
  assert.deepEqual(page(world, { type: "Volume", name: "vm" }).items, []);
  world.silent.add("storage-manager" as never);
  world.put(cell({ web: { vm }, disk, ...machines(0, 2), early: vm, late: disk }));
  assert.deepEqual(namesOf(page(world, { type: "Volume", phase: "waiting" }).items), ["late"]);
});

test("what is there all the while is in one page and in one alone, whatever comes, goes or is renamed meanwhile", () => {
  const world = new World();
  world.put(cell(machines(0, 10)));
  const seen: string[] = [];
  let after: string | undefined;
  for (let turn = 0; ; turn += 1) {
    const { items, next } = page(world, { limit: 3, ...(after === undefined ? {} : { after }) });
    assert.ok(items.length <= 3);
    seen.push(...items.map(({ uid }) => uid));
    if (next === null) break;
    after = next;
    // One goes that was seen, one that was not, one comes, and one gets another name.
    if (turn === 0)
      world.put(cell({ ...machines(1, 8), vm9: vm, renamed: { ...vm, "x.movedFrom": "shop/vm8" }, new: vm }));
  }
  const stayed = ["vm1", "vm2", "vm3", "vm4", "vm5", "vm6", "vm7", "renamed", "vm9", "new"];
  const uids = stayed.map((name) => world.uidOf(`shop/${name}`));
  assert.deepEqual(
    uids.filter((uid) => !seen.includes(uid)),
    [],
  );
  assert.equal(new Set(seen).size, seen.length);
});

test("a cursor of another list is refused, and one of the cell that had the name before begins anew", () => {
  const [one, other] = [new World(), new World({ cellUid: "c2" as never })];
  for (const world of [one, other]) world.put(cell(machines(0, 4)));
  const { next } = page(one, { limit: 2 });
  assert.equal(page(other, { after: next }).items.length, 4);
  for (const after of [
    "",
    "x",
    "00000000",
    `${next}00`,
    (next ?? "").replace(/^./, (digit) => (digit === "0" ? "1" : "0")),
  ])
    assert.equal(one.ask({ method: "ELEMENTS", after }).status, 400, after);
});

test("the list is in the order of UIDs, whatever order they are kept in", () => {
  const world = new World();
  world.put(cell(machines(0, 12)));
  const turned = new Map([...world.state.elements].reverse());
  const listed = elementsPage({ ...world.state, elements: turned as never }, { limit: 11 });
  assert.ok(listed.ok);
  assert.deepEqual(
    namesOf(listed.value.items),
    Array.from({ length: 11 }, (_, at) => `vm${at}`),
  );
  assert.notEqual(listed.value.next, null);
});
