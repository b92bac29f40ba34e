import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, type PeerName, peerName, serverName, uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { AgentLeaseActual, AgentServer } from "../../documents/vocabulary.ts";
import { createAgentService } from "../agent/agent.ts";
import type { AgentReport } from "../agent/work.ts";
import { StorageWorld, volume } from "./manager.testing.ts";

const first = peerName("storage-manager");
const second = peerName("storage-manager.2");
const service = createAgentService({ address: ipv4("10.0.2.1"), firstPort: 20000, server: serverName("s1") });

/** An agent with two managers. What each of them may see of it is what it is told. */
class Bench {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, { readonly from: PeerName; readonly key: string; readonly value: Json }>();
  readonly actual = new Map<string, Json>();
  readonly refused: string[] = [];
  state = service.restore({ records: new Map(), desiredAt: new Map() });

  constructor() {
    this.input({ kind: "start" });
    this.report({ kind: "server", totalMiB: 1000, freeMiB: 500 });
  }
  input(input: Parameters<typeof service.step>[1]): void {
    const { state, effects } = service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = state;
    for (const effect of effects) {
      const map = effect.kind === "write" ? this.records : effect.kind === "publish" ? this.actual : null;
      if (map !== null && "key" in effect && "value" in effect) {
        if (effect.value === null) map.delete(effect.key);
        else map.set(effect.key, effect.value);
      } else if (effect.kind === "log" && effect.event === "document/refused")
        this.refused.push(`${effect.fields.why}`);
    }
  }
  report(report: AgentReport): void {
    this.input({ kind: "request", id: 1, request: report as unknown as Json });
  }
  desire(from: PeerName, key: string, value: Json): void {
    if (value === null) this.desired.delete(`${from} ${key}`);
    else this.desired.set(`${from} ${key}`, { from, key, value });
    this.input({ kind: "desired", from, key, value });
  }
  make(from: PeerName, name: string, sizeMiB: number): void {
    this.desire(from, `volume/${name}`, { uid: name, source: { kind: "empty" }, sizeMiB });
    this.report({ kind: "created", volume: uid(name), sizeMiB, boot: null });
  }
  /** The later manager's desires come first. */
  restart(): void {
    this.actual.clear();
    this.state = service.restore({ records: structuredClone(this.records), desiredAt: new Map() });
    for (const each of [...this.desired.values()].reverse()) this.input({ kind: "desired", ...each });
    this.input({ kind: "start" });
    this.report({ kind: "server", totalMiB: 1000, freeMiB: 500 });
  }
  sees = (manager: PeerName): readonly string[] =>
    [...this.actual.keys()].filter((key) => service.entitled(this.state, manager, key)).sort();
  promised = () => (this.actual.get("server") as unknown as AgentServer).promisedMiB;
  holder = (name: string) => (this.actual.get(`lease/${name}`) as unknown as AgentLeaseActual).holder?.vm;
}

const lease = (volume: string, epoch: number, vm: string): Json => ({
  volume,
  epoch,
  holder: { vm, incarnation: 1, host: "h1" },
});

test("a volume is one manager's: no other writes, fences, deletes or sees it, also over a restart", () => {
  const bench = new Bench();
  bench.make(first, "a-1", 100);
  bench.make(second, "b-1", 200);
  bench.desire(first, "lease/a-1", lease("a-1", 1, "a-2"));
  for (const again of [false, true]) {
    if (again) bench.restart();
    bench.refused.length = 0;
    bench.desire(second, "lease/a-1", lease("a-1", 2, "b-2"));
    bench.desire(second, "volume/a-1", { uid: "a-1", source: { kind: "empty" }, sizeMiB: 1 });
    bench.desire(second, "volume/a-1", null);
    assert.equal(bench.holder("a-1"), "a-2");
    assert.deepEqual(bench.refused, Array(3).fill("it is a volume of storage-manager"));
    assert.deepEqual(bench.sees(first), ["lease/a-1", "server", "volume/a-1"]);
    assert.deepEqual(bench.sees(second), ["server", "volume/b-1"]);
  }
  // What is gone is nobody's.
  bench.desire(second, "volume/b-1", null);
  bench.report({ kind: "removed", volume: uid("b-1"), file: null });
  bench.desire(second, "lease/a-1", null);
  bench.make(first, "b-1", 10);
  assert.deepEqual(bench.sees(first), ["lease/a-1", "server", "volume/a-1", "volume/b-1"]);
});

test("a volume of an earlier version's record is the first manager's", () => {
  const bench = new Bench();
  bench.make(first, "a-1", 100);
  const { manager, ...rest } = bench.records.get("volume/a-1") as { readonly [name: string]: Json };
  assert.equal(manager, first);
  bench.records.set("volume/a-1", rest);
  bench.desired.clear();
  bench.desired.set("late", {
    from: second,
    key: "volume/a-1",
    value: { uid: "a-1", source: { kind: "empty" }, sizeMiB: 1 },
  });
  bench.restart();
  assert.deepEqual(bench.refused, ["it is a volume of storage-manager"]);
});

test("what is promised is said for each manager as soon as there are two, and counted once", () => {
  const bench = new Bench();
  bench.make(first, "a-1", 100);
  bench.make(first, "a-2", 50);
  assert.equal(bench.promised(), undefined);
  bench.make(second, "b-1", 200);
  for (const again of [false, true]) {
    if (again) bench.restart();
    assert.deepEqual(bench.promised(), { [first]: 150, [second]: 200 });
  }
  bench.desire(second, "volume/b-1", null);
  bench.report({ kind: "removed", volume: uid("b-1"), file: null });
  assert.equal(bench.promised(), undefined);
});

test("a manager leaves to others what they were promised", () => {
  const world = new StorageWorld({ s1: { freeMiB: 1000 }, s2: { freeMiB: 900 } });
  const say = (promisedMiB: { readonly [manager: string]: number }): void => {
    for (const agent of world.agents.values()) {
      if (agent.name !== "agent.s1") continue;
      agent.actual.set("server", { server: "s1", address: "10.0.2.1", totalMiB: 2000, freeMiB: 1000, promisedMiB });
      world.connect(agent);
    }
  };
  // Its own is what it knows itself.
  say({ "storage-manager": 9999, "storage-manager.2": 50 });
  world.want("volume/v1", volume("v1", { kind: "empty" }, 10));
  assert.equal(world.volume("v1")?.server, "s1");
  say({ "storage-manager": 9999, "storage-manager.2": 200 });
  world.want("volume/v2", volume("v2", { kind: "empty" }, 10));
  assert.equal(world.volume("v2")?.server, "s2");
  // Twenty times the space of both, less what is promised.
  say({ "storage-manager.2": 39_980 });
  world.want("volume/v3", volume("v3", { kind: "empty" }, 950));
  assert.match(world.volume("v3")?.reason ?? "", /s1 has 1000 MiB free, 39990 MiB promised/);
});
