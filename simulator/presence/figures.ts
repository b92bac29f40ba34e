import type { SwimConfig } from "../../core/presence/swim/configuration.ts";
import { nextRandom } from "../../core/random.ts";
import { crashHost, createGroup, type Group, pauseHost, restartHost, startGroup } from "./groups.ts";
import { after, type Host, type NetworkOptions, runUntil, type WorldOptions } from "./world.ts";

/** The figures of the issue, measured on the simulator. All times are simulated unless `wall` says otherwise. */
const lan = { duplicate: 0, fastestMs: 0.2, slowestMs: 2 } as const;
const warmUpMs = 30_000;
const members = 3;

/** `share` of the hosts stand still for `pauseMs`, run for about `runMs`, and so on. */
export interface Pauses {
  readonly share: number;
  readonly pauseMs: number;
  readonly runMs: number;
}
export interface Conditions {
  readonly hosts: number;
  readonly seed: number;
  readonly loss: number;
  readonly pauses: Pauses | null;
  readonly config?: Partial<SwimConfig>;
}
/** hashicorp/memberlist's defaults, as far as they have a counterpart here; it has no private doubts and no early looks. */
export const memberlistDefaults: Partial<SwimConfig> = {
  doubtMs: 0,
  confirmers: 0,
  suspicionFactor: 4,
  suspicionMaxFactor: 6,
  gossipTo: 3,
  retransmitFactor: 4,
  packetsPerSecond: 1000,
};
const worldOf = ({ hosts, seed, loss, config = {} }: Conditions): WorldOptions => {
  const network: NetworkOptions = { ...lan, loss };
  return { hosts, seed, network, config };
};
const start = (conditions: Conditions): { readonly group: Group; readonly paused: { count: number } } => {
  const group = createGroup(worldOf(conditions), members);
  startGroup(group);
  const paused = { count: 0 };
  const { pauses } = conditions;
  if (pauses !== null) {
    const { world } = group;
    const cycle = (host: Host): void =>
      after(world, 2 * nextRandom(world.random) * pauses.runMs, () => {
        paused.count += 1;
        pauseHost(group, host, pauses.pauseMs, false, () => cycle(host));
      });
    const every = Math.round(1 / pauses.share);
    for (const host of world.hosts) if (host.index % every === 0) cycle(host);
  }
  runUntil(group.world, warmUpMs);
  paused.count = 0;
  return { group, paused };
};

export interface DeathFigures {
  /** From the crash until the first member of the group declared it. */
  readonly declaredMs: readonly number[];
  /** From the crash until every host that runs knew. */
  readonly knownMs: readonly number[];
  /** Deaths that nobody declared, or that not all came to know, within a minute. */
  readonly missed: number;
  readonly falseDeaths: number;
}
/** Hosts crash one after the other, each in a moment of its own, and come back when all know. */
export const measureDeaths = (conditions: Conditions, deaths: number): DeathFigures => {
  const { group } = start(conditions);
  const { world } = group;
  const declaredMs: number[] = [];
  const knownMs: number[] = [];
  let missed = 0;
  let truths = 0;
  for (let death = 0; death < deaths; death += 1) {
    const victim = world.hosts[Math.floor(nextRandom(world.random) * world.hosts.length)];
    if (victim === undefined || victim.state === null) continue;
    runUntil(world, world.now + 1000 * nextRandom(world.random));
    const at = world.now;
    const { generation } = victim;
    crashHost(group, victim);
    const known = new Set<Host>();
    let lastAt = at;
    group.onKnown = (host, dead) => {
      if (dead !== victim.name) return;
      known.add(host);
      lastAt = world.now;
    };
    const live = world.hosts.filter((host) => host.state !== null).length;
    while (known.size < live && world.now < at + 60_000) runUntil(world, world.now + 250);
    const declaration = group.declarations.find(
      (made) => made.host === victim.name && made.generation === generation && made.at >= at,
    );
    if (declaration === undefined || known.size < live) missed += 1;
    else {
      declaredMs.push(declaration.at - at);
      knownMs.push(lastAt - at);
    }
    if (declaration !== undefined) truths += 1;
    restartHost(group, victim);
    runUntil(world, world.now + 5000);
  }
  const declared = new Set(group.declarations.map(({ host, generation }) => `${host} ${generation}`));
  return { declaredMs, knownMs, missed, falseDeaths: declared.size - truths };
};

export interface QuietFigures {
  readonly simulatedMs: number;
  readonly wallMs: number;
  /** Of this process: what the wall time would be with nobody else on the machine. */
  readonly cpuMs: number;
  readonly pauses: number;
  /** Declared although nobody crashed. */
  readonly falseDeaths: number;
  /** Reports of single hosts to the group; all of them wrong here. */
  readonly wrongReports: number;
  /** Packets sent per host and second: on average, and by the busiest host in its busiest ten seconds. */
  readonly meanPackets: number;
  readonly busiestPackets: number;
}
const windowMs = 10_000;
/**
 * Nobody dies. `report` hears of each window with the figures so far, so that a long run can be watched.
 */
export const measureQuiet = (
  conditions: Conditions,
  simulatedMs: number,
  report?: (figures: QuietFigures) => void,
): QuietFigures => {
  const { group, paused } = start(conditions);
  const { world } = group;
  const from = world.now;
  const wall = performance.now();
  const cpu = process.cpuUsage();
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 1000;
  };
  const { failed } = group;
  const packets = world.packets;
  const declared = group.declarations.length;
  let busiest = 0;
  const figures = (): QuietFigures => ({
    simulatedMs: world.now - from,
    wallMs: performance.now() - wall,
    cpuMs: cpuMs(),
    pauses: paused.count,
    falseDeaths: new Set(group.declarations.slice(declared).map(({ host, generation }) => `${host} ${generation}`))
      .size,
    wrongReports: group.failed - failed,
    meanPackets: ((world.packets - packets) * 1000) / (world.hosts.length * (world.now - from)),
    busiestPackets: (busiest * 1000) / windowMs,
  });
  while (world.now < from + simulatedMs) {
    for (const host of world.hosts) host.sent = 0;
    runUntil(world, world.now + windowMs);
    for (const host of world.hosts) if (host.sent > busiest) busiest = host.sent;
    report?.(figures());
  }
  return figures();
};
