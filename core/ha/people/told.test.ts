import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { mostTold } from "../../documents/ha.ts";
import { World } from "../world.testing.ts";
import { reportOf } from "./report.ts";

const [first, second] = [peerName("ha-manager"), peerName("ha-manager.2")];
const alertsOf = (world: World): readonly string[] =>
  (reportOf(world.state).alerts ?? []).map(({ kind, subject }) => `${kind} ${subject}`.trim());
const noticesOf = (world: World): readonly string[] =>
  [...world.state.notices.queue.values()].map(({ event, alert }) => `${event} ${alert?.subject ?? ""}`.trim());
/** What a further manager says to the first one. */
const toldBy = (world: World): Json => world.state.outbox.desired.get(first)?.get("alerts") ?? null;
const unfenced = { kind: "unfenced", subject: "h1", sentence: "shop/a-1 of h1 cannot be fenced" };
/** The first one, which has a webhook. */
const told = (): { readonly world: World; readonly say: (value: Json, from?: string) => readonly string[] } => {
  const world = new World(5);
  const webhook = { url: "https://pager.example.com/", sealed: "sealed" };
  world.give({ kind: "request", id: 1, request: { kind: "ha-webhook-set", webhook } });
  const [test] = world.state.notices.queue.keys();
  world.give({ kind: "request", id: 1, request: { kind: "ha-notice-said", number: test ?? 0, taken: true } });
  return {
    world,
    say: (value, from = second) => {
      world.give({ kind: "desired", from: peerName(from), key: "alerts", value });
      return world.events;
    },
  };
};

test("what a further manager has open it says to the first one, and takes back when it is over", () => {
  const world = new World(20, undefined, [], second);
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.equal(toldBy(world), null);
  world.ms += 65_000;
  world.give({ kind: "timer", name: "look" });
  const { alerts } = toldBy(world) as {
    readonly alerts: readonly { readonly kind: string; readonly subject: string }[];
  };
  assert.deepEqual(
    alerts.map(({ kind, subject }) => [kind, subject]),
    [["unfenced", "h1"]],
  );
  world.fenced("a-1", 1);
  assert.equal(toldBy(world), null);
  const own = new World(20);
  own.protect("a-1", 1, "h1");
  own.lose("h1");
  own.ms += 65_000;
  own.give({ kind: "timer", name: "look" });
  assert.deepEqual([alertsOf(own), toldBy(own)], [["unfenced h1"], null], "the first one says nothing to itself");
});

test("the first one opens it, tells it outside, and ends it with the manager whose it is", () => {
  const { world, say } = told();
  assert.deepEqual(say({ alerts: [unfenced] }), ["alert/opened"]);
  assert.deepEqual([alertsOf(world), noticesOf(world)], [["unfenced h1"], ["opened h1"]]);
  assert.deepEqual(
    say({ alerts: [{ ...unfenced, sentence: "two of h1 cannot be fenced" }] }),
    [],
    "it is the same one",
  );
  world.give({ kind: "request", id: 1, request: { kind: "ha-acknowledge", alert: "unfenced", subject: "h1" } });
  assert.deepEqual(
    say({ alerts: [unfenced] }, "ha-manager.3"),
    [],
    "nor is another manager's of the same host one more",
  );
  assert.deepEqual(say(null), [], "that one still has it");
  assert.deepEqual(say(null, "ha-manager.3"), ["alert/ended"]);
  assert.deepEqual(noticesOf(world), ["opened h1", "acknowledged h1", "ended h1"]);
});

test("what is malformed, too much, or about itself changes nothing", () => {
  const { world, say } = told();
  say({ alerts: [unfenced] });
  const kinds = [
    { ...unfenced, kind: "unguarded" },
    { ...unfenced, kind: "lukewarm" },
    { ...unfenced, subject: 7 },
  ];
  for (const value of [7, {}, ...kinds.map((alert) => ({ alerts: [alert] }))])
    assert.deepEqual(say(value as Json), ["document/refused"], JSON.stringify(value));
  const many = Array.from({ length: mostTold + 1 }, (_, at) => ({ ...unfenced, subject: `h${at + 2}` }));
  assert.deepEqual(say({ alerts: many }), ["document/refused"]);
  assert.deepEqual(say({ alerts: [] }, first), ["document/refused"]);
  assert.deepEqual(alertsOf(world), ["unfenced h1"]);
  const opened = say({ alerts: many.slice(1) }).filter((event) => event === "alert/opened");
  assert.equal(opened.length, mostTold, "as many as may be");
});

test("a manager that is gone has nothing open any more, also after a start, until it speaks again", () => {
  const { world, say } = told();
  const stored = { alerts: [unfenced] };
  say(stored);
  world.give({
    kind: "desired",
    from: peerName("controller.shop"),
    key: "unguarded",
    value: { cell: "shop", haManager: second },
  });
  assert.deepEqual(alertsOf(world), ["unguarded ha-manager.2"]);
  world.give({ kind: "desired", from: peerName("controller.shop"), key: "unguarded", value: null });
  assert.deepEqual(alertsOf(world), [], "the cell has another one; nobody would end what that one had open");
  world.state = world.service.restore({ records: new Map(world.records), desiredAt: new Map() });
  say(stored);
  world.give({ kind: "start" });
  assert.deepEqual(alertsOf(world), [], "what is stored of it is no word of it");
  assert.deepEqual(say(stored), ["alert/opened"]);
  world.state = world.service.restore({ records: new Map(world.records), desiredAt: new Map() });
  say({ alerts: 7 });
  world.give({ kind: "start" });
  assert.deepEqual(alertsOf(world), ["unfenced h1"], "of another version: what is open stays");
});

test("a controller that calls a manager gone which is there hides nothing of it, until it really is", () => {
  const { world, say } = told();
  world.state.options = { ...world.state.options, haManagers: [first, second] };
  say({ alerts: [unfenced] });
  const lie = { kind: "desired", from: peerName("controller.shop"), key: "unguarded" } as const;
  world.give({ ...lie, value: { cell: "shop", haManager: second } });
  assert.deepEqual(alertsOf(world), ["unfenced h1", "unguarded ha-manager.2"]);
  // Such a list is that of a start.
  world.state = world.service.restore({ records: new Map(world.records), desiredAt: new Map() });
  world.state.options = { ...world.state.options, haManagers: [first] };
  world.give({ ...lie, value: { cell: "shop", haManager: second } });
  say({ alerts: [unfenced] });
  world.give({ kind: "start" });
  assert.deepEqual(alertsOf(world), ["unguarded ha-manager.2"]);
});

test("a manager that was gone and comes back with its store has open what it had, though it says nothing new", () => {
  const { world, say } = told();
  say({ alerts: [unfenced] });
  const [shop, key] = [peerName("controller.shop"), "unguarded"];
  world.give({ kind: "desired", from: shop, key, value: { cell: "shop", haManager: second } });
  world.give({ kind: "desired", from: shop, key, value: null });
  assert.deepEqual(alertsOf(world), []);
  world.give({ kind: "complete", peer: shop });
  assert.deepEqual(alertsOf(world), [], "another one has spoken");
  world.give({ kind: "complete", peer: second });
  assert.deepEqual(alertsOf(world), ["unfenced h1"]);
  assert.ok(!world.records.has("left/ha-manager.2"));
});
