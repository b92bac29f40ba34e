import type { actualDocuments, desiredDocuments } from "../../core/documents/readers/table.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { poolsInForce, zoneWithPools } from "./pool-samples.ts";

/**
 * One good document of every kind, by the keys of the table of readers: a kind that is added there without a sample here does
 * not compile. Each has every field, those that may be absent too, so that taking one away or spoiling it reaches all.
 */
type Samples<Table> = {
  readonly [At in keyof Table]: {
    readonly [Key in keyof Table[At] as Table[At][Key] extends null ? never : Key]: Json;
  };
};

const progress = { phase: "waiting", reason: "waits for something" };
const sha = "ab".repeat(32);
const layer = {
  volume: "c1-1",
  address: "10.0.2.1",
  port: 7000,
  exportName: "x1",
  pskIdentity: "i1",
  pskHex: "00ff",
  writable: true,
};
const inMemory = { memoryMiB: 128, cpus: 1, diskMiB: 100 };
const saved = { ...inMemory, engine: "QEMU", form: "f", memorySha256: sha, stateSha256: sha };
const boot = {
  digest: "d1",
  address: "10.0.2.1",
  port: 7001,
  commandLine: "quiet",
  kernelSha256: sha,
  initrdSha256: sha,
  saved,
};
const attachment = { volume: "c1-1", epoch: 1, sizeMiB: 100, layers: [layer, layer], boot, pristine: true };
const disk = {
  connection: "c1-2",
  path: "shop/disk",
  busType: "virtio",
  busNumber: 0,
  busSlot: 0,
  bootOrder: 0,
  readOnly: false,
  attachment,
};
const virtualInterface = {
  uid: "c1-3",
  path: "shop/nic",
  mac: "02:00:00:00:00:01",
  address: "10.64.0.2",
  prefixLength: 24,
  gateway: "10.64.0.1",
  nameServer: "10.0.3.1",
  hostName: "web",
  domain: "shop.cells.internal",
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
  audience: ["h2"],
  management: true,
};
const vm = {
  uid: "c1-4",
  cell: "shop",
  path: "shop/web",
  name: "web",
  incarnation: 1,
  power: "on",
  memoryMiB: 100,
  cpus: 1,
  disks: [disk],
  interfaces: [virtualInterface],
  data: { any: ["thing", 1] },
  liveness: { protocol: "udp", port: 7, intervalMs: 1000, failures: 3 },
  start: "boot",
  display: "vga",
  restart: "host",
  boot: 1,
  trial: { disk, replaces: "c1-2", withinMs: 1000 },
};
const range = { from: 0, to: 65_535 };
const policy = {
  cell: "shop",
  cellNumber: 7,
  version: 1,
  rules: [{ id: 1, path: "shop/rule", from: 1, to: 2, protocol: "tcp", sourcePorts: range, ports: range }],
  networks: [{ cidr: "10.9.0.0/16", identity: 9, subnet: true }],
  controller: { address: "10.0.3.1", mac: "02:00:00:00:03:01", identity: 8 },
  hosts: ["h1", "h2"],
  broadcast: "off",
  subnets: [{ identity: 3, cidr: "10.64.0.0/29" }],
  routers: [{ subnet: 3, identity: 4, address: "10.64.0.3", forwards: ["internet"] }],
  traits: [{ identity: 4, forwards: ["internet", "192.168.0.0/16"], groups: ["239.255.0.1"] }],
};
const holder = { vm: "c1-4", incarnation: 1, host: "h1" };
const terms = {
  implicit: "strict",
  groups: [{ name: "replicas", kind: "host anti-affinity" }],
  pool: "c1-4",
  owned: true,
  claim: 3,
} as const;
const lease = { volume: "c1-1", epoch: 1, holder, succession: true };
const leased = { ...progress, epoch: 1, holder, layer };
const amount = {
  vms: 1,
  memoryMiB: 1,
  cpus: 1,
  volumes: 1,
  storageMiB: 1,
  subnets: 1,
  addresses: 1,
  publicAddresses: 1,
};
const bound = { subnetConnectivity: false, internet: "out", broadcast: "on", resolvers: ["10.0.0.9"] };
const grant = { amount, serial: 1, answered: 0, refusal: null };
const asked = { serial: 1, holds: amount, asks: { number: 1, amount } };
const child = { "x.type": "Cell" };
const shows = { kind: "addresses", type: "VM", networks: ["10.64.0.2/32"] };
export const want = { domain: "bank.cells.internal", path: "bank/vault" };
const pool = { pool: "10.64.0.0/10", largest: 64, fixed: ["10.0.0.0/8"] };
const host = (name: string): JsonObject => ({
  host: name,
  state: "up",
  address: "10.0.1.1",
  mac: "02:00:00:00:01:01",
  memoryMiB: 4096,
  reservedMiB: 100,
  machineMiB: 100,
  cpus: 4,
  cpuSpeedMHz: 2000,
  accelerator: "tcg",
  boot: 1,
});
const life = { host: "h2", generation: 1, incarnation: 0 };

const groupRule = { protocol: 6, fromPort: 22, toPort: 22, icmpType: 0, icmpCode: 0 };

const probed = { host: "h3", mac: "02:00:00:00:01:03" };
const guarded = { guard: 3, guardMoves: 2, unguarded: true };
export const desiredSamples = {
  "address-manager": {
    "subnet/<uid>": { uid: "c1-4", cell: "shop", path: "shop/net", size: 8, addressRange: "internal", cidr: null },
    pools: { external: ["203.0.113.0/24"] },
  },
  "dns-manager": {
    "name/<uid>": { uid: "c1-4", name: "web.shop.cells.internal", address: "10.64.0.2", public: true },
    doors: { address: "10.0.0.40", roles: ["gateway", "personality.caas"] },
    zone: zoneWithPools,
  },
  placer: {
    "placement/<uid>": {
      vm: "c1-4",
      path: "shop/web",
      cell: "shop",
      incarnation: 1,
      memoryMiB: 100,
      cpus: 1,
      cpuSpeedMHz: 0,
      placement: { pool: "a" },
      avoid: ["h2"],
      on: "h1",
    },
    "group/<uid>": { uid: "c1-4", path: "shop/replicas", name: "replicas", kind: "host anti-affinity" },
    "host/<name>": { host: "h1", state: "maintenance" },
    spare: { hosts: 1 },
    settings: { settings: { lastHostS: 60, systemHosts: 2 } },
    "dedicated/<name>": { host: "h1", of: "z1/p1", level: "pod", to: { kind: "domain", path: "ROOT/acme" } },
    "marks/<name>": { host: "h1", cluster: "z1/p1/c1", tags: ["ssd"], properties: { gpu: "a100", sriov: 8 } },
    "owner/<name>": { cell: "shop", account: "ROOT/acme/dev" },
    "pooled/<name>": {
      host: "h1",
      flavor: "large",
      tag: "c1-5 true",
      pool: { uid: "c1-4", cell: "shop", path: "shop/racks", name: "rack1", enabled: true, authorised: ["ROOT/acme"] },
    },
  },
  "storage-manager": {
    guard: { cell: "shop", haManager: "ha-manager.2", boundAt: 1_700_000_000_000 },
    "volume/<uid>": {
      uid: "c1-4",
      cell: "shop",
      path: "shop/volume",
      origin: { kind: "image", image: "tiny" },
      sizeMiB: 100,
      access: "rw",
      heldFor: [{ domain: "bank.cells.internal", path: "bank/copy" }],
    },
    "connection/<uid>": {
      uid: "c1-4",
      volume: "c1-4",
      vm: "c1-5",
      incarnation: 1,
      host: "h1",
      cell: "shop",
      succession: true,
    },
    "grant/<uid>": { uid: "c1-4", volume: "c1-4", to: { domain: "bank.cells.internal" }, grant: "copy", holder: "u-1" },
    "let-go/<uid>": { uid: "c1-4" },
    "owner/<name>": { cell: "shop", account: "ROOT/acme/dev", uids: ["a1", "d1", "domain.root"] },
    "fence/<uid>": { vm: "c1-4", cell: "shop", incarnation: 1, boundAt: 1_700_000_000_000 },
  },
  agent: {
    "volume/<uid>": {
      uid: "c1-4",
      source: { kind: "empty" },
      sizeMiB: 100,
      made: true,
      about: { cell: "shop", path: "shop/volume", origin: null },
      from: "c1-4.1",
    },
    "lease/<uid>": { ...lease, volume: "c1-4" },
    "readers/<uid>": { volume: "c1-4" },
    seen: { start: "s1-1", last: { start: "s1-0", tick: 3 } },
    "succession/<uid>": { ...lease, volume: "c1-4" },
    beat: { boot: 1, count: 3 },
    "requests/<name>": { host: "h1" },
  },
  "network-view-manager": {
    "instance/<uid>": { uid: "c1-4", cell: "shop", path: "shop/web", host: "h1", groups: ["c1-5"] },
    "security-group/<uid>": {
      uid: "c1-4",
      cell: "shop",
      ingress: [{ ...groupRule, cidr: "10.0.0.0/8" }],
      egress: [{ ...groupRule, group: "c1-6" }],
    },
  },
  host: {
    "network-view": { version: 3, head: "{}", slices: { count: 1, digest: [7, 8] } },
    "network-slice/<name>": { digest: [7, 8], items: ["{}"] },
    "claim/<name>": {
      host: "h1",
      epoch: 3,
      rule: { of: "z1", level: "zone", to: { kind: "domain", path: "ROOT/acme" } },
      pooled: { flavor: "large", pool: null },
    },
    "vm/<uid>": vm,
    "policy/<cell>": policy,
    "slice/<cell>/…": {
      digest: [7, 8],
      rules: policy.rules,
      networks: policy.networks,
      hosts: ["h1"],
      subnets: [{ identity: 6, cidr: "10.64.0.0/24" }],
      routers: policy.routers,
      traits: policy.traits,
    },
    "places/<cell>": {
      cell: "shop",
      own: [{ address: "10.64.0.9", host: "h2", identity: 4, vmIdentity: 5, subnetIdentity: 6 }],
      foreign: [{ address: "10.64.1.9", host: "h3" }],
    },
    "probe/<name>": { ...probed, address: "10.0.1.3", machines: [{ vm: "c1-4", address: "10.64.0.9" }] },
    beats: { host: "h1", ends: ["c1-4"] },
    pools: { external: ["203.0.113.0/24"] },
    "root-vm": {
      vm,
      host: "h1",
      policy,
      volumes: [{ volume: "c1-1", connection: "c1-2", agent: "agent.s1", epoch: 1 }],
    },
  },
  presence: {},
  "ha-manager": {
    "protected/<uid>": {
      vm: "c1-4",
      cell: "shop",
      path: "shop/web",
      incarnation: 1,
      host: "h1",
      boot: 1,
      lost: "restart",
      priority: 0,
      isolated: "keep",
      storageManager: "storage-manager",
      boundAt: 1_700_000_000_000,
      address: "10.64.0.9",
    },
    settings: {
      settings: { maxRetries: 3, syncInterval: 30, timeToSleep: 30, investigators: ["export", "power"] },
    },
    "power/<name>": { host: "h1", boot: 7, cut: true },
    unguarded: { cell: "shop", haManager: "ha-manager.2" },
    alerts: { alerts: [{ kind: "unfenced", subject: "h1", sentence: "shop/web of h1 cannot be fenced" }] },
    "host/<name>": { host: "h1", state: "disabled" },
  },
  directory: {
    "public/<uid>": { uid: "c1-4", path: "shop/web", shows },
    "reach/<uid>": {
      uid: "c1-4",
      other: want,
      networks: ["10.64.0.2/32"],
      placed: [{ address: "10.64.0.2", host: "h1" }],
      openings: [{ direction: "out", protocol: "tcp", sourcePorts: range, ports: range }],
    },
    "want/<name>/…": want,
  },
  "cell-manager": {
    "cell/<uid>": {
      uid: "c1-4",
      cell: "child.shop",
      model: child,
      grant,
      startsPerMinute: 6,
      bound,
      services: { placer: 1, storageManager: 1, haManager: 2 },
    },
  },
  controller: {
    life: { uid: "c1", model: child, grant, startsPerMinute: 6, bound, ending: false, gateway: "10.0.3.9", ...guarded },
    "limits/<name>": { uid: "x1", path: "ROOT/acme/a", kind: "account", limits: { vms: 3, cells: 2 }, within: ["d1"] },
  },
  gateway: {},
  authority: {
    "enrolment/<uid>": {
      hash: sha,
      cell: "shop",
      grants: [
        {
          name: "gateway.shop",
          role: "gateway",
          addresses: ["10.0.3.9"],
          ports: { distribution: 7126, http: 7127 },
        },
      ],
      endsAtMs: 1_800_000_000_000,
    },
    "entrance/<name>": { address: "10.0.3.9" },
  },
  tenancy: {
    "look/<uid>": { ticket: "c1-4" },
    "owner/<uid>": { uid: "c1-4", cell: "shop", account: "ROOT/acme/dev", has: { vms: 2 } },
    "declared/<uid>": {
      uid: "c1-4",
      at: "root/tenants/acme",
      path: "ROOT/acme",
      kind: "domain",
      state: "locked",
      limits: { vms: 3 },
      tag: "a1",
    },
  },
} as const satisfies Samples<typeof desiredDocuments>;

export const actualSamples = {
  "ha-manager": {
    "<peer>/over/<uid>": { vm: "c1-4", incarnation: 1, host: "h1", by: "storage", boundAt: 1_700_000_000_000 },
  },
  "address-manager": {
    addresses: { internal: pool, external: pool, reserved: ["10.0.0.0/16"], shortestPrefix: 8, longestPrefix: 29 },
    "<peer>/subnet/<uid>": { ...progress, cidr: "10.64.0.0/29", gateway: "10.64.0.1", taken: "10.64.0.8/29" },
    "<peer>/pools": poolsInForce,
  },
  "dns-manager": {
    "<peer>/name/<uid>": {
      ...progress,
      serves: { name: "web1.shop.cells.internal", address: "10.64.0.2", public: true },
    },
  },
  placer: {
    hosts: { hosts: [{ host: "h1", memoryMiB: 1000, cpus: 4, cpuSpeedMHz: 0 }], complete: true },
    "<peer>/placement/<uid>": {
      ...progress,
      incarnation: 1,
      host: "h1",
      boot: 1,
      terms,
      refusals: [{ host: "h2", kind: "memory", why: "full", lifts: "less" }],
    },
    "<peer>/standing/<name>": { vms: ["c1-4"], tag: "large" },
    "<peer>/claim/<name>": { epoch: 4 },
    "<peer>/short": { kept: 1, left: 0 },
  },
  "storage-manager": {
    storage: {
      totalMiB: 1000,
      freeMiB: 900,
      largestFreeMiB: 900,
      largestMiB: 1000,
      largestCopyMiB: 20_000,
      promisableMiB: 20_000,
      images: [{ name: "tiny", sizeMiB: 64 }],
      complete: true,
    },
    "<peer>/kept": { keptMiB: 100, left: { c1: 50 } },
    "<peer>/volume/<uid>": { ...progress, server: "s1", sizeMiB: 100, available: false, hidden: true },
    "<peer>/connection/<uid>": { ...progress, incarnation: 1, attachment, hidden: true, holder },
    "<peer>/fence/<uid>": { incarnation: 1, complete: false, volumes: [{ volume: "c1-1", epoch: 2 }], reason: "waits" },
    "<peer>/grant/<uid>": {
      ...progress,
      grants: { volume: "c1-4", to: { domain: "bank.cells.internal" }, grant: "copy", hold: "bank/kept/a1" },
      copied: true,
    },
  },
  agent: {
    "volume/<uid>": { ...progress, sizeMiB: 100, usedMiB: 1, boot },
    "lease/<uid>": leased,
    "readers/<uid>": { ...progress, layer },
    server: {
      server: "s1",
      address: "10.0.2.1",
      totalMiB: 1000,
      freeMiB: 900,
      promisedMiB: { "storage-manager.2": 5 },
    },
    "image/<name>": { name: "tiny", digest: "d1", sizeMiB: 100 },
    "bin/<name>": {
      file: "c1-4.1",
      volume: "c1-4",
      about: { cell: "shop", path: "shop/volume", origin: null },
      overlay: false,
      sizeMiB: 100,
      usedMiB: 1,
      deleted: "2026-11-22T10:00:00Z",
      offered: true,
    },
    "successor/<uid>": { epoch: 1, holder },
    "<peer>/succession/<uid>": leased,
    "<peer>/beat": { boot: 1, count: 3 },
    "<peer>/requests/<name>": { host: "h1", machines: [{ vm: "c1-4", incarnation: 1, looked: 2, served: 1 }] },
    "heartbeat/<name>": { host: "h1", boot: 1, fresh: true },
  },
  "network-view-manager": {
    "<peer>/instance/<uid>": { ...progress, id: "i-0000000a", address: "1.2.3.4", mac: "D0:0D:00:00:00:0A" },
    "<peer>/security-group/<uid>": { phase: "ready", reason: null, rules: [1, 2] },
    "<peer>/network-lease": { beat: 7 },
  },
  host: {
    network: {
      address: "10.0.1.1",
      cluster: "one",
      peer: "node",
      version: 3,
      instances: [
        {
          id: "i-0000000a",
          private: { address: "1.2.3.4", state: "assigned" },
          public: { address: "1.2.3.5", state: "failed", reason: "no device" },
        },
      ],
    },
    "network-beat": { beat: 7, leased: 3 },
    host: host("h2"),
    "taken/<uid>": { memoryMiB: 100, cpus: 1, by: "controller.shop", terms },
    machines: { host: "h2", boot: 1, machines: [{ vm: "c1-4", incarnation: 1, power: "on" }] },
    "location/<name>": {
      address: "10.64.0.9",
      host: "h2",
      hostMac: "02:00:00:00:01:01",
      cellNumber: 7,
      identity: 4,
      vmIdentity: 5,
      subnetIdentity: 6,
      groups: ["239.192.0.7"],
    },
    "<peer>/vm/<uid>": {
      ...progress,
      incarnation: 1,
      power: "on",
      ended: null,
      health: "answering",
      probes: { protocol: "udp", port: 7, intervalMs: 1000, failures: 3 },
      reboots: 1,
      guest: "up",
      trial: { connection: "c1-2", boots: true, refused: null },
    },
    "<peer>/policy/<cell>": { ...progress, version: 1, slices: true },
    "<peer>/probe/<name>": { ...probed, asked: 2, answered: 1, machines: [{ vm: "c1-4", answered: 1 }] },
    "presence/self": { ...life, answers: true, boot: 1 },
    "presence/failed/<name>": { ...life, host: "h3" },
    "presence/doubted/<name>": { ...life, host: "h3" },
    "<peer>/call": { call: 1 },
    "<peer>/claim/<name>": { epoch: 3 },
  },
  presence: {
    "vote/<name>": life,
    "suspected/<name>": { ...life, host: "h1" },
    "missed/<name>": { ...life, host: "h1" },
    "dead/<name>": { ...life, host: "h1", declaredAt: 1_700_000_000_000, reporters: 3, returned: 2, ended: 1 },
    call: { call: 1 },
  },
  directory: {
    "<peer>/reach/<uid>": { agreed: true, hosts: [{ address: "10.64.0.2", hosts: ["h2"] }] },
    "<peer>/want/<name>/…": { uid: "b1-1", shows },
  },
  "cell-manager": {
    "<peer>/cell/<uid>": {
      ...progress,
      controller: "controller.child.shop",
      address: "10.0.3.8",
      version: 1,
      quota: asked,
      services: { placer: 1, storageManager: 1 },
      unguarded: true,
    },
  },
  controller: {
    "<peer>/life": { ...progress, guard: 3, guardMoves: 2, version: 1, empty: false, quota: asked },
    "<peer>/limits/<name>": { granted: { vms: 3 } },
    "owner/<name>": { cell: "shop", account: null },
  },
  gateway: {},
  authority: {
    "pin/<name>": { key: sha },
    "entrance/<name>": { address: "10.0.3.9" },
    "<peer>/enrolment/<uid>": { ...progress, key: sha },
  },
  tenancy: {
    "<peer>/look/<uid>": {
      open: true,
      user: "ann@ROOT",
      account: "ROOT/dev",
      rules: [{ verb: "cell.*", effect: "allow" }],
    },
    "<peer>/declared/<uid>": { phase: "waiting", reason: "there is no domain", tag: "a1" },
  },
} as const satisfies Samples<typeof actualDocuments>;
