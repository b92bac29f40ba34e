import {
  type CellName,
  cellName,
  type HostName,
  hostName,
  type PeerName,
  peerName,
  type Uid,
} from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { cellAround, rootCell } from "../documents/cells.ts";
import { type SaidSystemHosts, shortKey } from "../documents/ha.ts";
import {
  type ActualClaim,
  type ActualStanding,
  claimKey,
  type DesiredPooled,
  pooledKey,
  standingKey,
} from "../documents/pools.ts";
import { desiredPooled } from "../documents/readers/pools.ts";
import { desiredCellOwner, desiredDedicated, desiredMarks } from "../documents/readers/tenancy.ts";
import { cellOwnerKey, dedicatedKey, marksKey } from "../documents/tenancy.ts";
import { actualKey } from "../documents/vocabulary.ts";
import { log, publishValue, sameJson, toJson } from "../outbox.ts";
import type { Asker, HostUse, HostView, Pooled } from "./candidate.ts";
import { groupNamed, isEmptied } from "./groups.ts";
import { claimsLeft, shortOf } from "./room/system-hosts.ts";
import type { PlacerState } from "./state.ts";

/*
 * Whose hosts and whose cells are, as the root controller says it: one rule for each host that is somebody's, and the account of each child
 * cell of the root cell. What a controller says of itself counts nowhere; its certificate says which cell it is of, and of a cell within a
 * cell that of the one around it all. A cell of which nothing is said is nobody's, so that it stands at no host that is somebody's.
 */

/** @returns whether what may be placed where has changed; null: it is about something else */
export function takeOwners(state: PlacerState, key: string, value: Json): boolean | null {
  if (key.startsWith(dedicatedKey("" as HostName)))
    return takeDedicated(state, key.slice(dedicatedKey("" as HostName).length), value);
  if (key.startsWith(marksKey("" as HostName)))
    return takeMarks(state, key.slice(marksKey("" as HostName).length), value);
  if (key.startsWith(cellOwnerKey("" as CellName)))
    return takeCell(state, key.slice(cellOwnerKey("" as CellName).length), value);
  if (key.startsWith(pooledKey("" as HostName)))
    return takePooled(state, key.slice(pooledKey("" as HostName).length), value);
  return null;
}

/** One that is malformed changes nothing. */
function takeDedicated(state: PlacerState, name: string, value: Json): boolean {
  const peer = peerName(`host.${name}`);
  const view = state.hosts.get(peer);
  const document = value === null ? null : desiredDedicated.of(value, name);
  if (view === undefined || (document === null && value !== null)) return false;
  const { rule: before, ...free } = view;
  if (document === null) {
    state.hosts.set(peer, free);
    if (before !== undefined) log(state.outbox, "host/released", { host: hostName(name) });
    return before !== undefined;
  }
  const { host, ...rule } = document;
  if (before !== undefined && sameJson(toJson(before), toJson(rule))) return false;
  state.hosts.set(peer, { ...free, rule });
  log(state.outbox, "host/dedicated", { host, of: rule.of, to: rule.to.path });
  return true;
}

function takeMarks(state: PlacerState, name: string, value: Json): boolean {
  const peer = peerName(`host.${name}`);
  const view = state.hosts.get(peer);
  const document = value === null ? null : desiredMarks.of(value, name);
  if (view === undefined || (document === null && value !== null)) return false;
  const { marks: before, ...free } = view;
  const { host: _host, ...marks } = document ?? {};
  if (sameJson(toJson(before ?? {}), toJson(marks))) return false;
  state.hosts.set(peer, document === null ? free : { ...free, marks });
  return true;
}

function takePooled(state: PlacerState, name: string, value: Json): boolean {
  const peer = peerName(`host.${name}`);
  const view = state.hosts.get(peer);
  const document = value === null ? null : desiredPooled.of(value, name);
  if (view === undefined || (document === null && value !== null)) return false;
  const { pooled: before, ...free } = view;
  const pooled = document === null ? undefined : withoutHost(document);
  if (sameJson(toJson(before ?? {}), toJson(pooled ?? {}))) return false;
  state.hosts.set(peer, pooled === undefined ? free : { ...free, pooled });
  log(state.outbox, "host/pooled", {
    host: hostName(name),
    flavor: pooled?.flavor ?? null,
    pool: pooled?.pool?.uid ?? null,
  });
  return true;
}
const withoutHost = ({ host: _host, ...pooled }: DesiredPooled): Pooled => pooled;

/** What cannot be read is no word, and takes none back: it is refused. */
export function isUnread(state: PlacerState, from: PeerName, key: string, said: object | null, value: Json): boolean {
  if (said !== null || value === null) return false;
  log(state.outbox, "document/refused", { from, key, why: "it is malformed" });
  return true;
}

/**
 * Says to the root controller what stands at hosts that are disabled or of a flavour, where that is another thing than before. Of one that was not heard
 * nothing is said: what is not known is not empty.
 */
export function sayStandings(state: PlacerState): void {
  const { outbox, hosts, usage, silent, told } = state;
  // Before all have been heard nobody knows how many are left, nor before the operator's words are here, and what was said before the start stays so.
  if (silent.size === 0 && state.isToldAll) {
    const said: SaidSystemHosts = shortOf(state) ?? { enough: true };
    publishValue(outbox, actualKey(rootController, shortKey), said);
  }
  for (const host of new Set([...hosts.unsaid, ...usage.unsaid])) {
    const view = hosts.get(peerName(`host.${host}`));
    const isFollowed = view !== undefined && (view.closed === "disabled" || view.pooled !== undefined);
    const isKnown = view?.actual != null && !silent.has(peerName(`host.${host}`));
    const use = usage.get(host);
    const vms = (): Uid[] => [...new Set([...(use?.reservations.keys() ?? []), ...(use?.taken.keys() ?? [])])];
    const standing: ActualStanding | null =
      isFollowed && isKnown ? { vms: vms().sort(), tag: view.pooled?.tag ?? null } : null;
    const claim = laterClaim(use, view);
    // Of nearly all hosts nothing is said, nor was.
    if (standing === null && claim === null && !told.delete(host)) continue;
    if (standing !== null || claim !== null) told.add(host);
    publishValue(outbox, actualKey(rootController, standingKey(host)), standing);
    publishValue(outbox, actualKey(rootController, claimKey(host)), claim);
  }
  hosts.unsaid.clear();
  usage.unsaid.clear();
}

/**
 * A VM was placed there by a claim above what the root controller says now, whose store is older then: without a claim above that one the VM would
 * wait at the host for a word that nobody gives any more. Null: there is none.
 */
function laterClaim(use: HostUse | undefined, view: HostView | undefined): ActualClaim | null {
  if (use === undefined || use.claimed === 0) return null;
  let epoch = Math.max(view?.rule?.epoch ?? 0, view?.pooled?.epoch ?? 0);
  let isLater = false;
  for (const { terms } of use.reservations.values()) {
    if ((terms?.claim ?? 0) <= epoch) continue;
    [epoch, isLater] = [terms?.claim ?? 0, true];
  }
  return isLater ? { epoch } : null;
}

function takeCell(state: PlacerState, name: string, value: Json): boolean {
  const document = value === null ? null : desiredCellOwner.of(value, name);
  if (document === null && value !== null) return false;
  const cell = cellName(name);
  const before = state.owners.get(cell);
  if (document === null) state.owners.delete(cell);
  else state.owners.set(cell, document.account);
  if (before !== document?.account) state.index.isStale = true;
  return before !== document?.account;
}

/** Who asks for a place, by whose connection it is. */
export function askerOf(state: PlacerState, client: PeerName): Asker {
  const { owners } = state;
  const accountOf = (of: PeerName): string | null => owners.accountOf(of);
  const account = accountOf(client);
  const ours = account === null ? [cellAround(client)] : owners.cellsOf(account);
  return {
    account,
    isSystem: client === rootController,
    accountOf,
    ours,
    mayClaim: () => claimsLeft(state, 1) > 0,
    groupNamed: (name) => groupNamed(state, name, ours),
    clusterOf: (host) => state.hosts.get(peerName(`host.${host}`))?.marks?.cluster,
    isEmptied: (host, vm, kind) => isEmptied(state, host, vm, kind),
  };
}
const rootController = peerName(`controller.${rootCell}`);
