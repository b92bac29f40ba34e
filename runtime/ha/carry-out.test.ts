import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerReading } from "../../core/ha/power/controller.ts";
import type { DueOrder } from "../../core/ha/power/orders.ts";
import { hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { type CarriedOut, carryOut } from "./carry-out.ts";

const [h2, h3] = [peerName("host.h2"), peerName("host.h3")];
const order = (action: "read" | "off", by: readonly PeerName[], kind: "ipmi" | "agent" = "ipmi"): DueOrder => ({
  host: hostName("h1"),
  nonce: 1,
  action,
  by,
  controller: { kind, address: "10.9.0.1", user: "cells", sealed: "", host: hostName("h1"), uuid: "" } as never,
});
const reading = (power: PowerReading["power"], reason: string | null = null): PowerReading => ({
  power,
  uuid: "u",
  reason,
});

/** One order under way: a test says who answers what when. */
const begin = (due: DueOrder, isHandedOver = true) => {
  const asked: string[] = [];
  const answers = new Map<PeerName, (said: PowerReading | null) => void>();
  const overs = new Map<PeerName, AbortSignal>();
  const handed = new Set<PeerName>(isHandedOver ? due.by : []);
  const back: PeerName[] = [];
  let isLate = (): void => assert.fail("nobody waits");
  const over = carryOut(
    due,
    (by, what, over) => {
      overs.set(by, over);
      asked.push(`${by} ${what}`);
      return {
        answer: new Promise((resolve) => answers.set(by, resolve)),
        withdraw: () => {
          back.push(by);
          return !handed.has(by);
        },
      };
    },
    () =>
      new Promise((resolve) => {
        isLate = () => resolve(undefined);
      }),
  );
  let result: CarriedOut | undefined;
  void over.then((said) => {
    result = said;
  });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    asked,
    late: async () => {
      isLate();
      await settle();
    },
    says: async (by: PeerName, said: PowerReading | null) => {
      answers.get(by)?.(said);
      await settle();
    },
    hasIt: (by: PeerName) => handed.add(by),
    back,
    given: () => result?.given,
    isAnswered: () => result?.isAnswered,
    isOver: (by: PeerName) => overs.get(by)?.aborted,
    result: () =>
      result === undefined ? "none yet" : result.said === null ? "nobody" : `${result.said.by} ${result.said.power}`,
  };
};

test("who is asked first and answers is alone", async () => {
  const one = begin(order("off", [h2, h3]));
  await one.says(h2, reading("off"));
  assert.deepEqual([one.asked, one.result()], [["host.h2 off"], "host.h2 off"]);
});

test("where the first says nothing for a while another one reads, and the order is given once", async () => {
  const read = begin(order("read", [h2, h3]));
  await read.late();
  assert.deepEqual(read.asked, ["host.h2 read", "host.h3 read"]);
  await read.says(h3, reading("on"));
  assert.equal(read.result(), "host.h3 on", "nobody waits for the first");
  const off = begin(order("off", [h2, h3]));
  await off.late();
  assert.deepEqual(off.asked, ["host.h2 off", "host.h3 read"]);
  await off.says(h3, reading("off"));
  assert.equal(off.result(), "host.h3 off");
});

test("an order whose answer counts no more is not to be carried out any more", async () => {
  const off = begin(order("off", [h2, h3]));
  await off.late();
  await off.says(h3, reading("on"));
  assert.deepEqual([off.isOver(h2), off.isOver(h3)], [false, false], "the first one still may");
  await off.says(h3, reading("off"));
  await off.says(h2, null);
  assert.equal(off.isOver(h2), true);
  const silent = begin(order("off", [h2, h3]));
  await silent.late();
  await silent.says(h3, reading("off"));
  assert.equal(silent.isOver(h2), true, "the power is off, and what is switched on next is not to be cut");
});

test("on says nothing of a power that is being cut before the first has answered", async () => {
  const off = begin(order("off", [h2, h3]));
  await off.late();
  await off.says(h3, reading("on"));
  assert.equal(off.result(), "none yet");
  await off.says(h2, reading("off"));
  assert.equal(off.result(), "host.h2 off");
  const lost = begin(order("off", [h2, h3]));
  await lost.late();
  await lost.says(h3, reading("on"));
  await lost.says(h2, null);
  assert.equal(lost.result(), "host.h3 on");
});

test("where the first cannot reach the controller another one reads at once; nobody, where none can", async () => {
  const one = begin(order("read", [h2, h3]));
  await one.says(h2, reading(null, "no way there"));
  assert.deepEqual(one.asked, ["host.h2 read", "host.h3 read"]);
  await one.says(h3, reading("off"));
  assert.equal(one.result(), "host.h3 off");
  const none = begin(order("read", [h2, h3]));
  await none.says(h2, null);
  await none.says(h3, null);
  assert.equal(none.result(), "nobody");
  const alone = begin(order("read", [h2]));
  await alone.late();
  assert.equal(alone.result(), "none yet", "a single one has all of its time");
  await alone.says(h2, reading("on"));
  assert.equal(alone.result(), "host.h2 on");
  assert.equal(begin(order("read", [])).asked.length, 0);
});

test("an order that the first one does not have yet is taken back from it, and given to the second", async () => {
  const one = begin(order("off", [h2, h3]), false);
  await one.late();
  assert.deepEqual([one.asked, one.back], [["host.h2 off", "host.h3 off"], [h2]]);
  one.hasIt(h3);
  await one.says(h3, reading("on"));
  assert.deepEqual([one.result(), one.given()], ["host.h3 on", h3], "it has cut, so what it reads counts");
  const refused = begin(order("off", [h2, h3], "agent"), false);
  await refused.says(h2, null);
  assert.deepEqual(refused.asked, ["host.h2 off", "host.h3 off"], "at once, where it cannot be reached");
  refused.hasIt(h3);
  await refused.says(h3, null);
  assert.deepEqual([refused.result(), refused.given()], ["nobody", h3]);
  const nobody = begin(order("off", [h2, h3]), false);
  await nobody.says(h2, null);
  await nobody.says(h3, null);
  assert.deepEqual([nobody.result(), nobody.given()], ["nobody", null]);
  const alone = begin(order("off", [h2]), false);
  await alone.late();
  assert.deepEqual(
    [alone.result(), alone.back],
    ["none yet", []],
    "where there is no other one it has all of its time",
  );
  await alone.says(h2, null);
  assert.deepEqual([alone.result(), alone.given()], ["nobody", null]);
  const has = begin(order("off", [h2, h3]));
  await has.late();
  assert.deepEqual(has.asked, ["host.h2 off", "host.h3 read"], "one that has it may carry it out");
  await has.says(h3, reading("on"));
  await has.says(h2, null);
  assert.deepEqual([has.result(), has.given(), has.isAnswered()], ["host.h3 on", h2, false]);
  const tried = begin(order("off", [h2, h3]));
  await tried.late();
  await tried.says(h3, reading("on"));
  await tried.says(h2, reading(null, "no answer"));
  assert.deepEqual([tried.result(), tried.given(), tried.isAnswered()], ["host.h3 on", h2, true]);
  const read = begin(order("read", [h2, h3]), false);
  await read.late();
  assert.deepEqual([read.asked, read.back], [["host.h2 read", "host.h3 read"], []]);
});

test("a device of an agent is asked by one at a time", async () => {
  const one = begin(order("off", [h2, h3], "agent"));
  await one.late();
  assert.deepEqual(one.asked, ["host.h2 off"]);
  await one.says(h2, null);
  assert.deepEqual(one.asked, ["host.h2 off", "host.h3 read"]);
  const read = begin(order("read", [h2, h3], "agent"));
  await read.late();
  assert.deepEqual(read.asked, ["host.h2 read"]);
  await read.says(h2, reading("on"));
  assert.equal(read.result(), "host.h2 on");
  const lost = begin(order("off", [h2, h3], "agent"), false);
  await lost.late();
  assert.deepEqual(lost.asked, ["host.h2 off", "host.h3 off"], "who does not have the order is not there");
});
