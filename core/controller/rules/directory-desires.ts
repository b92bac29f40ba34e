import type { NetworkRuleElement } from "../../../model/cell/cell.ts";
import { type Cidr, cidr, type HostName, type Uid } from "../../../model/cell/identifiers.ts";
import { openings } from "../../../model/check/network/rule-openings.ts";
import {
  type ActualReach,
  type DesiredPublic,
  type DesiredReach,
  directoryKey,
  type PublicElement,
  type ReachOpening,
} from "../../documents/cells.ts";
import { actualReach, desiredPublic } from "../../documents/readers/cells.ts";
import { actualVolume } from "../../documents/readers/storage.ts";

import { serviceNumber } from "../../documents/service-roles.ts";
import type { Desires } from "../changes/desires.ts";
import { isOfTheSite } from "../network/instances.ts";
import { isManagement, isOnManagement } from "../network/management.ts";
import type { ElementRecord } from "../records.ts";
import { foreignEnd, longestKey, saveForeign, wantsOf } from "../references/foreign.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  desiredNow,
  directory,
  elementOf,
  keepDesire,
  linksOf,
  recordAt,
  storageManagerOf,
} from "../state.ts";
import { seenByOthers } from "../upgrade/seen-by-others.ts";
import { placedInterfaces } from "../vm/virtual-machines.ts";
import { shownFor } from "../volumes/holds.ts";
import { trueSizeMiB } from "../volumes/true-size.ts";

/** Everything that should be known at the directory. */
export function desireDirectory(state: ControllerState): void {
  if (state.options.directory !== true) return;
  state.pass.each("directory", state.elements, (record, _uid, desires) => desireElement(state, record, desires));
}

function desireElement(state: ControllerState, record: ElementRecord, desires: Desires): void {
  const say = (key: string, document: object): void => {
    if (key.length > longestKey) return;
    if (!state.foreign.has(key)) saveForeign(state, key, { answer: null });
    addDesire(desires, directory, key, document);
  };
  const element = elementOf(state, record);
  const heldFor = element?.public === true ? [] : shownFor(state, record);
  const shows = element?.public === true || heldFor.length > 0 ? shownOf(state, record) : null;
  if (shows !== null) {
    const { uid, path } = record;
    const only = heldFor.length === 0 ? {} : { heldFor };
    const seen = seenByOthers(state)(uid, path);
    if (seen === uid) say(directoryKey.public(uid), { uid, path, shows, ...only } satisfies DesiredPublic);
    else if (seen !== null) keepDesire(state, desires, directory, directoryKey.public(seen));
  }
  if (element === undefined) return;
  for (const want of wantsOf(element)) say(directoryKey.want(want), want);
  const reach = element.type === "NetworkRule" ? reachDocument(state, record.uid, element) : null;
  if (reach !== null) say(directoryKey.reach(record.uid), reach);
}

function shownOf(state: ControllerState, record: ElementRecord): PublicElement | null {
  if (record.type === "Subnet" || record.type === "VM" || record.type === "VirtualInterface") {
    return { kind: "addresses", type: record.type, networks: networksOf(state, record) };
  }
  if (record.type !== "Volume" && record.type !== "VolumeCopy") return null;
  const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
  // After a restart, what was said before holds until the Storage Manager has spoken.
  const before = desiredPublic.of(desiredNow(state, directory, directoryKey.public(record.uid)));
  if (actual === undefined && before !== null) return before.shows;
  const manager = serviceNumber(storageManagerOf(state));
  const more = manager === 1 ? {} : { manager };
  const [sizeMiB, server] = [trueSizeMiB(actual), actual?.server ?? null];
  return { kind: "volume", type: record.type, sizeMiB, server, ...more };
}

/** What an element with addresses stands for in rules of other cells. */
function networksOf(state: ControllerState, record: ElementRecord): readonly Cidr[] {
  // The management network is nobody else's to name.
  if (record.type === "Subnet") return record.range === null || isManagement(state, record) ? [] : [record.range.cidr];
  const cards =
    record.type === "VirtualInterface"
      ? [record]
      : linksOf(state, record.path).flatMap((link) => recordAt(state, link.path) ?? []);
  return cards.flatMap((card) => {
    const element = elementOf(state, card);
    if (element?.type !== "VirtualInterface" || card.allocation === null || isOnManagement(state, card)) return [];
    // What a machine says of itself opens nothing, and each address that a rule names has an identity there for good.
    return isOfTheSite(state, card) ? [] : [cidr(`${card.allocation.address}/32`)];
  });
}

/** Null for a rule without an end in another cell, and for one whose other end has no addresses to be reached at. */
function reachDocument(state: ControllerState, uid: Uid, rule: NetworkRuleElement): DesiredReach | null {
  const end = foreignEnd(rule);
  const isFirst = end === rule.address1;
  const own = isFirst ? rule.address2 : rule.address1;
  const record = own.kind === "element" ? recordAt(state, own.path) : undefined;
  // A controller is reached from inside its cell only.
  if (end === null || record === undefined) return null;
  const { identity } = record;
  return {
    uid,
    other: { domain: end.domain, path: end.path },
    networks: networksOf(state, record),
    placed: placedInterfaces(state)
      .filter((each) => [each.identity, each.vmIdentity, each.subnetIdentity].includes(identity))
      .map(({ address, host }) => ({ address, host })),
    openings: openings(rule).map(
      ({ direction, sourcePorts, ports }): ReachOpening => ({
        direction: (direction === "1to2") === isFirst ? "in" : "out",
        protocol: rule.protocol,
        sourcePorts,
        ports,
      }),
    ),
  };
}

/** Hosts of other cells that are asked for locations. */
export const foreignHosts = (state: ControllerState): ReadonlySet<HostName> =>
  new Set(reaches(state).flatMap(({ hosts }) => hosts.flatMap((each) => each.hosts)));

export const reaches = (state: ControllerState): readonly ActualReach[] =>
  [...state.foreign].flatMap(([key, { answer }]) =>
    key.startsWith(directoryKey.reach("" as Uid)) && answer !== null ? (actualReach.of(answer) ?? []) : [],
  );
