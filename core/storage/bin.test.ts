import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellName, elementPath, ipv4, peerName, serverName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { isBinFileName } from "../documents/bin.ts";
import type { AgentVolumeActual } from "../documents/vocabulary.ts";
import type { Effect } from "../env.ts";
import { createAgentService } from "./agent/agent.ts";
import type { AgentReport, BinAnswer, VolumeWork, WorkAnswer } from "./agent/work.ts";
import { type BinFile, binRules, mayBeEmptied, mostBinFiles, whatGoes } from "./bin.ts";
import { copyOf, StorageWorld, volume } from "./manager/manager.testing.ts";

const hourMs = 60 * 60_000;
const about = (path: string, origin: string | null = null) => ({
  cell: cellName("shop"),
  path: elementPath(path),
  origin: origin === null ? null : uid(origin),
});
const binned = (volume: string, ageHours: number, more: Partial<BinFile> = {}): BinFile => ({
  file: `${volume}.1`,
  volume: uid(volume),
  about: about(`shop/${volume}`),
  overlay: false,
  manager: peerName("storage-manager"),
  sizeMiB: 100,
  usedMiB: 10,
  deleted: "2026-01-01T00:00:00.000Z",
  ageMs: ageHours * hourMs,
  offered: false,
  ...more,
});
const copy = (volume: string, origin: string, ageHours: number): BinFile =>
  binned(volume, ageHours, { overlay: true, about: about(`shop/${volume}`, origin) });
const rules = { keepMs: 168 * hourMs, reserveMiB: 1000 };
const gone = (files: readonly BinFile[], freeMiB: number | null, needed: readonly Uid[] = []): readonly string[] =>
  whatGoes(files, rules, freeMiB, new Set(needed)).map(({ file }) => file.volume);

test("a file goes after its time, and before that only where the server runs short of room, oldest first", () => {
  const files = [binned("a-1", 1), binned("a-2", 200), binned("a-3", 100)];
  assert.deepEqual(gone(files, 5000), ["a-2"]);
  assert.deepEqual(gone(files, null), ["a-2"]);
  // Ten of each make up for fifteen that are short.
  assert.deepEqual(gone(files, 985), ["a-2", "a-3"]);
  assert.match(whatGoes(files, rules, 985, new Set())[1]?.why ?? "", /995 MiB free, less than the 1000 MiB/);
  assert.deepEqual(gone(files, 0), ["a-2", "a-3", "a-1"]);
  // What takes no room makes none.
  assert.deepEqual(gone([binned("a-4", 1, { usedMiB: 0 })], 0), []);
  assert.deepEqual(binRules({}, 2000), { keepMs: 168 * hourMs, reserveMiB: 100 });
  assert.equal(binRules({}, 10_000_000).reserveMiB, 16_384);
  assert.deepEqual(binRules({ keepHours: 1, reserveMiB: 5 }, 1), { keepMs: hourMs, reserveMiB: 5 });
});

test("a bin holds so many files, and of more the oldest goes", () => {
  const files = Array.from({ length: mostBinFiles + 1 }, (_, at) => binned(`a-${at}`, at / mostBinFiles));
  assert.deepEqual(gone(files.slice(1), 5000), []);
  assert.deepEqual(gone(files, 5000), [`a-${mostBinFiles}`]);
});

test("an origin goes after the copies of it, in the bin or among the volumes", () => {
  const origin = binned("a-1", 300);
  assert.deepEqual(gone([origin, copy("a-2", "a-1", 1)], 5000), []);
  assert.deepEqual(gone([origin, copy("a-2", "a-1", 200)], 5000), ["a-2", "a-1"]);
  assert.deepEqual(gone([origin], 5000, [uid("a-1")]), []);
  assert.deepEqual(gone([origin, copy("a-2", "a-1", 200), copy("a-3", "a-2", 1)], 5000), []);
  const all = new Map([origin, copy("a-2", "a-1", 1)].map((file) => [file.file, file]));
  assert.match(mayBeEmptied(all, ["a-1.1"], new Set()).kept[0]?.why ?? "", /a-2\.1 in the bin is a copy of it/);
  assert.deepEqual(mayBeEmptied(all, ["a-1.1", "a-2.1"], new Set()).empty, ["a-1.1", "a-2.1"]);
  assert.match(mayBeEmptied(all, ["a-2.1"], new Set([uid("a-2")])).kept[0]?.why ?? "", /still there/);
  assert.match(mayBeEmptied(all, ["b-1.1"], new Set()).kept[0]?.why ?? "", /no such file/);
});

test("whatever goes, no copy is ever left without its origin", () => {
  const file = fc.record({ id: fc.nat(6), origin: fc.option(fc.nat(6)), age: fc.nat(400), usedMiB: fc.nat(200) });
  fc.assert(
    fc.property(fc.uniqueArray(file, { selector: ({ id }) => id }), fc.nat(2000), (drawn, freeMiB) => {
      // Nothing is a copy of what came later.
      const files = drawn.map(({ id, origin, age, usedMiB }) =>
        origin === null || origin >= id
          ? binned(`a-${id}`, age, { usedMiB })
          : { ...copy(`a-${id}`, `a-${origin}`, age), usedMiB },
      );
      const left = new Set(files.map(({ volume }) => volume));
      const before = new Set(left);
      for (const volume of gone(files, freeMiB)) left.delete(uid(volume));
      for (const { volume, overlay, about } of files)
        if (left.has(volume) && overlay && about?.origin && before.has(about.origin)) assert.ok(left.has(about.origin));
    }),
  );
});

test("a name in the bin is a UID and a number, and no path", () => {
  assert.ok(isBinFileName("ab-1.12"));
  for (const name of ["ab-1", "../ab.1", "ab-1.0", ".1", "a/b.1", "", null, 1]) assert.ok(!isBinFileName(name));
});

// --- the agent ---------------------------------------------------------------------------------------------------

const manager = peerName("storage-manager");
const service = createAgentService({ server: serverName("s1"), address: ipv4("10.0.2.1"), firstPort: 20000 });
const v1 = uid("shop-1");

class Bench {
  readonly actual = new Map<string, Json>();
  readonly logs: Effect[] = [];
  state = service.restore({ records: new Map(), desiredAt: new Map() });
  constructor() {
    this.input({ kind: "start" });
    this.report({ kind: "server", totalMiB: 100_000, freeMiB: 50_000 });
  }
  input(input: Parameters<typeof service.step>[1]): Json {
    const step = service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = step.state;
    let response: Json = null;
    for (const effect of step.effects) {
      if (effect.kind === "publish" && effect.value === null) this.actual.delete(effect.key);
      else if (effect.kind === "publish") this.actual.set(effect.key, effect.value);
      else if (effect.kind === "reply") response = effect.response;
      else if (effect.kind === "log") this.logs.push(effect);
    }
    return response;
  }
  report = (report: AgentReport): Json => this.input({ kind: "request", id: 1, request: report as unknown as Json });
  bin = (...files: readonly BinFile[]): BinAnswer => this.report({ kind: "bin", files }) as unknown as BinAnswer;
  desire = (key: string, value: Json): Json => this.input({ kind: "desired", from: manager, key, value });
  want = (more: { readonly [key: string]: Json } = {}): Json =>
    this.desire(`volume/${v1}`, {
      uid: v1,
      source: { kind: "empty" },
      sizeMiB: 10,
      about: about("shop/data") as unknown as Json,
      ...more,
    });
  work = (): readonly VolumeWork[] => (this.report({ kind: "work", known: 0 }) as unknown as WorkAnswer).work;
  volume = () => this.actual.get(`volume/${v1}`) as unknown as AgentVolumeActual | undefined;
}

test("a volume that is taken back goes to the bin with what it was, and the bin is told", () => {
  const bench = new Bench();
  bench.bin();
  bench.want();
  bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  bench.desire(`volume/${v1}`, null);
  assert.deepEqual(bench.work()[0]?.file, {
    action: "remove",
    label: { about: about("shop/data"), manager, overlay: false },
  });
  bench.report({ kind: "removed", volume: v1, file: binned(v1, 0, { about: about("shop/data") }) });
  assert.equal(bench.volume(), undefined);
  const told = bench.actual.get(`bin/${v1}.1`) as { readonly about: Json; readonly [key: string]: Json };
  assert.deepEqual(told.about, about("shop/data"));
  assert.ok(!("ageMs" in told) && !("manager" in told));
  assert.equal((bench.actual.get("server") as { readonly binMiB: number }).binMiB, 10);
  assert.ok(service.entitled(bench.state, manager, `bin/${v1}.1`));
  assert.ok(!service.entitled(bench.state, peerName("storage-manager.2"), `bin/${v1}.1`));
  assert.ok(!service.entitled(bench.state, peerName("host.h1"), `bin/${v1}.1`));
});

test("a UID that comes back while its file is in the bin gets no blank file", () => {
  const bench = new Bench();
  bench.bin(binned(v1, 1));
  bench.want();
  assert.deepEqual(bench.work(), []);
  assert.equal(bench.volume()?.phase, "waiting");
  assert.match(bench.volume()?.reason ?? "", /cells bin restore s1\/shop-1\.1/);
  bench.bin();
  assert.equal(bench.work()[0]?.file?.action, "create");
});

test("what nobody was ever able to write goes to the bin as that, and is made anew beside it", () => {
  for (const end of ["untouched", "leased", "found"] as const) {
    const bench = new Bench();
    bench.bin();
    bench.want();
    const fresh = end === "found" ? {} : ({ fresh: true } as const);
    bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null, ...fresh });
    const lease = { volume: v1, holder: { vm: "vm-1", incarnation: 1, host: "h1" }, epoch: 1 };
    if (end === "leased") {
      bench.desire(`lease/${v1}`, lease);
      bench.desire(`lease/${v1}`, null);
      bench.report({ kind: "fenced", volume: v1, epoch: 1 });
    }
    bench.desire(`volume/${v1}`, null);
    const removal = bench.work()[0]?.file ?? assert.fail(end);
    const label = removal.action === "remove" ? removal.label : assert.fail(`${end}: ${removal.action}`);
    assert.equal(label.untouched === true, end === "untouched", end);
    bench.report({ kind: "removed", volume: v1, file: binned(v1, 0, label) });
    bench.want();
    assert.equal(bench.work()[0]?.file?.action, end === "untouched" ? "create" : undefined, end);
  }
});

test("a volume begins with the file that was brought back, or not at all", () => {
  const bench = new Bench();
  bench.bin(binned("shop-9", 1));
  bench.want({ from: "shop-9.1" });
  assert.deepEqual(bench.work()[0]?.file, {
    action: "create",
    source: { kind: "empty" },
    sizeMiB: 10,
    from: "shop-9.1",
  });
  const other = new Bench();
  other.bin();
  other.want({ from: "shop-9.1" });
  assert.deepEqual(other.work(), []);
  assert.match(other.volume()?.reason ?? "", /not in the bin of storage server s1 any more/);
});

test("an agent empties what is due, keeps the origin of a copy that it has, and says so", () => {
  const bench = new Bench();
  bench.bin();
  bench.want({ source: { kind: "overlay" }, about: about("shop/data", "shop-7") as unknown as Json });
  bench.report({ kind: "created", volume: v1, sizeMiB: 10, boot: null });
  const answer = bench.bin(binned("shop-7", 1000), binned("shop-8", 1000), binned("shop-9", 1));
  assert.deepEqual(answer.empty, ["shop-8.1"]);
  const asked = bench.report({ kind: "empty-bin", files: ["shop-7.1", "shop-9.1"] }) as unknown as BinAnswer;
  assert.deepEqual(asked.empty, ["shop-9.1"]);
  assert.deepEqual(
    bench.logs.flatMap((effect) => (effect.kind === "log" && effect.event.startsWith("bin/") ? [effect.event] : [])),
    ["bin/emptied", "bin/emptied", "bin/kept"],
  );
});

// --- the Storage Manager -----------------------------------------------------------------------------------------

const inBin = (world: StorageWorld, server: string, volume: string, more: Partial<BinFile>): void => {
  const { ageMs: _age, manager: _manager, ...told } = binned(volume, 1, more);
  world.say(world.agent(server), `bin/${told.file}`, told as unknown as Json);
};

test("no server gets a blank file of a UID whose former file is in the bin of another", () => {
  const world = new StorageWorld({ s1: { freeMiB: 100 }, s2: { freeMiB: 9000 } });
  inBin(world, "s1", "a-1", {});
  world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
  world.settle();
  assert.equal(world.volume("a-1")?.server, null);
  assert.match(world.volume("a-1")?.reason ?? "", /cells bin empty s1\/a-1\.1/);
  world.say(world.agent("s1"), "bin/a-1.1", null);
  world.settle();
  assert.equal(world.volume("a-1")?.server, "s2");
});

test("what nobody has written is made anew, unless a copy that somebody wrote would be read above it", () => {
  const untouched = { untouched: true } as const;
  const origin = { overlay: true, about: about("shop/a-2", "a-1") };
  const cases: readonly (readonly [Partial<BinFile>, Partial<BinFile> | null, boolean])[] = [
    [untouched, null, true],
    [untouched, { ...origin, ...untouched }, true],
    [untouched, origin, false],
    [{ ...untouched, offered: true }, null, true],
    [{}, null, false],
  ];
  for (const [file, other, isMade] of cases) {
    const world = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 9000 } });
    inBin(world, "s1", "a-1", file);
    if (other !== null) inBin(world, "s2", "a-2", other);
    world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
    world.settle();
    assert.equal(world.volume("a-1")?.phase === "ready", isMade, JSON.stringify([file, other]));
  }
});

test("what is brought back begins the next volume of its cell and path, where it lies, and no other", () => {
  const world = new StorageWorld({ s1: { freeMiB: 100 }, s2: { freeMiB: 9000 } });
  inBin(world, "s1", "a-1", { about: about("shop/a-2"), offered: true });
  world.want("volume/a-3", volume("a-3", { kind: "empty" }, 10));
  world.want("volume/a-2", volume("a-2", { kind: "empty" }, 10));
  const asked = world.desiredAt.get(peerName("agent.s1"))?.get("volume/a-2") as { readonly from?: string };
  assert.equal(asked.from, "a-1.1");
  world.settle();
  assert.deepEqual([world.volume("a-2")?.server, world.volume("a-2")?.sizeMiB], ["s1", 100]);
  assert.equal(world.volume("a-3")?.server, "s2");
  // Once it is there, nobody is told again where it came from.
  const made = world.desiredAt.get(peerName("agent.s1"))?.get("volume/a-2") as { readonly [key: string]: Json };
  assert.deepEqual([made.from, made.made], [undefined, true]);
});

test("a copy comes back as a copy of its origin, which may have come back itself", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000 } });
  inBin(world, "s1", "a-1", { about: about("shop/b-1"), offered: true });
  inBin(world, "s1", "a-2", { about: about("shop/b-2", "a-1"), overlay: true, offered: true });
  world.want("volume/b-2", volume("b-2", { kind: "empty" }, 10));
  assert.match(
    world.volume("b-2")?.reason ?? "",
    /is a copy of a-1: make it a copy of that, or `cells bin empty s1\/a-2.1` for it/,
  );
  world.want("volume/b-1", volume("b-1", { kind: "empty" }, 10));
  world.settle();
  world.want("volume/b-2", volume("b-2", copyOf("b-1")));
  world.settle();
  assert.equal(world.volume("b-2")?.phase, "ready");
  assert.equal((world.records.get("volume/b-2") as { readonly origin: string }).origin, "b-1");
});

test("of several files for one path none is taken before an operator says which", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000 } });
  for (const name of ["a-1", "a-2"]) inBin(world, "s1", name, { about: about("shop/b-1"), offered: true });
  world.want("volume/b-1", volume("b-1", { kind: "empty" }, 10));
  assert.match(world.volume("b-1")?.reason ?? "", /several files .* s1\/a-1\.1, s1\/a-2\.1/);
  world.say(world.agent("s1"), "bin/a-2.1", null);
  world.settle();
  assert.equal(world.volume("b-1")?.phase, "ready");
});

/** The server knows the volume from before it was deleted, and looked for its file. */
const deleted = (world: StorageWorld, server: string, id: string, about: Json = null, more: Partial<BinFile> = {}) => {
  inBin(world, server, id, more);
  const nothing = { phase: "waiting", reason: "in the bin", sizeMiB: null, usedMiB: null, boot: null };
  world.say(world.agent(server), `volume/${id}`, { ...nothing, ...(about === null ? {} : { about }) });
};

test("a volume that only a bin has is nowhere, whichever store says that it was made: an operator says what becomes of it", () => {
  for (const isKnown of [true, false]) {
    const world = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 100 } });
    const desire = () => world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
    if (isKnown) {
      desire();
      world.settle();
      assert.equal(world.volume("a-1")?.phase, "ready");
    }
    deleted(world, "s1", "a-1", about("shop/a-1") as unknown as Json);
    desire();
    assert.equal(world.volume("a-1")?.phase, "waiting");
    assert.match(world.volume("a-1")?.reason ?? "", /cells bin restore s1\/a-1\.1/);
    assert.equal(world.records.has("volume/a-1"), false);
    world.settle();
    assert.equal(world.agent("s1").desired.has("volume/a-1"), false, "the server forgets it, too");
    assert.equal(world.volume("a-1")?.phase, "waiting");
    inBin(world, "s1", "a-1", { offered: true });
    const asked = world.desiredAt.get(peerName("agent.s1"))?.get("volume/a-1") as { readonly from?: string };
    assert.equal(asked.from, "a-1.1");
    world.settle();
    world.say(world.agent("s1"), "bin/a-1.1", null);
    assert.equal(world.volume("a-1")?.phase, "ready");
  }
});

test("what nobody had written is made anew as soon as its server speaks of it no more", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 100 } });
  const desire = () => world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
  desire();
  world.settle();
  deleted(world, "s1", "a-1", about("shop/a-1") as unknown as Json, { untouched: true });
  assert.match(world.volume("a-1")?.reason ?? "", /s1 has yet to forget that it was deleted/);
  world.settle();
  assert.equal(world.volume("a-1")?.phase, "ready");
});

test("what a bin alone had is made anew once that is emptied, with leases from the first epoch on", () => {
  const world = new StorageWorld({ s1: { freeMiB: 100 }, s2: { freeMiB: 9000 } });
  deleted(world, "s1", "a-1", about("shop/a-1") as unknown as Json);
  world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
  world.settle();
  world.say(world.agent("s1"), "bin/a-1.1", null);
  world.settle();
  assert.deepEqual([world.volume("a-1")?.phase, world.volume("a-1")?.server], ["ready", "s2"]);
});

test("an origin that only a bin has comes back under its copies, and is not made anew under them", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000 } });
  world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
  world.settle();
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.settle();
  assert.equal(world.volume("a-2")?.phase, "ready");
  deleted(world, "s1", "a-1", about("shop/a-1") as unknown as Json);
  assert.match(world.volume("a-1")?.reason ?? "", /cells bin restore s1\/a-1\.1/);
  world.settle();
  world.say(world.agent("s1"), "bin/a-1.1", null);
  assert.match(world.volume("a-1")?.reason ?? "", /is a copy of it, which would read something else/);
  inBin(world, "s1", "a-1", { offered: true });
  world.settle();
  assert.equal(world.volume("a-1")?.phase, "ready");
  assert.equal((world.records.get("volume/a-1") as { readonly frozen: boolean }).frozen, true, "nobody writes to it");
});

test("a copy of which only a bin has something, and which nobody desires, holds no origin", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 100 } });
  world.want("volume/a-1", volume("a-1", { kind: "empty" }, 10));
  world.settle();
  const nothing = { phase: "waiting", reason: "in the bin", sizeMiB: null, usedMiB: null, boot: null };
  const { ageMs: _age, manager: _manager, ...told } = binned("a-2", 1);
  world.agent("s2").actual.set("bin/a-2.1", told as unknown as Json);
  world.agent("s2").actual.set("volume/a-2", { ...nothing, about: about("shop/a-2", "a-1") as unknown as Json });
  world.restart();
  world.settle();
  assert.equal(world.agent("s2").actual.has("volume/a-2"), false);
  world.want("volume/a-1", null);
  world.settle();
  assert.equal(world.volume("a-1"), undefined);
});
