import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ipv4, peerName, serverName, type Uid, uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { AgentLeaseActual, AgentReadersActual, AgentVolumeActual } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { createAgentService } from "./agent.ts";
import type { AgentState } from "./records.ts";
import { heldBackReason } from "./reserve.ts";
import type { AgentReport, LeaseRecord, VolumeWork, WorkAnswer } from "./work.ts";

const manager = peerName("storage-manager");
const options = { address: ipv4("10.0.2.1"), firstPort: 20000 };
const service = createAgentService({ ...options, server: serverName("s1") });
const v1 = uid("shop-1");
const holder = (n: number): Json => ({ vm: `vm-${n}`, incarnation: n, host: `h${n}` });

/** The service over durable maps, with restarts at will, and an executor's view of the wanted work. */
class Bench {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, Json>();
  readonly actual = new Map<string, Json>();
  state: AgentState;
  #requests = 0;
  /** Called with every durable write. */
  onWrite: (key: string, value: Json) => void = () => undefined;

  constructor() {
    this.state = service.restore({ records: new Map(), desiredAt: new Map() });
    this.input({ kind: "start" });
  }
  input(input: Input): Json | undefined {
    const step = service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = step.state;
    let response: Json | undefined;
    for (const effect of step.effects) {
      if (effect.kind === "write") {
        this.onWrite(effect.key, effect.value);
        if (effect.value === null) this.records.delete(effect.key);
        else this.records.set(effect.key, structuredClone(effect.value));
      }
      if (effect.kind === "publish") {
        if (effect.value === null) this.actual.delete(effect.key);
        else this.actual.set(effect.key, effect.value);
      }
      if (effect.kind === "reply" && effect.id === this.#requests) response = effect.response;
    }
    return response;
  }
  desire(key: string, value: Json): void {
    if (value === null) this.desired.delete(key);
    else this.desired.set(key, value);
    this.input({ kind: "desired", from: manager, key, value });
  }
  report(report: AgentReport): Json | undefined {
    this.#requests += 1;
    return this.input({ kind: "request", id: this.#requests, request: report as unknown as Json });
  }
  work(): readonly VolumeWork[] {
    return (this.report({ kind: "work", known: 0 }) as unknown as WorkAnswer).work;
  }
  /** Only what is durable comes back. */
  restart(): void {
    this.actual.clear();
    this.state = service.restore({ records: structuredClone(this.records), desiredAt: new Map() });
    for (const [key, value] of this.desired) this.input({ kind: "desired", from: manager, key, value });
    this.input({ kind: "start" });
  }
  lease = (): AgentLeaseActual => this.actual.get(`lease/${v1}`) as unknown as AgentLeaseActual;
  volume = (): AgentVolumeActual => this.actual.get(`volume/${v1}`) as unknown as AgentVolumeActual;
  readers = (): AgentReadersActual => this.actual.get(`readers/${v1}`) as unknown as AgentReadersActual;
  make(): void {
    this.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB: 10 });
    this.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  }
  ask = (epoch: number, who: Json): void => this.desire(`lease/${v1}`, { volume: v1, epoch, holder: who });
  export(epoch: number, name = `name-${epoch}`): void {
    this.report({ kind: "prepared", volume: v1, epoch, exportName: name, pskIdentity: "i", pskHex: "00" });
    this.report({ kind: "exported", volume: v1, epoch, exportName: name, sizeMiB: 10 });
  }
}

test("a cell that uses more than its share is held back when the reserve is reached, and goes on where it was", () => {
  const bench = new Bench();
  const about = (cell: string) => ({ about: { cell, path: `${cell}/disk`, origin: null } });
  const make = (id: string, cell: string): void => {
    bench.desire(`volume/${id}`, { uid: id, source: { kind: "empty" }, sizeMiB: 10, ...about(cell) });
    bench.report({ kind: "created", volume: uid(id), sizeMiB: 10, boot: null });
    bench.desire(`lease/${id}`, { volume: id, epoch: 1, holder: holder(1) });
    const access = { exportName: `name-${id}`, pskIdentity: "i", pskHex: "00" };
    bench.report({ kind: "prepared", volume: uid(id), epoch: 1, ...access });
    bench.report({ kind: "exported", volume: uid(id), epoch: 1, exportName: access.exportName, sizeMiB: 10 });
  };
  const cells = ["shop", "other", "root"];
  for (const cell of cells) make(`${cell}-1`, cell);
  const measure = (freeMiB: number, used: readonly number[]): void => {
    bench.report({ kind: "server", totalMiB: 100_000, freeMiB });
    const volumes = cells.map((cell, at) => ({ volume: uid(`${cell}-1`), usedMiB: used[at] ?? 0 }));
    bench.report({ kind: "usage", volumes });
  };
  const exported = (): readonly string[] =>
    bench.work().flatMap(({ volume, export: wanted }) => (wanted === null ? [] : [volume]));
  const lease = (cell: string) => bench.actual.get(`lease/${cell}-1`) as unknown as AgentLeaseActual;
  measure(40_000, [50_000, 9000, 1000]);
  assert.deepEqual(exported(), ["shop-1", "other-1", "root-1"], "there is room");
  const before = lease("shop").layer;
  measure(4999, [85_000, 9001, 1000]);
  assert.deepEqual(exported(), ["other-1", "root-1"]);
  assert.equal(lease("shop").phase, "waiting");
  assert.match(
    lease("shop").reason ?? "",
    /s1 has 4999 MiB left, of which it keeps 5000 MiB for others than cell shop/,
  );
  assert.equal(lease("shop").epoch, 1);
  assert.deepEqual(lease("shop").holder, holder(1), "its lease is nobody else's");
  measure(6000, [84_000, 9000, 1000]);
  assert.deepEqual(exported(), ["other-1", "root-1"], "not by turns");
  measure(10_000, [80_000, 9000, 1000]);
  assert.deepEqual(new Set(exported()), new Set(["shop-1", "other-1", "root-1"]));
  assert.deepEqual(lease("shop").layer, before, "under the same name and key");
  measure(100, [9000, 9000, 80_000]);
  assert.deepEqual(exported().length, 3, "the root cell is never held back");
  bench.desire("lease/shop-1", { volume: "shop-1", epoch: 2, holder: null });
  assert.deepEqual(bench.work().find(({ volume }) => volume === "shop-1")?.fence, { epoch: 1 });
});

test("a tenant's child cells share its own part of a server, and make nobody else's smaller", () => {
  const bench = new Bench();
  const make = (id: string, cell: string, usedMiB: number): { volume: Uid; usedMiB: number } => {
    const about = { about: { cell, path: `${cell}/disk`, origin: null } };
    bench.desire(`volume/${id}`, { uid: id, source: { kind: "empty" }, sizeMiB: 10, ...about });
    bench.report({ kind: "created", volume: uid(id), sizeMiB: 10, boot: null });
    return { volume: uid(id), usedMiB };
  };
  const waiting = (volume: string): string | null => heldBackReason(bench.state, uid(volume));
  const children = Array.from({ length: 200 }, (_, at) => make(`c${at}-1`, `c${at}.a.shop`, 300));
  const volumes = [make("shop-1", "shop", 1000), ...children, make("other-1", "other", 30_000)];
  bench.report({ kind: "server", totalMiB: 100_000, freeMiB: 4000 });
  bench.report({ kind: "usage", volumes });
  assert.equal(waiting("other-1"), null, "less than its half");
  assert.match(waiting("shop-1") ?? "", /for others than cell shop/);
  assert.match(waiting("c7-1") ?? "", /for others than cell shop with the cells below it/);
});

test("a volume is created, granted, fenced and granted again, in this order and no other", () => {
  const bench = new Bench();
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "overlay" }, sizeMiB: 10 });
  assert.equal(bench.volume().phase, "working");
  bench.ask(1, holder(1));
  assert.equal(bench.lease().phase, "waiting");
  bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  assert.equal(bench.volume().phase, "ready");
  bench.export(1);
  assert.equal(bench.lease().phase, "ready");
  assert.equal(bench.lease().layer?.port, 20000);

  bench.ask(3, holder(3));
  assert.equal(bench.lease().epoch, 1);
  assert.match(bench.lease().reason ?? "", /a later epoch of volume shop-1 is known than it has/);
  bench.ask(2, holder(2));
  assert.deepEqual(bench.work()[0]?.fence, { epoch: 1 });
  assert.equal(bench.lease().layer, null);
  bench.restart();
  assert.deepEqual(bench.work()[0]?.fence, { epoch: 1 });
  bench.report({ kind: "fenced", volume: v1, epoch: 1 });
  assert.equal(bench.work()[0]?.export?.epoch, 2);
  assert.equal(bench.work()[0]?.export?.access, null);
});

test("a tombstone of a lease fences and keeps the epoch; the volume goes after that", () => {
  const bench = new Bench();
  bench.make();
  bench.ask(1, holder(1));
  bench.export(1);
  bench.desire(`volume/${v1}`, null);
  assert.match(bench.volume().reason ?? "", /lease of epoch 1/);
  assert.equal(bench.work()[0]?.file, null);
  bench.desire(`lease/${v1}`, null);
  assert.equal(bench.work()[0]?.file, null);
  bench.report({ kind: "fenced", volume: v1, epoch: 1 });
  assert.deepEqual(bench.work()[0]?.file, {
    action: "remove",
    label: { about: null, manager, overlay: false },
  });
  bench.report({ kind: "removed", volume: v1, file: null });
  assert.equal(bench.actual.size, 0);
  assert.equal(bench.work().length, 0);
  bench.make();
  bench.ask(1, holder(2));
  assert.equal(bench.lease().epoch, 1);
  assert.equal(bench.lease().holder, null);
});

test("a file grows while nobody has it open; a host that has it exported does it itself, and is believed up to what was asked", () => {
  const bench = new Bench();
  bench.make();
  const want = (sizeMiB: number) => bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB });
  want(20);
  assert.deepEqual(
    bench.work().map(({ file }) => file),
    [{ action: "grow", sizeMiB: 20 }],
  );
  assert.equal(bench.volume().sizeMiB, 10);
  bench.report({ kind: "failed", volume: v1, about: "file", reason: "no space left", portTaken: false });
  assert.deepEqual([bench.volume().phase, bench.volume().reason], ["ready", "no space left"]);
  bench.report({ kind: "grown", volume: v1, sizeMiB: 20, roomMiB: 90 });
  assert.deepEqual(bench.work(), []);
  assert.deepEqual([bench.volume().sizeMiB, bench.volume().roomMiB, bench.volume().reason], [20, 90, null]);
  bench.ask(1, holder(1));
  bench.export(1);
  bench.report({ kind: "exported", volume: v1, epoch: 1, exportName: "name-1", sizeMiB: 20, roomMiB: 90 });
  want(30);
  const [during] = bench.work();
  assert.deepEqual([during?.file, during?.export?.growsToMiB], [null, 30], "its file is the host's");
  bench.restart();
  bench.report({ kind: "grown", volume: v1, sizeMiB: 9000, roomMiB: 90 });
  assert.equal(bench.volume().sizeMiB, 30);
  assert.equal(bench.work()[0]?.export?.growsToMiB, undefined);
  want(40);
  bench.ask(2, null);
  assert.equal(bench.work()[0]?.file, null, "before the fence is confirmed it is still the host's");
  bench.report({ kind: "fenced", volume: v1, epoch: 1 });
  assert.deepEqual(bench.work()[0]?.file, { action: "grow", sizeMiB: 40 });
  bench.desire(`readers/${v1}`, { volume: v1 });
  assert.equal(bench.work()[0]?.file, null, "an origin never changes");
});

test("a size that a host has written into its file is no size of the volume, also at the next export of it", () => {
  const bench = new Bench();
  bench.make();
  bench.ask(1, holder(1));
  bench.export(1);
  const said = (epoch: number, sizeMiB: number) =>
    bench.report({ kind: "exported", volume: v1, epoch, exportName: `name-${epoch}`, sizeMiB, roomMiB: 90 });
  bench.ask(2, holder(2));
  bench.report({ kind: "fenced", volume: v1, epoch: 1 });
  bench.export(2);
  said(2, 900_000);
  assert.equal(bench.volume().sizeMiB, 10);
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB: 20 });
  said(2, 20);
  assert.equal(bench.volume().sizeMiB, 20);
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB: 10 });
  said(2, 20);
  assert.equal(bench.volume().sizeMiB, 20, "whoever asks knows less of it than this server");
});

test("an origin waits for the fence and is never leased again", () => {
  const bench = new Bench();
  bench.make();
  bench.ask(1, holder(1));
  bench.export(1);
  bench.desire(`readers/${v1}`, { volume: v1 });
  assert.equal(bench.readers().phase, "waiting");
  bench.ask(2, null);
  bench.report({ kind: "fenced", volume: v1, epoch: 1 });
  assert.equal(bench.lease().phase, "ready");
  assert.equal(bench.lease().epoch, 2);
  bench.export(0);
  assert.equal(bench.readers().phase, "ready");
  assert.equal(bench.readers().layer?.writable, false);
  bench.ask(3, holder(3));
  assert.equal(bench.lease().phase, "failed");
  bench.desire(`readers/${v1}`, null);
  bench.report({ kind: "fenced", volume: v1, epoch: 0 });
  bench.restart();
  bench.ask(3, holder(4));
  assert.match(bench.lease().reason ?? "", /immutable origin/);
});

test("volume before readers, either order: the file is removed only after its readers are cut off", () => {
  const bench = new Bench();
  bench.make();
  bench.desire(`readers/${v1}`, { volume: v1 });
  bench.export(0);
  bench.desire(`volume/${v1}`, null);
  bench.desire(`readers/${v1}`, null);
  assert.equal(bench.work()[0]?.file, null);
  assert.deepEqual(bench.work()[0]?.fence, { epoch: 0 });
  bench.report({ kind: "fenced", volume: v1, epoch: 0 });
  assert.deepEqual(bench.work()[0]?.file, {
    action: "remove",
    label: { about: null, manager, overlay: false },
  });
});

test("ports are the lowest free ones, and another is taken while nobody knows of it", () => {
  const bench = new Bench();
  bench.make();
  bench.ask(1, holder(1));
  bench.report({ kind: "prepared", volume: v1, epoch: 1, exportName: "n", pskIdentity: "i", pskHex: "00" });
  const failed = {
    kind: "failed",
    volume: v1,
    about: "export",
    reason: "port 20000 is in use",
    portTaken: true,
  } as const;
  bench.report(failed);
  assert.equal(bench.work()[0]?.export?.access?.port, 20001);
  bench.report({ kind: "exported", volume: v1, epoch: 1, exportName: "n", sizeMiB: 10 });
  bench.report(failed);
  assert.equal(bench.work()[0]?.export?.access?.port, 20001);
  assert.equal(bench.lease().phase, "waiting");
  assert.equal(bench.lease().reason, "port 20000 is in use");
});

test("a volume that was made once is not made again where its bytes are gone, and can still be deleted", () => {
  const bench = new Bench();
  const source = { kind: "overlay" };
  bench.desire(`volume/${v1}`, { uid: v1, source, sizeMiB: 10, made: true });
  assert.equal(bench.volume().phase, "failed");
  assert.match(bench.volume().reason ?? "", /storage server s1 has lost it.*mounted/);
  assert.deepEqual(bench.work(), []);
  bench.ask(7, holder(1));
  assert.equal(bench.lease().phase, "failed");
  assert.deepEqual(bench.work(), []);
  bench.desire(`lease/${v1}`, null);
  bench.desire(`volume/${v1}`, null);
  assert.equal(bench.actual.size, 0);
  bench.make();
  bench.desire(`volume/${v1}`, { uid: v1, source, sizeMiB: 10, made: true });
  assert.equal(bench.volume().phase, "ready", "the word changes nothing where it is");
});

test("what the disk refuses is waited out, with the reason", () => {
  const bench = new Bench();
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB: 10 });
  bench.report({ kind: "failed", volume: v1, about: "file", reason: "s1 has no space left", portTaken: false });
  assert.deepEqual([bench.volume().phase, bench.volume().reason], ["waiting", "s1 has no space left"]);
  bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  assert.deepEqual([bench.volume().phase, bench.volume().reason], ["ready", null]);
});

test("of a volume whose image is damaged that is said, until its file is made or something else fails", () => {
  const bench = new Bench();
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "image", image: "late" }, sizeMiB: 10 });
  const failed = { kind: "failed", volume: v1, about: "file", portTaken: false } as const;
  const reason = 'the disk of image "late" is damaged';
  const says = (): unknown => [bench.volume().phase, bench.volume().reason, bench.volume().badImage];
  bench.report({ ...failed, reason, badImage: true });
  assert.deepEqual(says(), ["waiting", reason, true]);
  bench.report({ ...failed, reason: "s1 has no space left" });
  assert.deepEqual(says(), ["waiting", "s1 has no space left", undefined]);
  bench.report({ ...failed, reason, badImage: true });
  bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  assert.deepEqual(says(), ["ready", null, undefined]);
});

test("only the Storage Manager is heard and told; nonsense is refused without harm", () => {
  const bench = new Bench();
  assert.equal(service.accepts(peerName("controller.shop"), `lease/${v1}`), false);
  assert.equal(service.accepts(manager, `lease/${v1}`), true);
  assert.equal(service.accepts(manager, "lease/../x"), false);
  assert.equal(service.entitled(bench.state, peerName("host.h1"), `lease/${v1}`), false);
  assert.equal(service.entitled(bench.state, manager, "image/tiny"), true);
  bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "image", image: "../../etc" }, sizeMiB: 1 });
  bench.desire(`lease/${v1}`, { volume: v1, epoch: -1, holder: null });
  assert.equal(bench.actual.size, 0);
});

type Action =
  | { readonly kind: "ask"; readonly offset: number; readonly who: number | null }
  | { readonly kind: "tombstone" | "volume" | "volume-gone" | "readers" | "readers-gone" | "executor" | "restart" }
  | { readonly kind: "stale-fence"; readonly epoch: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant("ask" as const),
    offset: fc.integer({ min: -2, max: 3 }),
    who: fc.option(fc.integer({ min: 1, max: 4 })),
  }),
  { weight: 3, arbitrary: fc.constant({ kind: "executor" as const }) },
  fc.record({ kind: fc.constant("stale-fence" as const), epoch: fc.integer({ min: 0, max: 5 }) }),
  fc
    .constantFrom("tombstone", "volume", "volume-gone", "readers", "readers-gone", "restart")
    .map((kind) => ({ kind }) as Action),
);

/** An executor reduced to which exports exist, one part of the wanted work at a time. */
function executeOne(bench: Bench, live: Set<number>): void {
  const work = bench.work()[0];
  if (work === undefined) return;
  if (work.fence !== null) {
    for (const epoch of live) if (epoch <= work.fence.epoch) live.delete(epoch);
    bench.report({ kind: "fenced", volume: v1, epoch: work.fence.epoch });
  } else if (work.file?.action === "create") bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  else if (work.file?.action === "remove") bench.report({ kind: "removed", volume: v1, file: null });
  else if (work.export !== null) {
    const { epoch, access } = work.export;
    if (access !== null) live.add(epoch);
    if (access === null) {
      const exportName = `n${epoch}`;
      bench.report({ kind: "prepared", volume: v1, epoch, exportName, pskIdentity: "i", pskHex: "0" });
    } else bench.report({ kind: "exported", volume: v1, epoch, exportName: access.exportName, sizeMiB: 10 });
  }
}

test("property: one holder per epoch, epochs only grow, no grant before the fence is confirmed, across restarts", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60, size: "max" }), (actions) => {
      const bench = new Bench();
      bench.make();
      const live = new Set<number>();
      const holders = new Map<number, string>();
      let epoch = 0;
      bench.onWrite = (key, value) => {
        if (key === `volume/${v1}` && value === null) assert.equal(live.size, 0, "no file goes under an export");
        if (key !== `lease/${v1}`) return;
        const record = value as unknown as LeaseRecord;
        assert.ok(record.epoch >= epoch, `epoch ${record.epoch} after ${epoch}`);
        if (record.epoch > epoch) {
          assert.equal(record.epoch, epoch + 1);
          assert.ok(![...live].some((other) => other > 0), "granted while an older export lives");
        }
        epoch = record.epoch;
        if (record.holder === null) return;
        const text = JSON.stringify(record.holder);
        assert.equal(holders.get(epoch) ?? text, text, "a second holder in one epoch");
        if (!holders.has(epoch)) assert.ok(!bench.records.has(`readers/${v1}`), "an origin was leased");
        holders.set(epoch, text);
      };
      for (const next of actions) {
        apply(bench, live, next, epoch);
        assert.ok(live.size <= 1, "two exports of one volume");
      }
    }),
    { numRuns: 2000 },
  );
});

function apply(bench: Bench, live: Set<number>, next: Action, epoch: number) {
  switch (next.kind) {
    case "ask":
      return bench.ask(epoch + next.offset, next.who === null ? null : holder(next.who));
    case "tombstone":
      return bench.desire(`lease/${v1}`, null);
    case "volume":
      return bench.desire(`volume/${v1}`, { uid: v1, source: { kind: "empty" }, sizeMiB: 10 });
    case "volume-gone":
      return bench.desire(`volume/${v1}`, null);
    case "readers":
      return bench.desire(`readers/${v1}`, { volume: v1 });
    case "readers-gone":
      return bench.desire(`readers/${v1}`, null);
    case "executor":
      return executeOne(bench, live);
    case "restart":
      return bench.restart();
    case "stale-fence": {
      // Late words about another epoch than the one being fenced.
      const lease = bench.records.get(`lease/${v1}`) as unknown as LeaseRecord | undefined;
      const origin = bench.records.get(`readers/${v1}`) as { readonly fencing: boolean } | undefined;
      const isFenced = (next.epoch === 0 && origin?.fencing) || (lease?.fencing && lease.epoch === next.epoch);
      if (!isFenced && bench.work()[0]?.fence?.epoch !== next.epoch)
        bench.report({ kind: "fenced", volume: v1 as Uid, epoch: next.epoch });
    }
  }
}
