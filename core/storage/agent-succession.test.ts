import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ipv4, type PeerName, peerName, serverName, uid } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import type { ActualSuccessor, AgentLeaseActual } from "../documents.ts";
import type { Input } from "../env.ts";
import { createAgentService } from "./agent.ts";
import type { AgentReport } from "./agent-work.ts";

const manager = peerName("storage-manager");
const service = createAgentService({ server: serverName("s1"), address: ipv4("10.0.2.1"), firstPort: 20000 });
const volume = uid("root-2");
const hostPeer = (name: string): PeerName => peerName(`host.${name}`);
const holder = (host: string, incarnation: number, vm = "root-1"): Json => ({ vm, incarnation, host });

/** An agent with one volume, and the exports that it wants. */
class Bench {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, { from: PeerName; key: string; value: Json }>();
  readonly actual = new Map<string, Json>();
  state = service.restore({ records: this.records, desiredAt: new Map() });
  #id = 0;

  constructor(marked: boolean) {
    this.input({ kind: "start" });
    this.desire(manager, `volume/${volume}`, { uid: volume, source: { kind: "empty" }, sizeMiB: 10 });
    this.report({ kind: "created", volume, sizeMiB: 10, boot: null });
    this.mark(1, holder("h1", 1), marked);
    this.serve(1);
  }
  mark(epoch: number, who: Json, marked = true): void {
    this.desire(manager, `lease/${volume}`, { volume, epoch, holder: who, ...(marked ? { succession: true } : {}) });
  }
  input(input: Input): void {
    for (const effect of service.step(this.state, input, { ms: 0, wallMs: 0 }).effects) {
      if (effect.kind !== "write" && effect.kind !== "publish") continue;
      const map = effect.kind === "write" ? this.records : this.actual;
      if (effect.value === null) map.delete(effect.key);
      else map.set(effect.key, structuredClone(effect.value));
    }
  }
  desire(from: PeerName, key: string, value: Json): void {
    assert.ok(service.accepts(from, key), `${from} may not desire ${key}`);
    this.desired.set(`${from} ${key}`, { from, key, value });
    if (value === null) this.desired.delete(`${from} ${key}`);
    this.input({ kind: "desired", from, key, value });
  }
  ask(host: string, epoch: number, incarnation: number, who: Json = holder(host, incarnation)): void {
    this.desire(hostPeer(host), `succession/${volume}`, { volume, epoch, holder: who });
  }
  report(report: AgentReport): void {
    this.#id += 1;
    this.input({ kind: "request", id: this.#id, request: report as unknown as Json });
  }
  serve(epoch: number): void {
    const exportName = `e${epoch}`;
    this.report({ kind: "prepared", volume, epoch, exportName, pskIdentity: "i", pskHex: `0${epoch}` });
    this.report({ kind: "exported", volume, epoch, exportName, sizeMiB: 10 });
  }
  restart(): void {
    this.actual.clear();
    this.state = service.restore({ records: structuredClone(this.records), desiredAt: new Map() });
    for (const document of this.desired.values()) this.input({ kind: "desired", ...document });
    this.input({ kind: "start" });
  }
  successor = (): ActualSuccessor => this.actual.get(`successor/${volume}`) as unknown as ActualSuccessor;
  told = (host: string): AgentLeaseActual =>
    this.actual.get(`host.${host}/succession/${volume}`) as unknown as AgentLeaseActual;
}

test("a host gets the next epoch of a marked volume, after the present one is fenced", () => {
  const bench = new Bench(true);
  assert.deepEqual(bench.successor(), { epoch: 1, holder: holder("h1", 1) });
  bench.ask("h2", 2, 2);
  assert.equal(bench.successor().epoch, 1, "the old export may write yet");
  assert.equal(bench.told("h2").layer, null);
  bench.report({ kind: "fenced", volume, epoch: 1 });
  assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) });
  bench.serve(2);
  assert.equal(bench.told("h2").layer?.pskHex, "02");
  assert.doesNotMatch(JSON.stringify(bench.actual.get(`successor/${volume}`)), /psk/, "secrets are the holder's alone");
  // The Storage Manager, which comes back later, asks for what it finds, and nothing changes.
  bench.mark(2, holder("h2", 2));
  bench.desire(hostPeer("h2"), `succession/${volume}`, null);
  assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) });
});

test("of two hosts that ask for the same epoch one gets it, and the other is told who", () => {
  const bench = new Bench(true);
  bench.ask("h3", 2, 2);
  bench.ask("h2", 2, 2);
  bench.report({ kind: "fenced", volume, epoch: 1 });
  bench.serve(2);
  assert.deepEqual(bench.successor().holder, holder("h2", 2));
  assert.equal(bench.told("h3").phase, "failed");
  assert.deepEqual(bench.told("h3").layer, null);
  assert.deepEqual(bench.told("h3").holder, holder("h2", 2));
});

test("what a host may not ask for is refused with a sentence, and nothing is fenced", () => {
  const refused = (bench: Bench, host: string, why: RegExp): void => {
    assert.equal(bench.told(host).phase, "failed");
    assert.match(bench.told(host).reason ?? "", why);
    assert.equal(bench.told(host).layer, null);
    const lease = bench.records.get(`lease/${volume}`) as { readonly epoch: number; readonly fencing: boolean };
    assert.deepEqual([lease.epoch, lease.fencing], [1, false]);
  };
  const other = new Bench(false);
  other.ask("h2", 2, 2);
  refused(other, "h2", /not opened/);
  const bench = new Bench(true);
  bench.ask("h2", 2, 2, holder("h3", 2));
  refused(bench, "h2", /for itself/);
  bench.ask("h2", 2, 1);
  refused(bench, "h2", /incarnation 1 holds it/);
  bench.ask("h2", 2, 2, holder("h2", 2, "shop-7"));
  refused(bench, "h2", /a volume of root-1/);
  assert.equal(service.accepts(hostPeer("h2"), `lease/${volume}`), false);
  assert.equal(service.entitled(bench.state, hostPeer("h2"), `host.h3/succession/${volume}`), false);
  // A control: the same with nothing wrong in it is taken.
  bench.ask("h2", 2, 2);
  assert.equal((bench.records.get(`lease/${volume}`) as { readonly fencing: boolean }).fencing, true);
});

test("whatever hosts and the Storage Manager ask for in whatever order: each epoch has one holder, and none comes back", (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  const hosts = ["h1", "h2", "h3"] as const;
  const event = fc.oneof(
    fc.record({
      kind: fc.constant("ask" as const),
      host: fc.constantFrom(...hosts),
      ahead: fc.integer({ min: -1, max: 2 }),
      more: fc.integer({ min: 0, max: 2 }),
    }),
    fc.record({ kind: fc.constant("withdraw" as const), host: fc.constantFrom(...hosts) }),
    fc.record({ kind: fc.constantFrom("fence" as const, "restart" as const, "adopt" as const, "free" as const) }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const bench = new Bench(true);
      const given = new Map<number, string>();
      let last = 1;
      const look = (): void => {
        const { epoch, holder: who } = bench.successor();
        assert.ok(epoch >= last, "no epoch comes back");
        last = epoch;
        if (who === null) return;
        const text = JSON.stringify(who);
        assert.equal(given.get(epoch) ?? text, text, `epoch ${epoch} has two holders`);
        given.set(epoch, text);
        for (const host of hosts) {
          const told = bench.told(host);
          if (told?.layer != null) assert.equal(told.holder?.host, host, "a layer is its holder's alone");
        }
      };
      for (const each of events) {
        const { epoch, holder: who } = bench.successor();
        if (each.kind === "ask")
          bench.ask(each.host, Math.max(1, epoch + each.ahead), (who?.incarnation ?? 0) + each.more);
        if (each.kind === "withdraw") bench.desire(hostPeer(each.host), `succession/${volume}`, null);
        if (each.kind === "fence") bench.report({ kind: "fenced", volume, epoch });
        if (each.kind === "restart") bench.restart();
        if (each.kind === "adopt") bench.mark(epoch, who as unknown as Json);
        if (each.kind === "free") bench.mark(epoch + 1, null);
        look();
      }
    }),
    { seed, numRuns: Number(process.env.CELLS_RUNS ?? 200) },
  );
});
