import { type ActualPresenceDeath, presenceKey } from "../../core/documents/presence.ts";
import type { Effect, Input } from "../../core/env.ts";
import { createPresence } from "../../core/presence/group/group.ts";
import { answerTo, ownLife, reportsOf } from "../../core/presence/group/host-publications.ts";
import type { GroupState } from "../../core/presence/group/state.ts";
import { nextRandom } from "../../core/random.ts";
import { type HostName, hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  after,
  crash,
  createWorld,
  type Host,
  type HostEdge,
  pause,
  reliableDelay,
  startAll,
  startHost,
  stepHost,
  type World,
  type WorldOptions,
} from "./world.ts";

/**
 * The Presence group beside the hosts: the real service, over a model of state distribution. What is modelled is what its
 * promises say: a connection delivers in order, each loss costs a retransmission, a connection on which nothing came for 8 s
 * is given up (looked at every 2 s, so after 8 to 10 s), and a new one begins with a full snapshot and only then counts as
 * reachable. Connections are followed by their ends and not packet by packet, or a day of 6,000 of them would take a day.
 */
const silence = { firstMs: 8000, lastMs: 10_000 } as const;
const redial = { firstMs: 50, lastMs: 2000 } as const;

export interface Member {
  readonly index: number;
  readonly name: PeerName;
  service: ReturnType<typeof createPresence>;
  /** Null while it is crashed. */
  state: GroupState | null;
  readonly records: Map<string, Json>;
  readonly published: Map<string, Json>;
}
/** Where something is said or listened to. */
type End = { readonly host: Host; readonly member: null } | { readonly host: null; readonly member: Member };
/** One side follows the other. */
export interface Link {
  readonly source: End;
  readonly subscriber: End;
  readonly known: Map<string, Json>;
  /** What the subscriber was last told; null: nothing yet. */
  reachable: boolean | null;
  /** Packets pass and both processes run. */
  good: boolean;
  /** Grows whenever it changes between good and not: what was under way belongs to an earlier one. */
  epoch: number;
  /** When it last changed between good and not. */
  changedAt: number;
  deliveredAt: number;
}
export interface Declaration {
  readonly member: number;
  readonly host: HostName;
  readonly generation: number;
  readonly at: number;
}
export interface Group {
  readonly world: World;
  readonly members: readonly Member[];
  readonly byEnd: ReadonlyMap<Host | Member, readonly Link[]>;
  /** What each host publishes. */
  readonly hostDocuments: ReadonlyMap<Host, Map<string, Json>>;
  /** Directed pairs of a member and whatever else, both named, that are cut. */
  readonly cut: Set<string>;
  /** Every member's, in order; those that it took from another member too. */
  readonly declarations: Declaration[];
  /** Called when a host first holds another for dead. */
  onKnown: ((at: Host, host: HostName, generation: number) => void) | null;
  /** A host's own verdict that another failed. */
  failed: number;
}

const nameOf = (end: End): string => end.host?.name ?? end.member?.name ?? "";
const isUp = (end: End): boolean =>
  end.host !== null ? end.host.state !== null && !end.host.paused : end.member.state !== null;
const documentsOf = (group: Group, end: End): ReadonlyMap<string, Json> =>
  end.host !== null ? (group.hostDocuments.get(end.host) ?? new Map<string, Json>()) : end.member.published;
const peerOf = (end: End): PeerName => (end.host !== null ? peerName(`host.${end.host.name}`) : end.member.name);
/** Hosts ask the group for deaths, for whom it misses, and for calls only, and a member hosts for the answers to its own. */
const wants = ({ subscriber }: Link, key: string): boolean => {
  if (subscriber.member === null) return /^(?:dead|missed)\//.test(key) || key === presenceKey.call;
  return key === presenceKey.answer(subscriber.member.name) || (!key.endsWith("/call") && key !== presenceKey.call);
};

const isGood = (group: Group, { source, subscriber }: Link): boolean => {
  if (!isUp(source) || !isUp(subscriber)) return false;
  if (group.cut.size === 0) return true;
  const [a, b] = [nameOf(source), nameOf(subscriber)];
  return !group.cut.has(`${a}>${b}`) && !group.cut.has(`${b}>${a}`);
};

const deliver = (group: Group, link: Link, key: string, value: Json): void => {
  if (value === null) {
    if (!link.known.delete(key)) return;
  } else if (link.known.get(key) === value) return;
  else link.known.set(key, value);
  const { subscriber, source } = link;
  if (subscriber.member !== null) {
    stepMember(group, subscriber.member, { kind: "actual", from: peerOf(source), key, value });
    return;
  }
  if (value === null) return;
  const answer = answerTo(peerOf(source), key, value);
  if (answer !== null) {
    publishFrom(group, subscriber.host, answer.key, answer.value);
    return;
  }
  const { host, generation, incarnation } = value as unknown as ActualPresenceDeath;
  const isDeath = key === presenceKey.death(host);
  if (!isDeath && host === subscriber.host.name) return;
  stepHost(
    group.world,
    subscriber.host,
    isDeath ? { kind: "declared", host, generation } : { kind: "missed", host, generation, incarnation },
  );
};

const setReachable = (group: Group, link: Link, reachable: boolean): void => {
  if (link.reachable === reachable) return;
  link.reachable = reachable;
  if (link.subscriber.member !== null)
    stepMember(group, link.subscriber.member, { kind: "reachable", peer: peerOf(link.source), reachable });
};

const snapshot = (group: Group, link: Link): void => {
  const documents = documentsOf(group, link.source);
  for (const [key, value] of documents) if (wants(link, key)) deliver(group, link, key, value);
  for (const key of [...link.known.keys()]) if (!documents.has(key)) deliver(group, link, key, null);
  setReachable(group, link, true);
};

const between = (world: World, first: number, last: number): number =>
  first + nextRandom(world.random) * (last - first);

/** Looks again at every connection of somebody whose circumstances changed. */
export const reconsider = (group: Group, end: Host | Member): void => {
  const { world } = group;
  for (const link of group.byEnd.get(end) ?? []) {
    const good = isGood(group, link);
    if (good === link.good) continue;
    link.good = good;
    link.epoch += 1;
    link.changedAt = world.now;
    const { epoch } = link;
    if (good)
      after(world, between(world, redial.firstMs, redial.lastMs) + reliableDelay(world), () => {
        if (link.epoch === epoch) snapshot(group, link);
      });
    else
      after(world, between(world, silence.firstMs, silence.lastMs), () => {
        if (link.epoch === epoch) setReachable(group, link, false);
      });
  }
};

/** Said now; heard over every connection that stands. */
const spread = (group: Group, end: Host | Member, key: string, value: Json): void => {
  const { world } = group;
  for (const link of group.byEnd.get(end) ?? []) {
    if ((link.source.host ?? link.source.member) !== end || !link.good || !wants(link, key)) continue;
    const { epoch } = link;
    const at = Math.max(link.deliveredAt, world.now + reliableDelay(world));
    link.deliveredAt = at;
    after(world, at - world.now, () => {
      if (link.epoch === epoch) deliver(group, link, key, value);
    });
  }
};

const publishFrom = (group: Group, host: Host, key: string, value: Json): void => {
  const documents = group.hostDocuments.get(host);
  if (value === null) {
    if (documents?.delete(key) !== true) return;
  } else documents?.set(key, value);
  spread(group, host, key, value);
};

const carryOut = (group: Group, member: Member, effects: readonly Effect[]): void => {
  const { world } = group;
  for (const effect of effects) {
    if (effect.kind === "write") {
      if (effect.value === null) member.records.delete(effect.key);
      else member.records.set(effect.key, effect.value);
    } else if (effect.kind === "publish") {
      if (effect.value === null) member.published.delete(effect.key);
      else member.published.set(effect.key, effect.value);
      spread(group, member, effect.key, effect.value);
    } else if (effect.kind === "log" && effect.event === "presence/declared") {
      const { host, generation } = effect.fields;
      const declared = { member: member.index, host: hostName(String(host)), generation: Number(generation) };
      group.declarations.push({ ...declared, at: world.now });
    }
  }
};
const stepMember = (group: Group, member: Member, input: Input): void => {
  if (member.state === null) return;
  const { world } = group;
  const step = member.service.step(member.state, input, { ms: world.now, wallMs: world.now });
  member.state = step.state;
  carryOut(group, member, step.effects);
};

export const startMember = (group: Group, member: Member): void => {
  const { world, members } = group;
  member.service = createPresence({
    self: member.name,
    members: members.map(({ name }) => name),
    hosts: world.hosts.map(({ name }) => peerName(`host.${name}`)),
  });
  member.published.clear();
  member.state = member.service.restore({ records: new Map(member.records), desiredAt: new Map() });
  for (const link of group.byEnd.get(member) ?? []) {
    if (link.subscriber.member !== member) continue;
    link.known.clear();
    link.reachable = null;
  }
  stepMember(group, member, { kind: "start" });
  reconsider(group, member);
};
/** What it wrote stays. */
export const crashMember = (group: Group, member: Member): void => {
  member.state = null;
  reconsider(group, member);
};

/** Every pair of which one follows the other: hosts and members, both ways, and members among each other. */
const linksOf = (hosts: readonly Host[], members: readonly Member[]): readonly Link[] => {
  const ends: readonly End[] = [
    ...hosts.map((host): End => ({ host, member: null })),
    ...members.map((member): End => ({ host: null, member })),
  ];
  const idle = { reachable: null, good: false, epoch: 0, changedAt: 0, deliveredAt: 0 };
  return ends.flatMap((source) =>
    ends
      .filter((subscriber) => source !== subscriber && (source.host === null || subscriber.host === null))
      .map((subscriber): Link => ({ source, subscriber, known: new Map(), ...idle })),
  );
};

/** A world of hosts with a group of members that all hosts and all members are connected to. Nobody has started yet. */
export const createGroup = (options: WorldOptions, count: number): Group => {
  const edge: HostEdge = {
    incarnated: (host) => {
      if (host.state === null) return;
      const { key, value } = ownLife(host.state);
      publishFrom(group, host, key, value);
    },
    verdict: (host, change) => {
      if (change.verdict === "failed") group.failed += 1;
      if (change.verdict === "dead") group.onKnown?.(host, change.host, change.generation);
      for (const { key, value } of reportsOf(change)) publishFrom(group, host, key, value);
    },
  };
  const world = createWorld({ ...options, edge });
  const members = Array.from({ length: count }, (_, index): Member => {
    const name = peerName(`presence.${index + 1}`);
    const service = createPresence({ self: name, members: [], hosts: [] });
    return { index, name, service, state: null, records: new Map(), published: new Map() };
  });
  const links = linksOf(world.hosts, members);
  const byEnd = new Map<Host | Member, Link[]>([...world.hosts, ...members].map((end) => [end, []]));
  for (const link of links)
    for (const { host, member } of [link.source, link.subscriber]) byEnd.get(host ?? member)?.push(link);
  const group: Group = {
    world,
    members,
    byEnd,
    hostDocuments: new Map(world.hosts.map((host) => [host, new Map<string, Json>()])),
    cut: new Set(),
    declarations: [],
    onKnown: null,
    failed: 0,
  };
  return group;
};

/** Everyone runs, and every host knows every other. */
export const startGroup = (group: Group): void => {
  startAll(group.world);
  for (const host of group.world.hosts) reconsider(group, host);
  for (const member of group.members) startMember(group, member);
};

/** Power off. */
export const crashHost = (group: Group, host: Host): void => {
  crash(host);
  group.hostDocuments.get(host)?.clear();
  reconsider(group, host);
};
/** Starts again with nothing but its generation and the names of the others. */
export const restartHost = (group: Group, host: Host): void => {
  const { world } = group;
  startHost(world, host);
  reconsider(group, host);
  stepHost(world, host, { kind: "peers", hosts: world.hosts.map(({ name }) => name) });
};
export const pauseHost = (group: Group, host: Host, ms: number, clock: boolean, resumed?: () => void): void => {
  if (host.state === null || host.paused) return;
  pause(group.world, host, ms, clock, () => {
    reconsider(group, host);
    resumed?.();
  });
  reconsider(group, host);
};
