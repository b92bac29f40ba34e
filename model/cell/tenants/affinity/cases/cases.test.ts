import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { casesFrom, onlyKnown } from "../../../../testing/case-folders.testing.ts";
import { placementSettings } from "../../../attributes/placement-settings.ts";
import { type GroupKind, groupKinds, type Membership, softRank, whichRefuses } from "../affinity.ts";

/** What an existing cloud does, beside ours; with CELLS_CASES another folder's `dedication/`. */
const base = casesFrom(new URL("./", import.meta.url), "dedication");

const known: readonly string[] = [
  ...["id", "rule", "note", "group", "running", "stopped", "reserved", "hosts", "place", "chosenBefore", "then"],
];

interface Stopped {
  readonly lastHost: string;
  readonly secondsAgo: number;
}
interface Case {
  readonly id: string;
  readonly rule: string;
  readonly group: { readonly type: string; readonly members: readonly string[] };
  readonly running?: Readonly<Record<string, string>>;
  readonly stopped?: Readonly<Record<string, Stopped>>;
  readonly reserved?: Readonly<Record<string, string>>;
  readonly hosts: readonly string[];
  readonly place: string;
  /** A host that was picked before the reservations were seen. */
  readonly chosenBefore?: string;
  readonly then: { readonly hosts?: readonly string[]; readonly refusedAt?: string };
}

function homesOf({ group, running, stopped, reserved, place }: Case, isSeen: boolean): ReadonlyMap<string, number> {
  const homes = new Map<string, number>();
  const lately = Object.entries(stopped ?? {}).filter(
    ([, { secondsAgo }]) => secondsAgo < placementSettings.lastHostS.preset,
  );
  const all = [
    ...Object.entries(running ?? {}),
    ...(isSeen ? Object.entries(reserved ?? {}) : []),
    ...lately.map(([vm, { lastHost }]) => [vm, lastHost] as const),
  ];
  for (const [vm, host] of all)
    if (vm !== place && group.members.includes(vm)) homes.set(host, (homes.get(host) ?? 0) + 1);
  return homes;
}
const kindOf = (text: string): GroupKind => {
  const kind = groupKinds.find((each) => each === text);
  assert.ok(kind, text);
  return kind;
};
const membershipsOf = (each: Case, isSeen: boolean): readonly Membership[] =>
  each.group.members.includes(each.place)
    ? [{ name: "group", kind: kindOf(each.group.type), homes: homesOf(each, isSeen) }]
    : [];

for (const each of JSON.parse(readFileSync(new URL("affinity.json", base), "utf8")) as readonly Case[])
  test(`affinity ${each.id} (${each.rule})`, () => {
    onlyKnown("the case", each, known);
    const [before, now] = [membershipsOf(each, false), membershipsOf(each, true)];
    const { chosenBefore, then } = each;
    if (chosenBefore !== undefined) assert.equal(whichRefuses(before, chosenBefore), null);
    if (then.refusedAt !== undefined) assert.notEqual(whichRefuses(now, then.refusedAt), null);
    const passing = each.hosts.filter((host) => whichRefuses(now, host) === null);
    const best = Math.min(...passing.map((host) => softRank(now, host)));
    const chosen = passing.filter((host) => softRank(now, host) === best);
    assert.deepEqual(chosen.sort(), [...(then.hosts ?? [])].sort());
  });
