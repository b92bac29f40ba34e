import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../model/json/json.ts";
import { RefusedError } from "../../requests/refused.ts";
import { uuidOf } from "../../shared/uuid.ts";
import { uidOfAccount } from "./caas.testing.ts";
import { most, requireRoom, weightOf } from "./room.ts";
import { openIndex } from "./search.ts";

const nothing = { bytes: 0, elements: 0, storageMiB: 0 };

/** Volumes as accounts have them, each of so many elements or so long a text, as they are let in. */
class Room {
  readonly index = openIndex(":memory:");
  #given = 0;
  add(account: string | null, elements: number, bytes = 0): string {
    const uid = `pv-${uuidOf("room", String(this.#given))}`;
    const parts = Array.from({ length: elements }, (_, at) => [`v${at + 1}`, { "x.type": "Volume" }] as const);
    const group: JsonObject = {
      name: uid,
      ...(account === null ? {} : { account, owner: uidOfAccount(account) }),
      text: "x".repeat(bytes),
      shares: {},
      ...Object.fromEntries(parts),
    };
    const others = account === null ? null : this.index.others(account, uidOfAccount(account), uid);
    try {
      requireRoom({ name: "data", account }, nothing, weightOf(group), others, null);
    } catch (error) {
      if (error instanceof RefusedError) return error.message;
      throw error;
    }
    this.#given += 1;
    this.index.set("1", uid, group);
    return "";
  }
  /** As many as it is let have. */
  fill(account: string, elements: number, bytes = 0): string {
    for (;;) {
      const why = this.add(account, elements, bytes);
      if (why !== "") return why;
    }
  }
  get elements(): number {
    return this.index.others("ROOT/none", null, "none").all.elements;
  }
}

test("no account and no domain takes the room that all have: whoever comes later finds some", () => {
  const room = new Room();
  assert.match(
    room.fill("ROOT/acme/a0", 500),
    /^the persistent volumes of the account would have more than an account's/,
  );
  assert.equal(room.elements, 4000, "one alone has all that an account may have");
  for (let at = 1; at < 40; at += 1) room.fill(`ROOT/acme/team/a${at}`, 500);
  assert.match(
    room.add("ROOT/acme/a1", 500),
    /^the persistent volumes of ROOT\/acme\/a1 would have more than is left for the other accounts below ROOT\/acme, of/,
  );
  assert.ok(room.elements <= most.all.elements / 2, String(room.elements));
  assert.equal(room.add("ROOT/acme/new", 100), "", "also in their domain");
  assert.equal(room.add("ROOT/acme0/x", 800), "", "a name that begins alike is another domain");
  assert.equal(room.add("ROOT/bank", 800), "", "an account of ROOT is in no domain but its own");
  for (let at = 0; at < 40; at += 1) room.fill(`ROOT/bank/a${at}`, 100);
  for (let at = 0; at < 40; at += 1) room.fill(`ROOT/shop/a${at}`, 100);
  assert.equal(room.add("ROOT/late/x", 800), "");
  assert.ok(room.elements < most.all.elements * 0.9, String(room.elements));
  // The operator's own are there, and refused nothing.
  for (let at = 0; at < 60; at += 1) assert.equal(room.add(null, 700), "");
  assert.match(
    room.add("ROOT/late/y", 1),
    /^the persistent volumes of ROOT\/late and all below it would have more than is/,
  );
});

test("property: however greedy others are, in whatever order, the next domain gets what a volume may have", () => {
  const step = fc.record({ domain: fc.nat(4), account: fc.nat(20), elements: fc.integer({ min: 100, max: 800 }) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 120, maxLength: 200 }), (steps) => {
      const room = new Room();
      for (const { domain, account, elements } of steps) room.add(`ROOT/d${domain}/a${account}`, elements);
      assert.equal(room.add("ROOT/new/x", most.volume.elements), "");
      room.index.close();
    }),
    { numRuns: 4 },
  );
});

test("the same holds for bytes", () => {
  const room = new Room();
  for (let at = 0; at < 30; at += 1) room.fill(`ROOT/acme/a${at}`, 1, 120_000);
  const { all } = room.index.others("ROOT/none", null, "none");
  assert.ok(all.bytes <= most.all.bytes / 2 && all.bytes > most.all.bytes / 4, String(all.bytes));
  assert.equal(room.add("ROOT/bank/x", 1, 120_000), "");
});
