import { type Cause, said as saidBy } from "../../../model/cause/cause.ts";
import { type HostName, hostPeer } from "../../../model/cell/identifiers.ts";
import { isObject, sameJson, toJson, tooLong } from "../../outbox.ts";
import { because, standing } from "../changes/standing.ts";
import { isOnMode, whyRuleLags } from "../network/instances.ts";
import { subnetConnectivityPath } from "../network/policy.ts";
import type { ElementRecord, RulesAtHost, Standing } from "../records.ts";
import { type ControllerState, desiredNow, saidOf } from "../state.ts";
import { hostDied } from "../vm/host-died.ts";

/**
 * Whether a rule is in force: at every host on which a VM of the cell runs, or may run, packets must meet the rules as they
 * are since the rule changed last. That a host was told to is not enough. It may be silent, it may not be able to, and what
 * was to be said to it may have been too long to be said. A host that has confirmed a rule and is silent now goes on with
 * it, since what it has in force outlives its Host Manager.
 */

const most = 3;

/**
 * What each host concerned has in force: one that was told of a VM of the cell and has not confirmed its end. It starts no
 * machine before the rules are in force that it was told of with the first one, so until it confirms a version it counts as
 * having those.
 */
export const rulesAtHosts = (state: ControllerState): readonly RulesAtHost[] =>
  [...state.indexes.hosts.present.keys(), ...othersUnheard(state)].sort().map((host) => atHost(state, host));

/** They may run a machine of the cell that this store does not know (put-back.ts). */
const othersUnheard = ({ afterRestore, indexes }: ControllerState): readonly HostName[] =>
  (afterRestore?.unheard ?? []).filter((host) => !indexes.hosts.has(host));

/**
 * Works that out for the steps of this pass that rest on it. Of a thousand rules and as many hosts, a word of one host
 * concerns those rules alone that changed since the version it had.
 */
export function settleHostRules(state: ControllerState): void {
  const { rulesAt: known, unheard } = state.derived;
  state.pass.each("rules at hosts", state.indexes.hosts.present, (_flag, host) => {
    const now = atHost(state, host);
    const before = known.get(host);
    if (before === undefined || !sameJson(toJson(before), toJson(now))) known.set(host, now);
    if (state.reachable.has(hostPeer(host))) unheard.delete(host);
    else unheard.set(host, true);
  });
  state.pass.whole("rules at the unheard", () => {
    const others = new Set(othersUnheard(state));
    for (const host of state.derived.mayRun)
      if (!others.has(host) && !state.indexes.hosts.has(host)) known.delete(host);
    for (const host of others) known.set(host, atHost(state, host));
    state.derived.mayRun = others;
  });
  state.pass.whole("rules since", () => {
    const { since, version } = state.policy;
    state.derived.since.set("", since ?? version);
  });
  state.pass.whole("hosts behind", () => settleBehind(state));
}

function settleBehind({ derived }: ControllerState): void {
  const { behind, rulesAt: known } = derived;
  const hosts = [...known.values()].sort(byHost);
  const lowest = Math.min(...hosts.map(({ version }) => version));
  const since = derived.since.get("") ?? 0;
  const versions = new Set(typeof since === "number" ? [since] : versionsIn(since));
  for (const version of [...behind.keys()]) if (version <= lowest || !versions.has(version)) behind.delete(version);
  for (const version of versions) {
    if (version <= lowest) continue;
    const now = hosts.filter((each) => each.version < version);
    const before = behind.peek(version) ?? [];
    if (before.length !== now.length || before.some((each, at) => each !== now[at])) behind.set(version, now);
  }
}
const byHost = (one: RulesAtHost, other: RulesAtHost): number => (one.host < other.host ? -1 : 1);

const knownVersions = new WeakMap<object, readonly number[]>();
function versionsIn(since: Readonly<Record<string, number>>): readonly number[] {
  const known = knownVersions.get(since) ?? [...new Set(Object.values(since))];
  knownVersions.set(since, known);
  return known;
}

/** Those of `rulesAtHosts` that do not have a rule as it is now, as it was worked out in this pass. */
export function hostsBehind({ derived }: ControllerState, element: ElementRecord): readonly RulesAtHost[] {
  return derived.behind.get(versionOf(derived.since.get("") ?? 0, element)) ?? [];
}

/** The connectivity within a subnet, by its identity, in the record of versions. */
export const connectivityOf = (identity: number): string => `${subnetConnectivityPath} ${identity}`;

/** What comes of an element in the cell's rules, by its name in the record of versions. */
const partOf = ({ type, path, identity }: ElementRecord): string =>
  type === "Subnet" ? connectivityOf(identity) : path;

/** By the record of versions, or the one version that an earlier store has for all; 0: nothing ever came of it. */
const versionOf = (since: number | Readonly<Record<string, number>>, element: ElementRecord): number =>
  typeof since === "number" ? since : (since[partOf(element)] ?? 0);

/** The version of the cell's policy in which what comes of an element changed last; 0: nothing ever came of it. */
export const ruleSince = ({ policy }: ControllerState, element: ElementRecord): number =>
  versionOf(policy.since ?? policy.version, element);

/** Has anything ever come of it? */
export function isInRules({ derived }: ControllerState, element: ElementRecord): boolean {
  if (element.type === "NetworkRule") return true;
  if (element.type !== "Subnet") return false;
  const since = derived.since.get("") ?? 0;
  return typeof since !== "number" && since[partOf(element)] !== undefined;
}

const policyKey = ({ options }: ControllerState): string => `policy/${options.cell}`;

function atHost(state: ControllerState, host: HostName): RulesAtHost {
  const peer = hostPeer(host);
  // One that has lost its store runs its machines on and says nothing of rules, before it is told of them anew.
  const said = saidOf(state, peer, policyKey(state));
  const wanted = state.derived.policy.get("")?.version ?? state.policy.version;
  const found = isObject(said) && Number.isSafeInteger(said.version) ? Number(said.version) : 0;
  // What a cell of this name had before it was made anew, or restored, is none of its versions.
  const isOwn = found > 0 && found <= wanted;
  const told = desiredNow(state, peer, policyKey(state));
  // What came after the newest slices that concern it is nothing to this host.
  const isNewest = isObject(told) && told.slices !== undefined && told.version === found;
  const version = isOwn ? (isNewest ? wanted : found) : said === undefined ? toldFirst(state, host) : 0;
  const reason = isObject(said) && typeof said.reason === "string" ? said.reason : null;
  const untold = tooLong(state.outbox, peer, policyKey(state));
  if (untold !== null) return { host, version, why: standing("failed", untold) };
  if (state.reachable.get(peer) !== true)
    return { host, version, why: standing("waiting", hostDied(state, host) ?? { kind: "rules-unconfirmed", host }) };
  if (isObject(said) && said.phase === "failed") {
    const refused: Cause = { kind: "rules-refused", host, ...because(saidBy(peer, reason)) };
    return { host, version, why: standing("failed", refused) };
  }
  return { host, version, why: standing("working", { kind: "rules-older", host, version, wanted }) };
}

/** One that may run what this store has forgotten has begun with other rules. */
const toldFirst = (state: ControllerState, host: HostName): number =>
  state.indexes.vmsAt.has(host) ? (state.toldFirst.get(host) ?? 0) : 0;

/** Why a rule, or a subnet's connectivity, is not as it should be at every host concerned; null: it is. The same of one that was taken away. */
export function whyNotInForce(state: ControllerState, element: ElementRecord): Standing | null {
  if (isOnMode(state)) return element.type === "NetworkRule" ? whyRuleLags(state) : null;
  if (!isInRules(state, element)) return null;
  const lacking = hostsBehind(state, element);
  for (const phase of ["failed", "waiting", "working"] as const) {
    const causes = lacking.flatMap(({ why }) => (why.phase === phase ? why.causes : []));
    const more: Cause[] = causes.length > most ? [{ kind: "more-hosts", count: causes.length - most }] : [];
    if (causes.length > 0) return standing(phase, ...causes.slice(0, most), ...more);
  }
  return null;
}
