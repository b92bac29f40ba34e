import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, peerName, serverName, type Uid, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { AgentSeen, Mark } from "../../documents/bin.ts";
import type { AgentLeaseActual, AgentServer } from "../../documents/vocabulary.ts";
import type { BinFile } from "../bin.ts";
import { createStorageManager } from "../manager/manager.ts";
import { createAgentService } from "./agent.ts";
import type { AgentReport, WorkAnswer } from "./work.ts";

/**
 * A storage server with its Storage Manager, both with durable stores, and the mark beside the files. Each of the three can
 * be put back to what it was.
 */
const manager = peerName("storage-manager");
const self = peerName("agent.s1");
const service = createAgentService({ server: serverName("s1"), address: ipv4("10.0.2.1"), firstPort: 20000 });
const managing = createStorageManager({ self: manager, agents: [self] });
const [tenant, root] = [uid("shop-1"), uid("root-1")];
const now = { ms: 0, wallMs: 0 };
type Store = { records: Map<string, Json>; desired: Map<string, Json> };

class Server {
  store: Store = { records: new Map(), desired: new Map() };
  file: Mark | null = null;
  managerRecords = new Map<string, Json>();
  actual = new Map<string, Json>();
  #state = service.restore({ records: new Map(), desiredAt: new Map() });
  #manager = managing.restore({ records: new Map(), desiredAt: new Map() });
  #starts = 0;
  /** Whether the manager is heard. */
  heard = true;
  /** No file can be written any more; the store still can. */
  full = false;
  readonly seen: Json[] = [];
  /** How often it was said that its store counts again. */
  counted = 0;

  /** The agent starts, and the manager as well. */
  start(): void {
    this.#manager = managing.restore({ records: new Map(this.managerRecords), desiredAt: new Map() });
    this.#toManager({ kind: "start" });
    this.actual.clear();
    this.#state = service.restore({ records: structuredClone(this.store.records), desiredAt: new Map() });
    for (const [key, value] of this.store.desired) this.input({ kind: "desired", from: manager, key, value });
    this.input({ kind: "start" });
    this.#starts += 1;
    this.report({ kind: "begin", start: `start-${this.#starts}`, found: this.file });
    this.report({ kind: "server", totalMiB: 100, freeMiB: 50 });
  }
  report(report: AgentReport): JsonObject {
    return this.input({ kind: "request", id: 1, request: report as unknown as Json }) as JsonObject;
  }
  /** By an operator; every file that the store knows is there. */
  adopt(): JsonObject {
    const answer = this.report({ kind: "adopt" });
    for (const { volume, file } of this.work().work)
      if (file?.action === "find") this.report({ kind: "found", volume, sizeMiB: 10, roomMiB: 10 });
    return answer;
  }
  minute(): void {
    const { mark } = this.report({ kind: "tick", written: this.file }) as unknown as { readonly mark: Mark | null };
    if (mark !== null && !this.full) this.file = mark;
  }
  desire(key: string, value: Json): void {
    if (value === null) this.store.desired.delete(key);
    else this.store.desired.set(key, value);
    this.input({ kind: "desired", from: manager, key, value });
  }
  work = (): WorkAnswer => this.report({ kind: "work", known: 0 }) as unknown as WorkAnswer;
  lease = (volume = tenant) => this.actual.get(`lease/${volume}`) as unknown as AgentLeaseActual;

  input(input: Parameters<typeof service.step>[1]): Json {
    const step = service.step(this.#state, input, now);
    this.#state = step.state;
    let response: Json = null;
    const told: Json[] = [];
    for (const effect of step.effects) {
      if (effect.kind === "counts-again") this.counted += 1;
      if (effect.kind === "write" && effect.value === null) this.store.records.delete(effect.key);
      else if (effect.kind === "write") this.store.records.set(effect.key, structuredClone(effect.value));
      else if (effect.kind === "publish" && effect.value === null) this.actual.delete(effect.key);
      else if (effect.kind === "publish") this.actual.set(effect.key, effect.value);
      else if (effect.kind === "reply") response = effect.response;
      if (effect.kind === "publish" && effect.key === "server") told.push(effect.value);
    }
    if (this.heard) for (const value of told) this.#toManager({ kind: "actual", from: self, key: "server", value });
    return response;
  }
  #toManager(input: Parameters<typeof managing.step>[1]): void {
    const step = managing.step(this.#manager, input, now);
    this.#manager = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) this.managerRecords.delete(effect.key);
      else if (effect.kind === "write") this.managerRecords.set(effect.key, effect.value);
      else if (effect.kind === "desire" && effect.key === "seen") {
        this.seen.push(effect.value);
        this.desire("seen", effect.value);
      }
    }
  }
}

/** A tenant's volume and one of the root cell, both leased and served, after some minutes. */
const served = (): Server => {
  const server = new Server();
  server.start();
  for (const [volume, cell] of [
    [tenant, "shop"],
    [root, "root"],
  ] as const) {
    const about = { cell, path: `${cell}/data`, origin: null };
    server.desire(`volume/${volume}`, { uid: volume, source: { kind: "empty" }, sizeMiB: 10, about });
    server.report({ kind: "created", volume, sizeMiB: 10, boot: null });
    server.desire(`lease/${volume}`, { volume, epoch: 1, holder: { vm: "v-1", incarnation: 1, host: "h1" } });
    const named = { exportName: `x-${volume}`, pskIdentity: "i", pskHex: "00" };
    server.report({ kind: "prepared", volume, epoch: 1, ...named });
    server.report({ kind: "exported", volume, epoch: 1, exportName: named.exportName, sizeMiB: 10 });
  }
  for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
  return server;
};
const copyOf = (server: Server) => structuredClone({ store: server.store, file: server.file });
const exportsOf = (server: Server) =>
  Object.fromEntries(
    server.work().work.map(({ volume, export: wanted }) => [volume, wanted?.wait === true ? "waits" : "starts"]),
  );
const isHeld = (server: Server): boolean => server.work().hold === true && server.work().work.length === 0;

test("a server that starts again goes on, over restarts that nobody heard of, and over a crash between its two marks", () => {
  const server = served();
  for (const heard of [true, false, false, true]) {
    server.heard = heard;
    server.start();
    if (heard) server.minute();
  }
  assert.deepEqual(exportsOf(server), { [tenant]: "starts", [root]: "starts" });
  assert.equal(server.lease().phase, "ready");
  const { file } = server;
  server.minute();
  server.file = file;
  server.start();
  assert.ok(!isHeld(server));
});

test("a server on whose full disk no mark can be written is not older, over any number of starts", () => {
  for (const [server, start] of [
    [served(), "start-5"],
    [new Server(), "start-4"],
  ] as const) {
    server.full = true;
    for (let starts = 0; starts < 4; starts += 1) {
      server.start();
      for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
      assert.ok(!isHeld(server), `start ${starts}: ${server.lease()?.reason}`);
    }
    server.full = false;
    for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
    assert.deepEqual(server.file, { start, tick: 2 });
    const copy = copyOf(server);
    for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
    server.file = copy.file;
    server.start();
    assert.ok(isHeld(server), "and files that were put back are found as ever");
  }
});

test("a server that was adopted while its disk is full stays adopted", () => {
  const server = served();
  server.file = null;
  server.full = true;
  for (let starts = 0; starts < 3; starts += 1) {
    server.start();
    if (starts === 0) assert.ok(isHeld(server));
    if (starts === 0) server.adopt();
    assert.ok(!isHeld(server), `start ${starts}`);
    server.minute();
  }
});

test("an export that others know starts again only when its Storage Manager has answered, but for the root cell's", () => {
  const server = served();
  server.heard = false;
  server.start();
  assert.deepEqual(exportsOf(server), { [tenant]: "waits", [root]: "starts" });
  // What was said to an earlier start is no answer.
  const said = server.store.desired.get("seen") as unknown as AgentSeen;
  assert.equal(said.start, "start-1");
  server.heard = true;
  server.start();
  assert.deepEqual(exportsOf(server), { [tenant]: "starts", [root]: "starts" });
});

test("a Storage Manager of an earlier version, which says nothing, is not waited for", () => {
  const server = served();
  server.store.desired.delete("seen");
  server.heard = false;
  server.start();
  assert.deepEqual(exportsOf(server), { [tenant]: "starts", [root]: "starts" });
});

test("a Storage Manager that went back to an earlier version, or was removed, is waited for no longer", () => {
  const gone = {
    earlier: (server: Server) => server.input({ kind: "earlier", peer: manager }),
    removed: (server: Server) =>
      server.report({ kind: "installation", hosts: [], members: [], managers: [peerName("storage-manager.2")] }),
  };
  for (const [name, goes] of Object.entries(gone)) {
    const server = served();
    server.heard = false;
    server.start();
    server.report({ kind: "installation", hosts: [], members: [], managers: [] });
    assert.equal(exportsOf(server)[tenant], "waits", "a book without any Storage Manager is none yet");
    goes(server);
    assert.deepEqual(exportsOf(server), { [tenant]: "starts", [root]: "starts" }, name);
    assert.notEqual(server.report({ kind: "tick", written: server.file }).mark, null, "minutes are counted again");
    // What was seen in this start counts, whoever leaves afterwards.
    const copy = copyOf(server);
    server.heard = true;
    server.start();
    for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
    Object.assign(server, copy);
    server.start();
    assert.ok(isHeld(server));
    goes(server);
    assert.ok(isHeld(server), name);
  }
});

/** A server that is as it was three minutes before, and knows it. */
const putBack = (): Server => {
  const server = served();
  const copy = copyOf(server);
  for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
  Object.assign(server, structuredClone(copy));
  server.start();
  assert.ok(isHeld(server));
  return server;
};

test("a whole server that was put back from a copy starts nothing, though no lease has changed since", () => {
  const server = putBack();
  assert.equal(server.lease().phase, "failed");
  assert.match(
    server.lease().reason ?? "",
    /s1 is older .* storage-manager has seen a later state .*`cells server adopt s1`/,
  );
  const due = { file: "shop-9.1", volume: uid("shop-9"), about: null, overlay: false, manager, sizeMiB: 1, usedMiB: 1 };
  const aged = { ...due, deleted: "2026-01-01T00:00:00.000Z", ageMs: 1e12, offered: false };
  assert.deepEqual(server.report({ kind: "bin", files: [aged] }).empty, [], "nor is its bin emptied meanwhile");
  // It counts no minutes that would look like progress, and is no less older after another start.
  server.minute();
  server.start();
  assert.ok(isHeld(server));
});

test("a store, or the files, that were put back alone are found without anybody's word", () => {
  for (const part of ["store", "file"] as const) {
    for (const starts of [false, true]) {
      const server = served();
      const copy = copyOf(server);
      if (starts) server.start();
      for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
      Object.assign(server, { [part]: structuredClone(copy[part]) });
      server.heard = false;
      server.start();
      assert.ok(isHeld(server), `${part}, ${starts}`);
      assert.match(server.lease().reason ?? "", part === "store" ? /its store was put back/ : /files were put back/);
    }
  }
  const lost = served();
  lost.store = { records: new Map(), desired: lost.store.desired };
  lost.start();
  assert.ok(isHeld(lost), "a store that is lost is none that may start anything");
  const unmounted = served();
  unmounted.file = null;
  unmounted.start();
  assert.match(unmounted.lease().reason ?? "", /is its disk mounted\?/);
});

test("a lease for which a later epoch is asked shows an older store, and closes nothing for good", () => {
  const server = served();
  server.desire(`lease/${tenant}`, { volume: tenant, epoch: 5, holder: { vm: "v-1", incarnation: 4, host: "h2" } });
  assert.ok(isHeld(server));
  assert.match(server.lease().reason ?? "", /a later epoch of volume shop-1 is known/);
  const { adopted } = server.adopt();
  assert.deepEqual(
    (adopted as unknown as readonly { volume: string; path: string; epoch: number; known: number }[]).filter(
      ({ volume }) => volume === tenant,
    ),
    [{ volume: tenant, path: "shop/data", epoch: 1, known: 5 }],
  );
  assert.deepEqual(server.work().work.find(({ volume }) => volume === tenant)?.fence, { epoch: 6 });
  server.report({ kind: "fenced", volume: tenant, epoch: 6 });
  assert.deepEqual([server.lease().epoch, server.lease().holder, server.lease().phase], [6, null, "ready"]);
  server.desire(`lease/${tenant}`, { volume: tenant, epoch: 7, holder: { vm: "v-1", incarnation: 5, host: "h2" } });
  assert.deepEqual(server.work().work.find(({ volume }) => volume === tenant)?.export, {
    epoch: 7,
    writable: true,
    sizeMiB: 10,
    access: null,
    holder: "h2",
  });
});

test("once is enough: epochs of a Manager that is heard only after the adoption are adopted with it, and no later ones", () => {
  const server = putBack();
  server.adopt();
  server.report({ kind: "fenced", volume: tenant, epoch: 2 });
  server.start();
  server.minute();
  const ask = (epoch: number): void =>
    server.desire(`lease/${tenant}`, { volume: tenant, epoch, holder: { vm: "v-1", incarnation: 4, host: "h2" } });
  ask(9);
  assert.ok(!isHeld(server));
  assert.deepEqual(server.work().work.find(({ volume }) => volume === tenant)?.fence, { epoch: 10 });
  server.report({ kind: "fenced", volume: tenant, epoch: 10 });
  ask(11);
  assert.equal(server.work().work.find(({ volume }) => volume === tenant)?.export?.epoch, 11);
  ask(14);
  assert.ok(isHeld(server), "it was granted since");
});

test("after an operator has adopted it, no export of then listens again, and further starts are ordinary", () => {
  const server = putBack();
  assert.equal(server.counted, 0);
  server.adopt();
  assert.equal(server.counted, 1, "whoever has met later starts of it hears it");
  for (const volume of [tenant, root]) {
    assert.deepEqual(server.work().work.find((work) => work.volume === volume)?.fence, { epoch: 2 });
    server.report({ kind: "fenced", volume, epoch: 2 });
  }
  assert.ok(![...server.store.records.values()].some((value) => JSON.stringify(value).includes("x-shop-1")));
  assert.equal((server.actual.get("server") as unknown as AgentServer).mark?.adopted, true);
  server.minute();
  server.start();
  server.minute();
  assert.ok(!isHeld(server));
  assert.deepEqual(server.adopt(), { adopted: null }, "there is nothing to adopt");
  assert.equal(server.counted, 1);
});

test("a Storage Manager that was away hears of an adoption after the next start, and takes it once", () => {
  const adoptionIn = (server: Server): Json =>
    ((server.actual.get("server") as unknown as AgentServer).mark?.adoption ?? null) as Json;
  const server = putBack();
  server.heard = false;
  server.adopt();
  server.start();
  const first = adoptionIn(server);
  assert.notEqual(first, null);
  const service = createStorageManager({ self: manager, agents: [self] });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const input = (what: Parameters<typeof service.step>[1]): boolean => {
    const step = service.step(state, what, now);
    state = step.state;
    return step.effects.some(({ kind }) => kind === "recovered");
  };
  input({ kind: "start" });
  const older = (): boolean => input({ kind: "forked", peer: self, forked: false, itForked: true });
  const hear = (): boolean =>
    input({ kind: "actual", from: self, key: "server", value: server.actual.get("server") as Json });
  older();
  assert.equal(hear(), true);
  older();
  server.start();
  assert.deepEqual(adoptionIn(server), first, "it says it for good");
  assert.equal(hear(), false, "a later copy is not excused by an earlier adoption");
});

test("a server that was removed and joins again under its name is not older: its Storage Manager has forgotten its marks", () => {
  const server = served();
  const without = createStorageManager({ self: manager, agents: [peerName("agent.s2")] });
  const restored = { records: new Map(server.managerRecords), desiredAt: new Map() };
  const { effects } = without.step(without.restore(restored), { kind: "start" }, now);
  for (const effect of effects)
    if (effect.kind === "write" && effect.value === null) server.managerRecords.delete(effect.key);
  assert.ok(server.managerRecords.size > 0);
  Object.assign(server, { store: { records: new Map(), desired: new Map() }, file: null });
  server.start();
  server.minute();
  assert.ok(!isHeld(server));
});

test("what is beside an adopted store that is blank is found, and nothing takes the place of what is not", () => {
  const server = served();
  const volume = { uid: tenant, source: { kind: "empty" }, sizeMiB: 10, made: true };
  server.store = { records: new Map(), desired: new Map() };
  server.start();
  assert.ok(isHeld(server));
  server.desire(`volume/${tenant}`, volume);
  const fileOf = () => server.work().work.find((work) => work.volume === tenant)?.file;
  assert.equal(fileOf(), undefined, "nobody has looked yet");
  server.adopt();
  const asked = { action: "create", source: { kind: "empty" }, sizeMiB: 10, found: true };
  assert.deepEqual(fileOf(), asked);
  server.start();
  assert.deepEqual(fileOf(), asked, "its file is still to be found after another start");
  server.report({ kind: "created", volume: tenant, sizeMiB: 10, boot: null });
  assert.equal((server.actual.get(`volume/${tenant}`) as JsonObject).phase, "ready");
  // Of which its manager tells it only later.
  server.desire(`volume/${root}`, { ...volume, uid: root });
  assert.deepEqual(server.work().work.find((work) => work.volume === root)?.file, asked);
});

test("a volume that is lost while nobody has adopted anything is not sought and not made anew", () => {
  const server = new Server();
  server.start();
  server.desire(`volume/${tenant}`, { uid: tenant, source: { kind: "empty" }, sizeMiB: 10, made: true });
  assert.deepEqual(server.work().work, []);
  assert.match(String((server.actual.get(`volume/${tenant}`) as JsonObject).reason), /has lost it/);
});

test("a store that was put back does not know who has written since, and says of no file that nobody has", () => {
  const server = new Server();
  server.start();
  server.desire(`volume/${tenant}`, { uid: tenant, source: { kind: "empty" }, sizeMiB: 10 });
  server.report({ kind: "created", volume: tenant, sizeMiB: 10, boot: null, fresh: true });
  const before = structuredClone(server.store);
  server.desire(`lease/${tenant}`, { volume: tenant, epoch: 1, holder: { vm: "v-1", incarnation: 1, host: "h1" } });
  for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
  server.store = before;
  server.start();
  assert.ok(isHeld(server));
  server.adopt();
  server.desire(`volume/${tenant}`, null);
  const file = server.work().work.find(({ volume }) => volume === tenant)?.file;
  assert.deepEqual(file, { action: "remove", label: { about: null, manager, overlay: false } });
});

test("the files of a store that was put back are looked for once it is adopted: what was deleted since waits, what is nowhere is lost", () => {
  const server = served();
  const before = structuredClone(server.store);
  for (let minutes = 0; minutes < 3; minutes += 1) server.minute();
  server.store = before;
  server.start();
  assert.ok(isHeld(server));
  server.report({ kind: "adopt" });
  const volumeOf = (uid = tenant) => server.actual.get(`volume/${uid}`) as JsonObject;
  const fileOf = () => server.work().work.find((work) => work.volume === tenant)?.file;
  assert.deepEqual(fileOf(), { action: "find" });
  assert.equal(volumeOf().phase, "working", "what the store says of it may be long ago");
  server.report({ kind: "fenced", volume: tenant, epoch: 2 });
  server.desire(`lease/${tenant}`, { volume: tenant, epoch: 3, holder: { vm: "v-1", incarnation: 2, host: "h1" } });
  assert.equal(server.lease().holder, null, "nobody writes to it before that");
  server.report({ kind: "found", volume: root, sizeMiB: 10, roomMiB: 40 });
  assert.deepEqual([volumeOf(root).phase, volumeOf(root).sizeMiB], ["ready", 10]);
  const missing = {
    kind: "failed",
    volume: tenant,
    about: "file",
    reason: "gone",
    portTaken: false,
    missing: true,
  } as const;
  server.report(missing);
  assert.deepEqual([volumeOf().phase, volumeOf().sizeMiB], ["failed", null]);
  assert.match(String(volumeOf().reason), /has lost it/);
  assert.deepEqual(
    fileOf(),
    { action: "create", source: { kind: "empty" }, sizeMiB: 10, found: true },
    "no other is made",
  );
  const bin = [inBin(tenant)];
  server.report({ kind: "bin", files: bin });
  assert.equal(volumeOf().phase, "waiting");
  assert.match(String(volumeOf().reason), /cells bin restore s1\/shop-1\.1/);
  server.start();
  server.report({ kind: "bin", files: bin });
  server.report(missing);
  assert.equal(volumeOf().phase, "waiting", "it is known again after another start");
  const about = { cell: "shop", path: "shop/data", origin: null };
  server.desire(`volume/${tenant}`, { uid: tenant, source: { kind: "empty" }, sizeMiB: 10, about, from: "shop-1.1" });
  assert.deepEqual(fileOf(), { action: "create", source: { kind: "empty" }, sizeMiB: 10, from: "shop-1.1" });
  server.report({ kind: "created", volume: tenant, sizeMiB: 10, boot: null });
  assert.equal(volumeOf().phase, "ready");
});

const inBin = (volume: Uid): BinFile => ({
  file: `${volume}.1`,
  volume,
  about: null,
  overlay: false,
  manager,
  sizeMiB: 10,
  usedMiB: 1,
  deleted: "2026-01-01T00:00:00.000Z",
  ageMs: 0,
  offered: false,
});

test("a volume that is known elsewhere to be made, and whose former file is in the bin, says so", () => {
  const server = new Server();
  server.start();
  server.report({ kind: "bin", files: [inBin(tenant)] });
  server.desire(`volume/${tenant}`, { uid: tenant, source: { kind: "empty" }, sizeMiB: 10, made: true });
  assert.match(String((server.actual.get(`volume/${tenant}`) as JsonObject).reason), /cells bin restore/);
  assert.deepEqual(server.work().work, []);
});
