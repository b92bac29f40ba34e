import { closestName } from "../../../diagnostics/closest-name.ts";
import { isObject, type Json, type JsonObject } from "../../../json/json.ts";
import type { Membership } from "../affinity/affinity.ts";
import { longestMark, type Marks, missingMark, readProperties, readTags } from "../dedication/marks.ts";

/*
 * Nice wishes of a VM, `x.placement.nice`: what it would rather have of its host, each with a name and a weight. None of them keeps it from a host;
 * of hosts that take it the one is chosen whose wishes that are so weigh most. Of memory and processors a wish names more than the VM has to have, and
 * where it is so the VM gets that much: its quota counts the most that it may get.
 */
export interface NiceWish {
  readonly name: string;
  readonly weight: number;
  readonly wants:
    | { readonly kind: "mark"; readonly wish: JsonObject }
    /** An affinity group of its account, of any kind. */
    | { readonly kind: "group"; readonly group: string }
    | { readonly kind: "memory"; readonly to: number }
    | { readonly kind: "cpus"; readonly to: number };
}
export interface NiceFault {
  /** Of the wish; null: all of it is none. */
  readonly name: string | null;
  /** As the end of a sentence: "`x.placement.nice.near` …". */
  readonly why: string;
  readonly right: string;
}
export const mostNice = 16;
export const [leastWeight, mostWeight] = [1, 1000] as const;
const most = { memory: 16_777_216, cpus: 1024 } as const;
const kinds = ["zone", "pod", "cluster", "tags", "properties", "group", "memory", "cpus"] as const;
type Kind = (typeof kinds)[number];
const forms: Readonly<Record<Kind, string>> = {
  zone: 'zone "z1";',
  pod: 'pod "z1/p1";',
  cluster: 'cluster "z1/p1/c1";',
  tags: 'tags ["ssd"];',
  properties: "properties extends DATA { sriov 4; }",
  group: 'group "replicas";',
  memory: "memory 4096;",
  cpus: "cpus 4;",
};
const form = 'near extends DATA { zone "z1"; weight 5; }';
export const niceForm = `x.placement.nice extends DATA { ${form} roomy extends DATA { memory 4096; } }`;

/** All wishes, in the order in which they are written, or the first thing that is wrong. Absent: none. */
export function readNice(json: Json | undefined): readonly NiceWish[] | NiceFault {
  if (json === undefined) return [];
  const all = isObject(json) ? Object.entries(json) : [];
  if (!isObject(json) || all.length === 0 || all.length > mostNice)
    return { name: null, why: `has 1 to ${mostNice} wishes by their names`, right: `Write it as \`${niceForm}\`.` };
  const read: NiceWish[] = [];
  for (const [name, value] of all) {
    const wish = readWish(name, value);
    if ("why" in wish) return wish;
    read.push(wish);
  }
  return read;
}

function readWish(name: string, json: Json): NiceWish | NiceFault {
  const fault = (why: string, right: string): NiceFault => ({ name: name.slice(0, 100), why, right });
  if (!isObject(json)) return fault("is no wish", `Write it as \`${form}\`.`);
  const { weight = leastWeight, ...rest } = json;
  const isWeight =
    typeof weight === "number" && Number.isSafeInteger(weight) && weight >= leastWeight && weight <= mostWeight;
  if (!isWeight)
    return fault(
      "has a weight that is none",
      `Write a whole number from ${leastWeight} to ${mostWeight}: the more, the rather.`,
    );
  const [kind, ...others] = Object.keys(rest);
  const one = `Write one of ${kinds.join(", ")} in each wish, as \`${form}\`.`;
  if (kind === undefined) return fault("asks for nothing", one);
  const unknown = [kind, ...others].find((each) => !kinds.some((known) => known === each));
  if (unknown !== undefined) {
    const close = closestName(unknown, kinds);
    return fault(
      `asks for \`${unknown.slice(0, 100)}\`, which is none`,
      `${close === undefined ? "" : `Did you mean \`${close}\`? `}${one}`,
    );
  }
  if (others.length > 0) return fault(`asks for ${[kind, ...others].join(" and ")} at once`, one);
  const wants = wantsOf(kind as Kind, json[kind] ?? null);
  if (wants === null) return fault(`asks for a ${kind} that is none`, `Write it as \`${forms[kind as Kind]}\`.`);
  return { name, weight, wants };
}
function wantsOf(kind: Kind, value: Json): NiceWish["wants"] | null {
  const isText = typeof value === "string" && value.length > 0 && value.length <= longestMark;
  switch (kind) {
    case "zone":
    case "pod":
    case "cluster":
      return isText ? { kind: "mark", wish: { [kind]: value } } : null;
    case "tags":
      return readTags(value) === null ? null : { kind: "mark", wish: { tags: value } };
    case "properties":
      return readProperties(value) === null ? null : { kind: "mark", wish: { properties: value } };
    case "group":
      return isText ? { kind: "group", group: value } : null;
    case "memory":
    case "cpus": {
      const isAmount = typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= most[kind];
      return isAmount ? { kind, to: value } : null;
    }
  }
}

const readBefore = new WeakMap<object, readonly NiceWish[]>();
/** Of a VM's `x.placement`; what is malformed asks for nothing. */
export function niceOf(placement: Json): readonly NiceWish[] {
  if (!isObject(placement) || placement.nice === undefined) return none;
  const known = readBefore.get(placement);
  if (known !== undefined) return known;
  const read = readNice(placement.nice);
  const wishes = "why" in read ? none : read;
  readBefore.set(placement, wishes);
  return wishes;
}
const none: readonly NiceWish[] = [];

/** What a host has for one VM: its marks, where others of its groups are, and how much of it this one could have. */
export interface NiceHost {
  readonly host: string;
  readonly marks: Marks | undefined;
  /** Of the groups that wishes name; of one that is none nothing. */
  readonly groups: ReadonlyMap<string, Membership>;
  readonly memoryMiB: number;
  readonly cpus: number;
}
/** Is it so at that host? */
export function isSo({ wants }: NiceWish, { host, marks, groups, memoryMiB, cpus }: NiceHost): boolean {
  if (wants.kind === "mark") return missingMark(marks, wants.wish) === null;
  if (wants.kind === "memory") return memoryMiB >= wants.to;
  if (wants.kind === "cpus") return cpus >= wants.to;
  const group = groups.get(wants.group);
  if (group === undefined) return false;
  const isApart = group.kind === "host anti-affinity" || group.kind === "non-strict host anti-affinity";
  return isApart ? !group.homes.has(host) : group.homes.size === 0 || group.homes.has(host);
}

/** The most that a VM may get by its wishes, and at least what it has to have: what its quota counts. */
export const mostOf = (kind: "memory" | "cpus", least: number, placement: Json): number =>
  Math.max(least, ...niceOf(placement).map(({ wants }) => (wants.kind === kind ? wants.to : 0)));

/** The same wishes as one asks them of a host that needs so much beside the guest: of memory each names that much more. */
export function withBeside(placement: JsonObject, besideMiB: number): JsonObject {
  if (besideMiB === 0 || !isObject(placement.nice)) return placement;
  const raised = niceOf(placement).flatMap(({ name, weight, wants }) =>
    wants.kind === "memory" ? [[name, { memory: Math.min(most.memory, wants.to + besideMiB), weight }]] : [],
  );
  return raised.length === 0 ? placement : { ...placement, nice: { ...placement.nice, ...Object.fromEntries(raised) } };
}
