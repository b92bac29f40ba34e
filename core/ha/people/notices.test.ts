import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import { World } from "../world.testing.ts";
import type { Notice } from "./alert.ts";
import { reportOf } from "./report.ts";

const url = "https://pager.example.com/cells";
const ask = (world: World, request: JsonObject, id = 1): Json | undefined => replyTo(world, request, id)[0]?.response;
const replyTo = (world: World, request: JsonObject, id: number): readonly Extract<Effect, { kind: "reply" }>[] =>
  world.give({ kind: "request", id, request }).filter((effect) => effect.kind === "reply");
/** What the edge is given at once; undefined: it waits. */
const next = (world: World): string | undefined => {
  const given = replyTo(world, { kind: "ha-notice-wait" }, 7).find(({ response }) => response !== null);
  const answer = given?.response as unknown as { readonly notice: Notice } | undefined;
  if (answer === undefined) return undefined;
  const { number, event, alert } = answer.notice;
  return `${number} ${event}${alert === null ? "" : ` ${alert.kind} ${alert.subject}`}`.trim();
};
const said = (world: World, number: number, taken: boolean, reason = "it answered with 500"): void =>
  void ask(world, { kind: "ha-notice-said", number, taken, reason });
const begun = (): World => {
  const world = new World(5);
  ask(world, { kind: "ha-webhook-set", webhook: { url, sealed: "sealed" } });
  assert.equal(next(world), "1 test");
  said(world, 1, true);
  return world;
};
const hold = (world: World): void => {
  world.loseTwice("a-1");
};
const webhookOf = (world: World) => reportOf(world.state).webhook;

test("an alert is told when it is opened, acknowledged and over, one after the other, each until it is taken", () => {
  const world = begun();
  assert.equal(next(world), undefined);
  hold(world);
  assert.deepEqual(webhookOf(world), { url, waiting: 1, said: null });
  assert.equal(ask(world, { kind: "ha-acknowledge", alert: "held", subject: "shop:shop/a-1" }) === undefined, false);
  assert.equal(next(world), "2 opened held shop:shop/a-1");
  world.release({ cell: "shop", path: "shop/a-1" });
  assert.equal(next(world), "2 opened held shop:shop/a-1", "as long as nobody has taken it");
  said(world, 2, true);
  assert.equal(next(world), "3 acknowledged held shop:shop/a-1");
  said(world, 3, true);
  assert.equal(next(world), "4 ended held shop:shop/a-1");
  said(world, 4, true);
  assert.equal(next(world), undefined);
  assert.deepEqual(webhookOf(world), { url, waiting: 0, said: null });
});

test("who waits is told at once, and another who waits takes his place", () => {
  const world = begun();
  assert.equal(next(world), undefined);
  assert.deepEqual(
    replyTo(world, { kind: "ha-notice-wait" }, 8).map(({ id, response }) => [id, response]),
    [[7, null]],
  );
  const effects: Effect[] = [];
  const give = world.give.bind(world);
  world.give = (input) => {
    const all = give(input);
    effects.push(...all);
    return all;
  };
  hold(world);
  assert.deepEqual(
    effects.flatMap((effect) => (effect.kind === "reply" && effect.id === 8 ? [effect.id] : [])),
    [8],
  );
});

test("what is not taken is tried again after 1 s, 2 s, 4 s, at most 10 min, and given up after a day", () => {
  const world = begun();
  hold(world);
  for (const afterMs of [1000, 2000, 4000, 8000]) {
    assert.equal(next(world), "2 opened held shop:shop/a-1");
    said(world, 2, false);
    assert.equal(webhookOf(world)?.said, "it answered with 500");
    assert.equal(next(world), undefined);
    world.ms += afterMs - 1;
    assert.equal(next(world), undefined);
    world.ms += 1;
  }
  for (let times = 0; times < 12; times += 1) {
    assert.equal(next(world), "2 opened held shop:shop/a-1");
    said(world, 2, false);
    world.ms += 600_000;
  }
  assert.equal(next(world), "2 opened held shop:shop/a-1");
  world.ms += 86_400_000;
  said(world, 2, false);
  assert.ok(world.events.includes("alert/unsent"));
  assert.deepEqual(webhookOf(world), { url, waiting: 0, said: "it answered with 500" });
});

test("a timer is set for the next attempt", () => {
  const world = begun();
  hold(world);
  next(world);
  said(world, 2, false);
  const timers = world
    .give({ kind: "request", id: 9, request: { kind: "ha-notice-wait" } })
    .flatMap((effect) => (effect.kind === "timer" && effect.name === "notice" ? [effect.afterMs] : []));
  assert.deepEqual(timers, [1000]);
});

test("the word about another one, or of an earlier receiver, changes nothing", () => {
  const world = begun();
  hold(world);
  for (const number of [1, 3]) said(world, number, true);
  assert.equal(next(world), "2 opened held shop:shop/a-1");
  ask(world, { kind: "ha-webhook-set", webhook: { url, sealed: "other" } });
  assert.equal(webhookOf(world)?.waiting, 1);
  said(world, 2, true);
  assert.equal(next(world), "3 test", "what was for the former one is dropped, and its numbers are not used again");
});

test("what waits is durable, in its order, and so is that it was taken", () => {
  const world = begun();
  for (let count = 0; count < 5; count += 1) {
    world.pause();
    world.release();
  }
  world.restart();
  assert.equal(webhookOf(world)?.waiting, 10);
  for (let number = 2; number <= 11; number += 1) {
    assert.equal(next(world), `${number} ${number % 2 === 0 ? "opened" : "ended"} paused`);
    said(world, number, true);
  }
  world.restart();
  assert.equal(webhookOf(world)?.waiting, 0);
  world.pause();
  assert.equal(next(world), "12 opened paused");
});

test("a receiver that is away for long costs the oldest, and that is said; without a webhook nothing is kept", () => {
  const world = begun();
  for (let count = 0; count < 130; count += 1) {
    world.pause();
    world.release();
  }
  assert.equal(webhookOf(world)?.waiting, 256);
  assert.ok(world.events.includes("alert/unsent"));
  assert.equal(next(world), "6 opened paused");
  assert.deepEqual(ask(world, { kind: "ha-webhook-remove" }), { wasThere: true });
  assert.deepEqual(
    [...world.records.keys()].filter((key) => key.startsWith("notice/") || key === "webhook"),
    [],
  );
  world.pause();
  assert.deepEqual([webhookOf(world), next(world)], [undefined, undefined]);
  assert.deepEqual(ask(world, { kind: "ha-webhook-remove" }), { wasThere: false });
});

test("an alert that is acknowledged stays open, also after a start, and a new one of that kind is a new one", () => {
  const world = new World(5);
  hold(world);
  const acknowledge = (alert: string, subject: string) =>
    ask(world, { kind: "ha-acknowledge", alert, subject }) as unknown as {
      readonly refusal?: { readonly status: number };
    };
  assert.equal(acknowledge("held", "shop:shop/a-2").refusal?.status, 404);
  assert.equal(acknowledge("unfenced", "shop:shop/a-1").refusal?.status, 404);
  acknowledge("held", "shop:shop/a-1");
  assert.ok(world.events.includes("alert/acknowledged"));
  acknowledge("held", "shop:shop/a-1");
  assert.ok(!world.events.includes("alert/acknowledged"), "once");
  world.restart();
  world.lose("h2");
  const [alert] = reportOf(world.state).alerts ?? [];
  assert.deepEqual([alert?.kind, alert?.acknowledged !== undefined], ["held", true]);
  world.release({ cell: "shop", path: "shop/a-1" });
  assert.deepEqual(reportOf(world.state).alerts, []);
});
