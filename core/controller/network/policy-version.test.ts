import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type CellName, elementPath, ipv4, mac, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerState } from "../state.ts";

/*
 * A policy's version says to hosts that something is to be done. It rises once for a change of what they are told, in the
 * step that brings the change, and never for an input that brings none. Rules into other cells are the hard case: what the
 * directory says reaches the policy over records that the same pass may change.
 */
const self = peerName("controller.shop");
const directory = peerName("directory");
const options = {
  cell: "shop" as CellName,
  cellUid: uid("c1"),
  cellNumber: 7,
  domain: "cells.internal",
  address: ipv4("10.0.3.1"),
  mac: mac("02:00:0a:00:03:01"),
  self,
  directory: true as const,
};
/** As one record, and in parts, as the rules of a large cell are. */
const services = {
  whole: createCheckedController(options),
  parts: createCheckedController({ ...options, policyRulesInRecord: 0 }),
};
const others = ["storage-manager", "address-manager", "dns-manager", "placer"].map(peerName);
const key = { db: "want/bank.cells.internal/bank/db", net: "want/bank.cells.internal/bank/net" };

class Told {
  readonly #records = new Map<string, Json>();
  readonly #desired = new Map<string, Map<string, Json>>();
  readonly #said = new Set<string>();
  readonly #service: (typeof services)["whole"];
  /** What was compiled last, also before a crash. */
  #compiled = "null";
  /** Records that the last step has written. */
  written: readonly string[] = [];
  state: ControllerState;
  constructor(form: keyof typeof services = "whole") {
    this.#service = services[form];
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.#start();
  }
  #start(): void {
    this.step({ kind: "start" });
    for (const peer of others) this.step({ kind: "reachable", peer, reachable: true });
  }
  /** Each step says a change once. */
  step(input: Input): void {
    const { version } = this.state.policy;
    const { state, effects } = this.#service.step(this.state, input, { ms: 1, wallMs: 1 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value !== null) this.#records.set(effect.key, effect.value);
      if (effect.kind === "write" && effect.value === null) this.#records.delete(effect.key);
      if (effect.kind !== "desire") continue;
      const documents = this.#desired.get(effect.to) ?? new Map<string, Json>();
      this.#desired.set(effect.to, documents);
      if (effect.value === null) documents.delete(effect.key);
      else documents.set(effect.key, effect.value);
    }
    this.written = effects.flatMap((effect) => (effect.kind === "write" ? [effect.key] : []));
    const compiled = JSON.stringify(state.compiled?.policy ?? null);
    const isOther = compiled !== this.#compiled;
    this.#compiled = compiled;
    assert.equal(state.policy.version, version + (isOther ? 1 : 0), `after ${JSON.stringify(input)}`);
  }
  put(shop: JsonObject): void {
    const json = { shop: { "x.type": "Cell", ...shop } };
    this.step({ kind: "request", id: 1, request: toJson({ method: "PUT", path: "", json }) });
  }
  crash(): void {
    const desiredAt = new Map([...this.#desired].map(([peer, documents]) => [peerName(peer), new Map(documents)]));
    this.#said.clear();
    this.state = this.#service.restore({ records: new Map(this.#records), desiredAt });
    this.#start();
  }
  /** Its next start is of another form, which is a version: the records are. */
  goOnAs(form: keyof typeof services): void {
    const records = new Map(this.#records);
    const other = services[form];
    this.state = other.restore({ records, desiredAt: new Map() });
    this.state = other.step(this.state, { kind: "start" }, { ms: 1, wallMs: 1 }).state;
  }
  /** Of what it was asked. */
  directory(what: string, value: object | null): void {
    if (this.#desired.get(directory)?.has(what) !== true) return;
    this.#said.add(what);
    const json = value === null ? null : toJson(value);
    this.step({ kind: "actual", from: directory, key: actualKey(self, what), value: json });
  }
  reach(value: object | null): void {
    this.directory(`reach/${this.state.uids.get(elementPath("shop/toDb")) ?? ""}`, value);
  }
  /** The directory takes the tombstones that are on their way. */
  release(): void {
    for (const what of this.#said) {
      if (this.#desired.get(directory)?.has(what) === true) continue;
      this.step({ kind: "actual", from: directory, key: actualKey(self, what), value: null });
      this.step({ kind: "released", peer: directory, key: what });
      this.#said.delete(what);
    }
  }
  range(): void {
    for (const subnet of this.#desired.get("address-manager")?.keys() ?? []) {
      const range = { phase: "ready", reason: null, cidr: "10.64.0.0/29", gateway: "10.64.0.1" };
      this.step({ kind: "actual", from: peerName("address-manager"), key: actualKey(self, subnet), value: range });
    }
  }
  hosts(): unknown {
    return (this.state.policy.compiled as JsonObject).hosts;
  }
  /** Something that changes nothing: nothing may come of it. */
  nothingMore(): void {
    const { version } = this.state.policy;
    for (const peer of others) this.step({ kind: "reachable", peer, reachable: true });
    assert.equal(this.state.policy.version, version);
  }
}

const net = { "x.type": "Subnet", "x.size": 8, "x.public": true };
const vm = { "x.type": "VM", "x.memory": 64, "x.public": true };
const card = { "x.type": "VirtualInterface", "x.vm": "<ref:/shop/vm>", "x.subnet": "<ref:/shop/net>" };
const toDb = {
  "x.type": "NetworkRule",
  "x.protocol": "tcp",
  "x.port2": 5432,
  "x.direction": "1to2",
  "x.address1": "<ref:/shop/net>",
  "x.address2": "<ref://bank.cells.internal/bank/db>",
};
const db = { uid: "b-1", shows: { kind: "addresses", type: "VM", networks: ["10.64.9.2/32"] } };
const theirNet = { uid: "b-2", shows: { kind: "addresses", type: "Subnet", networks: ["10.64.9.0/24"] } };
const agreed = { agreed: true, hosts: [{ address: "10.64.0.2", hosts: ["h9"] }] };

test("a rule into another cell goes: its hosts go with it, at once and for good", () => {
  const told = new Told();
  told.put({ net, toDb });
  told.step({ kind: "reachable", peer: directory, reachable: true });
  told.directory(key.db, db);
  told.reach(agreed);
  assert.deepEqual(told.hosts(), ["h9"]);
  told.put({ net });
  assert.deepEqual(told.hosts(), []);
  told.nothingMore();
  told.release();
  assert.deepEqual(told.hosts(), []);
});

test("a rule that comes back before the directory has let go of it stands at once", () => {
  const told = new Told();
  told.put({ net, toDb });
  told.directory(key.db, db);
  const { version } = told.state.policy;
  told.put({ net });
  told.put({ net, toDb });
  assert.equal(told.state.policy.version, version + 2);
  told.nothingMore();
});

test("whatever the directory says, and when: the version rises once for a change, and for nothing else", (context) => {
  const models: readonly JsonObject[] = [
    { net },
    { net, toDb },
    { net, toDb: { ...toDb, "x.port2": 80 }, other: toDb },
    { net, toDb, local: { ...toDb, "x.address2": "10.64.9.0/24" } },
    { net, vm, card, toDb: { ...toDb, "x.address1": "<ref:/shop/vm>" } },
    { net, vm, card, toDb: { ...toDb, "x.address2": "<ref://bank.cells.internal/bank/net>" } },
    { net, vm, card, toDb: { ...toDb, "x.address2": "internet" } },
  ];
  const reaches = [null, { agreed: false, hosts: [] }, { agreed: true, hosts: [] }, agreed];
  const event = fc.oneof(
    fc.constantFrom(...models).map((model) => (told: Told) => told.put(model)),
    fc.constantFrom(null, db, theirNet).map((said) => (told: Told) => told.directory(key.db, said)),
    fc.constantFrom(null, theirNet).map((said) => (told: Told) => told.directory(key.net, said)),
    fc.constantFrom(...reaches).map((said) => (told: Told) => told.reach(said)),
    fc.boolean().map((reachable) => (told: Told) => told.step({ kind: "reachable", peer: directory, reachable })),
    fc.constantFrom(
      (told: Told) => told.crash(),
      (told: Told) => told.release(),
      (told: Told) => told.range(),
    ),
  );
  const seed = Number(process.env.CELLS_SEED ?? Math.trunc(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(fc.constantFrom("whole", "parts"), fc.array(event, { maxLength: 12 }), (form, events) => {
      const told = new Told(form);
      for (const happen of events) {
        happen(told);
        told.nothingMore();
      }
    }),
    { numRuns: 600, seed },
  );
});

test("in parts, a changed rule writes what came of it alone, and all keep their numbers and versions over a crash", () => {
  const told = new Told("parts");
  const rule = (port: number): JsonObject => ({ ...toDb, "x.address2": "10.64.9.0/24", "x.port2": port });
  told.put({ net, one: rule(80), other: rule(81) });
  const partOf = (name: string): string => `rules/${told.state.uids.get(elementPath(`shop/${name}`))}`;
  assert.ok(told.written.includes(partOf("one")) && told.written.includes(partOf("other")));
  const [before] = [told.state.policy];
  assert.equal(
    Array.isArray((before.compiled as JsonObject).rules) && (before.compiled as { rules: Json[] }).rules.length,
    0,
  );
  told.put({ net, one: rule(80), other: rule(82) });
  assert.ok(told.written.includes(partOf("other")) && !told.written.includes(partOf("one")), told.written.join(", "));
  const { since = {}, version } = told.state.policy;
  assert.equal(version, before.version + 1);
  assert.deepEqual([since["shop/one"], since["shop/other"]], [before.version, version]);
  const rules = told.state.compiled?.policy.rules;
  told.crash();
  assert.deepEqual(told.state.compiled?.policy.rules, rules);
  assert.deepEqual(told.state.policy.since, since);
  const gone = partOf("other");
  told.put({ net, one: rule(80) });
  assert.ok(told.written.includes(gone));
});

test("a store of either form is read by a controller of the other, which says the same", () => {
  for (const [first, then] of [
    ["whole", "parts"],
    ["parts", "whole"],
  ] as const) {
    const told = new Told(first);
    told.put({ net, toDb: { ...toDb, "x.address2": "10.64.9.0/24" } });
    const { since } = told.state.policy;
    const rules = told.state.compiled?.policy.rules;
    told.goOnAs(then);
    assert.deepEqual(told.state.compiled?.policy.rules, rules);
    assert.deepEqual(told.state.policy.since, since, "no rule is another one");
  }
});
