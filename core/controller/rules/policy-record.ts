import type { Uid } from "../../../model/cell/identifiers.ts";
import { digestOfText } from "../../distribution/views/slices.ts";
import type { CellPolicy, CompiledRule } from "../../documents/vocabulary.ts";
import { sameJson, toJson, write } from "../../outbox.ts";
import { type Compiled, subnetConnectivityPath } from "../network/policy.ts";
import { type ControllerState, type PolicyPart, type PolicyRecord, savePolicy } from "../state.ts";
import { connectivityOf } from "./rules-in-force.ts";

/**
 * What is durable of a cell's compiled rules: which number each has, so that it keeps it, and what they said in the last version,
 * so that a change is known as one after a restart, too. Of a small cell it is one record, with the rules as they are. 200,000
 * rules would be 40 MB that are written for each that changes; of a large cell each rule of the model has a record of its own,
 * with its numbers and a mark in place of what it was compiled to.
 *
 * An earlier version reads a record in parts as one of other rules: it numbers them anew, in a version of its own.
 */

/** So many compiled rules are written as one record. */
export const mostInRecord = 1000;

/** What an element's rules, or one subnet's connectivity, are called. */
const partOf = ({ path, from }: CompiledRule): string =>
  path === subnetConnectivityPath ? connectivityOf(from) : path;

const marks = new WeakMap<readonly CompiledRule[], string>();
/** Of rules in the order of their numbers. */
function markOf(rules: readonly CompiledRule[]): string {
  const known = marks.get(rules);
  if (known !== undefined) return known;
  const mark = digestOfText(JSON.stringify(rules)).join(" ");
  marks.set(rules, mark);
  return mark;
}
type Marks = ReadonlyMap<string, string>;

const marksOf = (rules: readonly CompiledRule[]): Marks =>
  new Map([...Map.groupBy(rules, partOf)].map(([part, all]) => [part, markOf(all)]));

function marksNow({ builtIn, rules }: Compiled): Marks {
  const now = new Map(marksOf(builtIn));
  for (const { element, rules: own } of rules.values()) if (own.length > 0) now.set(element.path, markOf(own));
  return now;
}
function marksBefore({ policy, policyParts, compiled }: ControllerState, before: CellPolicy | null): Marks {
  if (before === null) return new Map();
  if (compiled !== null) return marksNow(compiled);
  if (policy.parts === undefined) return marksOf(before.rules);
  const marked = [...policyParts.values()].filter(({ mark }) => mark !== "");
  return new Map([...Object.entries(policy.parts), ...marked.map(({ path, mark }) => [path, mark] as const)]);
}

/** The number that a compiled rule has had; undefined: it had none. `of`: of which element. */
export function numberBefore(
  { policy, policyParts }: ControllerState,
  key: string,
  of: Uid | null,
): number | undefined {
  if (of === null) return policy.rules[key];
  return policy.parts === undefined ? policy.rules[`${of} ${key}`] : policyParts.get(of)?.ids[key];
}

/** Makes a new version of what was compiled, if something in it is another; and what was compiled is durable. */
export function keepPolicy(
  state: ControllerState,
  now: Compiled,
  { networks, builtIn }: { readonly networks: PolicyRecord["networks"]; readonly builtIn: PolicyRecord["rules"] },
): void {
  const { policy } = state;
  const before = state.compiled?.policy ?? (policy.compiled as CellPolicy | null);
  const isInParts = now.policy.rules.length > (state.options.policyRulesInRecord ?? mostInRecord);
  const [was, is] = [marksBefore(state, before), marksNow(now)];
  const written = (each: CellPolicy) => toJson(isInParts ? withoutRules(each) : each);
  const isSame =
    before !== null &&
    isInParts === (policy.parts !== undefined) &&
    (!isInParts || sameMarks(was, is)) &&
    sameJson(written(before), written(now.policy));
  state.compiled = now;
  if (isSame) return;
  const version = policy.version + 1;
  const since = sinceOf(state, { version, before, next: now.policy, was, is });
  const more = policy.base === undefined ? {} : { base: policy.base };
  if (!isInParts) {
    for (const [uid] of state.policyParts) writePart(state, uid, null);
    const rules = { ...builtIn };
    for (const [uid, { ids }] of now.rules) for (const [key, id] of Object.entries(ids)) rules[`${uid} ${key}`] = id;
    savePolicy(state, { networks, rules, compiled: toJson(now.policy), version, since, ...more });
  } else {
    for (const uid of [...state.policyParts.keys()]) if (!now.rules.has(uid)) writePart(state, uid, null);
    for (const [uid, { element, rules, ids }] of now.rules)
      writePart(state, uid, rules.length === 0 ? null : { path: element.path, ids, mark: markOf(rules) });
    const parts = Object.fromEntries(marksOf(now.builtIn));
    const compiled = toJson(withoutRules(now.policy));
    savePolicy(state, { networks, rules: builtIn, compiled, parts, version, since, ...more });
  }
}
const withoutRules = (policy: CellPolicy): CellPolicy => ({ ...policy, rules: [] });
const sameMarks = (one: Marks, other: Marks): boolean =>
  one.size === other.size && [...one].every(([part, mark]) => other.get(part) === mark);

function writePart(state: ControllerState, uid: Uid, part: PolicyPart | null): void {
  if (part === null) state.policyParts.delete(uid);
  else state.policyParts.set(uid, part);
  write(state.outbox, policyPartKey(uid), part);
}
export const policyPartKey = (uid: Uid): string => `rules/${uid}`;

/**
 * Since which version each rule of the model, or one that is being taken away, is as it is. Where the controller or a
 * network has moved, each is another one.
 */
function sinceOf(
  state: ControllerState,
  change: {
    readonly version: number;
    readonly before: CellPolicy | null;
    readonly next: CellPolicy;
    readonly was: Marks;
    readonly is: Marks;
  },
): Readonly<Record<string, number>> {
  const { version, before, next, was, is } = change;
  const { since, version: former } = state.policy;
  const isMoved = !sameJson(toJson(before?.controller ?? {}), toJson(next.controller));
  const elements = [...state.elements.values()];
  const paths = elements.flatMap(({ type, path }) => (type === "NetworkRule" ? [path] : []));
  // Of those that had it: that it is taken away has to be in force as well.
  const subnets = elements.flatMap(({ type, identity }) => {
    if (type !== "Subnet") return [];
    const part = connectivityOf(identity);
    return was.has(part) || since?.[part] !== undefined ? [part] : [];
  });
  const entries = [...is.keys(), ...paths, ...subnets].map((path): [string, number] => {
    const isSame = was.get(path) === is.get(path) && !(isMoved && is.has(path));
    return [path, isSame ? (since === undefined ? former : (since[path] ?? 0)) : version];
  });
  const after = Object.fromEntries(entries);
  // The same object where it says the same: whoever rests on it is not disturbed by each version.
  return since !== undefined && sameJson(since, after) ? since : after;
}
