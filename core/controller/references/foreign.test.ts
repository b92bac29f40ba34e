import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementAnswer } from "../../../model/api.ts";
import { elementPath, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { actualKey, type CellPolicy, type DesiredVolume } from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import { shopOptions } from "../shop.testing.ts";

/** A controller whose peers answer only what a test lets them say. */
const self = peerName("controller.shop");
const directory = peerName("directory");
const options = { ...shopOptions, directory: true } as const;
const first = createCheckedController(options);
class Alone {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, Map<string, Json>>();
  readonly service: typeof first;
  state;
  constructor(service = first) {
    this.service = service;
    this.state = service.restore({ records: new Map(), desiredAt: new Map() });
    this.step({ kind: "start" });
    for (const peer of ["storage-manager", "address-manager", "dns-manager", "placer"])
      this.step({ kind: "reachable", peer: peerName(peer), reachable: true });
  }
  step(input: Input): Json {
    const { state, effects } = this.service.step(this.state, input, { ms: 1, wallMs: 1 });
    this.state = state;
    let answer: Json = null;
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value !== null) this.records.set(effect.key, effect.value);
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      const at = effect.kind === "desire" ? (this.desired.get(effect.to) ?? new Map<string, Json>()) : new Map();
      if (effect.kind === "desire") this.desired.set(effect.to, at);
      if (effect.kind === "desire" && effect.value !== null) at.set(effect.key, effect.value);
      if (effect.kind === "desire" && effect.value === null) at.delete(effect.key);
      if (effect.kind === "reply") answer = effect.response;
    }
    return answer;
  }
  crash(): void {
    const desiredAt = new Map([...this.desired].map(([peer, documents]) => [peerName(peer), new Map(documents)]));
    this.state = this.service.restore({ records: new Map(this.records), desiredAt });
    this.step({ kind: "start" });
  }
  says(peer: string, key: string, value: object | null): void {
    const json = value === null ? null : toJson(value);
    this.step({ kind: "actual", from: peerName(peer), key: actualKey(self, key), value: json });
  }
  directory(reachable: boolean): void {
    this.step({ kind: "reachable", peer: directory, reachable });
  }
  put(shop: JsonObject): void {
    const request = toJson({ method: "PUT", path: "", json: { shop: { "x.type": "Cell", ...shop } } });
    const response = this.step({ kind: "request", id: 1, request }) as unknown as ControllerResponse;
    assert.equal(response.status, 200, JSON.stringify(response.body));
  }
  why(path: string): ElementAnswer {
    const response = this.step({ kind: "request", id: 2, request: { method: "WHY-ELEMENT", path } });
    return (response as unknown as ControllerResponse).body as unknown as ElementAnswer;
  }
  uidOf = (path: string): string => this.state.uids.get(elementPath(path)) ?? "";
  policy = (): CellPolicy | null => this.state.derived.policy.get("") ?? null;
}

const subnet = { "x.type": "Subnet", "x.size": 8, "x.public": true };
const rule = {
  "x.type": "NetworkRule",
  "x.address1": "<ref:/shop/net>",
  "x.address2": "<ref://bank.cells.internal/bank/db>",
  "x.protocol": "tcp",
  "x.port2": 5432,
  "x.direction": "1to2",
};
const wantKey = "want/bank.cells.internal/bank/db";
const db = { uid: "b-1", shows: { kind: "addresses", type: "VM", networks: ["10.64.9.2/32"] } };
const withRule = (): Alone => {
  const world = new Alone();
  world.put({ net: subnet, toDb: rule });
  world.says("address-manager", `subnet/${world.uidOf("shop/net")}`, {
    phase: "ready",
    reason: null,
    cidr: "10.64.0.0/29",
    gateway: "10.64.0.1",
  });
  return world;
};
const opensBank = (world: Alone): boolean =>
  world.policy()?.networks.some(({ cidr }) => cidr === "10.64.9.2/32") === true;

test("a rule into another cell waits, says what would lift it, and then opens exactly what is shown", () => {
  const world = withRule();
  assert.match(world.why("shop/toDb").verdict, /the directory is not reachable/);
  world.directory(true);
  const hidden = world.why("shop/toDb").verdict;
  assert.match(
    hidden,
    /\/\/bank\.cells\.internal\/bank\/db is not visible.*To lift that: in the cell bank\.cells\.internal/,
  );
  assert.ok(!opensBank(world));
  const at = world.desired.get(directory);
  assert.deepEqual([...(at?.keys() ?? [])].sort(), [
    `public/${world.uidOf("shop/net")}`,
    `reach/${world.uidOf("shop/toDb")}`,
    wantKey,
  ]);
  world.says(directory, wantKey, db);
  assert.match(world.why("shop/toDb").verdict, /has no rule in effect that opens the same/);
  assert.ok(opensBank(world));
  world.says(directory, `reach/${world.uidOf("shop/toDb")}`, { agreed: true, hosts: [] });
  assert.equal(world.why("shop/toDb").verdict, "shop/toDb is as declared");
  const compiled = world.policy();
  const there = compiled?.networks.find(({ cidr }) => cidr === "10.64.9.2/32")?.identity;
  assert.deepEqual(
    compiled?.rules.filter(({ path }) => path === "shop/toDb").map(({ to, ports }) => [to, ports.from]),
    [[there, 5432]],
  );
});

test("a directory that is away cuts nothing, over a restart too; one that is back and says nothing does", () => {
  const world = withRule();
  world.directory(true);
  world.says(directory, wantKey, db);
  world.crash();
  assert.ok(opensBank(world), "what was known is kept");
  world.directory(false);
  assert.ok(opensBank(world));
  world.directory(true);
  assert.ok(!opensBank(world), "it is in step, and the element is not visible any more");
  assert.match(world.why("shop/toDb").verdict, /is not visible/);
});

test("a rule with a controller's end opens nothing into another cell", () => {
  const world = new Alone();
  world.put({ net: subnet, toDb: { ...rule, "x.address1": "controller" } });
  world.directory(true);
  world.says(directory, wantKey, db);
  assert.deepEqual(
    world.policy()?.rules.filter(({ path }) => path === "shop/toDb"),
    [],
  );
  assert.match(world.why("shop/toDb").verdict, /a controller is reached from inside its own cell only/);
});

test("a cell is told why a volume of another Storage Manager cannot be copied, and says which one has its own", () => {
  const second = peerName("storage-manager.2");
  const world = new Alone(
    createCheckedController({ ...options, storageManager: second, placer: peerName("placer.2") }),
  );
  for (const peer of [second, peerName("placer.2")]) world.step({ kind: "reachable", peer, reachable: true });
  world.put({
    disk: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells.internal/bank/golden>" },
    own: { "x.type": "Volume", "x.size": 8, "x.public": true },
    vm: { "x.type": "VM", "x.memory": 64 },
  });
  world.directory(true);
  // Everything that the first ones would have been asked for is asked of its own.
  assert.deepEqual(
    [...world.desired].filter(([, documents]) => documents.size > 0).map(([peer]) => peer),
    [second, "placer.2", "directory"],
  );
  const shown = { uid: "b-7", shows: { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" } };
  world.says(directory, "want/bank.cells.internal/bank/golden", shown);
  const hidden = { phase: "waiting", reason: "no volume b-7 is visible to this cell", server: null, sizeMiB: null };
  world.says(second, `volume/${world.uidOf("shop/disk")}`, { ...hidden, hidden: true });
  assert.match(
    world.why("shop/disk").verdict,
    /golden is kept by Storage Manager 1 and this cell's volumes by Storage Manager 2.*x\.services\.storageManager 1/,
  );
  const own = world.desired.get(directory)?.get(`public/${world.uidOf("shop/own")}`);
  assert.equal((own as { shows?: { manager?: number } } | undefined)?.shows?.manager, 2);
});

test("a copy waits for its origin to be shown, then for the grant, and goes on when it is hidden again", () => {
  const world = new Alone();
  const link = "want/bank.cells.internal/bank/golden";
  world.put({ disk: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells.internal/bank/golden>" } });
  world.directory(true);
  const key = `volume/${world.uidOf("shop/disk")}`;
  const asked = () => world.desired.get("storage-manager")?.get(key) as unknown as DesiredVolume | undefined;
  assert.equal(asked(), undefined);
  world.says(directory, link, { uid: "b-7", shows: { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" } });
  assert.deepEqual(asked()?.origin, { kind: "copy", volume: "b-7" });
  const refused = { phase: "waiting", reason: "no volume b-7 is visible to this cell", server: null, sizeMiB: null };
  world.says("storage-manager", key, { ...refused, hidden: true });
  assert.match(
    world.why("shop/disk").verdict,
    /does not let this cell copy it.*VolumeGrant.*<ref:\/\/shop\.cells\.internal\/>/,
  );
  world.says("storage-manager", key, { phase: "ready", reason: null, server: "s1", sizeMiB: 64 });
  world.says(directory, link, null);
  assert.deepEqual(asked()?.origin, { kind: "copy", volume: "b-7" });
  assert.equal(world.why("shop/disk").verdict, "shop/disk is as declared");
});

test("a copy that was not made yet follows what is shown under its origin's path, and one that was made does not", () => {
  const world = new Alone();
  const link = "want/bank.cells.internal/bank/golden";
  world.put({ disk: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells.internal/bank/golden>" } });
  world.directory(true);
  const key = `volume/${world.uidOf("shop/disk")}`;
  const origin = () => (world.desired.get("storage-manager")?.get(key) as unknown as DesiredVolume | undefined)?.origin;
  const shows = { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" };
  const hidden = { phase: "waiting", reason: "", server: null, sizeMiB: null, hidden: true };
  world.says(directory, link, { uid: "b-7", shows });
  world.says("storage-manager", key, hidden);
  world.says(directory, link, null);
  assert.deepEqual(origin(), { kind: "copy", volume: "b-7" }, "it waits for the one that it knows");
  world.says(directory, link, { uid: "b-8", shows });
  assert.deepEqual(origin(), { kind: "copy", volume: "b-8" }, "the other cell has made its volume anew");
  world.crash();
  world.says(directory, link, { uid: "b-9", shows });
  assert.deepEqual(origin(), { kind: "copy", volume: "b-8" }, "it may have been made");
  world.says("storage-manager", key, hidden);
  assert.deepEqual(origin(), { kind: "copy", volume: "b-9" });
  world.says("storage-manager", key, { phase: "working", reason: null, server: "s1", sizeMiB: 64 });
  world.says(directory, link, { uid: "b-10", shows });
  assert.deepEqual(origin(), { kind: "copy", volume: "b-9" });
});

test("what is not a volume is no origin, and a cell that names itself is told how to", () => {
  const world = new Alone();
  world.put({
    disk: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells.internal/bank/db>" },
    own: { "x.type": "VolumeCopy", "x.image": "<ref://shop.cells.internal/shop/disk>" },
  });
  world.directory(true);
  world.says(directory, wantKey, db);
  assert.match(world.why("shop/disk").verdict, /is a VM, and a volume is needed here/);
  assert.match(world.why("shop/own").verdict, /is this cell itself.*<ref:\/shop\/disk>/);
});

test("a copy finds what is held for it, and every other element what has that path now", () => {
  const alone = new Alone();
  alone.directory(true);
  const copy = { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells.internal/bank/db>" };
  alone.put({ held: copy, other: copy });
  const originOf = (path: string): string | undefined => {
    const all = [...(alone.desired.get("storage-manager") ?? [])].filter(([key]) => key.startsWith("volume/"));
    const documents = all.map(([, value]) => value as unknown as DesiredVolume);
    const { origin } = documents.find((each) => each.path === path) ?? {};
    return origin?.kind === "copy" ? origin.volume : undefined;
  };
  const shows = { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" };
  const heldFor = [{ path: "shop/held", uid: "b-1", shows }];
  const key = "want/bank.cells.internal/bank/db";
  alone.says("directory", key, { uid: "b-1", shows, heldFor, onlyHeld: true });
  assert.deepEqual([originOf("shop/held"), originOf("shop/other")], ["b-1", undefined]);
  const why = alone.step({ kind: "request", id: 1, request: { method: "WHY-ELEMENT", path: "shop/other" } });
  assert.match(JSON.stringify(why), /bank\.cells\.internal shows no such element to this cell/);
  alone.says("directory", key, { uid: "b-2", shows, heldFor });
  alone.crash();
  assert.deepEqual([originOf("shop/held"), originOf("shop/other")], ["b-1", "b-2"]);
  // A directory of the version before says nothing of what is held.
  const older = new Alone();
  older.directory(true);
  older.put({ held: copy });
  older.says("directory", key, { uid: "b-1", shows });
  const said = [...(older.desired.get("storage-manager") ?? [])].filter(([each]) => each.startsWith("volume/"));
  assert.match(JSON.stringify(said), /"kind":"copy","volume":"b-1"/);
});
