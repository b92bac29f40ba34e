import type { Cell, HostElement, VmElement } from "../../../model/cell/cell.ts";
import {
  type CellName,
  type ElementPath,
  elementPath,
  type HostName,
  hostName,
  type PeerName,
} from "../../../model/cell/identifiers.ts";
import { mostMarks } from "../../../model/cell/tenants/dedication/marks.ts";
import { knownOffering } from "../../../model/cell/tenants/pools/offerings.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { rolesOf } from "../../bootstrap/bootstrap-model.ts";
import { rootCell } from "../../documents/cells.ts";
import {
  type DesiredPlacementSettings,
  type DesiredSettings,
  type DesiredSpare,
  type SystemHostsShort,
  settingsKey,
  shortKey,
  spareKey,
} from "../../documents/ha.ts";
import { actualShort, desiredSettings } from "../../documents/readers/ha.ts";
import { hostOffers } from "../../documents/readers/placement.ts";
import { servicePeer } from "../../documents/service-roles.ts";
import { type DesiredHost, type HostOffers, hostKey } from "../../documents/vocabulary.ts";
import { isObject } from "../../outbox.ts";
import { deathOf } from "../../presence/group/deaths.ts";
import type { Desires } from "../changes/desires.ts";
import { entranceIn } from "../network/entrance.ts";
import { actualOf, addDesire, type ControllerState, desiredNow, haManager, placer, placerOf } from "../state.ts";

/*
 * The hosts of the installation are elements of the root cell, `root/hosts/<name>` (decision 102). One that the Placer has heard of, and that
 * has no element yet, gets one here: when it joins, and in an installation from before as soon as this version runs. What the
 * operator writes there goes on to every Placer, and to the HA Manager. The element is no more than that word: with it gone, the
 * host is as every other.
 */
const place = `${rootCell}/hosts`;
export const hostPath = (host: string): ElementPath => elementPath(`${place}/${host}`);
export const isRoot = ({ options }: ControllerState): boolean => options.cell === rootCell;

/** Hosts that were heard; undefined: the Placer has said nothing yet. */
export function offersOf(state: ControllerState): HostOffers | undefined {
  const value = state.actual.get(placerOf(state))?.get("hosts");
  if (!isObject(value)) return undefined;
  const known = readOffers.get(value) ?? hostOffers.of(value) ?? undefined;
  if (known !== undefined) readOffers.set(value, known);
  return known;
}
const readOffers = new WeakMap<object, HostOffers>();

export const hostElements = (cell: Cell | null): readonly HostElement[] =>
  [...(cell?.elements.values() ?? [])].flatMap((element) => (element.type === "Host" ? [element] : []));
export const hostOf = ({ path }: HostElement): HostName => hostName(path.split("/").at(-1) ?? path);

/** Why a model must not have the hosts that it has; empty if it may. @param joining a machine that is being let in, and has not been heard yet */
export function hostRefusals(state: ControllerState, cell: Cell, joining?: string): readonly Diagnostic[] {
  const offers = offersOf(state);
  const known = new Set<string>(offers?.hosts.map(({ host }) => host));
  const misplaced = hostElements(cell).flatMap((element): readonly Diagnostic[] => {
    const { path, position } = element;
    const at = position === undefined ? { path } : { path, position };
    const code = "cell/host";
    if (!isRoot(state)) {
      const message = `\`${path}\` is a Host, and machines of the installation stand in the root cell alone`;
      return [{ code, message, hint: "Leave it out: what a VM wants of its host stands in its `x.placement`.", ...at }];
    }
    if (path !== hostPath(hostOf(element)))
      return [
        {
          code,
          message: `\`${path}\` is a Host, and stands outside of \`${place}\``,
          hint: `Write it as \`hosts extends { ${hostOf(element)} extends Host { … } }\` in the cell \`${rootCell}\`.`,
          ...at,
        },
      ];
    // One that is away, or has left, keeps its element.
    const isNamed = known.has(hostOf(element)) || hostOf(element) === joining;
    if (offers?.complete !== true || isNamed || state.cell?.elements.has(path) === true) return [];
    const names = [...known].sort().join(", ");
    const message = `There is no host \`${hostOf(element)}\``;
    const hint = `${names === "" ? "No host has joined yet" : `The hosts are ${names}`}; a machine joins with \`cells host token\`, and its element is written by itself, or before with what the token says of it.`;
    return [{ code, message, hint, ...at }];
  });
  return [...misplaced, ...closesAll(state, cell, joining)];
}

/**
 * With every host closed, or of a flavour, the management's own machines could start nowhere once they have ended: at the end of a drain, or
 * after a power cut, there would be nobody to open one again. What was so before is no reason to refuse anything else. What is dedicated
 * stays open to them.
 */
function closesAll(state: ControllerState, cell: Cell, joining: string | undefined): readonly Diagnostic[] {
  const before = withheldFrom(state.cell);
  const after = withheldFrom(cell);
  const closing = hostElements(cell).filter((element) => {
    const [is, was] = [after.get(hostOf(element)), before.get(hostOf(element))];
    // It was open to nobody before.
    if (hostOf(element) === joining) return false;
    return is !== undefined && (was === undefined || (is === "flavored" && was !== is));
  });
  const heard = (offersOf(state)?.hosts ?? []).filter(({ host }) => deathOf(state.deaths, hostName(host)) === null);
  if (closing.length === 0 || heard.length === 0) return [];
  const needed = Math.max(0, ...managementOf(cell).map(({ memoryMiB }) => memoryMiB));
  const open = heard.filter(({ host }) => !after.has(host));
  const able = open.filter(({ memoryMiB }) => memoryMiB >= needed);
  // What is closed is opened again; what goes into a flavour is others' from then on.
  const kept = closing.some((element) => after.get(hostOf(element)) === "flavored")
    ? (cell.placement?.systemHosts ?? 0)
    : 0;
  if (able.length >= Math.max(1, kept)) return [];
  const left =
    able.length > 0
      ? `${able.length} of the ${kept} hosts that \`x.placement.systemHosts\` leaves to the cloud's own VMs would be left (${able.map(({ host }) => host).join(", ")})`
      : open.length === 0
        ? `no host would take VMs${[...after.values()].includes("flavored") ? " that ask for no pool" : ""}`
        : `no host that takes VMs (${open.map(({ host }) => host).join(", ")}) has the ${needed} MiB of its largest one`;
  const way = wayToOpen(state, new Set(heard.map(({ host }) => host)));
  return closing.map((element) => {
    const { path, position, flavor } = element;
    const isFlavored = after.get(hostOf(element)) === "flavored";
    const becomes = isFlavored ? `of the flavour ${flavor}` : "closed";
    return {
      code: "cell/no-open-host",
      message: `With ${hostOf(element)} ${becomes} as well, ${left}${able.length > 0 ? "" : ", and the management could start nowhere"}`,
      hint: `Leave one of them enabled: ${way}\`cells host token\` lets another machine join. Before the whole cloud is switched off, \`cells ha pause\` is enough.`,
      path,
      attribute: isFlavored ? "x.flavor" : element.state === "enabled" ? "x.tags" : "x.state",
      ...(position === undefined ? {} : { position }),
    };
  });
}
/** Hosts at which no VM starts that asks for no pool, as those of the management do not. */
function withheldFrom(cell: Cell | null): ReadonlyMap<string, "closed" | "flavored"> {
  const flavored = hostElements(cell).filter(({ flavor }) => flavor !== undefined);
  return new Map([
    ...(cell === null ? [] : closedHosts(cell)).map((host) => [host, "closed"] as const),
    ...flavored.map((element) => [hostOf(element), "flavored"] as const),
  ]);
}
/** One that is withheld already and could be opened, as the beginning of a sentence. */
function wayToOpen({ cell, pooled }: ControllerState, heard: ReadonlySet<string>): string {
  const withheld = withheldFrom(cell);
  const closed = (cell === null ? [] : closedOf(cell).hosts).filter(({ host }) => heard.has(host));
  const [other] = closed
    .filter(({ host }) => withheld.get(host) === "closed")
    .sort((one, another) => (one.host < another.host ? -1 : 1));
  if (other === undefined) {
    const inPools = new Set<string>([...pooled.values()].map(({ host }) => host));
    const free = [...withheld.keys()].filter((host) => heard.has(host) && !inPools.has(host)).sort()[0];
    return free === undefined
      ? ""
      : `without \`x.flavor\`, and with \`x.state "enabled"\`, ${free} takes VMs that ask for no pool, `;
  }
  return other.state === "reserved"
    ? `without \`${reservedTag}\` in the \`x.tags\` of ${other.host} that one takes VMs, `
    : `\`cells host resume ${other.host}\` opens one, `;
}

/** Machines of the root cell that are to run. */
const managementOf = (cell: Cell): readonly VmElement[] =>
  [...cell.elements.values()].flatMap((element) =>
    element.type === "VM" && element.desiredState === "on" ? [element] : [],
  );

/** Such a host is kept for VMs whose host was lost. */
const reservedTag = "ha";
interface Closed {
  readonly hosts: readonly DesiredHost[];
  readonly placers: ReadonlySet<PeerName>;
  readonly storageManagers: ReadonlySet<PeerName>;
  readonly haManagers: ReadonlySet<PeerName>;
  /** The cell by which people reach the cloud; null: there is none yet. */
  readonly entrance: CellName | null;
}
const closedIn = new WeakMap<Cell, Closed>();
/** Hosts that do not take everything, who places VMs, and which cell is the way in. */
function closedOf(cell: Cell): Closed {
  const known = closedIn.get(cell);
  if (known !== undefined) return known;
  const hosts = hostElements(cell).flatMap((element): readonly DesiredHost[] =>
    element.state !== "enabled"
      ? [{ host: hostOf(element), state: element.state }]
      : element.tags?.includes(reservedTag) === true
        ? [{ host: hostOf(element), state: "reserved" }]
        : [],
  );
  const placers = new Set<PeerName>([placer]);
  const storageManagers = new Set<PeerName>([servicePeer("storage-manager")]);
  const haManagers = new Set<PeerName>([haManager]);
  for (const element of cell.elements.values()) {
    if (element.type !== "VM") continue;
    const roles = rolesOf(element);
    for (const [name, of] of [
      ["placer", placers],
      ["storage-manager", storageManagers],
      ["ha-manager", haManagers],
    ] as const) {
      const role = roles[name];
      if (isObject(role) && typeof role.number === "number") of.add(servicePeer(name, role.number));
    }
  }
  const found = { hosts, placers, storageManagers, haManagers, entrance: entranceIn(cell)?.cell ?? null };
  closedIn.set(cell, found);
  return found;
}

export const placersOf = (cell: Cell): ReadonlySet<PeerName> => closedOf(cell).placers;
export const storageManagersOf = (cell: Cell): ReadonlySet<PeerName> => closedOf(cell).storageManagers;
/** Those that take nothing new, by name. */
export const closedHosts = (cell: Cell): readonly HostName[] =>
  closedOf(cell)
    .hosts.map(({ host }) => host)
    .sort();

const placementSets = new WeakMap<Cell, DesiredPlacementSettings | null>();
/** What Placers are told of the whole cloud; null: it is as preset, and nothing is offered by a name. */
function placementSetIn(cell: Cell): DesiredPlacementSettings | null {
  const known = placementSets.get(cell);
  if (known !== undefined) return known;
  // One with more tags than a host can have is of a version before, and nobody can stand by it.
  const offerings = [...cell.elements.values()].flatMap((each) =>
    each.type === "Offering" && (each.tags?.length ?? 0) <= mostMarks ? [knownOffering(each)] : [],
  );
  const { placement: settings } = cell;
  const said = offerings.length === 0 ? {} : { offerings: offerings.sort((a, b) => (a.name < b.name ? -1 : 1)) };
  const found = settings === undefined && offerings.length === 0 ? null : { settings: settings ?? {}, ...said };
  placementSets.set(cell, found);
  return found;
}

/** Is one of the root cell's settings said to a service, by what its model has? */
export function isSetFor(cell: Cell, isPlacer: boolean, key: string): boolean {
  const { spareHosts = 0, ...settings } = cell.ha ?? {};
  if (key === spareKey) return spareHosts > 0;
  if (isPlacer) return placementSetIn(cell) !== null;
  return Object.keys(settings).length > 0 || closedOf(cell).entrance !== null;
}

/** Of a host that takes everything nothing is said, and nothing of a setting that is as preset. */
export function desireHosts(state: ControllerState, desires: Desires): void {
  if (!isRoot(state) || state.cell === null) return;
  const { hosts, placers, haManagers: all, entrance } = closedOf(state.cell);
  const haManagers = state.ha ? all : [];
  for (const document of hosts)
    for (const peer of [...placers, ...haManagers]) addDesire(desires, peer, hostKey(document.host), document);
  const { spareHosts = 0, ...settings } = state.cell.ha ?? {};
  if (spareHosts > 0)
    for (const peer of placers) addDesire(desires, peer, spareKey, { hosts: spareHosts } satisfies DesiredSpare);
  const placement = placementSetIn(state.cell);
  if (placement !== null) for (const peer of placers) addDesire(desires, peer, settingsKey, placement);
  const short = shortIn(state, state.cell);
  const isSet = Object.keys(settings).length > 0;
  for (const peer of haManagers) {
    const more = {
      ...(entrance === null ? {} : { entrance }),
      // One alert for all.
      ...(short === undefined || peer !== haManager ? {} : { short }),
    };
    if (isSet || Object.keys(more).length > 0)
      addDesire(desires, peer, settingsKey, { settings, ...more } satisfies DesiredSettings);
  }
}
/**
 * By the Placer that finds fewest hosts left. Each counts all hosts, whoever's VMs are there. What one that is away said last counts no more:
 * the alert would outlast its cause for as long as that one is silent. As long as one that may be there has said nothing, as after a start
 * of either, or none is there, what was told before stays.
 */
function shortIn(state: ControllerState, cell: Cell): SystemHostsShort | undefined {
  const there = [...placersOf(cell)].filter((peer) => state.reachable.get(peer) !== false);
  const said = there.map((peer) => actualOf(actualShort, state, peer, shortKey));
  const told = desiredSettings.of(desiredNow(state, haManager, settingsKey) ?? null)?.short;
  const short = said.flatMap((each) => (each === undefined || "enough" in each ? [] : [each]));
  const mayStay = there.length === 0 || said.includes(undefined);
  const all = told !== undefined && mayStay ? [...short, told] : short;
  return all.sort((one, other) => one.left - other.left)[0];
}
