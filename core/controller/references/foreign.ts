import type { Element, NetworkRuleElement, RuleEnd, VolumeConnectionElement } from "../../../model/cell/cell.ts";
import type { Cidr, Uid } from "../../../model/cell/identifiers.ts";
import {
  type ActualReach,
  type ActualWant,
  type DesiredWant,
  directoryKey,
  type PublicElement,
} from "../../documents/cells.ts";
import { actualReach, actualWant } from "../../documents/readers/cells.ts";
import { actualConnection, actualVolume } from "../../documents/readers/storage.ts";
import type { ActualConnection } from "../../documents/vocabulary.ts";
import { sameJson, write } from "../../outbox.ts";
import { serviceNumber } from "../../service-roles.ts";
import { cellDomain } from "../network/names.ts";
import {
  type AbroadRecord,
  actualOf,
  type ControllerState,
  desiredNow,
  directory,
  type ElementRecord,
  elementOf,
  recordAt,
  saidOf,
  storageManagerOf,
} from "../state.ts";

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
export function learnAbroad(state: ControllerState): void {
  const inStep = state.reachable.get(directory) === true;
  const named = state.options.directory === true ? namedAbroad(state) : new Set<string>();
  for (const key of named) {
    const known = state.abroad.get(key)?.answer ?? null;
    const answer = saidOf(state, directory, key) ?? (inStep ? null : known);
    if (!sameJson(answer, known)) saveAbroad(state, key, { answer });
  }
  for (const [key, { answer }] of state.abroad)
    if (answer !== null && !named.has(key)) saveAbroad(state, key, { answer: null });
}
/** The keys of all documents with which the directory is asked for something. */
function namedAbroad(state: ControllerState): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const record of state.elements.values()) {
    const element = elementOf(state, record);
    if (element === undefined) continue;
    for (const want of wantsOf(element)) keys.add(directoryKey.want(want));
    if (element.type === "NetworkRule" && foreignEnd(element) !== null) keys.add(directoryKey.reach(record.uid));
  }
  return keys;
}
export function saveAbroad(state: ControllerState, key: string, record: AbroadRecord | null): void {
  if (record === null) state.abroad.delete(key);
  else state.abroad.set(key, record);
  write(state.outbox, recordKey(key), record);
}
/** The directory has taken a tombstone. */
export function releasedAbroad(state: ControllerState, key: string): void {
  if (state.abroad.has(key) && desiredNow(state, directory, key) === undefined) saveAbroad(state, key, null);
}
export const isAbroadRecord = (key: string): boolean => key.startsWith(recordKey(""));
export const abroadKeyOf = (key: string): string => key.slice(recordKey("").length);

export const foreignElement = (state: ControllerState, want: DesiredWant): ActualWant | null =>
  actualWant.of(state.abroad.get(directoryKey.want(want))?.answer);

/** A volume of another cell that a link names, once it is visible; null while it is not, or is none. */
export function foreignVolume(
  state: ControllerState,
  link: string,
): { readonly uid: Uid; readonly sizeMiB: number | null } | null {
  const want = foreignLink(link);
  const found = want === null ? null : foreignElement(state, want);
  return found?.shows.kind === "volume" ? { uid: found.uid, sizeMiB: found.shows.sizeMiB } : null;
}
export function foreignNetworks(state: ControllerState, want: DesiredWant): readonly Cidr[] {
  const shows = foreignElement(state, want)?.shows;
  return shows?.kind === "addresses" ? shows.networks : [];
}
export const reachOf = (state: ControllerState, rule: Uid): ActualReach | null =>
  actualReach.of(state.abroad.get(directoryKey.reach(rule))?.answer);

/** Why a reference has no effect yet, and what would lift that; null: it has one. */
export interface NotVisible {
  readonly reason: string;
  readonly lifts: string;
}
export function whyNotVisible(
  state: ControllerState,
  want: DesiredWant,
  kind: PublicElement["kind"],
): NotVisible | null {
  const shown = shownWant(want);
  const found = foreignElement(state, want);
  if (found !== null) {
    if (found.shows.kind === kind) return null;
    const wanted = kind === "volume" ? "a volume" : "a subnet, a VM or an interface";
    const lifts = `name ${wanted} of ${want.domain}`;
    return { reason: `${shown} is a ${found.shows.type}, and ${wanted} is needed here`, lifts };
  }
  if (want.domain === cellDomain(state)) {
    const lifts = `write it as a path of this document, "<ref:/${want.path}>"`;
    return { reason: `${shown} is not visible: ${want.domain} is this cell itself`, lifts };
  }
  if (state.options.directory !== true) {
    const lifts = "submit what it names as a part of this cell";
    return { reason: `${shown} is not visible from this cell: this installation has no directory of cells`, lifts };
  }
  if (state.reachable.get(directory) !== true) {
    const reason = `${shown} is not visible: the directory is not reachable`;
    return { reason, lifts: "nothing needs to be done here: it is asked again as soon as the directory answers" };
  }
  const lifts = `in the cell ${want.domain}, let there be an element ${want.path} with x.public true; nothing needs to be done here`;
  return { reason: `${shown} is not visible: ${want.domain} shows no such element to this cell`, lifts };
}

/**
 * Why a copy of another cell's volume cannot be made; null: it can, it was made, or its origin is of this cell. The Storage
 * Manager says nothing of what a cell may not use, not even that it exists: what is public here and not there has no grant.
 */
export function whyNoOrigin(state: ControllerState, record: ElementRecord, element: Element): NotVisible | null {
  const want = element.type === "VolumeCopy" ? foreignLink(element.image) : null;
  if (want === null) return null;
  const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
  if (actual?.hidden === true) return otherManager(state, want) ?? noGrant(state, want, "copy");
  return actual === undefined ? whyNotVisible(state, want, "volume") : null;
}

/** Why a volume of another cell cannot be a disk here; null: it can, or it is a volume of this cell. */
export function whyNotConnected(
  state: ControllerState,
  { volume }: VolumeConnectionElement,
  actual: ActualConnection | undefined,
): NotVisible | null {
  const want = foreignLink(volume);
  if (want === null || actual?.phase === "ready") return null;
  if (actual?.hidden === true) return otherManager(state, want) ?? noGrant(state, want, "connect");
  return whyNotVisible(state, want, "volume");
}

/** A Storage Manager decides for its own volumes alone, and knows no other's (decisions/0037). */
function otherManager(state: ControllerState, want: DesiredWant): NotVisible | null {
  const shows = foreignElement(state, want)?.shows;
  if (shows?.kind !== "volume") return null;
  const [own, theirs] = [serviceNumber(storageManagerOf(state)), shows.manager ?? 1];
  if (own === theirs) return null;
  return {
    reason: `${shownWant(want)} is kept by Storage Manager ${theirs} and this cell's volumes by Storage Manager ${own}: a volume can be copied or connected only where one has both`,
    lifts: `make this cell with x.services.storageManager ${theirs}, or ${want.domain} with ${own}: that is fixed when a cell is made`,
  };
}

function noGrant(state: ControllerState, want: DesiredWant, grant: "copy" | "connect"): NotVisible {
  const own = cellDomain(state);
  return {
    reason: `${shownWant(want)} is visible, and ${want.domain} does not let this cell ${grant} it`,
    lifts: `let ${want.domain} have a VolumeGrant of it with x.grant "${grant}" and x.cell "<ref://${own}/>"`,
  };
}

/** Why a rule with an end in another cell lets nothing pass; null: it does. */
export function whyNotAgreed(state: ControllerState, rule: Uid, element: NetworkRuleElement): NotVisible | null {
  const end = foreignEnd(element);
  if (end === null) return null;
  const hidden = whyNotVisible(state, end, "addresses");
  if (hidden !== null) return hidden;
  const own = end === element.address1 ? element.address2 : element.address1;
  if (own.kind !== "element") {
    const lifts = "let the other end be a subnet, a VM or an interface of this cell";
    return { reason: "a controller is reached from inside its own cell only", lifts };
  }
  if (reachOf(state, rule)?.agreed === true) return null;
  const ends = `${own.path} and ${shownWant(end)}`;
  const isShown = state.cell?.elements.get(own.path)?.public === true;
  const first = isShown
    ? ""
    : `write x.public true at ${own.path} (or at what it belongs to), so that ${end.domain} can name it, and `;
  return {
    reason: `${end.domain} has no rule in effect that opens the same between ${ends}, so nothing passes`,
    lifts: `${first}let ${end.domain} have a NetworkRule with the same protocol and port between its ${end.path} and this cell's ${own.path}`,
  };
}

/** What an element lacks of other cells, and what would lift that; null: nothing. */
export function whyAbroad(state: ControllerState, record: ElementRecord, element: Element): NotVisible | null {
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
