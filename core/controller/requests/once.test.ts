import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed, Refusal } from "../../../model/api.ts";
import { faultsOf, recordsIn } from "../../../model/contract/testing/audited.testing.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Effect, Input } from "../../env.ts";
import { Changes } from "../changes/pass.ts";
import { isWorking, sliceTimer } from "../changes/slices.ts";
import { createController } from "../controller.ts";
import type { Asker } from "../model/audited.ts";
import { options, shop, World, written } from "../world.testing.ts";
import { isAnswerRecord, keptAnswers } from "./once.ts";
import type { ControllerResponse } from "./requests.ts";
import { offersTimer } from "./submitted.ts";

const ann: Asker = { who: "ann@ROOT/acme", account: "ROOT/acme/dev", by: "session 0123456789ab", door: "gateway" };
const bob: Asker = { ...ann, who: "bob@ROOT/acme", by: "session ba9876543210" };
const vm: JsonObject = { "x.type": "VM", "x.memory": 128 };
const onceAs = (key: string, digest = key) => ({ by: ann, once: { key, digest } });
/** The one more VM comes last, and can be told from another one. */
const append = (name: string): object => ({
  method: "PATCH",
  path: "",
  patch: [
    { op: "copy", from: "/shop/one", path: `/shop/${name}` },
    { op: "remove", path: "/shop/one" },
    { op: "add", path: "/shop/one", value: vm },
  ],
});
const versionOf = (world: World): number => Number((world.records.get("model") as { version?: number }).version);
const answersIn = (world: World): readonly string[] => [...world.records.keys()].filter(isAnswerRecord);
const codeOf = ({ body }: ControllerResponse): string | undefined => (body as unknown as Partial<Refusal>).error?.code;

function started(): World {
  const world = new World();
  world.put({ shop: { "x.type": "Cell", one: vm } });
  return world;
}

test("what is asked for again under its key is answered as before and done once, also after a crash", () => {
  const world = started();
  const request = { ...append("two"), ...onceAs("k1") };
  const first = world.ask(request);
  assert.deepEqual([first.status, first.replayed, versionOf(world)], [200, undefined, 2]);
  world.ask({ method: "PUT", path: "shop/other", json: vm });
  for (const isAfterCrash of [false, true]) {
    if (isAfterCrash) world.crash();
    const answer = world.settle().ask(request);
    assert.deepEqual([answer.status, answer.version, answer.replayed], [200, 2, true]);
    const { plan, ...told } = answer.body as unknown as Changed;
    const { plan: before, ...said } = first.body as unknown as Changed;
    assert.deepEqual(told, said);
    assert.deepEqual(
      plan.steps,
      before.steps.filter(({ action }) => action !== "none").map((each) => ({ ...each, causes: [] })),
    );
  }
  assert.equal(versionOf(world), 3);
  const done = recordsIn(world.records).filter(({ verb }) => verb === "patchModel");
  assert.equal(done.length, 1);
  assert.deepEqual(faultsOf(world.records), []);
});

test("another request under the same key is refused, and changes nothing; another user's key is another", () => {
  const world = started();
  assert.equal(world.ask({ ...append("two"), ...onceAs("k1", "a") }).status, 200);
  const other = world.ask({ ...append("three"), ...onceAs("k1", "b") });
  assert.deepEqual([other.status, codeOf(other), versionOf(world)], [422, "idempotency/other-request", 2]);
  assert.equal(recordsIn(world.records).at(-1)?.outcome, "refused");
  assert.equal(world.ask({ ...append("three"), ...onceAs("k1", "b"), by: bob }).status, 200);
  const own = { who: "credential", credential: "one hash", door: "gateway" };
  assert.equal(world.ask({ ...append("four"), ...onceAs("k1", "c"), by: own }).status, 200);
  assert.equal(
    world.ask({ ...append("five"), ...onceAs("k1", "d"), by: { ...own, credential: "another" } }).status,
    200,
  );
  assert.equal(versionOf(world), 5);
});

test("what is kept names no user, and no value that the model had", () => {
  const world = started();
  world.ask({ method: "PUT", path: "shop/one/note", json: "hush", ...onceAs("k1") });
  world.ask({ method: "PUT", path: "shop/one/x.data", json: { secret: "hush" }, ...onceAs("k2") });
  world.ask({ method: "DELETE", path: "shop/one/x.data", ...onceAs("k3") });
  assert.equal(answersIn(world).length, 3);
  const kept = JSON.stringify(answersIn(world).map((key) => world.records.get(key)));
  assert.ok(!/hush|ann|acme/.test(kept), kept);
});

test("what was refused or planned has no answer that is kept, and can be asked for again", () => {
  const world = started();
  const request = { method: "PUT", path: "shop/one/x.memory", json: 256, ...onceAs("k1") };
  assert.equal(world.ask({ ...request, dryRun: true }).status, 200);
  assert.equal(world.ask({ ...request, ifMatch: 7 }).status, 412);
  assert.deepEqual(answersIn(world), []);
  const done = world.ask({ ...request, ifMatch: 1 });
  assert.deepEqual([done.status, done.replayed], [200, undefined]);
  // The version that it was made for is over, and it was made.
  assert.deepEqual(world.ask({ ...request, ifMatch: 1 }), { ...done, body: world.ask(request).body, replayed: true });
  assert.equal(world.ask({ ...request, dryRun: true, once: { key: "k1", digest: "other" } }).status, 200);
});

test("each request that changes something is done once: parts, deletions, credentials, and what changes nothing by itself", () => {
  const world = started();
  world.ask({ method: "CREDENTIAL-ADD", id: "c1", hash: "hash", note: "" });
  const requests: readonly object[] = [
    { method: "PUT", path: "shop/two", json: vm },
    { method: "PUT", path: "shop/two", json: vm },
    { method: "DELETE", path: "shop/two" },
    { method: "CREDENTIAL-REVOKE", id: "c1" },
    { method: "DELETE", path: "", allowDestroy: [...written, "shop"] },
  ];
  for (const [at, each] of requests.entries()) {
    const request = { ...each, ...onceAs(`k${at}`) };
    const [first, again] = [world.ask(request), world.ask(request)];
    assert.deepEqual([first.status, first.replayed, again.status, again.replayed], [200, undefined, 200, true]);
    assert.equal(first.version, again.version);
  }
  const tried = { method: "MOVE", vm: "shop/one", to: "nowhere", tentative: false, ...onceAs("m") };
  assert.deepEqual([world.ask(tried).replayed, answersIn(world).length], [undefined, requests.length]);
});

test("a crash after any step leaves no change without its answer, and none is made twice", () => {
  const world = new World();
  world.crashing = true;
  const step = world.step.bind(world);
  world.step = (input: Input): readonly Effect[] => {
    const effects = step(input);
    // What became durable at one moment has both or neither: each version was asked for under a key.
    const { version = 0 } = (world.records.get("model") ?? {}) as { readonly version?: number };
    assert.equal(answersIn(world).length, version);
    return effects;
  };
  const ask = (request: object): void => {
    for (const expected of [undefined, true]) {
      world.settle();
      const { status, replayed } = world.ask({ ...request, by: ann });
      assert.deepEqual([status, replayed], [200, expected]);
    }
  };
  ask({ method: "PUT", path: "", json: shop(), once: { key: "first", digest: "d" } });
  for (let memory = 256; memory < 260; memory += 1)
    ask({
      method: "PUT",
      path: "shop/one",
      json: { ...vm, "x.memory": memory },
      once: { key: `${memory}`, digest: "d" },
    });
  ask({ ...append("two"), once: { key: "patch", digest: "d" } });
  ask({ method: "DELETE", path: "", allowDestroy: [...written, "shop"], once: { key: "last", digest: "d" } });
  assert.deepEqual(faultsOf(world.records), []);
});

test("the answer is durable with the change, in whatever slices that is made", () => {
  const service = createController(options, (tracking, outbox) => new Changes(tracking, outbox, 1));
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const step = (input: Input): readonly Effect[] => {
    const next = service.step(state, input, { ms: 1, wallMs: 1 });
    state = next.state;
    return next.effects;
  };
  const machines = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`vm${at}`, vm]));
  const json = { shop: { "x.type": "Cell", ...machines } };
  const request = { method: "PUT", path: "", json, ...onceAs("k") } as unknown as Json;
  const slices = [
    step({ kind: "start" }),
    step({ kind: "request", id: 1, request }),
    step({ kind: "timer", name: offersTimer }),
  ];
  while (isWorking(state)) slices.push(step({ kind: "timer", name: sliceTimer }));
  const written = slices
    .map((effects) => effects.flatMap((effect) => (effect.kind === "write" ? [effect.key] : [])))
    .filter((keys) => keys.some((key) => key === "model" || isAnswerRecord(key)));
  assert.equal(written.length, 1);
  assert.ok(
    ["model", "answer/1", "audit", "audit/1"].every((key) => written[0]?.includes(key)),
    `${written}`,
  );
  const model = slices.findIndex((effects) =>
    effects.some((effect) => effect.kind === "write" && effect.key === "model"),
  );
  const reply = slices.findIndex((effects) => effects.some(({ kind }) => kind === "reply"));
  assert.ok(model < reply && slices.length > 20, `${model} of ${slices.length}, answered at ${reply}`);
});

test("of two that are asked for at once the second has the first's answer", () => {
  const world = new World();
  world.put({ shop: { "x.type": "Cell", one: vm } });
  world.crash();
  // Nobody has said yet what there is: changes wait.
  const request = { ...append("two"), ...onceAs("k1") } as unknown as Json;
  world.step({ kind: "request", id: 901, request });
  world.step({ kind: "request", id: 902, request });
  world.settle();
  const answers = world.effects.flatMap((effect) =>
    effect.kind === "reply" && (effect.id === 901 || effect.id === 902)
      ? [[effect.id, effect.response as unknown as ControllerResponse] as const]
      : [],
  );
  assert.deepEqual(
    answers.map(([id, { status, version, replayed }]) => [id, status, version, replayed]),
    [
      [901, 200, 2, undefined],
      [902, 200, 2, true],
    ],
  );
  assert.equal(versionOf(world), 2);
});

test("answers are kept for a day, and so many of them", () => {
  const world = started();
  const put = (key: string, memory: number): ControllerResponse =>
    world.ask({ method: "PUT", path: "shop/one/x.memory", json: memory, ...onceAs(key) });
  put("k1", 200);
  put("k2", 201);
  assert.equal(put("k1", 200).replayed, true);
  const shift = (ms: number): void => {
    for (const key of answersIn(world)) {
      const kept = world.records.get(key) as { readonly wallMs: number };
      world.records.set(key, { ...(kept as object), wallMs: kept.wallMs - ms } as unknown as Json);
    }
    world.crash();
    world.settle();
  };
  shift(keptAnswers.ms - 60_000);
  assert.equal(put("k2", 201).replayed, true);
  shift(120_000);
  assert.equal(put("k2", 202).replayed, undefined);
  // Only a few go at once, and the one that was asked for again has its new answer.
  put("k3", 203);
  assert.equal(answersIn(world).length, 2);
  assert.deepEqual([put("k2", 202).replayed, put("k3", 203).replayed], [true, true]);
});

test("where there are too many or too long ones the oldest go, and the last one stays", () => {
  const world = started();
  const put = (key: string, memory: number): ControllerResponse =>
    world.ask({ method: "PUT", path: "shop/one/x.memory", json: memory, ...onceAs(key) });
  for (let at = 1; at <= 5; at += 1) put(`k${at}`, 300 + at);
  const change = (key: string, more: object): void => {
    world.records.set(key, { ...(world.records.get("answer/1") as object), ...more } as unknown as Json);
  };
  change("answer/1", { body: { long: "x".repeat(keptAnswers.characters) } });
  world.crash();
  world.settle();
  put("k6", 400);
  assert.deepEqual(answersIn(world), ["answer/2", "answer/3", "answer/4", "answer/5", "answer/6"]);
  for (let at = 7; at <= keptAnswers.most + 6; at += 1)
    world.records.set(`answer/${at}`, {
      ...(world.records.get("answer/2") as object),
      key: `more${at}`,
    } as unknown as Json);
  change("answer/6", {
    ...(world.records.get("answer/6") as object),
    body: { long: "x".repeat(keptAnswers.characters) },
  });
  world.crash();
  world.settle();
  put("last", 401);
  assert.equal(answersIn(world).length, keptAnswers.most);
  assert.equal(put("last", 401).replayed, true);
  assert.ok(!world.records.has("answer/6"), "the oldest go first");
});
