import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { host, world } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";

const root = peerName("controller.root");

/** Cells of two accounts, and what the operator says of all. */
function cloud(systemHosts: number | null, names: readonly string[] = ["h1", "h2", "h3"]) {
  const placer = world(names);
  for (const name of names) placer.say(name, host(name));
  const desire = (key: string, value: JsonObject | null, from = root): unknown =>
    placer.input({ kind: "desired", from, key, value });
  for (const [cell, account] of [
    ["a", "ROOT/a"],
    ["b", "ROOT/b"],
  ] as const)
    desire(`owner/${cell}`, { cell, account });
  const keep = (hosts: number | null): unknown =>
    desire("settings", hosts === null ? null : { settings: { systemHosts: hosts } });
  keep(systemHosts);
  const start = (cell: string, vm: string, placement: JsonObject = { dedication: "strict" }, more: JsonObject = {}) => {
    const about = { cpus: 1, cpuSpeedMHz: 0, incarnation: 1, memoryMiB: 100 };
    const from = peerName(`controller.${cell}`);
    desire(`placement/${vm}`, { vm, path: `${cell}/${vm}`, cell, placement, ...about, ...more }, from);
    return where(cell, vm);
  };
  const where = (cell: string, vm: string) => placer.get(vm, peerName(`controller.${cell}`))?.host ?? null;
  const why = (cell: string, vm: string) => placer.get(vm, peerName(`controller.${cell}`));
  return { ...placer, desire, keep, start, where, why };
}

test("strict VMs take no host of the last that are left to the cloud's own, and say so; one that is their account's holds more", () => {
  const { start, why, where, keep } = cloud(2);
  assert.equal(start("a", "a1"), "h1");
  assert.equal(start("b", "b1"), null);
  const [refusal] = why("b", "b1")?.refusals.filter(({ host: of }) => of === "h2") ?? [];
  assert.equal(refusal?.kind, "dedicated");
  assert.match(refusal?.why ?? "", /one of the last that are left to the cloud's own VMs/);
  assert.match(refusal?.lifts ?? "", /x\.placement\.systemHosts/);
  assert.equal(start("a", "a2"), "h1", "beside its own, where nothing more is taken");
  const wary = { avoid: ["h1"] };
  assert.equal(
    start("a", "a3", { dedication: "strict" }, wary),
    "h1",
    "the same of a host that is looked at by itself",
  );
  assert.equal(start("b", "b2", { dedication: "preferred" }), "h2");
  assert.equal(start("b", "b3", {}), "h3");
  keep(1);
  assert.equal(where("b", "b1"), "h2", "beside its account's own: it was waiting, and the word has changed");
});

test("with nothing written strict VMs take every host, and what the operator says later moves nobody", () => {
  const { start, keep, where } = cloud(null);
  assert.deepEqual([start("a", "a1"), start("b", "b1")], ["h1", "h2"]);
  keep(3);
  assert.deepEqual([where("a", "a1"), where("b", "b1")], ["h1", "h2"]);
  assert.equal(start("a", "a2"), "h1");
});

test("with nothing written a cloud of five open hosts leaves one of them, and a small one none", () => {
  const five = ["h1", "h2", "h3", "h4", "h5"];
  const cells = ["a", "b", "c", "d", "e"];
  const taken = (hosts: readonly string[], change: (made: ReturnType<typeof cloud>) => void = () => undefined) => {
    const made = cloud(null, hosts);
    for (const cell of cells) made.desire(`owner/${cell}`, { cell, account: `ROOT/${cell}` });
    change(made);
    return cells.map((cell) => made.start(cell, `${cell}1`));
  };
  assert.deepEqual(taken(five), ["h1", "h2", "h3", "h4", null]);
  assert.deepEqual(taken(five.slice(0, 4)), ["h1", "h2", "h3", "h4", null], "all four");
  const closed = taken(five, ({ administer }) => void administer("h5", "disabled"));
  assert.deepEqual(closed, ["h1", "h2", "h3", "h4", null], "of five hosts four are open");
  const lost = taken(five, ({ say }) => void say("h5", null));
  assert.deepEqual(lost, ["h1", "h2", "h3", null, null], "one that is away makes the cloud no smaller");
  const written = taken(five, ({ keep }) => void keep(0));
  assert.equal(written.filter((host) => host !== null).length, 5, "0 is a word");
});

test("it is said where fewer are left than are to be, as after a word that came too late", () => {
  const { start, keep, input } = cloud(null);
  const short = (): unknown => {
    const [reply] = input({ kind: "request", id: 1, request: { kind: "hosts" } });
    return reply?.kind === "reply" && (reply.response as JsonObject).systemHosts;
  };
  start("a", "a1");
  start("b", "b1");
  assert.equal(short(), undefined);
  keep(2);
  assert.deepEqual(short(), { kept: 2, left: 1 });
  keep(1);
  assert.equal(short(), undefined);
});

test("what is closed or away is not left to the cloud's own VMs, and these stand where they are", () => {
  const { start, administer, say, where } = cloud(1);
  administer("h3", "disabled");
  assert.equal(start("a", "a1"), "h1");
  assert.equal(start("b", "b1"), null, "h2 is the last");
  administer("h3", null);
  assert.notEqual(where("b", "b1"), null);
  const away = cloud(1);
  for (const name of ["h2", "h3"]) away.say(name, null);
  assert.equal(away.start("a", "a1"), null);
  away.say("h2", host("h2"));
  assert.notEqual(away.where("a", "a1"), null);
  say("h1", host("h1"));
  assert.equal(start("root", "r1", { dedication: "strict" }) !== null, true, "the cloud's own are not asked");
});

test("the root controller hears as long as fewer are left than are to be, once all have been heard", () => {
  const { published, keep, start, say, restart } = cloud(null);
  const said = (): unknown => published.get("controller.root/short");
  assert.deepEqual(said(), { enough: true });
  start("a", "a1");
  keep(3);
  assert.deepEqual(said(), { kept: 3, left: 2 });
  say("h3", null);
  assert.deepEqual(said(), { kept: 3, left: 1 });
  keep(1);
  assert.deepEqual(said(), { enough: true });
  keep(2);
  assert.deepEqual(said(), { kept: 2, left: 1 });
  say("h3", host("h3"));
  assert.deepEqual(said(), { enough: true });
  restart();
  assert.deepEqual(said(), { enough: true });
});

/** One that starts, with two hosts: each input, and what it said last. */
function starting() {
  const peers = ["h1", "h2"].map((name) => peerName(`host.${name}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  let said: Json | undefined;
  const step = (input: Input): void => {
    for (const effect of service.step(state, input, { ms: 0, wallMs: 0 }).effects)
      if (effect.kind === "publish" && effect.key === "controller.root/short") said = effect.value;
  };
  const hear = (name: string): void => {
    step({ kind: "actual", from: peerName(`host.${name}`), key: "host", value: toJson(host(name)) });
    step({ kind: "reachable", peer: peerName(`host.${name}`), reachable: true });
  };
  const keep = (settings: JsonObject): void =>
    step({ kind: "desired", from: root, key: "settings", value: { settings } });
  return { step, hear, keep, said: () => said };
}

test("who has not heard all hosts since its start does not say that too few are left", () => {
  const { step, hear, keep, said } = starting();
  keep({ systemHosts: 2 });
  step({ kind: "start" });
  step({ kind: "complete", peer: root });
  hear("h1");
  assert.equal(said(), undefined);
  step({ kind: "reachable", peer: peerName("host.h2"), reachable: false });
  assert.deepEqual(said(), { kept: 2, left: 1 }, "that one is away");
  keep({ systemHosts: 7, lastHostS: "x" });
  assert.deepEqual(said(), { kept: 2, left: 1 }, "what cannot be read takes nothing back");
});

test("one that lost its store says nothing before the root controller has said all that it desires: not that enough are left", () => {
  const { step, hear, keep, said } = starting();
  step({ kind: "start" });
  hear("h1");
  hear("h2");
  assert.equal(said(), undefined);
  step({ kind: "complete", peer: peerName("controller.a") });
  assert.equal(said(), undefined, "that of another cell knows nothing of hosts");
  keep({ systemHosts: 2 });
  step({ kind: "desired", from: root, key: "host/h2", value: { host: "h2", state: "disabled" } });
  assert.equal(said(), undefined, "more may come");
  step({ kind: "complete", peer: root });
  assert.deepEqual(said(), { kept: 2, left: 1 });
});

test("of a VM that has its place here this Placer's own word counts, whatever its host says that it asks for", () => {
  const { start, why, input } = cloud(3);
  assert.equal(start("a", "p1", { dedication: "preferred" }), "h1");
  const value = { memoryMiB: 100, cpus: 1, by: "controller.a", terms: { implicit: "strict" } };
  input({ kind: "actual", from: peerName("host.h1"), key: "taken/p1", value });
  assert.equal(start("a", "a1"), null);
  assert.match(why("a", "a1")?.refusals[0]?.why ?? "", /one of the last that are left/);
});
