import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Effect, Input } from "../../env.ts";
import { below, seedOf } from "../../random.ts";
import { host } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";
import { cloudOf, requestOf, shop } from "./clouds.testing.ts";
import { mostQuestions, sliceTimer, unitsOfSlice } from "./questions.ts";
import { wholeOf } from "./sliced.ts";
import { thought } from "./thought.ts";

/* What the operator asks is worked out between everything else, is bounded, and ends with whoever asked. */
function asked(hosts: number) {
  const peers = Array.from({ length: hosts }, (_, at) => peerName(`host.h${at}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  let isDue = false;
  const replies = new Map<number, Json>();
  const input = (what: Input): readonly Effect[] => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "timer") isDue = true;
      if (effect.kind === "reply") replies.set(effect.id, effect.response);
    }
    return step.effects;
  };
  input({ kind: "start" });
  for (const peer of peers) {
    const name = peer.slice("host.".length);
    input({ kind: "actual", from: peer, key: "host", value: host(name, 4000) });
    input({ kind: "reachable", peer, reachable: true });
  }
  const slice = (): boolean => {
    const was = isDue;
    isDue = false;
    if (was) input({ kind: "timer", name: sliceTimer });
    return was;
  };
  const want = (vm: string, more = {}): unknown =>
    input({ kind: "desired", from: shop, key: `placement/${vm}`, value: { ...requestOf(vm, "shop", more) } });
  const ask = (id: number, request: JsonObject): Json | undefined => {
    input({ kind: "request", id, request: { asked: id, ...request } });
    return replies.get(id);
  };
  return { input, slice, want, ask, replies, stateOf: (): PlacerState => state };
}

test("a question is worked at in slices, and VMs are placed between two of them", () => {
  const { slice, want, ask, replies, stateOf } = asked(5 * unitsOfSlice);
  assert.equal(ask(1, { kind: "capacity", memoryMiB: "1000" }), undefined, "it is answered later");
  want("v1");
  assert.equal(stateOf().reservations.size, 1, "nobody waits for the answer");
  assert.equal(replies.size, 0);
  let slices = 1;
  while (slice()) slices += 1;
  assert.ok(slices >= 5, `${slices} slices`);
  assert.equal((replies.get(1) as JsonObject).more, 3 * 5 * unitsOfSlice, "each host as it was when its turn came");
  assert.equal(slice(), false, "nothing is due any more");

  ask(2, { kind: "rebalance", goal: "even" });
  ask(3, { kind: "capacity", memoryMiB: "1000", failures: "1" });
  want("v2");
  assert.equal(stateOf().reservations.size, 2);
  while (slice());
  assert.deepEqual((replies.get(2) as JsonObject).moves, []);
  assert.equal(((replies.get(3) as JsonObject).failures as JsonObject).hosts, 1);
});

test("as many questions as may be are worked at, and who leaves makes room for others", () => {
  const { slice, ask, replies, stateOf } = asked(10 * unitsOfSlice);
  for (let id = 1; id <= mostQuestions; id += 1)
    assert.equal(ask(id, { kind: "capacity", memoryMiB: "1000", failures: "1" }), undefined);
  assert.deepEqual(ask(9, { kind: "rebalance", goal: "even" }), { busy: "4 such questions are asked already" });
  assert.deepEqual(ask(10, { kind: "capacity", memoryMiB: "no" }), {
    error: "memoryMiB is a whole number from 16, and cpus one from 1",
  });
  assert.notEqual(stateOf().hosts.since, null, "a copy is being made");
  ask(11, { kind: "withdrawn", asked: 1 });
  ask(12, { kind: "withdrawn", asked: 3 });
  ask(13, { kind: "withdrawn", asked: 77 });
  assert.deepEqual([replies.get(1), replies.get(3)], [{ withdrawn: true }, { withdrawn: true }]);
  assert.deepEqual([stateOf().hosts.since, stateOf().usage.since], [null, null], "and is none any more");
  assert.equal(ask(14, { kind: "rebalance", goal: "even" }), undefined);
  while (slice());
  for (const id of [2, 4, 14]) assert.ok("hosts" in (replies.get(id) as JsonObject) || id === 14, `${id}`);
  assert.deepEqual((replies.get(14) as JsonObject).moves, []);
});

test("a copy that is made while VMs come and go is what is so in the end", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chance = { random: seedOf(seed) };
  for (let run = 0; run < 40; run += 1) {
    const real = cloudOf(chance, 5, 12);
    const service = createPlacer({ self: peerName("placer"), hosts: [...real.hosts.keys()] });
    const copying = thought(real, true);
    let [copy, vms]: [PlacerState | null, number] = [null, 0];
    const input = (what: Input): unknown => service.step(real, what, { ms: 0, wallMs: 0 });
    while (copy === null) {
      const { done, value } = copying.next();
      if (done === true) copy = value;
      else if (below(chance, 2) === 0 && vms < 40) {
        vms += 1;
        const vm = `v${below(chance, 20)}`;
        const value = below(chance, 3) === 0 ? null : { ...requestOf(vm, "shop", { incarnation: 1 + vms }) };
        input({ kind: "desired", from: shop, key: `placement/${vm}`, value });
        const name = `h${1 + below(chance, 5)}`;
        if (below(chance, 4) === 0)
          input({ kind: "desired", from: peerName("controller.root"), key: `host/${name}`, value: null });
        if (below(chance, 4) === 0) {
          const taken = { vm, incarnation: 1, memoryMiB: 50, cpus: 1, by: "controller.bank" };
          input({
            kind: "actual",
            from: peerName(`host.${hostName(name)}`),
            key: `taken/${vm}`,
            value: taken as never,
          });
        }
      }
    }
    const shown = ({ usage, hosts, reservations }: PlacerState) => ({
      usage: [...usage]
        .filter(([, { reservations: own, taken }]) => own.size + taken.size > 0)
        .map(([at, use]) => [at, use.memoryMiB, use.cpus, use.shares, [...use.reservations.keys()].sort()])
        .sort(),
      hosts: [...hosts.values()],
      reservations: [...reservations.values()].sort((one, other) => (one.vm < other.vm ? -1 : 1)),
    });
    assert.deepEqual(shown(copy), shown(real), `seed ${seed}, run ${run}`);
    assert.deepEqual(shown(wholeOf(thought(real))), shown(real), `seed ${seed}, run ${run}`);
    assert.equal(real.hosts.since, null);
  }
});
