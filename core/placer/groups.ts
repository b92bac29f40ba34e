import { hostName, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import { type GroupKind, type Membership, reservedGroupName } from "../../model/cell/tenants/affinity/affinity.ts";
import type { Json } from "../../model/json/json.ts";
import { cellAround } from "../documents/cells.ts";
import { desiredGroup } from "../documents/readers/tenancy.ts";
import { type DesiredGroup, groupKey } from "../documents/tenancy.ts";
import type { DesiredPlacement } from "../documents/vocabulary.ts";
import { sameJson, toJson } from "../outbox.ts";
import { type Asker, groupsOf, type Usage } from "./candidate.ts";
import type { KnownGroup, KnownGroups, PlacerState } from "./state.ts";

/*
 * Affinity groups, as the controllers of an account's cells say them. A name means one group in all cells of an account; cells of no account
 * have them with those in the same child cell of the root cell. Where members are is what the reservations say (`Usage.members`).
 */

/** @returns whether what may be placed where has changed; null: it is about something else. One that is malformed changes nothing. */
export function takeGroup(state: PlacerState, client: PeerName, key: string, value: Json): boolean | null {
  if (!key.startsWith(groupKey("" as Uid))) return null;
  const uid = key.slice(groupKey("" as Uid).length) as Uid;
  const before = state.groups.get(uid);
  const document = value === null ? null : desiredGroup.of(value, uid);
  // A UID is one cell's: another's word about it counts for nothing.
  if ((document === null && value !== null) || (before !== undefined && before.client !== client)) return false;
  if (before !== undefined && document !== null && sameJson(toJson(before.document), toJson(document))) return false;
  for (const each of [before?.document, document]) {
    if (each === undefined || each === null) continue;
    const named: KnownGroups = state.groupsByName.get(each.name) ?? new Map();
    const around = cellAround(client);
    const within = named.get(around) ?? new Map<Uid, KnownGroup>();
    if (each === document) within.set(uid, { client, document });
    else within.delete(uid);
    if (within.size === 0) named.delete(around);
    else named.set(around, within);
    if (named.size === 0) state.groupsByName.delete(each.name);
    else state.groupsByName.set(each.name, named);
  }
  if (document === null) state.groups.delete(uid);
  else state.groups.set(uid, { client, document });
  return before !== undefined || document !== null;
}

/** The group that an asker means by a name; a sentence: there are two; null: there is none. */
export function groupNamed(
  { groupsByName, usage }: Pick<PlacerState, "groupsByName" | "usage">,
  name: string,
  ours: Asker["ours"],
): GroupKind | { readonly why: string } | null {
  let found: DesiredGroup | null = null;
  const named = groupsByName.get(name);
  for (const { document } of within(named, ours)) {
    if (found !== null && found.kind !== document.kind) {
      const both = [found, document].map(({ path, kind }) => `"${path}" (${kind})`).sort();
      return { why: `x.placement.groups asks for ${JSON.stringify(name)}, of which there are two: ${both.join(", ")}` };
    }
    found = document;
  }
  if (found !== null) return found.kind;
  // One that is written in a cell of another Placer's is known by its VMs.
  const kinds = new Set<GroupKind>();
  const said = usage.kinds.get(name);
  if (said !== undefined) for (const cell of ours) for (const kind of said.get(cell)?.keys() ?? []) kinds.add(kind);
  const [kind = null, ...others] = kinds;
  if (others.length === 0) return kind;
  const both = [...kinds].sort().join('" and "');
  return { why: `x.placement.groups asks for ${JSON.stringify(name)}, and other cells have it as "${both}"` };
}
/** The groups of one name that count for an asker: of a name that every account has, those of all the others are not looked at. */
function* within(named: KnownGroups | undefined, ours: Asker["ours"]): Generator<KnownGroup> {
  if (named !== undefined) for (const cell of ours) yield* named.get(cell)?.values() ?? [];
}

const nothing: readonly Membership[] = [];
/** The affinity groups that a VM asks for, and where others of them count. */
export const membershipsOf = (usage: Usage, request: DesiredPlacement, asker: Asker): readonly Membership[] =>
  membershipsIn(usage, request, groupsOf(request.placement), asker);
/** The same of groups by their names. */
export function membershipsIn(
  usage: Usage,
  { vm }: Pick<DesiredPlacement, "vm">,
  names: readonly string[],
  asker: Asker,
): readonly Membership[] {
  if (names.length === 0) return nothing;
  return [...new Set(names)].flatMap((name): readonly Membership[] => {
    const kind = reservedGroupName.test(name) ? null : asker.groupNamed(name);
    if (typeof kind !== "string") return [];
    const homes = new Map<string, number>();
    const members = usage.members.get(name);
    if (members === undefined) return [{ name, kind, homes }];
    for (const cell of asker.ours)
      for (const { vm: other, host } of members.get(cell) ?? [])
        if (other !== vm && !asker.isEmptied(host, other, kind)) homes.set(host, (homes.get(host) ?? 0) + 1);
    return [{ name, kind, homes }];
  });
}

/**
 * A VM holds none of its group at a host: that was declared dead, or what is there leaves it; or it is not heard, and the VM, which is asked for, has no place
 * there any more. The last word of such a host would hold a whole group there until it is declared dead. Those that stand together are where they have their
 * places, whatever a host says of one that was there before; those that keep apart keep away from both.
 */
export function isEmptied(
  { hosts, wanted, reservations, next }: PlacerState,
  host: string,
  vm: Uid,
  kind: GroupKind,
): boolean {
  const { died = null, closed, reachable = false } = hosts.get(peerName(`host.${hostName(host)}`)) ?? {};
  if (died !== null || closed === "maintenance") return true;
  const has = reservations.get(vm)?.host;
  if (kind === "host affinity" && has !== undefined && has !== host && next.get(vm)?.host !== host) return true;
  return !reachable && wanted.has(vm) && has !== host;
}
