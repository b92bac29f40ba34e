import type {
  ActualSuccessor,
  AgentLease,
  AgentLeaseActual,
  DesiredStandby,
  DesiredVm,
  Layer,
  StandbyVolume,
} from "../core/documents.ts";
import type { Effect, Restored } from "../core/env.ts";
import type { EventName } from "../core/event-names.ts";
import { isObject, toJson } from "../core/outbox.ts";
import { presenceKey } from "../core/presence/documents.ts";
import { type HostName, hostName, type PeerName, peerName, type Uid, uid } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import type { Wanted } from "./planner.ts";

/**
 * Who starts the VM of the root controller when its host is lost (SELF-HOSTING, Death and return; decision 35). Nobody can be
 * asked then: every host decides by itself, by what it keeps (`root-vm`), by whom it hears, and by what the storage agents
 * say. That two hosts may think that it is their turn is nothing to be prevented here. What makes sure that two never act is
 * the lease: an agent gives the next epoch to one of them, after everything of the present one is cut off, and a host starts
 * the VM only when it has all of its leases. They are taken in one order everywhere, so that two cannot each have some.
 */
export interface SuccessionState {
  readonly self: HostName;
  standby: DesiredStandby | null;
  /** All hosts of the installation, as far as they are known. */
  hosts: ReadonlySet<HostName>;
  /** Those that are heard, in which generation. */
  readonly heard: Map<HostName, number>;
  /** The latest life of a host that the Presence group declared over, and the latest that is known to have come after. */
  readonly dead: Map<HostName, number>;
  readonly returned: Map<HostName, number>;
  /** What agents say of the volumes, of whoever holds them, and of this host's own wishes. */
  readonly leases: Map<Uid, ActualSuccessor>;
  readonly grants: Map<Uid, AgentLeaseActual>;
  readonly unreachable: Set<PeerName>;
  readonly followed: Set<PeerName>;
  /** Desired at agents; durable, as all documents are. */
  readonly asked: Map<Uid, { readonly agent: PeerName; readonly lease: AgentLease }>;
  /** All leases were had: this incarnation runs here until the controller in it says so itself. Record `succession`. */
  taken: DesiredVm | null;
  /** Since when the VM's host has been silent while more than half of all hosts were heard, or (not `enough`) fewer. */
  silent: { readonly since: number; readonly enough: boolean } | null;
  /** Since when it counts as lost. */
  dueSince: number | null;
  /** It was this host's turn: the agents are followed until a newer document says where the VM runs, or its host is heard. */
  watching: boolean;
  /** Since when this host waits to hear whether it may still start the VM. */
  doubtSince: number | null;
  /** Why the VM's host counts as lost and nothing is done about it here, as a sentence. */
  trouble: string | null;
  wakeAt: number | null;
}

/** What the Host Manager knows beside. */
export interface SuccessionFacts {
  readonly now: number;
  /** The controller's own wish for its VM at this host. */
  readonly wished: DesiredVm | undefined;
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
const askPrefix = "succession/";
const leasePrefix = "successor/";
const rootController = peerName("controller.root");

export const createSuccession = (self: HostName, { records, desiredAt }: Restored): SuccessionState => {
  const asked = [...desiredAt].flatMap(([agent, documents]) =>
    [...documents].flatMap(([key, value]) =>
      key.startsWith(askPrefix)
        ? [[uid(key.slice(askPrefix.length)), { agent, lease: value as unknown as AgentLease }] as const]
        : [],
    ),
  );
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
    asked: new Map(asked),
    taken: (records.get(successionRecord) ?? null) as unknown as DesiredVm | null,
    silent: null,
    dueSince: null,
    watching: false,
    doubtSince: null,
    trouble: null,
    wakeAt: null,
  };
};

// --- what is heard -----------------------------------------------------------------------------------------------

export const takeStandby = (state: SuccessionState, value: Json): void => {
  const before = state.standby;
  state.standby = value as unknown as DesiredStandby | null;
  if (before?.host !== state.standby?.host || before?.vm.incarnation !== state.standby?.vm.incarnation)
    state.watching = false;
};

/** Of an agent, or of a member of the Presence group. @returns whether it was about a lease */
export const hearSuccession = (
  state: SuccessionState,
  members: ReadonlySet<PeerName>,
  from: PeerName,
  key: string,
  value: Json,
): boolean => {
  if (members.has(from) && key.startsWith(presenceKey.death(""))) {
    const host = hostName(key.slice(presenceKey.death("").length));
    if (!isObject(value)) return false;
    if (Number.isSafeInteger(value.generation)) hearDeath(state, host, Number(value.generation));
    if (Number.isSafeInteger(value.returned)) raise(state.returned, host, Number(value.returned));
    return false;
  }
  const own = `host.${state.self}/${askPrefix}`;
  const of = key.startsWith(own) ? own : key.startsWith(leasePrefix) ? leasePrefix : null;
  if (of === null) return false;
  const volume = uid(key.slice(of.length));
  if (agentOf(state, volume) !== from) return false;
  const map: Map<Uid, unknown> = of === own ? state.grants : state.leases;
  if (value === null) map.delete(volume);
  else map.set(volume, value);
  return true;
};
const agentOf = ({ standby, asked }: SuccessionState, volume: Uid): PeerName | undefined =>
  standby?.volumes.find((each) => each.volume === volume)?.agent ?? asked.get(volume)?.agent;

const raise = (map: Map<HostName, number>, host: HostName, generation: number): void => {
  map.set(host, Math.max(map.get(host) ?? 0, generation));
};
const hearDeath = (state: SuccessionState, host: HostName, generation: number): void =>
  raise(state.dead, host, generation);

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
          raise(state.returned, host, generation);
        }
      }
      return;
    case "presence-hosts":
      state.hosts = new Set(request.hosts);
      return;
    case "presence-died":
      hearDeath(state, request.host, request.generation);
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
      if (acts) state.watching = true;
      else if (isThere(state, standby.host)) state.watching = false;
      if (acts) this.#take(standby, first, due);
    }
    this.#follow();
    this.#judgeDoubt();
    this.#setTimer();
  }

  /** The controller has taken over what this host began; or somebody else has succeeded this host in turn. */
  #settleTaken(): void {
    const state = this.#state;
    const { taken } = state;
    if (taken === null) return;
    const { wished } = this.#facts;
    const isWished = wished?.uid === taken.uid && wished.incarnation >= taken.incarnation;
    if (!isWished && !isSucceeded(state, taken)) return;
    if (!isWished) this.log("succession/lost", { incarnation: taken.incarnation });
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
    if (place.host === state.self) state.silent = null;
    if (lost === null) {
      state.dueSince = null;
      return false;
    }
    state.dueSince ??= now;
    const candidates = [state.self, ...state.heard.keys()].filter((host) => host !== place.host);
    const rank = [...new Set(candidates)].sort().indexOf(state.self);
    const turnAt = state.dueSince + firstTurnMs + rank * turnMs;
    if (now >= turnAt) return true;
    this.#wake(turnAt);
    return false;
  }

  /** Why the host of the VM counts as lost; null: it does not, or not yet. */
  #lost(host: HostName): string | null {
    const state = this.#state;
    const { now } = this.#facts;
    const { heard, hosts } = { heard: 1 + state.heard.size, hosts: state.hosts.size };
    if (hosts === 0 || isThere(state, host)) {
      state.silent = null;
      return null;
    }
    // Who hears few may be the one that is cut off.
    if (isDead(state, host) && heard * 2 >= hosts) return "declared dead";
    const enough = heard * 2 > hosts;
    if (state.silent?.enough !== enough) state.silent = { since: now, enough };
    const dueAt = state.silent.since + (enough ? silentMs : turnMs);
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
      return;
    }
    const wish: AgentLease = {
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
    state.asked.set(volume, { agent, lease: wish });
    state.grants.delete(volume);
    this.#effects.push({ kind: "desire", to: agent, key: `${askPrefix}${volume}`, value: toJson(wish) });
    this.log("succession/asked", { volume, epoch: wish.epoch, incarnation, before: standby.host });
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
    const { wished } = this.#facts;
    const runs = taken !== null || (standby !== null && wished?.uid === standby.vm.uid && wished.restart === "host");
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
    const { wished, now } = this.#facts;
    const runs = state.taken ?? wished;
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
  const [wish, told, lease] = [asked.get(volume)?.lease, grants.get(volume), leases.get(volume)];
  if (wish === undefined || told?.phase !== "ready" || told.layer === null || told.epoch !== wish.epoch) return null;
  if (told.holder?.host !== self || told.holder.incarnation !== wish.holder?.incarnation) return null;
  // The two are told one after the other: a later epoch than the own one is another's.
  if (lease !== undefined && lease.epoch > told.epoch) return null;
  return { layer: told.layer, epoch: told.epoch };
};

/** An agent has said that a later incarnation, or the same one elsewhere, has a volume of this VM. */
const isSucceeded = ({ standby, leases, self }: SuccessionState, { uid: vm, incarnation }: DesiredVm): boolean =>
  standby?.vm.uid === vm &&
  standby.volumes.some(({ volume }) => {
    const holder = leases.get(volume)?.holder;
    if (holder == null || holder.vm !== vm) return false;
    return holder.incarnation > incarnation || (holder.incarnation === incarnation && holder.host !== self);
  });

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
