import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ipv4, type PeerName, peerName, serverName, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { ActualSuccessor, AgentLeaseActual } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { createAgentService } from "./agent.ts";
import type { AgentReport } from "./work.ts";

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

  /** @param lost the group has declared the first holder's host dead */
  constructor(marked: boolean, lost = true) {
    this.input({ kind: "start" });
    this.desire(manager, `volume/${volume}`, { uid: volume, source: { kind: "empty" }, sizeMiB: 10 });
    this.report({ kind: "created", volume, sizeMiB: 10, boot: null });
    this.mark(1, holder("h1", 1), marked);
    this.serve(1);
    this.install();
    if (lost) for (const member of [1, 2]) this.declare(member, "h1");
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
  /** As the peers file has it. */
  install(hosts: readonly string[] = ["h1", "h2", "h3"], members = 3): void {
    const group = Array.from({ length: members }, (_, at) => peerName(`presence.${at + 1}`));
    this.report({ kind: "installation", hosts: hosts.map(hostPeer), members: group, managers: [manager] });
  }
  /** The connection to a member breaks, or is in step again. */
  reach(number: number, reachable: boolean): void {
    this.input({ kind: "reachable", peer: peerName(`presence.${number}`), reachable });
  }
  /** A member of the Presence group says that a host is dead, and perhaps that it has come back. */
  declare(number: number, host: string, more: JsonObject = {}): void {
    const value = { host, generation: 1, incarnation: 0, declaredAt: 0, reporters: 2, ...more };
    this.input({ kind: "actual", from: peerName(`presence.${number}`), key: `dead/${host}`, value });
  }
  vote(host: string, epoch: number): void {
    this.desire(hostPeer(host), `succession/${volume}`, { volume, epoch, holder: null });
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

test("a live holder is fenced for no host, whatever that host says", () => {
  const untouched = (bench: Bench, why: RegExp): void => {
    assert.deepEqual(bench.records.get(`lease/${volume}`), before(bench));
    assert.deepEqual(bench.successor(), { epoch: 1, holder: holder("h1", 1) });
    assert.match(bench.told("evil").reason ?? "", why);
    assert.equal(bench.told("evil").layer, null);
  };
  const first = new Map<Bench, Json>();
  const before = (bench: Bench): Json => first.get(bench) ?? null;
  const asked = (hosts: readonly string[] = ["evil", "h1", "h2"]): Bench => {
    const bench = new Bench(true, false);
    first.set(bench, structuredClone(bench.records.get(`lease/${volume}`) ?? null));
    bench.install(hosts);
    bench.ask("evil", 2, 2);
    return bench;
  };
  const bench = asked();
  untouched(bench, /h1 counts as lost only when 2 of the 3 members .* or 2 of the 3 hosts miss it: 0 and 1 do/);
  // One member of the group alone, as one on that host could be made to say; one that is none; one that says it is back.
  bench.declare(1, "h1");
  untouched(bench, /1 and 1 do/);
  bench.declare(9, "h1");
  bench.declare(2, "h1", { returned: 2 });
  bench.declare(2, "h3");
  untouched(bench, /1 and 1 do/);
  // One that is not heard may have said meanwhile that it is back: what it said before counts for nothing.
  bench.declare(2, "h3");
  bench.reach(3, false);
  bench.declare(3, "h1");
  bench.reach(9, false);
  untouched(bench, /1 and 1 do/);
  bench.declare(3, "h1", { returned: 2 });
  bench.reach(3, true);
  untouched(bench, /1 and 1 do/);
  // Votes of hosts that the installation has not, for another epoch, or taken back.
  bench.vote("h9", 2);
  bench.vote("h2", 1);
  bench.vote("h2", 3);
  untouched(bench, /1 and 1 do/);
  // With half of the hosts it is not sure who is cut off.
  const half = asked(["evil", "h1", "h2", "h3"]);
  half.vote("h2", 2);
  untouched(half, /0 and 2 do/);
  // A number from which nobody could go on.
  const far = asked();
  far.declare(1, "h1");
  far.declare(2, "h3");
  far.ask("evil", 2, 1_000_000);
  far.declare(2, "h1");
  untouched(far, /incarnation 1 holds it, and 1000000 is no next one/);
});

test("more than half of all hosts stand in for a Presence group that is not there; a vote is about one epoch", () => {
  const bench = new Bench(true, false);
  bench.ask("h2", 2, 2);
  assert.equal(bench.told("h2").phase, "waiting");
  bench.vote("h3", 2);
  bench.report({ kind: "fenced", volume, epoch: 1 });
  assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) });
  assert.equal(bench.told("h3"), undefined, "a vote has no answer");
  bench.ask("h3", 3, 3);
  const { epoch, fencing } = bench.records.get(`lease/${volume}`) as { epoch: number; fencing: boolean };
  assert.deepEqual([epoch, fencing], [2, false], "those of the epoch before say nothing about the next holder");
  // What was desired is there again after a restart, who belongs to the installation comes later.
  const again = new Bench(true, false);
  again.ask("h2", 2, 2);
  again.vote("h3", 2);
  assert.equal((again.records.get(`lease/${volume}`) as { readonly fencing: boolean }).fencing, true);
  const later = new Bench(true, false);
  later.install([], 0);
  later.ask("h2", 2, 2);
  later.vote("h3", 2);
  later.restart();
  assert.equal((later.records.get(`lease/${volume}`) as { readonly fencing: boolean }).fencing, false);
  later.install();
  assert.equal((later.records.get(`lease/${volume}`) as { readonly fencing: boolean }).fencing, true);
});

test("a fence made upon evidence is followed by the grant, also when the lost host is heard again before it", () => {
  const between: { readonly [name: string]: (bench: Bench) => void } = {
    "the votes are taken back before the fence is confirmed": (bench) => {
      bench.desire(hostPeer("h3"), `succession/${volume}`, null);
      bench.report({ kind: "fenced", volume, epoch: 1 });
    },
    "the agent starts again as well": (bench) => {
      bench.desire(hostPeer("h3"), `succession/${volume}`, null);
      bench.restart();
      bench.install();
      bench.report({ kind: "fenced", volume, epoch: 1 });
    },
    "the file is not usable for a while after the fence": (bench) => {
      const document = { uid: volume, source: { kind: "empty" }, sizeMiB: 10 };
      bench.desire(manager, `lease/${volume}`, null);
      bench.report({ kind: "fenced", volume, epoch: 1 });
      bench.desire(hostPeer("h3"), `succession/${volume}`, null);
      bench.restart();
      bench.desire(manager, `volume/${volume}`, document);
      bench.mark(1, holder("h1", 1));
      bench.install();
    },
  };
  for (const [name, happens] of Object.entries(between)) {
    const bench = new Bench(true, false);
    bench.ask("h2", 2, 2);
    bench.vote("h3", 2);
    happens(bench);
    assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) }, name);
    // It says nothing about whoever holds the next epoch, nor about the former holder's next incarnation.
    bench.ask("h3", 3, 3);
    bench.restart();
    assert.deepEqual(leaseOf(bench), { epoch: 2, fencing: false }, name);
    bench.mark(3, holder("h1", 3));
    bench.report({ kind: "fenced", volume, epoch: 2 });
    bench.ask("h3", 4, 4);
    bench.restart();
    assert.deepEqual(leaseOf(bench), { epoch: 3, fencing: false }, name);
  }
  // What the Storage Manager fenced is taken by nobody without evidence.
  const freed = new Bench(true, false);
  freed.ask("h2", 2, 2);
  freed.desire(manager, `lease/${volume}`, null);
  freed.report({ kind: "fenced", volume, epoch: 1 });
  freed.mark(1, holder("h1", 1));
  assert.deepEqual(freed.successor(), { epoch: 1, holder: null });
  // But by whoever had it last, which takes it from nobody.
  freed.ask("h1", 2, 2);
  assert.deepEqual(freed.successor(), { epoch: 2, holder: holder("h1", 2) });
});

test("a member's declaration counts while it is heard, and again when it is in step", () => {
  const bench = new Bench(true, false);
  bench.declare(1, "h1");
  bench.declare(2, "h1");
  bench.reach(2, false);
  bench.ask("h2", 2, 2);
  assert.deepEqual(leaseOf(bench), { epoch: 1, fencing: false });
  bench.reach(2, true);
  assert.deepEqual(leaseOf(bench), { epoch: 1, fencing: true });
  // A member that left the group and comes back is heard anew.
  const anew = new Bench(true, false);
  anew.reach(2, false);
  anew.install(["h1", "h2", "h3"], 1);
  anew.install();
  anew.declare(1, "h1");
  anew.declare(2, "h1");
  anew.ask("h2", 2, 2);
  assert.deepEqual(leaseOf(anew), { epoch: 1, fencing: true });
});

test("the holder's own host may say that it is past, and no other host alone", () => {
  const bench = new Bench(true, false);
  bench.install(["h1", "h2", "h3", "h4", "h5"]);
  bench.ask("h2", 2, 2);
  bench.vote("h4", 2);
  bench.vote("h1", 1);
  bench.vote("h1", 3);
  assert.deepEqual(leaseOf(bench), { epoch: 1, fencing: false });
  bench.vote("h1", 2);
  assert.deepEqual(leaseOf(bench), { epoch: 1, fencing: true });
  bench.desire(hostPeer("h1"), `succession/${volume}`, null);
  bench.report({ kind: "fenced", volume, epoch: 1 });
  assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) });
});

test("whoever succeeded the holder at one volume of the VM gets its others there, and nobody else does", () => {
  const other = uid("root-3");
  const key = `succession/${other}`;
  const second = (bench: Bench, name: string, epoch: number, incarnation: number): void =>
    bench.desire(hostPeer(name), key, { volume: other, epoch, holder: holder(name, incarnation) });
  const both = (incarnation = 1): Bench => {
    const bench = new Bench(true, false);
    bench.desire(manager, `volume/${other}`, { uid: other, source: { kind: "empty" }, sizeMiB: 10 });
    bench.report({ kind: "created", volume: other, sizeMiB: 10, boot: null });
    const first = { volume: other, epoch: 1, holder: holder("h1", incarnation), succession: true };
    bench.desire(manager, `lease/${other}`, first);
    bench.ask("h2", 2, 2);
    bench.vote("h3", 2);
    bench.report({ kind: "fenced", volume, epoch: 1 });
    // The former holder is heard again.
    bench.desire(hostPeer("h3"), `succession/${volume}`, null);
    bench.restart();
    bench.install();
    return bench;
  };
  const bench = both();
  second(bench, "evil", 2, 2);
  second(bench, "h3", 2, 2);
  assert.deepEqual(leaseOf(bench, other), { epoch: 1, fencing: false });
  bench.desire(hostPeer("h3"), key, null);
  second(bench, "h2", 2, 2);
  assert.deepEqual(leaseOf(bench, other), { epoch: 1, fencing: true });
  // Another incarnation than the one that counted as lost lives.
  const later = both(2);
  second(later, "h2", 2, 3);
  assert.deepEqual(leaseOf(later, other), { epoch: 1, fencing: false });
});

test("leases as the previous version kept them are read, and counted as fenced without evidence", () => {
  const bench = new Bench(true, false);
  const last = holder("h1", 1);
  bench.records.set(`lease/${volume}`, {
    epoch: 1,
    holder: null,
    last,
    access: null,
    confirmed: false,
    fencing: false,
  });
  bench.restart();
  bench.install();
  bench.ask("h2", 2, 2);
  assert.deepEqual(bench.successor(), { epoch: 1, holder: null });
  bench.vote("h3", 2);
  assert.deepEqual(bench.successor(), { epoch: 2, holder: holder("h2", 2) });
});

const leaseOf = (bench: Bench, of = volume): { readonly epoch: number; readonly fencing: boolean } => {
  const { epoch, fencing } = bench.records.get(`lease/${of}`) as { epoch: number; fencing: boolean };
  return { epoch, fencing };
};

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
