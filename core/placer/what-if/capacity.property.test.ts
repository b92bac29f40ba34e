import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostName, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { below, seedOf } from "../../random.ts";
import { type HostView, noteTaken, release, reservationOf, reserve, UsageTable } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import type { PlacerState } from "../state.ts";
import { capacityOf } from "./capacity.ts";
import { cloudOf, pickOf, requestOf, shop, wishesOf } from "./clouds.testing.ts";
import { wholeOf } from "./sliced.ts";

const capacityNow = (...asked: Parameters<typeof capacityOf>) => wholeOf(capacityOf(...asked));

/*
 * What `capacityOf` says of small clouds is what is found by putting one copy after the other at every host that takes it, in every order, and by losing
 * every set of hosts. By CELLS_SEED and CELLS_RUNS.
 */
const runs = Number(process.env.CELLS_RUNS ?? 150);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const chance = { random: seedOf(seed) };
const pick = pickOf(chance);

interface Cloud {
  readonly state: PlacerState;
  readonly hosts: readonly HostView[];
  readonly usage: UsageTable;
}
const copyOf = ({ state }: Cloud, hosts: readonly HostView[], without: ReadonlySet<HostName>): Cloud => {
  const usage = new UsageTable();
  for (const [host, { reservations, taken }] of state.usage) {
    if (without.has(host)) continue;
    for (const each of reservations.values()) reserve(usage, each);
    for (const [vm, share] of taken) noteTaken(usage, host, vm, share);
  }
  return { state, hosts, usage };
};

/** The most copies that any order of putting them anywhere ends with. */
function bruteForce({ state, hosts, usage }: Cloud, client: PeerName, copy: DesiredPlacement): number {
  const seen = new Map<string, number>();
  const counts = hosts.map(() => 0);
  let serial = 0;
  const most = (): number => {
    const key = counts.join();
    const known = seen.get(key);
    if (known !== undefined) return known;
    let best = 0;
    for (const [at, view] of hosts.entries()) {
      serial += 1;
      const request = { ...copy, vm: `copy${serial}` as Uid, path: `${copy.path}${serial}` as never };
      const placed = place([view], usage, request, state.ratios, askerOf(state, client));
      if ("refusals" in placed) continue;
      const reservation = reservationOf(client, request, { host: placed.host });
      reserve(usage, reservation);
      counts[at] = (counts[at] ?? 0) + 1;
      best = Math.max(best, 1 + most());
      counts[at] = (counts[at] ?? 0) - 1;
      release(usage, reservation);
    }
    seen.set(key, best);
    return best;
  };
  return most();
}

/** The same after hosts are lost and what was there has started elsewhere, the larger first. */
function afterLoss(cloud: Cloud, lost: ReadonlySet<HostName>, client: PeerName, copy: DesiredPlacement): number {
  const { state } = cloud;
  const hosts = cloud.hosts.filter(({ host }) => !lost.has(host));
  const left = copyOf(cloud, hosts, lost);
  const homeless = [...state.reservations.values()]
    .filter(({ host }) => lost.has(host))
    .sort((one, other) => other.memoryMiB - one.memoryMiB || (one.vm < other.vm ? -1 : 1));
  for (const reservation of homeless) {
    const { client: whose, document } = state.wanted.get(reservation.vm) ?? assert.fail();
    const request = { ...document, restart: true as const };
    const placed = place(hosts, left.usage, request, state.ratios, askerOf(state, whose));
    if (!("refusals" in placed)) reserve(left.usage, { ...reservation, host: placed.host });
  }
  return bruteForce(left, client, copy);
}

test("how many more of a VM fit, also after lost hosts, is what trying every order says", (context) => {
  let [some, none, grouped, fewer] = [0, 0, 0, 0];
  for (let run = 0; run < runs; run += 1) {
    const state = cloudOf(chance, 2 + below(chance, 3), below(chance, 5));
    const placement = pick([true, false]) ? wishesOf(chance) : {};
    const memoryMiB = pick([90, 170, 256, 300]);
    const copy = requestOf("like", "shop", { memoryMiB, cpus: pick([1, 4, 9]), placement });
    const cloud: Cloud = { state, hosts: [...state.hosts.values()], usage: state.usage };
    const before = JSON.stringify([...state.usage].map(([host, { memoryMiB: of, cpus }]) => [host, of, cpus]));
    const said = capacityNow(state, { client: shop, document: copy }, 1);
    const about = `seed ${seed}, run ${run}: ${JSON.stringify({ copy, said })}`;
    const whole = bruteForce(copyOf(cloud, cloud.hosts, new Set()), shop, copy);
    assert.equal(said.more, whole, about);
    const after = JSON.stringify([...state.usage].map(([host, { memoryMiB: of, cpus }]) => [host, of, cpus]));
    assert.equal(after, before, "nothing was changed");
    if ("groups" in placement) grouped += 1;
    if (whole > 0) some += 1;
    else none += 1;
    const living = cloud.hosts.filter(({ reachable }) => reachable);
    const worst = Math.min(...living.map(({ host }) => afterLoss(cloud, new Set([host]), shop, copy)));
    if (living.length === 0 || said.failures === undefined) continue;
    assert.equal(said.failures.more, worst, about);
    assert.equal(said.failures.every, true);
    if (worst < whole) fewer += 1;
    const two = capacityNow(state, { client: shop, document: copy }, 2).failures ?? assert.fail(about);
    if (living.length < 2) continue;
    const pairs = living.flatMap((one, at) => living.slice(at + 1).map((other) => new Set([one.host, other.host])));
    assert.equal(two.more, Math.min(...pairs.map((pair) => afterLoss(cloud, pair, shop, copy))), about);
  }
  context.diagnostic(
    `seed ${seed}: ${some} with room, ${none} without, ${grouped} in groups, ${fewer} fewer after a loss`,
  );
  assert.ok(runs < 100 || (some > 20 && none > 10 && grouped > 10 && fewer > 20), "each was there");
});

test("what runs out first is said, and what keeps hosts away whatever their room", () => {
  const state = cloudOf({ random: seedOf(1) }, 3, 0);
  for (const [peer, { host, actual }] of state.hosts) {
    const plain = { ...(actual ?? assert.fail()), memoryMiB: 2000, machineMiB: 40, cpus: 1 };
    state.hosts.set(peer, { host, reachable: true, actual: plain });
  }
  const said = capacityNow(state, { client: shop, document: requestOf("like", "shop", { memoryMiB: 300 }) }, 0);
  assert.deepEqual(
    { more: said.more, hosts: said.hosts, runsOut: said.runsOut },
    { more: 6, hosts: 3, runsOut: "memory" },
  );
  const processors = requestOf("like", "shop", { memoryMiB: 20, cpus: 16 });
  assert.equal(capacityNow(state, { client: shop, document: processors }, 0).runsOut, "cpus");
  const tagged = requestOf("like", "shop", { placement: { tags: ["none"] } });
  assert.deepEqual(capacityNow(state, { client: shop, document: tagged }, 0), {
    more: 0,
    hosts: 0,
    runsOut: null,
    away: [{ kind: "pinned", hosts: 3 }],
  });
  const apart = requestOf("like", "shop", { placement: { groups: ["apart"] } });
  const apartSaid = capacityNow(state, { client: shop, document: apart }, 0);
  assert.deepEqual([apartSaid.more, apartSaid.hosts, apartSaid.runsOut], [3, 3, "hosts"]);
  const together = requestOf("like", "shop", { memoryMiB: 300, placement: { groups: ["together"] } });
  const togetherSaid = capacityNow(state, { client: shop, document: together }, 0);
  assert.deepEqual([togetherSaid.more, togetherSaid.hosts, togetherSaid.runsOut], [2, 1, "memory"]);
  const unknown = requestOf("like", "shop", { placement: { groups: ["DedicatedGrp-none"] } });
  assert.match(capacityNow(state, { client: shop, document: unknown }, 0).said ?? "", /DedicatedGrp-none/);
});

test("of VMs that are to have hosts alone none is counted where the last hosts are left to the cloud's own", () => {
  const state = cloudOf({ random: seedOf(1) }, 3, 0);
  for (const [peer, { host, actual }] of state.hosts) {
    const plain = { ...(actual ?? assert.fail()), memoryMiB: 2000, machineMiB: 40, cpus: 1 };
    state.hosts.set(peer, { host, reachable: true, actual: plain });
  }
  const strict = requestOf("like", "shop", { memoryMiB: 300, placement: { dedication: "strict" } });
  const more = (systemHosts: number, document = strict): readonly number[] => {
    state.settings = { systemHosts };
    const { more: all, hosts } = capacityNow(state, { client: shop, document }, 0);
    return [all, hosts];
  };
  assert.deepEqual(
    [0, 1, 2, 3].map((kept) => more(kept)),
    [
      [6, 3],
      [4, 2],
      [2, 1],
      [0, 0],
    ],
  );
  assert.deepEqual(more(3, requestOf("like", "shop", { memoryMiB: 300 })), [6, 3], "the others stand anywhere");
});
