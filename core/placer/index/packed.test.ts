import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { actualHost } from "../../documents/readers/placement.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { below, seedOf } from "../../random.ts";
import { type Reservation, release, reservationOf, reserve } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { defaultRatios, place, placedAt } from "../place.ts";
import { host } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";
import { choose } from "./choose.ts";

/*
 * Where VMs pack, of hundreds of hosts that are as full as each other the first by name is wanted, whatever of them is full, dedicated, or has others of the VM's
 * groups; and nobody looks at all of them to find it. CELLS_RUNS events, from CELLS_SEED.
 */
const events = Number(process.env.CELLS_RUNS ?? 900);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const root = peerName("controller.root");
const cells = ["k1", "k2"];
const accountOf = (cell: string): string => `ROOT/${cell}`;
const groups: readonly JsonObject[] = [
  { name: "s", kind: "host anti-affinity" },
  { name: "n", kind: "non-strict host anti-affinity" },
  { name: "t", kind: "host affinity" },
];

/** A Placer whose hosts are as full as each other. */
function cloud(count: number, cpus: (at: number) => number) {
  const peers = Array.from({ length: count }, (_, at) => peerName(`host.h${at}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state: PlacerState = service.restore({ records: new Map(), desiredAt: new Map() });
  const desire = (from: PeerName, key: string, value: JsonObject | null): unknown =>
    service.step(state, { kind: "desired", from, key, value }, { ms: 0, wallMs: 0 });
  for (const [at, peer] of peers.entries()) {
    const name = hostName(peer.slice("host.".length));
    const actual = actualHost.of(host(name, 3000, { cpus: cpus(at), machineMiB: 0 })) ?? assert.fail();
    state.hosts.set(peer, { host: name, reachable: true, actual });
  }
  for (const cell of cells) {
    desire(root, `owner/${cell}`, { cell, account: accountOf(cell) });
    for (const { name, kind } of groups) {
      const group = { uid: `${cell}-${name}`, path: `${cell}/${name}`, name: name ?? null, kind: kind ?? null };
      desire(peerName(`controller.${cell}`), `group/${cell}-${name}`, group);
    }
  }
  return { state, desire };
}
const request = (vm: string, cell: string, more: Partial<DesiredPlacement>): DesiredPlacement => ({
  vm: vm as Uid,
  path: `${cell}/${vm}` as never,
  cell: cell as never,
  incarnation: 1,
  placement: { fill: "pack" },
  memoryMiB: 500,
  cpus: 1,
  cpuSpeedMHz: 0,
  ...more,
});

test("of hundreds of hosts that are as full as each other a VM that packs gets the one that a scan of all finds", (context) => {
  const chance = { random: seedOf(seed) };
  const pick = <T>(all: readonly T[]): T => all[below(chance, all.length)] as T;
  const is = (of: number): boolean => below(chance, of) === 0;
  const { state, desire } = cloud(320, (at) => (at % 9 === 0 ? 1 : 2));
  const reserved: Reservation[] = [];
  const names = [...state.hosts.values()].map((view) => view.host);
  let [packed, refused, passed] = [0, 0, 0];
  const asked = (event: number): DesiredPlacement => {
    // In turn hosts are filled alike, so that many have as much left, and one after the other.
    const packs = Math.floor(event / 150) % 2 === 1 || is(3);
    const placement: Record<string, JsonObject[string]> = packs ? { fill: "pack" } : {};
    if (is(3)) placement.groups = pick(["s", "n", "t"]);
    if (is(4)) placement.spread = pick(["a", "b"]);
    if (is(6)) placement.dedication = pick(["strict", "preferred"]);
    if (is(9)) placement.apartFrom = [`v${below(chance, event + 1)}`];
    const avoid = is(6) ? [pick(names), pick(names)] : [];
    return request(`v${event}`, pick(cells), {
      placement,
      memoryMiB: pick([500, 500, 1000]),
      cpus: pick([1, 8]),
      avoid,
    });
  };
  for (let event = 0; event < events; event += 1) {
    if (is(12)) {
      const name = pick(names);
      const to = { kind: "account", path: accountOf(pick(cells)) };
      desire(root, `dedicated/${name}`, is(2) ? null : { host: name, of: name, level: "host", to });
    }
    if (reserved.length > 500 || (reserved.length > 0 && is(4))) {
      const at = below(chance, reserved.length);
      release(state.usage, reserved[at] ?? assert.fail());
      reserved.splice(at, 1);
    }
    const wanted = asked(event);
    const client = peerName(`controller.${wanted.cell}`);
    const asker = askerOf(state, client);
    const scan = place([...state.hosts.values()], state.usage, wanted, defaultRatios, asker);
    const chosen = choose(state, wanted, asker);
    const said = (): string => `seed ${seed}, event ${event}: ${JSON.stringify({ wanted, scan, chosen })}`;
    if (chosen === null || "refusals" in scan) {
      assert.ok(chosen === null && "refusals" in scan, said());
      refused += 1;
      continue;
    }
    assert.deepEqual(placedAt(chosen), scan, said());
    if (chosen.packs === true) packed += 1;
    const before = names.slice(0, names.indexOf(chosen.host)).length;
    if (chosen.packs === true && before > 128) passed += 1;
    const reservation = reservationOf(client, wanted, { host: chosen.host });
    reserve(state.usage, reservation);
    reserved.push(reservation);
  }
  context.diagnostic(
    `seed ${seed}: ${packed} packed, ${passed} of them far behind the first by name, ${refused} refused`,
  );
  if (events >= 900) assert.ok(packed > events / 4, `${packed} packed`);
});

/** How many hosts of the index were looked at by a choice. */
function lookedAt(
  state: PlacerState,
  wanted: DesiredPlacement,
): { readonly hosts: number; readonly found: HostName | null } {
  const asker = askerOf(state, peerName(`controller.${wanted.cell}`));
  choose(state, wanted, asker);
  const seen = new Set<HostName>();
  for (const entry of state.index.entries.values())
    for (const field of ["freeMiB", "freeCpus"] as const) {
      const value = entry[field];
      Object.defineProperty(entry, field, {
        configurable: true,
        get: () => {
          seen.add(entry.host);
          return value;
        },
      });
    }
  return { found: choose(state, wanted, asker)?.host ?? null, hosts: seen.size };
}

test("to open one of 3,000 empty hosts a VM that packs looks at few of them, and at none of those that are full", () => {
  const { state } = cloud(3000, () => 64);
  const names = [...state.hosts.values()].map((view) => view.host).toSorted();
  for (const [at, name] of names.slice(0, 1000).entries()) {
    const full = request(`f${at}`, "k2", { memoryMiB: 2000 });
    reserve(state.usage, reservationOf(peerName("controller.k2"), full, { host: name }));
  }
  const first = lookedAt(state, request("v1", "k1", {}));
  assert.equal(first.found, names[1000]);
  assert.ok(first.hosts <= 256, `${first.hosts} were looked at`);
  // Of those with others of its group nearly all have room, and none is taken.
  for (const [at, name] of names.slice(1000, 1040).entries()) {
    const mate = request(`m${at}`, "k1", { placement: { groups: "s" } });
    reserve(state.usage, reservationOf(peerName("controller.k1"), mate, { host: name }));
  }
  const apart = lookedAt(state, request("v2", "k1", { placement: { fill: "pack", groups: "s" } }));
  assert.equal(apart.found, names[1040]);
  assert.ok(apart.hosts <= 384, `${apart.hosts} were looked at`);
});
