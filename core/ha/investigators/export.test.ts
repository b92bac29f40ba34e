import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import { createHaManager } from "../manager.ts";
import { member, World } from "../world.testing.ts";

const [s1, s2] = [peerName("agent.s1"), peerName("agent.s2")];
/** A host of four with a VM; two servers that are in step. Nothing else is known of the host. */
const createRoom = () => {
  const world = new World(4, [member], [s1, s2]);
  for (const peer of [s1, s2]) world.give({ kind: "reachable", peer, reachable: true });
  world.protect("a-1", 3, "h1");
  const desired = (effects: readonly Effect[]): readonly string[] =>
    effects.flatMap((effect) =>
      effect.kind === "desire" && effect.key.startsWith("requests/")
        ? [`${effect.to} ${effect.key} ${effect.value === null ? "-" : "+"}`]
        : [],
    );
  const say = (agent: typeof s1, value: Json) =>
    world.give({ kind: "actual", from: agent, key: "ha-manager/requests/h1", value });
  return {
    world,
    say,
    desired,
    sees: (agent: typeof s1, looked: number, served: number, incarnation = 3) =>
      say(agent, { host: "h1", machines: [{ vm: "a-1", incarnation, looked, served }] }),
    /** Has no machine of that host. */
    nothing: (agent: typeof s1) => say(agent, { host: "h1", machines: [] }),
    step: () => world.stepOf("a-1"),
    said: () => world.state.active.get("a-1" as never)?.answers.find(({ by }) => by === "export"),
    after: (ms: number) => {
      world.ms += ms;
      return world.give({ kind: "timer", name: "look" });
    },
  };
};

test("who makes requests at a volume runs, when nothing else is heard of its host", () => {
  const { world, sees, nothing, step, said, after } = createRoom();
  world.lose("h1");
  assert.equal(step(), "Investigating", "both servers have yet to say what they see");
  nothing(s2);
  sees(s1, 0, 0);
  sees(s1, 4, 0);
  assert.equal(step(), "Investigating", "it is looked at once more");
  sees(s1, 5, 1);
  assert.equal(step(), "Investigating");
  assert.deepEqual([said()?.state, said()?.sentence], ["Running", "s1 serves requests of it"]);
  for (let look = 2; look < 10; look += 1) {
    after(5_000);
    sees(s1, 5, look);
    assert.equal(step(), "Investigating", "as long as they come");
  }
  after(8_999);
  assert.equal(step(), "Investigating");
  after(1);
  assert.equal(step(), "Fencing", "they have ended");
});

test("servers are asked from the suspicion on, and no longer than it takes", () => {
  const { world, desired, sees, nothing, step } = createRoom();
  const suspect = { host: "h1", generation: 1, incarnation: 0 };
  const asked = world.give({ kind: "actual", from: member, key: "suspected/h1", value: suspect });
  assert.deepEqual(desired(asked), ["agent.s1 requests/h1 +", "agent.s2 requests/h1 +"]);
  sees(s1, 0, 0);
  sees(s1, 5, 0);
  nothing(s2);
  world.lose("h1");
  assert.equal(step(), "Fencing", "nobody waits for what is known");
  const over = world.give({ kind: "actual", from: member, key: "suspected/h1", value: null });
  assert.deepEqual(desired(over), ["agent.s1 requests/h1 -", "agent.s2 requests/h1 -"]);
});

test("what was served before anybody asked, by another incarnation, or says a server that is out of step, is no sign of life", () => {
  const earlier = createRoom();
  earlier.world.lose("h1");
  earlier.nothing(s2);
  earlier.sees(s1, 9, 9);
  assert.equal(earlier.step(), "Fencing", "the first word is what the next is compared with");

  const other = createRoom();
  other.world.lose("h1");
  other.nothing(s2);
  other.sees(s1, 0, 0, 2);
  other.sees(s1, 5, 1, 2);
  assert.equal(other.step(), "Fencing");

  const again = createRoom();
  again.world.lose("h1");
  again.sees(s1, 4, 1);
  again.sees(s1, 0, 2);
  again.nothing(s2);
  assert.notEqual(again.said()?.state, "Running", "a server counts anew after its start");

  const away = createRoom();
  away.world.lose("h1");
  away.sees(s1, 0, 0);
  away.sees(s1, 5, 1);
  away.nothing(s2);
  assert.equal(away.step(), "Investigating");
  away.world.give({ kind: "reachable", peer: s1, reachable: false });
  away.after(0);
  assert.equal(away.step(), "Fencing");
});

test("a server that does not answer holds nothing up for long, and one that is malformed has said nothing", () => {
  const { world, say, step, after } = createRoom();
  world.lose("h1");
  for (const value of [{ host: "h2", machines: [] }, { host: "h1" }, 7]) say(s1, value);
  after(4_999);
  assert.equal(step(), "Investigating");
  after(1);
  assert.equal(step(), "Fencing");
});

test("what was asked before a start is taken back where nothing is to be asked any more", () => {
  const service = createHaManager({
    self: peerName("ha-manager"),
    presence: [member],
    storageManagers: [],
    hosts: [],
    agents: [s1],
  });
  const desiredAt = new Map([[s1, new Map<string, Json>([["requests/h1", { host: "h1" }]])]]);
  const state = service.restore({ records: new Map(), desiredAt });
  const { effects } = service.step(state, { kind: "start" }, { ms: 1, wallMs: 1 });
  const taken = effects.filter((effect) => effect.kind === "desire" && effect.key === "requests/h1");
  assert.deepEqual(taken, [{ kind: "desire", to: s1, key: "requests/h1", value: null }]);
});
