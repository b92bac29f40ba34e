import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellName, ipv4, mac, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import {
  type ActualCell,
  type ActualLife,
  type DesiredCell,
  type DesiredLife,
  lifeKey,
} from "../../documents/cells.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerResponse } from "../requests/requests.ts";

const cellManager = peerName("cell-manager");
const limit = 4;

/** A controller with what is durable of it, and what was last taken from it to others. */
class Member {
  readonly cell: string;
  readonly #service;
  records = new Map<string, Json>();
  desired = new Map<string, Json>();
  published: Json = null;
  state;
  readonly answers: ControllerResponse[] = [];
  constructor(cell: string, cellUid: string) {
    this.cell = cell;
    this.#service = createCheckedController({
      cell: cellName(cell),
      cellUid: uid(cellUid),
      cellNumber: 7,
      domain: "cells.internal",
      address: ipv4("10.0.3.1"),
      mac: mac("02:00:0a:00:03:01"),
      self: peerName(`controller.${cell}`),
      cellManager: true,
    });
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.start(null);
  }
  start(life: Json): void {
    if (life !== null) this.step({ kind: "desired", from: cellManager, key: lifeKey, value: life });
    this.step({ kind: "start" });
    for (const peer of ["storage-manager", "address-manager", "dns-manager", "placer", "cell-manager"])
      this.step({ kind: "reachable", peer: peerName(peer), reachable: true });
  }
  crash(life: Json): void {
    const desiredAt = new Map([[cellManager, new Map(this.desired)]]);
    this.published = null;
    this.state = this.#service.restore({ records: new Map(this.records), desiredAt });
    this.start(life);
  }
  step(input: Input): void {
    const { state, effects } = this.#service.step(this.state, input, { ms: 1, wallMs: 1 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, structuredClone(effect.value));
      else if (effect.kind === "desire" && effect.to === cellManager && effect.value === null)
        this.desired.delete(effect.key);
      else if (effect.kind === "desire" && effect.to === cellManager)
        this.desired.set(effect.key, structuredClone(effect.value));
      else if (effect.kind === "publish") this.published = structuredClone(effect.value);
      else if (effect.kind === "reply") this.answers.push(effect.response as unknown as ControllerResponse);
    }
  }
  put(document: JsonObject): void {
    this.step({ kind: "request", id: 1, request: { method: "PUT", path: "", json: document } });
  }
  get vms(): number {
    return [...(this.state.cell?.elements.values() ?? [])].filter(({ type }) => type === "VM").length;
  }
}
const vmsOf = (count: number): JsonObject =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `vm${index}`,
      { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" },
    ]),
  );
const child = (name: string, vms: number) => ({
  "x.type": "CellController",
  "x.name": name,
  "x.cell": { [name]: { "x.type": "Cell", ...vmsOf(vms) } },
});
const parentModel = (vms: number): JsonObject => ({
  p: { "x.type": "Cell", "x.limits.vms": limit, a: child("a", 1), b: child("b", 0), ...vmsOf(vms) },
});

/** A parent with two children, and what the Cell Manager passes on: the newest of each, when it comes to it. */
class Family {
  readonly parent = new Member("p", "c1");
  readonly children = new Map<string, Member>();
  /** What each child was told last, durable there. */
  readonly lives = new Map<string, Json>();
  readonly heard = new Map<string, Json>();
  constructor() {
    this.parent.put(parentModel(0));
    for (const [, value] of this.parent.desired) {
      const { cell, uid: own } = value as unknown as DesiredCell;
      this.children.set(own, new Member(cell, own));
    }
    this.settle();
  }
  down(own: string): boolean {
    const document = this.parent.desired.get(`cell/${own}`) as unknown as DesiredCell | undefined;
    if (document === undefined) return false;
    const { model, grant } = document;
    const life = toJson({ uid: uid(own), model, grant, ending: false } satisfies DesiredLife);
    if (sameJson(this.lives.get(own), life)) return false;
    this.lives.set(own, structuredClone(life));
    this.children.get(own)?.step({ kind: "desired", from: cellManager, key: lifeKey, value: structuredClone(life) });
    return true;
  }
  up(own: string): boolean {
    const member = this.children.get(own);
    if (member?.published == null || sameJson(this.heard.get(own), member.published)) return false;
    const life = structuredClone(member.published);
    this.heard.set(own, life);
    this.tellParent(own);
    return true;
  }
  tellParent(own: string): void {
    const life = this.heard.get(own) as unknown as ActualLife | undefined;
    if (life === undefined) return;
    const { phase, reason, version, quota } = life;
    const controller = peerName(`controller.${this.children.get(own)?.cell}`);
    const value = toJson({ phase, reason, version, quota, controller, address: null } satisfies ActualCell);
    const key = actualKey(peerName("controller.p"), `cell/${own}`);
    this.parent.step({ kind: "actual", from: cellManager, key, value: structuredClone(value) });
  }
  settle(): void {
    for (let moved = true; moved; ) {
      moved = false;
      for (const own of this.children.keys()) moved = this.down(own) || this.up(own) || moved;
    }
  }
  get used(): number {
    return [this.parent, ...this.children.values()].reduce((sum, { vms }) => sum + vms, 0);
  }
  named(name: string): { own: string; member: Member } {
    for (const [own, member] of this.children) if (member.cell === `${name}.p`) return { own, member };
    throw new Error(`there is no ${name}`);
  }
  change(name: string, vms: number): void {
    this.named(name).member.put({ [name]: { "x.type": "Cell", ...vmsOf(vms) } });
  }
}

test("a child grows while its parent has room, waits for it, and is told why not", () => {
  const family = new Family();
  const { member } = family.named("a");
  assert.equal(member.vms, 1);
  family.change("a", 3);
  assert.equal(member.vms, 1, "it waits for its parent");
  family.settle();
  assert.equal(member.vms, 3);
  assert.equal(member.answers.at(-1)?.status, 200);
  family.change("b", 2);
  family.settle();
  const refused = family.named("b").member.answers.at(-1);
  assert.equal(refused?.status, 400);
  assert.match(
    JSON.stringify(refused.body),
    /b\.p would have 2 VMs.*its parent p has no room for it: with it p would have 5 VMs, and 4 are allowed/,
  );
  family.parent.put(parentModel(2));
  assert.match(JSON.stringify(family.parent.answers.at(-1)?.body), /With its child cells, the cell `p` has 5 VMs/);
  // What one gives back the other may have.
  family.change("a", 1);
  family.settle();
  family.change("b", 2);
  family.settle();
  assert.equal(family.named("b").member.vms, 2);
  family.parent.put(parentModel(1));
  assert.equal(family.parent.vms, 1);
});

test("a first model that is changed before the child has taken one counts anew, and no more once it has one", () => {
  const family = new Family();
  const { own } = family.named("a");
  const withA = (vms: number, inA: number): JsonObject => {
    const { p } = parentModel(vms) as { p: JsonObject };
    return { p: { ...p, a: child("a", inA) } };
  };
  const granted = (): unknown => family.parent.state.grants.get(uid(own))?.amount.vms;
  // As if its controller were still being made.
  const begun = new Member("a.p", own);
  family.children.delete(own);
  family.heard.delete(own);
  family.parent.step({
    kind: "actual",
    from: cellManager,
    key: actualKey(peerName("controller.p"), `cell/${own}`),
    value: null,
  });
  family.change("b", 1);
  family.settle();
  family.parent.put(withA(1, 3));
  assert.match(JSON.stringify(family.parent.answers.at(-1)?.body), /With its child cells, the cell `p` has 5 VMs/);
  assert.equal(granted(), 1);
  family.parent.put(withA(0, 3));
  assert.equal(granted(), 3);
  family.children.set(own, begun);
  family.lives.delete(own);
  family.settle();
  assert.equal(begun.vms, 3);
  // From now on it is the child's own affair.
  family.parent.put(withA(0, 4));
  assert.equal(family.parent.answers.at(-1)?.status, 200);
  assert.equal(granted(), 3);
});

test("a parent that does not answer makes a change fail after a while, and changes come in their order", () => {
  const family = new Family();
  const { member } = family.named("a");
  family.change("a", 2);
  family.change("a", 0);
  assert.equal(member.vms, 1);
  member.step({ kind: "timer", name: "room" });
  assert.deepEqual(
    member.answers.map(({ status }) => status),
    [400, 200],
  );
  assert.equal(member.vms, 0);
  // Tried again, as it says, once the parent answers.
  assert.match(JSON.stringify(member.answers[0]?.body), /did not answer within .*; try again/);
  family.change("a", 2);
  family.settle();
  assert.deepEqual([member.answers.at(-1)?.status, member.vms], [200, 2]);
});

test("who asks for the same while it waits for room hears what the first hears, and nobody waits twice", () => {
  const { member } = new Family().named("a");
  const json = { a: { "x.type": "Cell", ...vmsOf(2) } };
  const by = { who: "ann@ROOT/acme", door: "gateway" };
  const request = toJson({ method: "PUT", path: "", json, by, once: { key: "k", digest: "d" } });
  for (const id of [1, 2]) member.step({ kind: "request", id, request });
  const other = toJson({ method: "PUT", path: "", json, by, once: { key: "l", digest: "d" } });
  member.step({ kind: "request", id: 3, request: other });
  assert.deepEqual(member.answers, []);
  member.step({ kind: "timer", name: "room" });
  assert.deepEqual(
    member.answers.map(({ status }) => status),
    [400, 400],
  );
  assert.deepEqual(member.answers[0], member.answers[1]);
});

/** As a version that knows of no public addresses has it. */
const ofBefore = (value: Json): Json =>
  JSON.parse(JSON.stringify(value, (key, each) => (key === "publicAddresses" ? undefined : each))) as Json;
const withPublic = (addresses: number): JsonObject => ({
  a: { "x.type": "Cell", out: { "x.type": "Subnet", "x.size": addresses, "x.addressRange": "external" } },
});

test("who had public addresses before they were counted has them, in whichever order parent and child are upgraded", () => {
  for (const first of ["parent", "child"]) {
    const family = new Family();
    const { own, member } = family.named("a");
    const granted = (): number | undefined => family.parent.state.grants.get(uid(own))?.amount.publicAddresses;
    member.put(withPublic(8));
    family.settle();
    assert.deepEqual([granted(), member.state.room.holds.publicAddresses], [8, 8]);
    const before = (of: Member): void => {
      of.records = new Map([...of.records].map(([key, value]) => [key, ofBefore(value)]));
      of.desired = new Map([...of.desired].map(([key, value]) => [key, ofBefore(value)]));
    };
    for (const each of [family.parent, member]) before(each);
    const life = ofBefore(family.lives.get(own) ?? null);
    family.lives.clear();
    if (first === "parent") {
      family.parent.crash(null);
      // What the child of the version before says.
      family.heard.set(own, ofBefore(member.published));
      family.tellParent(own);
      assert.equal(granted(), 0);
      member.crash(life);
    } else {
      // What the parent of the version before says, also to a child that grows.
      const { grant, ...same } = life as unknown as DesiredLife;
      member.crash(toJson({ ...same, grant: { ...grant, serial: grant.serial + 1 } }));
      assert.deepEqual([member.state.room.serial, member.state.room.holds.publicAddresses], [grant.serial + 1, 8]);
      member.put({ a: { ...(withPublic(8).a as JsonObject), vm: { "x.type": "VM", "x.memory": 64 } } });
      family.parent.crash(null);
    }
    for (const each of family.children.keys()) family.tellParent(each);
    family.settle();
    assert.deepEqual([granted(), member.state.room.holds.publicAddresses], [8, 8], `${first} first`);
    member.put(withPublic(16));
    family.settle();
    assert.deepEqual([granted(), member.state.room.holds.publicAddresses], [16, 16]);
    assert.equal(member.answers.at(-1)?.status, 200);
  }
});

/** The parent's store is as it was then; what it desires at the Cell Manager now stays there until it is let count. */
/** The parent's store is an older one, and is let count. */
function letCount({ parent }: Family, then: Pick<Member, "records" | "desired">, keeps: boolean): void {
  const kept = structuredClone(parent.desired);
  parent.records = structuredClone(then.records);
  parent.desired = structuredClone(then.desired);
  parent.crash(null);
  const peer = keeps ? cellManager : peerName("storage-manager");
  parent.step({ kind: "forked", peer, forked: true, itForked: false });
  if (keeps) for (const [key, value] of kept) parent.step({ kind: "kept", peer, key, value });
  parent.step({ kind: "forked", peer, forked: false, itForked: false });
}
function putBack(family: Family, then: Pick<Member, "records" | "desired">, keeps: boolean): void {
  letCount(family, then, keeps);
  for (const own of family.children.keys()) family.tellParent(own);
  family.settle();
}

test("a store that is let count gives no grant a serial that its child may have seen, before the child says which", () => {
  const family = new Family();
  const then = structuredClone({ records: family.parent.records, desired: family.parent.desired });
  for (const vms of [2, 3]) {
    family.change("a", vms);
    family.settle();
  }
  letCount(family, then, false);
  const { own, member } = family.named("a");
  assert.ok((family.parent.state.grants.get(uid(own))?.serial ?? 0) > member.state.room.serial);
});

test("a parent with an older store goes on above the grants that its children have seen, and counts with them", () => {
  for (const keeps of [true, false]) {
    const family = new Family();
    const then = structuredClone({ records: family.parent.records, desired: family.parent.desired });
    family.change("a", 2);
    family.settle();
    family.change("a", 3);
    family.settle();
    assert.equal(family.named("a").member.vms, 3);
    putBack(family, then, keeps);
    if (keeps) {
      family.parent.put(parentModel(2));
      assert.equal(family.parent.vms, 0, "its child has three of four");
    }
    family.change("a", 4);
    family.settle();
    assert.equal(family.named("a").member.vms, 4);
    family.change("b", 1);
    family.settle();
    assert.equal(family.named("b").member.vms, 0);
    family.change("a", 1);
    family.settle();
    family.change("b", 1);
    family.settle();
    assert.equal(family.named("b").member.vms, 1, "what one gives back the other may have");
  }
});

test("no number that the Cell Manager keeps of a grant uses up the range of serials", () => {
  const family = new Family();
  const { own } = family.named("a");
  const key = `cell/${own}`;
  const document = family.parent.desired.get(key) as unknown as DesiredCell;
  family.parent.step({ kind: "forked", peer: cellManager, forked: true, itForked: false });
  const grant = { ...document.grant, serial: Number.MAX_SAFE_INTEGER };
  family.parent.step({ kind: "kept", peer: cellManager, key, value: toJson({ ...document, grant }) });
  assert.equal(family.parent.state.grants.get(uid(own))?.serial, document.grant.serial);
});

test("a child without its store asks under numbers that its parent has not answered yet", () => {
  const family = new Family();
  const { own, member } = family.named("a");
  for (const vms of [2, 3, 2, 3]) {
    family.change("a", vms);
    family.settle();
  }
  member.records = new Map();
  member.desired = new Map();
  member.crash(structuredClone(family.lives.get(own) ?? null));
  family.settle();
  const before = member.answers.length;
  family.change("a", 4);
  family.settle();
  assert.deepEqual(
    member.answers.slice(before).map(({ status }) => status),
    [200],
  );
  assert.equal(member.vms, 4);
});

const step = fc.oneof(
  fc.record({ do: fc.constant("change" as const), name: fc.constantFrom("a", "b"), vms: fc.nat(4) }),
  fc.record({ do: fc.constant("parent" as const), vms: fc.nat(3) }),
  fc.record({ do: fc.constantFrom("down" as const, "up" as const), name: fc.constantFrom("a", "b") }),
  fc.record({ do: fc.constantFrom("down" as const, "up" as const), name: fc.constantFrom("a", "b") }),
  fc.record({ do: fc.constantFrom("crash" as const, "given up" as const), name: fc.constantFrom("a", "b", "p") }),
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** Takes the steps, and looks after each whether anybody has more than it may. */
function walk(steps: readonly Step[]): Family {
  const family = new Family();
  for (const now of steps) {
    if (now.do === "change") family.change(now.name, now.vms);
    else if (now.do === "parent") family.parent.put(parentModel(now.vms));
    else if (now.name === "p") {
      if (now.do !== "crash") continue;
      family.parent.crash(null);
      for (const own of family.children.keys()) family.tellParent(own);
    } else {
      const { own, member } = family.named(now.name);
      if (now.do === "down") family.down(own);
      else if (now.do === "up") family.up(own);
      else if (now.do === "crash") member.crash(structuredClone(family.lives.get(own) ?? null));
      else member.step({ kind: "timer", name: "room" });
    }
    assert.ok(family.used <= limit, `${family.used} VMs`);
    for (const [own, { state }] of family.children) {
      const granted = family.parent.state.grants.get(uid(own))?.amount.vms ?? 0;
      assert.ok(state.room.holds.vms <= granted, `${own} holds ${state.room.holds.vms} of ${granted}`);
    }
  }
  return family;
}

test("a cell that crashed with a question under way and then asks for less loses nothing of what it is granted meanwhile", () => {
  const family = walk([
    { do: "change", name: "b", vms: 2 },
    { do: "up", name: "b" },
    { do: "crash", name: "b" },
    { do: "change", name: "b", vms: 1 },
    { do: "down", name: "b" },
    { do: "up", name: "b" },
  ]);
  const { own, member } = family.named("b");
  assert.equal(member.state.room.holds.vms, 2);
  family.settle();
  assert.equal(member.vms, 1);
  assert.equal(member.state.room.holds.vms, 1);
  assert.equal(family.parent.state.grants.get(uid(own))?.amount.vms, 1, "what it does not need it gives back");
});

test("property: what all have is within the limit at every moment, and nothing is held back for good", (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  let grown = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
      const family = walk(steps);
      family.settle();
      const free = limit - family.used;
      const { member } = family.named("a");
      if (free > 0) grown += 1;
      family.change("a", member.vms + free);
      family.settle();
      assert.equal(family.used, limit, "what nobody has can be had");
    }),
    { seed, numRuns: 150 },
  );
  assert.ok(grown > 0);
});
