import type { CellPolicy, CompiledRule } from "../../../../../core/documents/vocabulary.ts";
import { fail, ok, type Result } from "../../../../../model/result.ts";
import { compilePolicy, type PolicyEntry } from "./policy.ts";

/** What leads from the entries of one policy to those of another. */
export interface PolicyChange {
  /** Entries that are new or have another value. */
  readonly put: readonly PolicyEntry[];
  readonly remove: readonly Buffer[];
}
export interface RuleChange {
  readonly removed: readonly CompiledRule[];
  readonly added: readonly CompiledRule[];
}

const samePorts = (a: CompiledRule["ports"], b: CompiledRule["ports"]): boolean => a.from === b.from && a.to === b.to;
const sameRule = (a: CompiledRule, b: CompiledRule): boolean =>
  a === b ||
  (a.id === b.id &&
    a.from === b.from &&
    a.to === b.to &&
    a.protocol === b.protocol &&
    a.path === b.path &&
    samePorts(a.ports, b.ports) &&
    samePorts(a.sourcePorts, b.sourcePorts));
const textOf = ({ id, path, from, to, protocol, ports, sourcePorts }: CompiledRule): string =>
  JSON.stringify([id, path, from, to, protocol, ports.from, ports.to, sourcePorts.from, sourcePorts.to]);

/**
 * Rules that only one of two lists has; a rule that changed is in both. Lists begin and end alike as a rule, and then this
 * costs one comparison of numbers for each rule, some nanoseconds; only what lies between is looked up.
 */
export function changedRules(before: readonly CompiledRule[], after: readonly CompiledRule[]): RuleChange {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && sameRule(before[start]!, after[start]!)) start += 1;
  let end = 0;
  while (end < shorter - start && sameRule(before[before.length - 1 - end]!, after[after.length - 1 - end]!)) end += 1;
  const left = new Map<string, CompiledRule[]>();
  for (const rule of before.slice(start, before.length - end)) {
    const text = textOf(rule);
    left.set(text, [...(left.get(text) ?? []), rule]);
  }
  const added = after.slice(start, after.length - end).filter((rule) => left.get(textOf(rule))?.pop() === undefined);
  return { removed: [...left.values()].flat(), added };
}

const sameNetworks = (a: CellPolicy["networks"], b: CellPolicy["networks"]): boolean =>
  a.length === b.length && a.every(({ cidr, identity }, at) => cidr === b[at]?.cidr && identity === b[at]?.identity);

/** Entries of the pairs of identities that changed rules are about, compiled from both policies and compared. */
export function changeOf(
  before: CellPolicy,
  after: CellPolicy,
  { removed, added }: RuleChange = changedRules(before.rules, after.rules),
): Result<PolicyChange, string> {
  const pairs = new Map<number, Set<number>>();
  for (const { from, to } of [...removed, ...added]) pairs.set(from, (pairs.get(from) ?? new Set()).add(to));
  const networks = !sameNetworks(before.networks, after.networks);
  const routing = JSON.stringify([before.routers, before.traits]) !== JSON.stringify([after.routers, after.traits]);
  const part = (policy: CellPolicy) =>
    compilePolicy({
      cell: policy.cell,
      rules: pairs.size === 0 ? [] : policy.rules.filter(({ from, to }) => pairs.get(from)?.has(to)),
      networks: networks ? policy.networks : [],
      ...(routing ? { routers: policy.routers ?? [], traits: policy.traits ?? [] } : {}),
    });
  const [old, now] = [part(before), part(after)];
  if (!now.ok) return now;
  if (!old.ok) return fail(old.error);
  return ok(entryChange(old.value, now.value));
}

function entryChange(before: readonly PolicyEntry[], after: readonly PolicyEntry[]): PolicyChange {
  const left = new Map(before.map((entry) => [entry.key.toString("latin1"), entry]));
  const now = new Map(after.map((entry) => [entry.key.toString("latin1"), entry]));
  const put = [...now].flatMap(([name, entry]) => (left.get(name)?.value.equals(entry.value) ? [] : [entry]));
  const remove = [...left].flatMap(([name, { key }]) => (now.has(name) ? [] : [key]));
  return { put, remove };
}
