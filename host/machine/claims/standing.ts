import { cellAround, rootCell } from "../../../core/documents/cells.ts";
import type { PlacedTerms } from "../../../core/documents/pools.ts";
import type { DesiredVm } from "../../../core/documents/vocabulary.ts";
import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Membership } from "../../../model/cell/tenants/affinity/affinity.ts";
import { ownerOfGroup } from "../../../model/cell/tenants/dedication/dedication.ts";
import type { Neighbour } from "../../../model/cell/tenants/dedication/implicit.ts";
import { type Against, mayStandTogether, type Newcomer, type There } from "../../../model/cell/tenants/together.ts";
import type { VmRecord } from "../../vm-record.ts";
import type { Wanted } from "../../wanted.ts";
import { type ClaimState, rootController } from "./claims.ts";

/*
 * The host's last word on who stands at it. A Placer judges by the same function (`mayStandTogether`), but two of them may promise what only one can have,
 * and one may not have heard yet whose the host is. A VM that must not be here is refused for good, and its controller asks for another place;
 * one that was placed by a word which has not arrived here yet waits for it.
 */
export type Standing = { readonly refused: string } | { readonly waits: string };
type Guest = Pick<VmRecord, "client" | "vm">;
type Guests = ReadonlyMap<Uid, VmRecord>;

/** Null: it may stand here now. */
export function standingHere(
  client: PeerName | undefined,
  desired: DesiredVm,
  { claimed }: Pick<Wanted, "claimed">,
  records: Guests,
): Standing | null {
  // The root controller's own VM is started by hosts, wherever there is room for it.
  if (client === undefined || claimed === undefined || isRootsOwn(client, desired)) return null;
  const epoch = desired.terms?.claim;
  const { claim } = claimed;
  if (epoch !== undefined && epoch > claimed.epoch)
    return {
      waits: "the root controller has not said here yet whose this host is, and the VM was placed by that word",
    };
  if (epoch !== undefined && epoch < (claim?.epoch ?? claimed.epoch + 1))
    return { refused: "whose this host is has changed since it was chosen" };
  const guests = [...records.values()].filter(({ stage, vm }) => stage !== "ended" && vm.uid !== desired.uid);
  if (claim === null && !areApart({ client, vm: desired }, guests)) return null;
  const newcomer = { client, vm: desired };
  const unknown = isUnheard(claimed, newcomer) ? newcomer : guests.find((guest) => isUnheardGuest(claimed, guest));
  if (unknown !== undefined)
    return { waits: `the root controller has not said here yet whose the cell ${cellAround(unknown.client)} is` };
  const against = mayStandTogether(thereOf(claimed, guests), newcomerOf(claimed, client, desired, guests));
  return against === null ? null : { refused: sentenceOf(against) };
}

const isRootsOwn = (client: PeerName, { restart }: DesiredVm): boolean =>
  client === rootController && restart === "host";
const isApart = ({ terms }: DesiredVm): boolean => terms?.implicit !== undefined || (terms?.groups ?? []).length > 0;
const areApart = ({ vm }: Guest, guests: readonly Guest[]): boolean =>
  isApart(vm) || guests.some((guest) => isApart(guest.vm));
/**
 * What it asks for keeps others off: it is here, or may start now. One that waits for a word which may never come keeps nobody off,
 * or a controller could close each host by what it says of a VM that is nowhere.
 */
export const keepsOff = (client: PeerName, desired: DesiredVm, wanted: Wanted, found: Guests): boolean =>
  found.has(desired.uid) || !isApart(desired) || standingHere(client, desired, wanted, found) === null;

/** Does it matter here whose VMs are? */
export const needsOwners = ({ vms }: Pick<Wanted, "vms">, records: ReadonlyMap<Uid, VmRecord>): boolean =>
  [...vms.values()].some(({ desired }) => isApart(desired)) ||
  [...records.values()].some(({ stage, vm }) => stage !== "ended" && isApart(vm));

/**
 * Its Placer knows of an account, or is of a version that does not say so; this host has not heard which. A cell may be made at any time, so that
 * a root controller which has said all that it knew may still say whose this one is; one of the version before says nothing of any cell.
 */
const isUnheard = ({ owners, heard }: ClaimState, { client, vm: { terms } }: Guest): boolean => {
  if (client === rootController || owners.has(cellAround(client))) return false;
  if (terms?.owned === true) return !heard || owners.has(rootCell);
  return !heard && terms === undefined;
};
/**
 * Who is here already is waited for only until the root controller has said all that it knows. One whose store is older knows nothing of
 * cells that were made since, and while their VMs run nobody could start here: they count as nobody's, and who must not stand beside
 * such is refused, for another place.
 */
const isUnheardGuest = (claimed: ClaimState, guest: Guest): boolean => !claimed.heard && isUnheard(claimed, guest);
const accountOf = ({ owners }: ClaimState, client: PeerName): string | null => owners.get(cellAround(client)) ?? null;
/** Cells of no account are with those in the same child cell alone. */
const ownerOf = (claimed: ClaimState, client: PeerName): string =>
  accountOf(claimed, client) ?? `of ${cellAround(client)}`;

function thereOf(claimed: ClaimState, guests: readonly Guest[]): There {
  const { claim } = claimed;
  const neighbours = guests.map(({ client, vm }): Neighbour => {
    const known = { account: accountOf(claimed, client), mode: vm.terms?.implicit ?? null };
    return client === rootController ? { ...known, isSystem: true } : known;
  });
  return { host: here, rule: claim?.rule ?? null, pooled: claim?.pooled ?? null, neighbours: () => neighbours };
}
/** Of all hosts only this one is looked at. */
const here = "here";

function newcomerOf(claimed: ClaimState, client: PeerName, { terms }: DesiredVm, guests: readonly Guest[]): Newcomer {
  const account = accountOf(claimed, client);
  const base = { account, isSystem: client === rootController };
  // One that nobody has said anything of is taken to have asked for what it got.
  if (terms === undefined) {
    const { rule = null, pooled = null } = claimed.claim ?? {};
    return { ...base, group: rule?.to ?? null, mode: null, pool: pooled?.pool?.uid ?? null, memberships: [] };
  }
  const { implicit = null, pool = null } = terms;
  return { ...base, group: groupOf(terms, account), mode: implicit, pool, memberships: membershipsOf() };

  function membershipsOf(): readonly Membership[] {
    return (terms?.groups ?? []).flatMap(({ name, kind }): readonly Membership[] => {
      if (kind === null) return [];
      const members = guests.filter(
        (guest) =>
          ownerOf(claimed, guest.client) === ownerOf(claimed, client) &&
          guest.vm.terms?.groups?.some((each) => each.name === name && each.kind !== null) === true,
      );
      return [{ name, kind, homes: new Map(members.length === 0 ? [] : [[here, members.length]]) }];
    });
  }
}
function groupOf({ groups = [] }: PlacedTerms, account: string | null): Newcomer["group"] {
  if (account === null) return null;
  for (const { name } of groups) {
    const owner = ownerOfGroup(name, account);
    if (owner !== null) return owner;
  }
  return null;
}

/** Whose VMs are there, and how many, is not for its controller to read. */
function sentenceOf(against: Against): string {
  switch (against.by) {
    case "pool":
      return "this host is not of the pool that the VM asks for, or of one though it asks for none";
    case "dedication":
      return "this host is dedicated, and not to those for whom the VM asks for it, or the VM asks for what is dedicated";
    case "strangers":
      return "this host is dedicated to its account, and VMs of others are still there";
    case "implicit":
      return "VMs of two accounts would stand beside one another, and one of them must not";
    case "group":
      return `a VM of its group ${JSON.stringify(against.group.name)} is at this host already`;
  }
}
