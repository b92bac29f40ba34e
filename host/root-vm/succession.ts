import type { Death } from "../../core/documents/declaration.ts";
import { isPlausible } from "../../core/documents/life-numbers.ts";
import { presenceKey } from "../../core/documents/presence.ts";
import { desiredVm } from "../../core/documents/readers/host.ts";
import { presenceDeath } from "../../core/documents/readers/presence.ts";
import { actualSuccessor, agentLeaseActual } from "../../core/documents/readers/storage.ts";
import type { DesiredStandby, StandbyVolume } from "../../core/documents/standby.ts";
import type { AgentLease, DesiredVm, Layer } from "../../core/documents/vocabulary.ts";
import type { Effect, Restored } from "../../core/env.ts";
import { toJson } from "../../core/outbox.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { type HostName, hostName, type PeerName, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Wanted } from "../wanted.ts";
import type { Asked, Silence, SuccessionState } from "./succession-state.ts";
import { askedAt, askPrefix, castVotes, isSucceeded, votesOf } from "./succession-votes.ts";

/*
 * Who starts the VM of the root controller when its host is lost (decision 35). Nobody can be asked then: every host
 * decides by itself, by what it keeps (`root-vm`), by whom it hears, and by what the storage agents say. That two hosts
 * may think that it is their turn is nothing to be prevented here. What makes sure that two never act is the lease: an
 * agent gives the next epoch to one of them, after everything of the present one is cut off, and a host starts the VM
 * only when it has all of its leases. They are taken in one order everywhere, so that two cannot each have some.
 */

/** What the Host Manager knows beside. */
export interface SuccessionFacts {
  readonly now: number;
  /** What the controller itself desires of its VM at this host. */
  readonly desired: DesiredVm | undefined;
  /** Why this host could not hold the VM, as a sentence; null: it could. */
  readonly obstacle: (vm: DesiredVm) => string | null;
}

export type SuccessionRequest =
  /** Hosts that this host's part in Presence hears (`generation`), or hears no more (null). */
  | { readonly kind: "presence-heard"; readonly hosts: readonly (readonly [HostName, number | null])[] }
  /** All hosts of the installation. */
  | { readonly kind: "presence-hosts"; readonly hosts: readonly HostName[] }
  /** Another host broadcast what the Presence group had declared. */
  | { readonly kind: "presence-died"; readonly host: HostName; readonly generation: number };

/** Longer than any machine takes to start again: a host that comes back in this time has its VM still. */
export const silentMs = 120_000;
/** Those whose turn it is have heard of everybody by then, and have room. The next by name waits that much longer. */
const firstTurnMs = 2_000;
const turnMs = 20_000;
/** An agent that says nothing for so long is not waited for: what an old lease opened is closed in any case. */
const doubtMs = 20_000;

export const successionRecord = "succession";
export const successionTimer = "succession";
const leasePrefix = "successor/";
const rootController = peerName("controller.root");

export const createSuccession = (self: HostName, { records, desiredAt }: Restored): SuccessionState => {
  const asked = [...desiredAt].flatMap(([agent, documents]) => askedAt(agent, documents));
  const isVote = ([, { lease }]: readonly [Uid, Asked]): boolean => lease.holder === null;
  return {
    self,
    standby: null,
    hosts: new Set(),
    heard: new Map(),
    dead: new Map(),
    returned: new Map(),
    leases: new Map(),
    grants: new Map(),
    unreachable: new Set(),
    followed: new Set(),
    asked: new Map(asked.filter((each) => !isVote(each))),
    votes: new Map(asked.filter(isVote)),
    taken: desiredVm.of(records.get(successionRecord)),
    silent: new Map(),
    dueSince: null,
    watching: false,
    doubtSince: null,
    trouble: null,
    wakeAt: null,
  };
};

// --- what is heard -----------------------------------------------------------------------------------------------

export const takeStandby = (state: SuccessionState, standby: DesiredStandby | null): void => {
  const before = state.standby;
  state.standby = standby;
  if (before?.host !== state.standby?.host || before?.vm.incarnation !== state.standby?.vm.incarnation)
    state.watching = false;
};

/** Of an agent or a Presence member; `death`: what most members agree on with it. @returns whether it was about a lease */
export const hearSuccession = (
  state: SuccessionState,
  members: ReadonlySet<PeerName>,
  from: PeerName,
  key: string,
  value: Json,
  death: Death | null,
): boolean => {
  if (members.has(from) && key.startsWith(presenceKey.death(""))) {
    const host = hostName(key.slice(presenceKey.death("").length));
    const said = presenceDeath.of(value, host);
    if (death !== null) raise(state.dead, death.host, death.generation);
    if (said?.returned !== undefined) hearReturn(state, host, said.returned);
    return false;
  }
  const own = `host.${state.self}/${askPrefix}`;
  const of = key.startsWith(own) ? own : key.startsWith(leasePrefix) ? leasePrefix : null;
  if (of === null) return false;
  const volume = uid(key.slice(of.length));
  if (agentOf(state, volume) !== from) return false;
  if (of === own) put(state.grants, volume, agentLeaseActual.of(value));
  else put(state.leases, volume, actualSuccessor.of(value));
  return true;
};
function put<Said>(map: Map<Uid, Said>, volume: Uid, said: Said | null): void {
  if (said === null) map.delete(volume);
  else map.set(volume, said);
}
const agentOf = ({ standby, asked }: SuccessionState, volume: Uid): PeerName | undefined =>
  standby?.volumes.find((each) => each.volume === volume)?.agent ?? asked.get(volume)?.agent;

const raise = (map: Map<HostName, number>, host: HostName, generation: number): void =>
  void map.set(host, Math.max(map.get(host) ?? 0, generation));
/** A number that somebody makes up must not make a dead host live for ever. */
const hearReturn = (state: SuccessionState, host: HostName, generation: number): void => {
  if (isPlausible(generation, state.dead.get(host) ?? state.returned.get(host) ?? generation))
    raise(state.returned, host, generation);
};

export const hearReachable = (state: SuccessionState, peer: PeerName, reachable: boolean): void => {
  if (!state.followed.has(peer)) return;
  if (reachable) state.unreachable.delete(peer);
  else state.unreachable.add(peer);
};

export const handleSuccession = (state: SuccessionState, request: SuccessionRequest): void => {
  switch (request.kind) {
    case "presence-heard":
      for (const [host, generation] of request.hosts) {
        if (generation === null) state.heard.delete(host);
        else {
          state.heard.set(host, generation);
          hearReturn(state, host, generation);
        }
      }
      return;
    case "presence-hosts":
      state.hosts = new Set(request.hosts);
      return;
    case "presence-died":
      raise(state.dead, request.host, request.generation);
  }
};

// --- what follows ------------------------------------------------------------------------------------------------

/** Brings this host's part a step further; asked after every change, and when the timer `successionTimer` comes. */
export const advanceSuccession = (state: SuccessionState, facts: SuccessionFacts, effects: Effect[]): void => {
  const trouble = state.trouble;
  const act = new Advance(state, facts, effects);
  act.advance();
  if (state.trouble !== trouble) act.log("succession/waits", { reason: state.trouble });
};

/** One pass. */
class Advance {
  readonly #state: SuccessionState;
  readonly #facts: SuccessionFacts;
  readonly #effects: Effect[];
  readonly #silent = new Map<HostName, Silence>();
  #wakeAt: number | null = null;

  constructor(state: SuccessionState, facts: SuccessionFacts, effects: Effect[]) {
    this.#state = state;
    this.#facts = facts;
    this.#effects = effects;
  }

  log(event: EventName, fields: { readonly [key: string]: Json }): void {
    this.#effects.push({ kind: "log", event, fields: { vm: this.#state.standby?.vm.uid ?? null, ...fields } });
  }

  advance(): void {
    const state = this.#state;
    const { standby } = state;
    const [first] = standby?.volumes ?? [];
    state.trouble = null;
    this.#settleTaken();
    let acts = false;
    if (standby !== null && first !== undefined && state.taken === null) {
      const due = this.#isDue(standby, first);
      // What was asked for may have been granted: it is carried through, or another's epoch ends it.
      acts = due || state.asked.has(first.volume);
      // Whoever misses the host votes for its loss, and listens for the epoch that this is about.
      if (acts || this.#lost(standby.host) !== null) state.watching = true;
      else if (isThere(state, standby.host)) state.watching = false;
      if (acts) this.#take(standby, first, due);
    }
    const votes = state.taken === null ? votesOf(state, (host) => this.#lost(host) !== null) : [];
    this.#effects.push(...castVotes(state.votes, votes, state.asked));
    state.silent = this.#silent;
    this.#follow();
    this.#judgeDoubt();
    this.#setTimer();
  }

  /** The controller has taken over what this host began; or somebody else has succeeded this host in turn. */
  #settleTaken(): void {
    const state = this.#state;
    const { taken } = state;
    if (taken === null) return;
    const { desired } = this.#facts;
    const isDesired = desired?.uid === taken.uid && desired.incarnation >= taken.incarnation;
    if (!isDesired && !isSucceeded(state, taken)) return;
    if (!isDesired) this.log("succession/lost", { incarnation: taken.incarnation });
    this.#keepTaken(null);
    this.#withdraw();
  }

  #keepTaken(taken: DesiredVm | null): void {
    this.#state.taken = taken;
    this.#effects.push({ kind: "write", key: successionRecord, value: taken === null ? null : toJson(taken) });
  }

  /** Is it this host's turn? Says why not, where somebody's it is. */
  #isDue(standby: DesiredStandby, first: StandbyVolume): boolean {
    const state = this.#state;
    const { now } = this.#facts;
    const place = placeOf(state, standby, first);
    const lost = place.host === state.self ? null : this.#lost(place.host);
    if (lost === null) {
      state.dueSince = null;
      return false;
    }
    state.dueSince ??= now;
    const candidates = [state.self, ...state.heard.keys()].filter((host) => host !== place.host);
    const rank = inOrder(new Set(candidates), standby).indexOf(state.self);
    const turnAt = state.dueSince + firstTurnMs + rank * turnMs;
    if (now >= turnAt) return true;
    this.#wake(turnAt);
    return false;
  }

  /** Why a host that has the VM, or a lease of it, counts as lost; null: it does not, or not yet. */
  #lost(host: HostName): string | null {
    const state = this.#state;
    const { now } = this.#facts;
    const { heard, hosts } = { heard: 1 + state.heard.size, hosts: state.hosts.size };
    if (hosts === 0 || host === state.self || isThere(state, host)) return null;
    if (isDead(state, host) && heard * 2 >= hosts) return "declared dead";
    const enough = heard * 2 > hosts;
    const before = state.silent.get(host);
    const silence = before?.enough === enough ? before : { since: now, enough };
    this.#silent.set(host, silence);
    const dueAt = silence.since + (enough ? silentMs : turnMs);
    if (now < dueAt) this.#wake(dueAt);
    else if (enough) return "silent";
    else
      state.trouble =
        `${host}, where the root controller's VM ran, is not heard; this host takes its place only if it hears more ` +
        `than half of the ${hosts} hosts, and it hears ${heard} with itself`;
    return null;
  }

  /** Asks for one lease after the other; with all of them the VM is this host's. */
  #take(standby: DesiredStandby, first: StandbyVolume, due: boolean): void {
    const state = this.#state;
    const obstacle = state.asked.has(first.volume) ? null : this.#facts.obstacle(standby.vm);
    if (obstacle !== null) {
      state.trouble = `this host cannot take the root controller's VM over: ${obstacle}`;
      return;
    }
    let incarnation = nextIncarnation(state, standby);
    const layers = new Map<Uid, { readonly layer: Layer; readonly epoch: number }>();
    for (const each of standby.volumes) {
      const granted = grantOf(state, each);
      if (granted !== null) {
        layers.set(each.volume, granted);
        if (each.volume === first.volume) incarnation = state.asked.get(each.volume)?.lease.holder?.incarnation ?? 0;
        continue;
      }
      this.#ask(standby, each, incarnation, due || layers.has(first.volume));
      return;
    }
    const disks = standby.vm.disks.map((disk) => {
      const granted = layers.get(disk.attachment.volume);
      if (granted === undefined) return disk;
      const { pristine: _pristine, ...attachment } = disk.attachment;
      const { layer, epoch } = granted;
      return { ...disk, attachment: { ...attachment, epoch, layers: [layer, ...attachment.layers] } };
    });
    this.log("succession/taken", { incarnation, before: standby.host });
    this.#keepTaken({ ...standby.vm, incarnation, disks });
  }

  /** `again`: also after another had the epoch that was asked for. */
  #ask(standby: DesiredStandby, { volume, agent }: StandbyVolume, incarnation: number, again: boolean): void {
    const state = this.#state;
    const lease = state.leases.get(volume);
    if (state.unreachable.has(agent))
      state.trouble =
        `waits for storage server ${agent.slice("agent.".length)}, which holds a volume of the root controller's VM and ` +
        "is not reachable";
    if (state.unreachable.has(agent) || lease === undefined) return;
    const before = state.asked.get(volume);
    // What was asked for is on its way: only an epoch that has passed it says that it was another's.
    if (before !== undefined && before.lease.epoch > lease.epoch) {
      const told = state.grants.get(volume);
      if (told?.phase === "failed") state.trouble = `it is refused a lease of the root controller's VM: ${told.reason}`;
      if (told?.phase === "waiting") state.trouble = `it waits for a lease of the root controller's VM: ${told.reason}`;
      return;
    }
    const desire: AgentLease = {
      volume,
      epoch: lease.epoch + 1,
      holder: { vm: standby.vm.uid, incarnation, host: state.self },
    };
    // Granted, and not to be used yet.
    if (before?.lease.epoch === lease.epoch && lease.holder?.host === state.self) return;
    if (before !== undefined && !again) {
      this.log("succession/lost", { volume, epoch: lease.epoch, to: lease.holder?.host ?? null });
      this.#withdraw();
      return;
    }
    state.asked.set(volume, { agent, lease: desire });
    state.grants.delete(volume);
    this.#effects.push({ kind: "desire", to: agent, key: `${askPrefix}${volume}`, value: toJson(desire) });
    this.log("succession/asked", { volume, epoch: desire.epoch, incarnation, before: standby.host });
  }

  /** Not this host's turn any more, or another has it. */
  #withdraw(): void {
    const state = this.#state;
    for (const [volume, { agent }] of state.asked) {
      this.#effects.push({ kind: "desire", to: agent, key: `${askPrefix}${volume}`, value: null });
      state.grants.delete(volume);
    }
    state.asked.clear();
  }

  /** Agents are listened to by whoever acts, and by whoever runs the VM, which another host may succeed. */
  #follow(): void {
    const { standby, asked, taken, followed, watching } = this.#state;
    const { desired } = this.#facts;
    const runs = taken !== null || (standby !== null && desired?.uid === standby.vm.uid && desired.restart === "host");
    const wanted = new Set<PeerName>([...asked.values()].map(({ agent }) => agent));
    if (watching || runs) for (const { agent } of standby?.volumes ?? []) wanted.add(agent);
    const prefixes = [leasePrefix, `host.${this.#state.self}/${askPrefix}`];
    for (const prefix of prefixes) {
      for (const to of wanted) if (!followed.has(to)) this.#effects.push({ kind: "subscribe", to, prefix });
      for (const to of followed) if (!wanted.has(to)) this.#effects.push({ kind: "unsubscribe", to, prefix });
    }
    // What is not followed is not known.
    for (const { volume, agent } of standby?.volumes ?? []) if (!wanted.has(agent)) this.#state.leases.delete(volume);
    for (const to of followed) if (!wanted.has(to)) this.#state.unreachable.delete(to);
    followed.clear();
    for (const to of wanted) followed.add(to);
  }

  #judgeDoubt(): void {
    const state = this.#state;
    const { desired, now } = this.#facts;
    const runs = state.taken ?? desired;
    if (runs === undefined || verdictOn(state, runs) !== "unknown") {
      state.doubtSince = null;
      return;
    }
    state.doubtSince ??= now;
    if (now - state.doubtSince < doubtMs) this.#wake(state.doubtSince + doubtMs);
  }

  #wake(at: number): void {
    this.#wakeAt = Math.min(this.#wakeAt ?? at, at);
  }
  #setTimer(): void {
    const state = this.#state;
    if (this.#wakeAt === state.wakeAt) return;
    state.wakeAt = this.#wakeAt;
    const afterMs = this.#wakeAt === null ? null : Math.max(0, this.#wakeAt - this.#facts.now);
    this.#effects.push({ kind: "timer", name: successionTimer, afterMs });
  }
}

/** Whose turn is when: by name, those behind all others that the document has there. */
const inOrder = (hosts: ReadonlySet<HostName>, { last = [] }: DesiredStandby): readonly HostName[] => {
  const behind = new Set(last);
  return [...[...hosts].filter((host) => !behind.has(host)).sort(), ...[...behind].filter((host) => hosts.has(host))];
};

/** Its latest life was declared over. */
const isDead = ({ dead, returned }: SuccessionState, host: HostName): boolean => {
  const life = dead.get(host);
  return life !== undefined && life >= (returned.get(host) ?? 0);
};
const isThere = (state: SuccessionState, host: HostName): boolean => state.heard.has(host) && !isDead(state, host);

/** Where the VM runs by the lease, if that is known, else by what this host was given. */
const placeOf = (
  { leases }: SuccessionState,
  standby: DesiredStandby,
  first: StandbyVolume,
): { readonly host: HostName; readonly incarnation: number } => {
  const holder = leases.get(first.volume)?.holder;
  return holder ?? { host: standby.host, incarnation: standby.vm.incarnation };
};

/** Above all that anybody is known to have had. */
const nextIncarnation = ({ leases }: SuccessionState, standby: DesiredStandby): number =>
  1 +
  Math.max(
    standby.vm.incarnation,
    ...standby.volumes.map(({ volume }) => leases.get(volume)?.holder?.incarnation ?? 0),
  );

/** The lease that this host asked for, if it has it and can use it. */
const grantOf = (
  { asked, grants, leases, self }: SuccessionState,
  { volume }: StandbyVolume,
): { readonly layer: Layer; readonly epoch: number } | null => {
  const [desire, told, lease] = [asked.get(volume)?.lease, grants.get(volume), leases.get(volume)];
  if (desire === undefined || told?.phase !== "ready" || told.layer === null || told.epoch !== desire.epoch)
    return null;
  if (told.holder?.host !== self || told.holder.incarnation !== desire.holder?.incarnation) return null;
  // The two are told one after the other: a later epoch than the own one is another's.
  if (lease !== undefined && lease.epoch > told.epoch) return null;
  return { layer: told.layer, epoch: told.epoch };
};

type Verdict = "may" | "succeeded" | "unknown";
const verdictOn = (state: SuccessionState, desired: DesiredVm): Verdict => {
  const { standby, leases, self } = state;
  const [first] = standby?.volumes ?? [];
  if (desired.restart !== "host" || first === undefined || standby?.vm.uid !== desired.uid) return "may";
  if (isSucceeded(state, desired)) return "succeeded";
  const holder = leases.get(first.volume)?.holder;
  return holder?.host === self && holder.incarnation === desired.incarnation ? "may" : "unknown";
};

/**
 * Of what the controller wants here, what this host must not do: start a VM of which it is not known yet whether somebody has
 * succeeded this host (`held`, with a sentence), and run one of which it is known (`succeeded`).
 */
export const restraints = (
  state: SuccessionState,
  vms: Wanted["vms"],
  now: number,
): { readonly held: ReadonlyMap<Uid, string>; readonly succeeded: ReadonlySet<Uid> } => {
  const [held, succeeded] = [new Map<Uid, string>(), new Set<Uid>()];
  for (const { desired } of withTaken(state, vms).values()) {
    const verdict = verdictOn(state, desired);
    if (verdict === "succeeded") succeeded.add(desired.uid);
    if (verdict !== "unknown" || (state.doubtSince !== null && now - state.doubtSince >= doubtMs)) continue;
    const agent = state.standby?.volumes[0]?.agent.slice("agent.".length);
    held.set(desired.uid, `waits to hear from storage server ${agent} whether another host has started it meanwhile`);
  }
  return { held, succeeded };
};

/** What this host shall run: also what nobody but itself could ask for, and not what another has succeeded it in. */
export const withSuccession = (wanted: Wanted, state: SuccessionState, now: number): Wanted => {
  const { taken, standby } = state;
  const vms = new Map(withTaken(state, wanted.vms));
  for (const vm of restraints(state, wanted.vms, now).succeeded) vms.delete(vm);
  const lacksPolicy = taken !== null && !wanted.policies.some(({ cell }) => cell === taken.cell);
  return { ...wanted, vms, policies: [...wanted.policies, ...(lacksPolicy && standby ? [standby.policy] : [])] };
};

/** In place of what the controller may have wanted here of an earlier incarnation. */
const withTaken = ({ taken }: SuccessionState, vms: Wanted["vms"]): Wanted["vms"] =>
  taken === null || (vms.get(taken.uid)?.desired.incarnation ?? -1) >= taken.incarnation
    ? vms
    : new Map([...vms, [taken.uid, { client: rootController, desired: taken }]]);
