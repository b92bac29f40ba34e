import type { CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { parseNetwork } from "../../../../../model/addresses/addresses.ts";
import type { Names } from "../names.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { controller, policyEntry, policyKey, policyState, ruleKey, toNumber, word } from "../program/layout.ts";
import { type BpfMap, createMap, mapTypes, noPreallocation, openInner } from "../program/libbpf.ts";
import type { Generations } from "./generations.ts";
import { compilePolicy, type PolicyEntry } from "./policy.ts";
import { changedRules, changeOf, type PolicyChange, type RuleChange } from "./policy-change.ts";
import { difference, isEmpty } from "./wanted.ts";

/**
 * The rules of cells in force on this host. Each cell has two tries: the one that packets meet, and a standby that is one
 * change behind. A change is written into the standby, after the one that it missed, and then the standby takes the other's
 * place in one write: packets meet old rules or new ones, and a change costs what has changed, twice.
 *
 * What this process wrote it need not read again. It reads what it finds when it starts, and again when it was told to
 * doubt.
 */
export interface CellRules {
  isInForce(policy: CellPolicy): boolean;
  /** Puts it in force if it is not. One that cannot be compiled is left out, and its cell keeps the rules that it had. */
  implement(policy: CellPolicy): void;
  /** Why a policy cannot be put in force, a sentence; null: it can. */
  problem(policy: CellPolicy): string | null;
  /** Takes the rules of a cell away. */
  remove(cell: number): void;
  /** Cells whose rules in force may be about one of these addresses of other cells, and every one of which that is unknown. */
  speakingOf(addresses: Iterable<string>): ReadonlySet<number>;
  /** The maps may have been changed by somebody else: all is read back before anything is said of it again. */
  doubt(): void;
  close(): void;
}

interface InForce {
  readonly policy: CellPolicy;
  readonly live: BpfMap;
  readonly standby: BpfMap;
  /** What the standby lacks. */
  readonly behind: PolicyChange;
}
type Work =
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "anew"; readonly entries: readonly PolicyEntry[] }
  | { readonly kind: "change"; readonly base: InForce; readonly entries: PolicyChange; readonly rules: RuleChange };

const nothing: PolicyChange = { put: [], remove: [] };
const key = (value: number): Buffer => word.encode({ value });
/** A trie takes memory for what it holds, so this is a bound and no size. */
const mostEntries = 2 ** 24;

function trieOf(entries: readonly PolicyEntry[]): BpfMap {
  const { lpmTrie } = mapTypes;
  const trie = createMap(lpmTrie, "policy_trie", policyKey.size, policyEntry.size, mostEntries, noPreallocation);
  try {
    trie.setAll(entries);
    return trie;
  } catch (problem) {
    trie.close();
    throw problem;
  }
}
function write(trie: BpfMap, { put, remove }: PolicyChange): void {
  for (const entry of remove) trie.delete(entry);
  trie.setAll(put);
}

const sameController = (a: CellPolicy["controller"], b: CellPolicy["controller"]): boolean =>
  a.address === b.address && a.mac === b.mac && a.identity === b.identity;

/** Is one of these addresses the controller's, or in one of the networks? */
function speaksOf({ controller: { address }, networks }: CellPolicy, addresses: ReadonlyMap<string, number>): boolean {
  if (addresses.has(address)) return true;
  const blocks = networks.flatMap(({ cidr }) => parseNetwork(cidr) ?? []);
  const numbers = [...addresses.values()];
  return blocks.some(({ first, last }) => numbers.some((number) => first <= number && number <= last));
}
function speakingOf(
  { maps }: Dataplane,
  known: ReadonlyMap<number, InForce>,
  addresses: Iterable<string>,
): ReadonlySet<number> {
  const numbers = new Map([...addresses].map((address) => [address, toNumber(address)]));
  const isConcerned = (cell: InForce | undefined): boolean => cell === undefined || speaksOf(cell.policy, numbers);
  const inForce = maps.policies.keys().map((bytes) => word.decode(bytes).value);
  return new Set(inForce.filter((cell) => isConcerned(known.get(cell))));
}

export function createCellRules(dataplane: Dataplane, names: Names, generations: Generations): CellRules {
  const { maps } = dataplane;
  const cells = new Map<number, InForce>();
  /** Found out for a policy by `isInForce`, for `implement` to do; holds as long as the cell is as it was then. */
  const due = new Map<
    number,
    { readonly policy: CellPolicy; readonly base: InForce | undefined; readonly work: Work }
  >();

  const forget = (cell: number): void => {
    const known = cells.get(cell);
    known?.live.close();
    known?.standby.close();
    cells.delete(cell);
    due.delete(cell);
  };
  const workFor = (policy: CellPolicy): Work => {
    const { cellNumber: cell } = policy;
    const base = cells.get(cell);
    if (base?.policy === policy) return { kind: "nothing" };
    const known = due.get(cell);
    if (known !== undefined && known.policy === policy && known.base === base) return known.work;
    const work = base === undefined ? lookBack(policy) : compare(base, policy);
    due.set(cell, { policy, base: cells.get(cell), work });
    return work;
  };
  const compare = (base: InForce, policy: CellPolicy): Work => {
    const rules = changedRules(base.policy.rules, policy.rules);
    const compiled = changeOf(base.policy, policy, rules);
    if (!compiled.ok) return { kind: "refused", why: compiled.error };
    const entries = compiled.value;
    const isSame =
      entries.put.length + entries.remove.length + rules.added.length + rules.removed.length === 0 &&
      base.policy.version === policy.version &&
      sameController(base.policy.controller, policy.controller);
    if (!isSame) return { kind: "change", base, entries, rules };
    cells.set(policy.cellNumber, { ...base, policy });
    return { kind: "nothing" };
  };
  /** Nothing is known of the cell: what an earlier process left in force is taken over if it is exactly right. */
  const lookBack = (policy: CellPolicy): Work => {
    const compiled = compilePolicy(policy);
    if (!compiled.ok) return { kind: "refused", why: compiled.error };
    const entries = compiled.value;
    const live = liveTrie(policy, entries);
    if (live === null) return { kind: "anew", entries };
    try {
      cells.set(policy.cellNumber, { policy, live, standby: trieOf(entries), behind: nothing });
    } catch (problem) {
      live.close();
      throw problem;
    }
    return { kind: "nothing" };
  };
  const liveTrie = (policy: CellPolicy, entries: readonly PolicyEntry[]): BpfMap | null => {
    const cell = key(policy.cellNumber);
    const state = maps.policies.get(cell);
    const inner = maps.rules.get(cell);
    if (state === null || policyState.decode(state).version !== policy.version >>> 0 || inner === null) return null;
    if (!maps.controllers.get(cell)?.equals(controller.encode(policy.controller))) return null;
    const named = names.rules(policy.cellNumber);
    if (named.size !== policy.rules.length || !policy.rules.every(({ id, path }) => named.get(id) === path))
      return null;
    const trie = openInner(word.decode(inner).value, policyKey.size, policyEntry.size);
    if (trie === null) return null;
    const wanted = new Map(entries.map((entry) => [entry.key.toString("hex"), entry]));
    if (isEmpty(difference(trie, wanted))) return trie;
    trie.close();
    return null;
  };

  /** The moment of a change: one write of the outer map, which returns when no packet meets the old trie any more. */
  const swap = (policy: CellPolicy, trie: BpfMap | null): void => {
    const cell = key(policy.cellNumber);
    const authority = controller.encode(policy.controller);
    if (!maps.controllers.get(cell)?.equals(authority)) maps.controllers.set(cell, authority);
    if (trie !== null) maps.rules.set(cell, word.encode({ value: trie.fd }));
    generations.renew(new Set([policy.cellNumber]));
    maps.policies.set(cell, policyState.encode({ version: policy.version >>> 0 }));
  };
  const changeRules = (policy: CellPolicy, { base, entries, rules }: Work & { readonly kind: "change" }): void => {
    const { cellNumber: cell } = policy;
    const isEqual = entries.put.length + entries.remove.length === 0;
    if (isEqual) swap(policy, null);
    else {
      write(base.standby, base.behind);
      write(base.standby, entries);
      swap(policy, base.standby);
    }
    cells.set(
      cell,
      isEqual ? { ...base, policy } : { policy, live: base.standby, standby: base.live, behind: entries },
    );
    const added = rules.added.map(({ id, path }) => [id, path] as const);
    const kept = new Set(rules.added.map(({ id }) => id));
    rename(cell, new Set(rules.removed.map(({ id }) => id).filter((id) => !kept.has(id))), added);
  };
  const replaceAll = (policy: CellPolicy, entries: readonly PolicyEntry[]): void => {
    const { cellNumber: cell } = policy;
    const live = trieOf(entries);
    try {
      swap(policy, live);
      cells.set(cell, { policy, live, standby: trieOf(entries), behind: nothing });
    } catch (problem) {
      live.close();
      throw problem;
    }
    const wanted = new Map(policy.rules.map(({ id, path }) => [id, path]));
    const named = names.rules(cell);
    const gone = [...named.keys()].filter((id) => !wanted.has(id));
    rename(
      cell,
      gone,
      [...wanted].filter(([id, path]) => named.get(id) !== path),
    );
  };
  /** A rule that is no more takes its counter along: their map is bounded, and rules come and go for years. */
  const rename = (cell: number, gone: Iterable<number>, named: Iterable<readonly [number, string]>): void => {
    const rules = [...gone];
    for (const rule of rules) maps.rule_counts.delete(ruleKey.encode({ cell, rule }));
    names.changeRules(cell, rules, named);
  };

  return {
    isInForce: (policy) => {
      const { kind } = workFor(policy);
      return kind === "nothing" || kind === "refused";
    },
    problem: (policy) => {
      const work = workFor(policy);
      return work.kind === "refused" ? work.why : null;
    },
    implement: (policy) => {
      const work = workFor(policy);
      if (work.kind === "nothing" || work.kind === "refused") return;
      try {
        if (work.kind === "change") changeRules(policy, work);
        else replaceAll(policy, work.entries);
        due.delete(policy.cellNumber);
      } catch (problem) {
        // Nobody knows how far it came.
        forget(policy.cellNumber);
        throw problem;
      }
    },
    remove: (cell) => {
      forget(cell);
      for (const map of [maps.policies, maps.rules, maps.controllers]) map.delete(key(cell));
      generations.renew(new Set([cell]));
      rename(cell, names.rules(cell).keys(), []);
    },
    speakingOf: (addresses) => speakingOf(dataplane, cells, addresses),
    doubt: () => {
      for (const cell of [...cells.keys()]) forget(cell);
      due.clear();
    },
    close: () => {
      for (const cell of [...cells.keys()]) forget(cell);
    },
  };
}
