import type { Cause } from "../../../model/cause/cause.ts";
import type { Cell, Element, NetworkRuleElement, RuleEnd, VolumeConnectionElement } from "../../../model/cell/cell.ts";
import type { Cidr, ElementPath, Uid } from "../../../model/cell/identifiers.ts";
import {
  type ActualReach,
  type ActualWant,
  type DesiredWant,
  directoryKey,
  type PublicElement,
} from "../../documents/cells.ts";
import { actualReach, actualWant } from "../../documents/readers/cells.ts";
import { actualConnection, actualVolume } from "../../documents/readers/storage.ts";
import { serviceNumber } from "../../documents/service-roles.ts";
import type { ActualConnection } from "../../documents/vocabulary.ts";
import { sameJson, write } from "../../outbox.ts";
import { cellDomain } from "../network/names.ts";
import type { ElementRecord, ForeignRecord } from "../records.ts";
import { actualOf, type ControllerState, desiredNow, directory, recordAt, saidOf, storageManagerOf } from "../state.ts";

/**
 * What this cell says to others, and what it knows of them, both through the directory.
 *
 * What the directory answered last is durable (record `abroad/<key>`): a controller that starts again while the directory is
 * away goes on with it, since unknown is never taken for gone. Only a directory that is in step and says nothing means that
 * an element is not visible. The record stays until the directory has taken the tombstone, so that a cell does not end
 * before the last word about it is there.
 */
const recordKey = (key: string): string => `abroad/${key}`;
/** A document's key is bounded; no path that a person writes is as long. */
export const longestKey = 900;

/** The cell and path of a link such as `//bank.cells.internal/bank/db`; null for a path of this cell. */
export function foreignLink(link: string): DesiredWant | null {
  const match = /^\/\/([^/]+)\/(.+)$/.exec(link);
  return match?.[1] === undefined || match[2] === undefined ? null : { domain: match[1], path: match[2] };
}
export const shownWant = ({ domain, path }: DesiredWant): string => `//${domain}/${path}`;

/** The end of a rule that lies in another cell. */
export function foreignEnd({ address1, address2 }: NetworkRuleElement): Extract<RuleEnd, { kind: "foreign" }> | null {
  if (address1.kind === "foreign") return address1;
  return address2.kind === "foreign" ? address2 : null;
}

/** Everything in other cells that an element names. */
export function wantsOf(element: Element): readonly DesiredWant[] {
  const links =
    element.type === "VolumeCopy"
      ? [element.image]
      : element.type === "VolumeConnection"
        ? [element.volume]
        : element.type === "VolumeGrant" && element.to.kind === "vm"
          ? [element.to.vm]
          : [];
  const end = element.type === "NetworkRule" ? foreignEnd(element) : null;
  const ends = end === null ? [] : [{ domain: end.domain, path: end.path }];
  return [...links.flatMap((link) => foreignLink(link) ?? []), ...ends];
}

/**
 * Takes over what the directory says now of what the present model names; of anything else nothing holds, though it may
 * still be said. Comes first in every pass, so that all of the pass rests on the same answers.
 */
export function learnForeign(state: ControllerState): void {
  const inStep = state.reachable.get(directory) === true;
  const named = state.options.directory === true ? namedForeign(state) : new Set<string>();
  for (const key of named) {
    const known = state.foreign.get(key)?.answer ?? null;
    const answer = saidOf(state, directory, key) ?? (inStep ? null : known);
    if (!sameJson(answer, known)) saveForeign(state, key, { answer });
  }
  for (const [key, { answer }] of state.foreign)
    if (answer !== null && !named.has(key)) saveForeign(state, key, { answer: null });
}
const namersByCell = new WeakMap<Cell, readonly Element[]>();
/** Those elements of a model that name something in another cell. */
function namersIn(cell: Cell): readonly Element[] {
  const known = namersByCell.get(cell) ?? [...cell.elements.values()].filter((element) => wantsOf(element).length > 0);
  namersByCell.set(cell, known);
  return known;
}
/** The keys of all documents with which the directory is asked for something. */
function namedForeign(state: ControllerState): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const element of state.cell === null ? [] : namersIn(state.cell)) {
    const uid = state.uids.get(element.path);
    if (uid === undefined) continue;
    for (const want of wantsOf(element)) keys.add(directoryKey.want(want));
    if (element.type === "NetworkRule" && foreignEnd(element) !== null) keys.add(directoryKey.reach(uid));
  }
  return keys;
}
export function saveForeign(state: ControllerState, key: string, record: ForeignRecord | null): void {
  if (record === null) state.foreign.delete(key);
  else state.foreign.set(key, record);
  write(state.outbox, recordKey(key), record);
}
/** The directory has taken a tombstone. */
export function releasedForeign(state: ControllerState, key: string): void {
  if (state.foreign.has(key) && desiredNow(state, directory, key) === undefined) saveForeign(state, key, null);
}
export const isForeignRecord = (key: string): boolean => key.startsWith(recordKey(""));
export const foreignKeyOf = (key: string): string => key.slice(recordKey("").length);

/** @param by the element that names it, where that may be a copy for which it is held */
export function foreignElement(
  state: ControllerState,
  want: DesiredWant,
  by?: ElementPath,
): Pick<ActualWant, "uid" | "shows"> | null {
  const found = actualWant.of(state.foreign.get(directoryKey.want(want))?.answer);
  const held = found?.heldFor?.find(({ path }) => path === by);
  return held ?? (found?.onlyHeld === true ? null : found);
}

/** A volume of another cell that an element names by a link, once it is visible; null while it is not, or is none. */
export function foreignVolume(
  state: ControllerState,
  link: string,
  by: ElementPath,
): { readonly uid: Uid; readonly sizeMiB: number | null } | null {
  const want = foreignLink(link);
  const found = want === null ? null : foreignElement(state, want, by);
  return found?.shows.kind === "volume" ? { uid: found.uid, sizeMiB: found.shows.sizeMiB } : null;
}
export function foreignNetworks(state: ControllerState, want: DesiredWant): readonly Cidr[] {
  const shows = foreignElement(state, want)?.shows;
  return shows?.kind === "addresses" ? shows.networks : [];
}
/** The same with what it is, for the rules; null while it is not visible. */
export function foreignAddresses(
  state: ControllerState,
  want: DesiredWant,
): { readonly networks: readonly Cidr[]; readonly isSubnet: boolean } | null {
  const shows = foreignElement(state, want)?.shows;
  return shows?.kind === "addresses" ? { networks: shows.networks, isSubnet: shows.type === "Subnet" } : null;
}
export const reachOf = (state: ControllerState, rule: Uid): ActualReach | null =>
  actualReach.of(state.foreign.get(directoryKey.reach(rule))?.answer);

/** Why a reference has no effect yet; null: it has one. */
export function whyNotVisible(
  state: ControllerState,
  want: DesiredWant,
  wanted: PublicElement["kind"],
  by?: ElementPath,
): Cause | null {
  const { domain, path } = want;
  const found = foreignElement(state, want, by);
  if (found !== null) {
    const { kind, type } = found.shows;
    return kind === wanted ? null : { kind: "foreign-wrong-type", domain, path, type, wanted };
  }
  if (domain === cellDomain(state)) return { kind: "foreign-own-cell", domain, path };
  if (state.options.directory !== true) return { kind: "no-directory", domain, path };
  if (state.reachable.get(directory) !== true) return { kind: "directory-unreachable", domain, path };
  return { kind: "foreign-hidden", domain, path };
}

/**
 * Why a copy of another cell's volume cannot be made; null: it can, it was made, or its origin is of this cell. The Storage
 * Manager says nothing of what a cell may not use, not even that it exists: what is public here and not there has no grant.
 */
export function whyNoOrigin(state: ControllerState, record: ElementRecord, element: Element): Cause | null {
  const want = element.type === "VolumeCopy" ? foreignLink(element.image) : null;
  if (want === null) return null;
  const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
  if (actual?.hidden === true) return otherManager(state, want, element.path) ?? noGrant(state, want, "copy");
  return actual === undefined ? whyNotVisible(state, want, "volume", element.path) : null;
}

/** Why a volume of another cell cannot be a disk here; null: it can, or it is a volume of this cell. */
export function whyNotConnected(
  state: ControllerState,
  { volume }: VolumeConnectionElement,
  actual: ActualConnection | undefined,
): Cause | null {
  const want = foreignLink(volume);
  if (want === null || actual?.phase === "ready") return null;
  if (actual?.hidden === true) return otherManager(state, want) ?? noGrant(state, want, "connect");
  return whyNotVisible(state, want, "volume");
}

/** A Storage Manager decides for its own volumes alone, and knows no other's (decisions/0037). */
function otherManager(state: ControllerState, want: DesiredWant, by?: ElementPath): Cause | null {
  const shows = foreignElement(state, want, by)?.shows;
  if (shows?.kind !== "volume") return null;
  const [own, theirs] = [serviceNumber(storageManagerOf(state)), shows.manager ?? 1];
  if (own === theirs) return null;
  return { kind: "other-storage-manager", domain: want.domain, path: want.path, theirs, own };
}

const noGrant = (state: ControllerState, { domain, path }: DesiredWant, grant: "copy" | "connect"): Cause => ({
  kind: "not-granted",
  domain,
  path,
  grant,
  to: cellDomain(state),
});

/** Why a rule with an end in another cell lets nothing pass; null: it does. */
export function whyNotAgreed(state: ControllerState, rule: Uid, element: NetworkRuleElement): Cause | null {
  const end = foreignEnd(element);
  if (end === null) return null;
  const hidden = whyNotVisible(state, end, "addresses");
  if (hidden !== null) return hidden;
  const own = end === element.address1 ? element.address2 : element.address1;
  if (own.kind !== "element") return { kind: "controller-of-own-cell-only" };
  if (reachOf(state, rule)?.agreed === true) return null;
  const shown = state.cell?.elements.get(own.path)?.public === true;
  return { kind: "not-agreed", domain: end.domain, path: end.path, element: own.path, shown };
}

/** What an element lacks of other cells; null: nothing. */
export function whyForeign(state: ControllerState, record: ElementRecord, element: Element): Cause | null {
  switch (element.type) {
    case "NetworkRule":
      return whyNotAgreed(state, record.uid, element);
    case "VolumeCopy":
      return whyNoOrigin(state, record, element);
    case "VolumeConnection": {
      const vm = recordAt(state, element.vm);
      const run = vm === undefined ? null : (state.vms.get(vm.uid)?.run ?? null);
      const actual = actualOf(actualConnection, state, storageManagerOf(state), `connection/${record.uid}`);
      return whyNotConnected(
        state,
        element,
        run !== null && actual?.incarnation === run.incarnation ? actual : undefined,
      );
    }
    case "VolumeGrant": {
      const want = element.to.kind === "vm" ? foreignLink(element.to.vm) : null;
      return want === null ? null : whyNotVisible(state, want, "addresses");
    }
    default:
      return null;
  }
}
