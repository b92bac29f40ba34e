import assert from "node:assert/strict";
import { test } from "node:test";
import { type ElementPath, type HostName, hostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { type Move, type Rebalance, rebalanceGoals } from "../../../model/contract/operator/placement.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { PooledAs } from "../../documents/pools.ts";
import { below, seedOf } from "../../random.ts";
import { type HostView, type Reservation, release, reserve, UsageTable } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import type { PlacerState } from "../state.ts";
import { faultsOf } from "./check-moves.ts";
import { cloudOf, pickOf, requestOf } from "./clouds.testing.ts";
import { type RebalanceAsked, rebalance } from "./rebalance.ts";
import { wholeOf } from "./sliced.ts";
import { thought } from "./thought.ts";

/*
 * Plans of moves in small clouds: each is lawful by a checker of its own, and as good as the best of all ways of standing that lawful moves reach. By
 * CELLS_SEED and CELLS_RUNS.
 */
const runs = Number(process.env.CELLS_RUNS ?? 80);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const chance = { random: seedOf(seed) };
const planned = (state: PlacerState, asked: RebalanceAsked, ways?: number): Rebalance =>
  wholeOf(rebalance(wholeOf(thought(state)), asked, ways));
const faultsIn = (state: PlacerState, moves: readonly Move[]): readonly string[] => wholeOf(faultsOf(state, moves));

/** How bad it is where VMs stand so: by plain sums. */
function badness(state: PlacerState, { goal, host }: RebalanceAsked, at: ReadonlyMap<Uid, HostName>): number {
  const there = (name: HostName) => [...at].filter(([, each]) => each === name).map(([vm]) => vm);
  const living = [...state.hosts.values()].filter(({ reachable }) => reachable);
  if (goal === "empty") return host === null ? 0 : there(host).length;
  if (goal === "pack") return living.filter((view) => there(view.host).length > 0).length;
  let sum = 0;
  for (const { host: name, actual, closed } of living) {
    const { memoryMiB, reservedMiB, machineMiB = 0 } = actual ?? assert.fail();
    const used = there(name).reduce((total, vm) => {
      const guest = state.reservations.get(vm)?.memoryMiB ?? 0;
      return total + guest + (guest < 256 ? 1 : 2) * machineMiB;
    }, 0);
    if (closed === undefined) sum += (used / (memoryMiB - reservedMiB)) ** 2;
  }
  return sum;
}

/** The best that any order of lawful moves reaches. */
function bruteForce(state: PlacerState, asked: RebalanceAsked): number {
  const usage = new UsageTable();
  const at = new Map<Uid, HostName>();
  for (const each of state.reservations.values()) {
    reserve(usage, each);
    at.set(each.vm, each.host);
  }
  const living = [...state.hosts.values()].filter(({ reachable }) => reachable);
  const isHeard = (host: HostName): boolean => living.some((view) => view.host === host);
  const movable = [...state.reservations.values()].filter(
    ({ host }) => isHeard(host) && (asked.goal !== "empty" || host === asked.host),
  );
  const seen = new Set<string>();
  const look = (): number => {
    const key = movable.map(({ vm }) => at.get(vm)).join();
    if (seen.has(key)) return Number.POSITIVE_INFINITY;
    seen.add(key);
    let best = badness(state, asked, at);
    for (const reservation of movable) {
      const here: Reservation = { ...reservation, host: at.get(reservation.vm) as HostName };
      const { client, document } = state.wanted.get(reservation.vm) ?? assert.fail();
      for (const view of living) {
        if (view.host === here.host) continue;
        if ("refusals" in place([view], usage, document, state.ratios, askerOf(state, client))) continue;
        release(usage, here);
        reserve(usage, { ...here, host: view.host });
        at.set(here.vm, view.host);
        best = Math.min(best, look());
        at.set(here.vm, here.host);
        release(usage, { ...here, host: view.host });
        reserve(usage, here);
      }
    }
    return best;
  };
  return look();
}

function after(state: PlacerState, moves: readonly Move[]): ReadonlyMap<Uid, HostName> {
  const at = new Map([...state.reservations.values()].map(({ vm, host }) => [vm, host] as const));
  for (const { uid, to } of moves) at.set(uid, to);
  return at;
}

test("plans of moves are lawful one after the other, and of small clouds the best there is", (context) => {
  const [gained, bestAnyway, tried] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const more = (counts: Map<string, number>, goal: string): void => void counts.set(goal, (counts.get(goal) ?? 0) + 1);
  // Some seeds draw few clouds in which anything is gained.
  const isEnough = (): boolean => rebalanceGoals.every((goal) => (gained.get(goal) ?? 0) > 2);
  for (let run = 0; run < runs || (runs >= 60 && run < 20 * runs && !isEnough()); run += 1) {
    const state = cloudOf(chance, 2 + below(chance, 2), 2 + below(chance, 4), 1);
    const goal = pickOf(chance)(rebalanceGoals);
    const asked: RebalanceAsked = { goal, host: goal === "empty" ? hostName("h1") : null };
    const placed = JSON.stringify([...state.usage].map(([host, { memoryMiB }]) => [host, memoryMiB]));
    const best = bruteForce(state, asked);
    const first = badness(state, asked, after(state, []));
    const plan = planned(state, asked);
    const said = `seed ${seed}, run ${run}: ${JSON.stringify(plan)}`;
    assert.deepEqual(faultsIn(state, plan.moves), [], said);
    const reached = badness(state, asked, after(state, plan.moves));
    assert.ok(Math.abs(reached - best) < 1e-6, `${reached}, not ${best}: ${said}`);
    // As in a large cloud: lawful, never worse, and mostly as good.
    const quick = planned(state, asked, 0);
    assert.deepEqual(faultsIn(state, quick.moves), [], `seed ${seed}, run ${run}: ${JSON.stringify(quick)}`);
    const quickly = badness(state, asked, after(state, quick.moves));
    assert.ok(quickly <= first + 1e-9 && quickly >= best - 1e-6, said);
    more(tried, goal);
    if (best < first - 1e-6) more(gained, goal);
    if (quickly < best + 1e-6) more(bestAnyway, goal);
    const now = JSON.stringify([...state.usage].map(([host, { memoryMiB }]) => [host, memoryMiB]));
    assert.equal(now, placed, "nothing is moved");
  }
  const counts = rebalanceGoals.map(
    (goal) =>
      `${goal}: ${gained.get(goal)} of ${tried.get(goal)} gain, ${bestAnyway.get(goal)} the best without looking at all`,
  );
  context.diagnostic(`seed ${seed}: ${counts.join("; ")}`);
  assert.ok(runs < 60 || isEnough(), counts.join("; "));
});

test("the checker finds what is wrong with a plan", () => {
  const state = cloudOf({ random: seedOf(7) }, 3, 0);
  const put = (vm: string, host: string, memoryMiB: number, cell: string, placement = {}): void => {
    const client = peerName(`controller.${cell}`);
    const about = {
      vm: vm as Uid,
      path: `${cell}/${vm}` as never,
      cell: cell as never,
      incarnation: 1,
      memoryMiB,
      cpus: 1,
    };
    state.wanted.set(vm as Uid, { client, document: { ...about, cpuSpeedMHz: 0, placement } });
    const reservation: Reservation = { ...about, client, host: hostName(host), apartFrom: [] };
    state.reservations.set(vm as Uid, reservation);
    reserve(state.usage, reservation);
  };
  for (const [at, [peer, { host, actual }]] of [...state.hosts].entries()) {
    const plain = { ...(actual ?? assert.fail()), memoryMiB: 2000, machineMiB: 40, cpus: at === 2 ? 0 : 1 };
    state.hosts.set(peer, { host, reachable: true, actual: plain });
  }
  put("large", "h1", 900, "shop");
  put("half", "h2", 500, "shop", { groups: ["apart"], apartFrom: ["named"] });
  put("strict", "h1", 16, "bank", { dedication: "strict" });
  put("tagged", "h1", 16, "shop", { tags: ["none"], groups: ["apart"] });
  put("pinned", "h1", 16, "shop", { host: "h1" });
  put("edge", "h1", 16, "shop", { pod: "p1", cluster: "z1/p1/c1", properties: { sriov: 2, gpu: "a100" } });
  const edge = state.wanted.get("edge" as Uid) ?? assert.fail();
  state.wanted.set("edge" as Uid, { ...edge, document: { ...edge.document, networkMode: "EDGE" } });
  put("named", "h1", 16, "shop", { groups: ["together"] });
  put("other", "h1", 16, "shop", { groups: ["together"] });
  const fault = (uid: string, to = "h2", from = "h1"): string => {
    const move: Move = { uid: uid as Uid, vm: uid, from: hostName(from), to: hostName(to), memoryMiB: 1 };
    return faultsIn(state, [move]).join("; ");
  };
  assert.match(fault("large"), /no memory/);
  assert.match(fault("large", "h3"), /no processors/);
  assert.match(fault("large", "h9"), /nobody hears/);
  assert.match(fault("large", "h1"), /already/);
  assert.match(fault("large", "h2", "h3"), /is at h1/);
  assert.match(fault("none"), /no VM/);
  assert.match(fault("strict"), /it is strict/);
  assert.match(fault("half", "h1", "h2"), /somebody strict is there.*apart is there.*apart from shop\/named/);
  assert.match(fault("tagged"), /other tags.*another of apart is there/);
  assert.match(fault("pinned"), /asks for another host/);
  assert.match(fault("edge"), /mode EDGE.*another pod.*another cluster.*another sriov.*another gpu/);
  const two = state.hosts.get(peerName("host.h2")) ?? assert.fail();
  const offers = { ...(two.actual ?? assert.fail()), networkMode: "EDGE" as const };
  const marks = { cluster: "z1/p1/c1", tags: [], properties: { sriov: 8, gpu: "a100" } };
  state.hosts.set(peerName("host.h2"), { ...two, actual: offers, marks });
  assert.equal(fault("edge"), "");
  state.hosts.set(peerName("host.h2"), two);
  assert.match(fault("named"), /others of together are elsewhere.*apart from shop\/half/);
  const view = state.hosts.get(peerName("host.h2")) ?? assert.fail();
  const rule = { of: "h2", level: "host", to: { kind: "account", path: "ROOT/a2" } } as const;
  state.hosts.set(peerName("host.h2"), { ...view, rule, closed: "disabled" });
  assert.match(fault("other"), /takes no VMs.*somebody else's/);
});

test("the checker knows which pool, whose dedication, the rule for tags, and what is left to the cloud's own VMs", () => {
  const state = cloudOf({ random: seedOf(7) }, 6, 0);
  const client = peerName("controller.shop");
  const put = (vm: string, host: string, placement: JsonObject, more: { readonly image?: string } = {}): void => {
    const about = { ...requestOf(vm, "shop", { memoryMiB: 16, placement, ...more }) };
    state.wanted.set(vm as Uid, { client, document: about });
    const reservation: Reservation = { ...about, client, host: hostName(host), apartFrom: [] };
    state.reservations.set(vm as Uid, reservation);
    reserve(state.usage, reservation);
  };
  const views = new Map<string, HostView>();
  for (const [peer, { host, actual }] of state.hosts) {
    const view = { host, reachable: true, actual: { ...(actual ?? assert.fail()), memoryMiB: 4000, cpus: 8 } };
    state.hosts.set(peer, view);
    views.set(host, view);
  }
  const set = (host: string, more: Partial<HostView>): void =>
    void state.hosts.set(peerName(`host.${host}`), { ...(views.get(host) ?? assert.fail()), ...more });
  const fault = (uid: string, to = "h2"): string => {
    const move: Move = { uid: uid as Uid, vm: uid, from: hostName("h1"), to: hostName(to), memoryMiB: 1 };
    return faultsIn(state, [move]).join("; ");
  };
  const account = "ROOT/d1/a1";
  const pool = {
    uid: "p-1" as Uid,
    cell: "shop",
    path: "shop/racks" as ElementPath,
    name: "r",
    enabled: true,
    authorised: [account],
  };
  const pooledAs = (more: Partial<PooledAs>) => ({ pooled: { flavor: "large", tag: "t", pool: { ...pool, ...more } } });
  put("none", "h1", {});
  put("racks", "h1", { pool: "racks", offering: "small" }, { image: "debian" });
  put("byuid", "h1", { pool: "p-1" });
  put("wrong", "h1", { pool: "p-2" });
  set("h2", pooledAs({}));
  assert.match(fault("none"), /asks for no pool/);
  assert.match(fault("racks", "h3"), /in no pool/);
  for (const vm of ["racks", "byuid"]) assert.equal(fault(vm), "", vm);
  assert.match(fault("wrong"), /in another pool/);
  set("h2", pooledAs({ enabled: false, authorised: ["ROOT/a2"] }));
  assert.match(fault("byuid"), /disabled it.*not for that account/);
  set("h2", pooledAs({ offerings: ["small"], images: ["debian"] }));
  assert.equal(fault("racks"), "");
  assert.match(fault("byuid"), /other offerings.*other images/);

  const rule = (kind: "account" | "domain", path: string, level: "host" | "zone" = "host") => ({
    rule: { of: "h2", level, to: { kind, path } },
  });
  put("explicit", "h1", { groups: ["DedicatedGrp-a1"] });
  put("domain", "h1", { groups: "DedicatedGrp-domain-d1" });
  set("h2", rule("account", account));
  assert.match(fault("none"), /does not ask for that/);
  assert.equal(fault("explicit"), "");
  assert.match(fault("domain"), /asks for hosts of DedicatedGrp-domain-d1/);
  assert.match(fault("explicit", "h3"), /asks for hosts of DedicatedGrp-a1/);
  set("h2", rule("domain", "ROOT/d1"));
  assert.equal(fault("domain"), "");
  set("h2", rule("account", account, "zone"));
  assert.equal(fault("none"), "", "in a zone of its own");

  put("tagged", "h1", { tags: "ssd" });
  put("held", "h1", { tags: "ssd", dedication: "preferred" });
  put("group", "h1", { tags: "ssd", groups: ["DedicatedGrp-a1"] });
  const marks = { tags: ["ssd"] };
  set("h2", { marks, ...rule("account", account, "zone") });
  assert.match(fault("tagged"), /nobody's, and it is held/);
  assert.equal(fault("group"), "");
  set("h2", { marks });
  for (const vm of ["tagged", "held"]) assert.equal(fault(vm), "", vm);
  put("plain", "h2", {});
  assert.match(fault("held"), /others are there/);
  set("h3", { marks });
  put("own", "h3", { dedication: "preferred" });
  assert.match(fault("tagged", "h3"), /it is held/);
  assert.equal(fault("held", "h3"), "");

  put("strict", "h1", { dedication: "strict" });
  for (const host of ["h2", "h3"]) set(host, { closed: "disabled" });
  state.settings = { systemHosts: 3 };
  assert.equal(fault("strict", "h4"), "", "the one that it leaves is left");
  put("stays", "h1", { dedication: "strict" });
  assert.match(fault("strict", "h4"), /one of the last that are left/);
  state.settings = { systemHosts: 2 };
  assert.equal(fault("strict", "h4"), "");
});
