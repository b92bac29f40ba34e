import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { HostCounters } from "../../model/contract/operator/numbers/counters.ts";
import { countersOf, createHostCounters } from "./counters.ts";

const [h1, h2] = [peerName("host.h1"), peerName("host.h2")];
const element = (type: string) => ({ "x.type": type, $state: { phase: "ready" } });
const document = {
  shop: { "x.type": "Cell", web: element("VM"), nic: element("VirtualInterface"), rule: element("NetworkRule") },
};
const none: HostCounters = { rules: [], interfaces: [], machines: [] };
const half = { packets: 2, bytes: 20 };
const nic = { cell: "shop", path: "shop/nic", sent: half, received: half, drops: { "no-rule": 1 } };
const rule = { cell: "shop", path: "shop/rule", packets: 3, bytes: 30 };
const ask = { cell: "shop", document, isOperator: false };

test("what hosts count of a cell is summed, and of nothing but what whoever asks may read there", () => {
  const said = new Map([
    [h1, { ...none, rules: [rule, { ...rule, path: "shop/hidden" }, { ...rule, cell: "bank" }], interfaces: [nic] }],
    [
      h2,
      {
        rules: [rule],
        interfaces: [{ ...nic, drops: { spoofed: 4, "no-rule": 1 } }],
        machines: [{ cell: "shop", path: "shop/web", diskBytes: 5 }],
      },
    ],
  ]);
  assert.deepEqual(countersOf(said, ask), {
    rules: [{ path: "shop/rule", packets: 6, bytes: 60 }],
    interfaces: [
      {
        path: "shop/nic",
        sent: { packets: 4, bytes: 40 },
        received: { packets: 4, bytes: 40 },
        drops: { "no-rule": 2, spoofed: 4 },
      },
    ],
    machines: [{ path: "shop/web", diskBytes: 5 }],
    missing: 0,
  });
});

test("a host that does not say is counted, and named to the operator alone", () => {
  const said = new Map([
    [h1, null],
    [h2, { ...none, rules: [rule] }],
  ]);
  const { missing, silent, rules } = countersOf(said, ask);
  assert.deepEqual([missing, silent, rules.length], [1, undefined, 1]);
  assert.deepEqual(countersOf(said, { ...ask, isOperator: true }).silent, ["h1"]);
});

test("however many ask, a host is asked once in a while, and one that is gone is asked no more", async () => {
  let [nowMs, hosts] = [0, [h1, h2]];
  const asked: string[] = [];
  const said = createHostCounters({
    list: async () => hosts,
    nowMs: () => nowMs,
    ask: async (host) => {
      asked.push(host);
      if (host === h2) throw new Error("it does not answer");
      return none;
    },
  });
  const all = await Promise.all(Array.from({ length: 20 }, () => said()));
  await said();
  assert.deepEqual(asked, [h1, h2]);
  for (const each of all)
    assert.deepEqual(
      [...each],
      [
        [h1, none],
        [h2, null],
      ],
    );
  nowMs = 2_000;
  hosts = [h1];
  assert.deepEqual([...(await said())], [[h1, none]]);
  assert.deepEqual(asked.splice(0), [h1, h2, h1]);
});

test("nobody waits for a host that did not say last time, and it is not asked again while it is being asked", async () => {
  let nowMs = 0;
  const asked: string[] = [];
  const answers: ((said: HostCounters) => void)[] = [];
  const refusals: ((error: Error) => void)[] = [];
  const said = createHostCounters({
    list: async () => [h1, h2],
    nowMs: () => nowMs,
    ask: (host) => {
      asked.push(host);
      if (host === h1) return Promise.resolve(none);
      return new Promise((resolve, reject) => {
        answers.push(resolve);
        refusals.push(reject);
      });
    },
  });
  const ofSecond = async () => {
    const late = new Promise<null>((resolve) => setTimeout(resolve, 1_000, null));
    return (await Promise.race([said(), late]))?.get(h2);
  };
  const first = said();
  await new Promise((resolve) => setImmediate(resolve));
  nowMs = 5_000;
  assert.equal(await ofSecond(), undefined, "once it is waited for");
  assert.deepEqual(asked, [h1, h2, h1]);
  refusals[0]?.(new Error("it does not answer"));
  assert.equal((await first).get(h2), null);
  for (const ms of [8_000, 11_000, 14_000]) {
    nowMs = ms;
    assert.equal(await ofSecond(), null, "and then no more");
  }
  assert.equal(asked.filter((host) => host === h2).length, 2);
  answers[1]?.(none);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(await ofSecond(), undefined, "it has said something meanwhile, and is waited for as before");
  answers[2]?.(none);
  assert.deepEqual(await ofSecond(), none);
});
