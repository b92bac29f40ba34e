import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { groupKinds } from "../../../model/cell/tenants/affinity/affinity.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { actualTaken } from "../../documents/readers/placement.ts";
import type { ActualHost, ActualTaken, DesiredPlacement } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { below, seedOf } from "../../random.ts";
import { type HostView, noteTaken, type Reservation, release, reservationOf, reserve } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { defaultRatios, place, placedAt } from "../place.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";
import { choose } from "./choose.ts";

/*
 * By whatever came before, the index chooses the host that the scan of all chooses, and none where that refuses. CELLS_RUNS events, from
 * CELLS_SEED.
 */
const events = Number(process.env.CELLS_RUNS ?? 4000);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));

const names = Array.from({ length: 14 }, (_, at) => `h${at + 1}`);
const cells = ["root", "k1", "k2", "k3", "t.k1"];
const accounts = ["ROOT/d1/a1", "ROOT/d1/a2", "ROOT/a3"];
const groups = ["g", "n", "m", "DedicatedGrp-a1", "DedicatedGrp-domain-d1"];

class Cloud {
  readonly chance = { random: seedOf(seed) };
  readonly state: PlacerState;
  readonly hosts = names.map((name) => peerName(`host.${name}`));
  readonly reserved = new Map<Uid, Reservation>();
  readonly #service;
  /** Of all pools, since two may go by one path here. */
  readonly #fill: JsonObject = this.is(2) ? { fill: "pack" } : {};
  constructor() {
    this.#service = createPlacer({ self: peerName("placer"), hosts: this.hosts });
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
  }
  pick<T>(all: readonly T[]): T {
    return all[below(this.chance, all.length)] as T;
  }
  is(of: number): boolean {
    return below(this.chance, of) === 0;
  }
  desire(from: PeerName, key: string, value: JsonObject | null): void {
    this.#service.step(this.state, { kind: "desired", from, key, value }, { ms: 0, wallMs: 0 });
  }

  actual(host: HostName): ActualHost {
    const [memoryMiB, cpus] = [this.pick([2000, 3000, 4000]), this.pick([1, 2])];
    return {
      host,
      state: this.is(12) ? "draining" : "up",
      address: "10.0.1.1" as never,
      mac: "" as never,
      memoryMiB,
      cpus,

      reservedMiB: 1000,
      machineMiB: this.pick([0, 40]),
      cpuSpeedMHz: this.pick([1000, 2000]),
      accelerator: "tcg",
      ...(this.is(2) ? {} : { networkMode: this.pick(["EDGE", "MANAGED"] as const) }),
      ...(this.is(2) ? {} : { boot: 1 + below(this.chance, 3) }),
    };
  }

  /** As hosts of this version say it, of the one before, and such as lie; null: it is refused. */
  taken(): ActualTaken | null {
    const said = this.said();
    const lie = this.pick([1 - 2 ** -21, 0.5, 1.5, 2 ** 30, 2 ** 32, 2 ** 48, -1]);
    return actualTaken.of(toJson(this.is(4) ? { ...said, memoryMiB: lie } : said));
  }
  said(): ActualTaken {
    const room = { memoryMiB: this.pick([1, 100]), cpus: 1 };
    if (this.is(4)) return room;
    const group = { name: this.pick(["g", "n", "m"]), kind: this.pick(groupKinds) };
    const implicit = this.is(3) ? { implicit: this.pick(["strict", "preferred"] as const) } : {};
    const terms = { ...implicit, ...(this.is(2) ? {} : { groups: [group] }) };
    return { ...room, by: peerName(`controller.${this.pick(cells)}`), terms };
  }

  request(): { readonly client: PeerName; readonly request: DesiredPlacement } {
    const cell = this.pick(cells);
    const vm = `v${below(this.chance, 60)}` as Uid;
    const placement: Record<string, JsonObject[string]> = {};
    if (this.is(3)) placement.groups = this.is(3) ? [this.pick(groups), this.pick(groups)] : this.pick(groups);
    if (this.is(4)) placement.dedication = this.pick(["strict", "preferred"]);
    if (this.is(4)) placement.spread = this.pick(["a", "b"]);
    if (this.is(5)) placement.apartFrom = [`v${below(this.chance, 60)}`];
    if (this.is(8)) placement.pool = this.pick(["p-1", "p-2", "racks"]);
    if (this.is(6)) placement.offering = this.pick(["small", "large"]);
    if (this.is(9)) placement.host = this.pick(names);
    if (this.is(7)) placement.tags = this.pick(["ssd", ["ssd", "gpu"], "none"]);
    if (this.is(9)) placement.properties = this.pick([{ sriov: 4 }, { gpu: "a100", sriov: 8 }]);
    if (this.is(8)) placement.zone = this.pick(["z1", "z2"]);
    if (this.is(4)) placement.fill = this.pick(["pack", "spread"]);
    if (this.is(3)) placement.spreadOver = this.pick(["zone", "pod", "cluster", "host"]);
    if (this.is(4)) placement.nice = this.nice();
    const request: DesiredPlacement = {
      vm,
      path: `${cell.split(".")[0]}/${vm}` as never,
      cell: cell as never,
      incarnation: 1,
      placement,
      memoryMiB: this.pick([50, 100, 255, 256, 300, 900]),
      cpus: 1 + below(this.chance, 6),
      cpuSpeedMHz: this.pick([0, 0, 1500]),
      ...(this.is(6) ? { avoid: [this.pick(names), this.pick(names)].map(hostName) } : {}),
      ...(this.is(6) ? { restart: true as const } : {}),
      ...(this.is(4) ? { networkMode: this.pick(["EDGE", "MANAGED"] as const) } : {}),
      ...(this.is(3) ? { image: this.pick(["debian", "alpine"]) } : {}),
    };
    return { client: peerName(`controller.${cell}`), request };
  }

  nice(): JsonObject {
    const wishes: readonly JsonObject[] = [
      { zone: this.pick(["z1", "z2"]) },
      { cluster: "z1/p1/c1" },
      { tags: this.pick(["ssd", "gpu", "none"]) },
      { properties: { sriov: 4 } },
      { group: this.pick(["g", "n", "m"]) },
      ...(this.is(3) ? [{ memory: this.pick([400, 1000, 1900]) }, { cpus: this.pick([7, 20]) }] : []),
    ];
    const several = Array.from({ length: 1 + below(this.chance, 3) }, (_, at) => [
      `w${at}`,
      { ...this.pick(wishes), weight: 1 + below(this.chance, 3) },
    ]);
    return Object.fromEntries(several);
  }

  happen(): void {
    const { state } = this;
    const root = peerName("controller.root");
    const peer = this.pick(this.hosts);
    const name = hostName(peer.slice("host.".length));
    const view: HostView = state.hosts.get(peer) ?? assert.fail();
    const what = below(this.chance, 14);
    if (what === 0) state.hosts.set(peer, { ...view, reachable: !this.is(4), actual: this.actual(name) });
    else if (what === 13) {
      const said = {
        ...(this.is(2) ? { cluster: this.pick(["z1/p1/c1", "z2/p1/c1"]) } : {}),
        ...(this.is(3) ? {} : { tags: this.pick([["ssd"], ["ssd", "gpu"], ["gpu"]]) }),
        ...(this.is(2) ? { properties: this.pick([{ sriov: 8 }, { sriov: 2 }, { gpu: "a100", sriov: 8 }]) } : {}),
      };
      this.desire(root, `marks/${name}`, this.is(5) ? null : { host: name, ...said });
    } else if (what === 12) {
      const [uid, cell] = [this.pick(["p-1", "p-2"]), this.pick(["k1", "k2"])];
      const as = { uid, cell, path: `${cell}/racks`, name: `own-${name}`, enabled: !this.is(3) };
      const wishes = {
        ...this.#fill,
        ...(this.is(2) ? { cpuRatio: this.pick([1, 2, 3]) } : {}),
        ...(this.is(3) ? { memoryPercent: this.pick([30, 70]) } : {}),
        ...(this.is(4) ? { offerings: this.pick([["small"], ["small", "large"]]) } : {}),
        ...(this.is(5) ? { images: ["debian"] } : {}),
      };
      const pool = this.is(3) ? null : { ...as, ...wishes, authorised: this.is(2) ? accounts : [this.pick(accounts)] };
      this.desire(root, `pooled/${name}`, this.is(2) ? null : { host: name, flavor: "large", tag: uid, pool });
    } else if (what === 1) {
      const owner = { kind: "domain", path: "ROOT/d1" };
      const of = {
        host: name,
        of: name,
        level: this.pick(["host", "zone"]),
        to: this.is(2) ? owner : { kind: "account", path: this.pick(accounts) },
      };
      this.desire(root, `dedicated/${name}`, this.is(2) ? null : of);
    } else if (what === 2)
      this.desire(
        root,
        `host/${name}`,
        this.is(2) ? null : { host: name, state: this.pick(["disabled", "maintenance", "reserved"]) },
      );
    else if (what === 3) {
      const cell = this.pick(["k1", "k2", "k3"]);
      this.desire(root, `owner/${cell}`, this.is(5) ? null : { cell, account: this.pick(accounts) });
    } else if (what === 4) {
      const [cell, group] = [this.pick(["k1", "k2", "k3"]), this.pick(["g", "n"])];
      const value = { uid: `${cell}-${group}`, path: `${cell}/${group}`, name: group, kind: this.pick(groupKinds) };
      this.desire(peerName(`controller.${cell}`), `group/${cell}-${group}`, this.is(6) ? null : value);
    } else if (what === 5)
      noteTaken(state.usage, name, `v${below(this.chance, 60)}` as Uid, this.is(10) ? this.taken() : null);
    else if (what < 8) {
      const gone = this.pick([...this.reserved.values(), null]);
      if (gone === null) return;
      this.reserved.delete(gone.vm);
      release(state.usage, gone);
    }
  }
}

test("the index chooses what a scan of all hosts chooses", (context) => {
  const cloud = new Cloud();
  const { state } = cloud;
  let [placed, refused, given] = [0, 0, 0];
  for (let event = 0; event < events; event += 1) {
    cloud.happen();
    if (cloud.is(20)) state.settings = { systemHosts: cloud.pick([0, 2, 5, 9]) };
    const { client, request } = cloud.request();
    const asker = askerOf(state, client);
    const scan = place([...state.hosts.values()], state.usage, request, defaultRatios, asker);
    const chosen = choose(state, request, asker);
    const found = chosen === null ? null : placedAt(chosen);
    const said = (): string => `seed ${seed}, event ${event}: ${JSON.stringify({ request, scan, found })}`;
    if ("refusals" in scan) assert.equal(found, null, said());
    else assert.deepEqual(found, scan, said());
    if ("refusals" in scan) refused += 1;
    else placed += 1;
    if (found === null || cloud.is(3)) continue;
    const before = cloud.reserved.get(request.vm);
    if (before !== undefined) release(state.usage, before);
    const off = cloud.is(8) ? { off: true as const } : {};
    if ("refusals" in found) assert.fail(said());
    if (found.given !== undefined) given += 1;
    const reservation = reservationOf(client, { ...request, ...found.given, ...off }, found);
    cloud.reserved.set(request.vm, reservation);
    reserve(state.usage, reservation);
  }
  context.diagnostic(
    `seed ${seed}: ${placed} placed, ${given} of them with more than they have to have, ${refused} refused`,
  );
  // Of fewer events nothing is asked: at first no host is there, and few are given more.
  if (events < 1000) return;
  assert.ok(placed > events / 10 && refused > events / 10, `${placed} placed, ${refused} refused`);
  if (events >= 4000) assert.ok(given > events / 1000, `${given} given more`);
});
