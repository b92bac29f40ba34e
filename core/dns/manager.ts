import { parseIpv4 } from "../../model/addresses/addresses.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type DesiredDoors, type DesiredZone, doorsKey, zoneKey } from "../documents/network/network.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { desiredDoors, desiredName, desiredZone } from "../documents/readers/network.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { type ActualName, actualKey, type DesiredName } from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import {
  cellOfController,
  createOutbox,
  isObject,
  log,
  type Outbox,
  progress,
  publish,
  takeEffects,
  toJson,
  write,
} from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import {
  type HandedZone,
  handedZones,
  markOf,
  nextSerial,
  reverseZones,
  soaOf,
  type ZoneNumber,
  type ZoneRecord,
} from "./zone.ts";
import { keysIn, mostKeys, recordOfKey, type ZoneKeyGiven, type ZoneKeyTaken, type ZoneState } from "./zone-keys.ts";

/*
 * The DNS Manager answers for `<name>.<cell>.<domain>` forward and reverse (RFC 1034, RFC 1035). A controller may put
 * names below its own cell's label and nowhere else. Who had a name first keeps it, also over a restart: that is what the
 * records are for. There is no recursion: other names are refused.
 *
 * A cell sees its own names and the public ones of others. Of what it may not see it is told exactly what it is told of what
 * is not there, of addresses and of the names in between too: an answer never says that a cell exists which shows nothing.
 */

export interface DnsManagerOptions {
  readonly self: PeerName;
  /** Domain below which every cell has its own; `cells.internal` if absent. */
  readonly domain?: string;
  /** Of external addresses, whose public names are handed outside; none if absent. */
  readonly externalPools?: readonly string[];
}
export interface NameQuery {
  readonly name: string;
  readonly type: string;
  /** The cell for whose VM is asked; null or absent: nobody's, who sees public names alone. */
  readonly cell?: string | null;
  /** Address from which is asked. */
  readonly from?: string;
  /** Name of the key by which the question is signed; null or absent: by none. */
  readonly key?: string | null;
}
export interface NameAnswer {
  readonly rcode: "NOERROR" | "NXDOMAIN" | "REFUSED";
  readonly answers: readonly (
    | { readonly name: string; readonly type: "A" | "PTR"; readonly ttl: number; readonly data: string }
    | ZoneRecord
  )[];
}

interface Wanted {
  readonly client: PeerName;
  readonly document: DesiredName;
}
export interface DnsState {
  readonly outbox: Outbox;
  started: boolean;
  /** By `<client>/<key>`. */
  readonly wanted: Map<string, Wanted>;
  /** Stored desires that cannot be read: the names that they had are nobody else's. */
  readonly unread: Set<string>;
  /** Name → desire that has it; the durable record. */
  readonly owners: Map<string, string>;
  /** Name → desires it in the order of their arrival. */
  readonly candidates: Map<string, Set<string>>;
  /** Address → names, of those that are served. */
  readonly reverse: Map<string, Set<string>>;
  /** Names in between for a cell (`nameFor`), and how many that it sees lie below: they exist without data (RFC 8020). */
  readonly ancestors: Map<string, number>;
  /** What is handed outside, and to whom. */
  zone: DesiredZone | null;
  /** What cells say that stands at the way in; that of one of them counts, which the zone names. */
  readonly doors: Map<PeerName, DesiredDoors>;
  /** Number of what was handed out last, and a mark of it. Durable. */
  handed: { readonly serial: number; readonly mark: string } | null;
  /** By name, sealed: keys by which transfers are signed. Durable. */
  readonly keys: Map<string, string>;
  /** What may be in it has changed since that was worked out. */
  touched: boolean;
  /** Who tells the secondaries waits for another number than the one it knows. */
  waiting: { readonly id: number; readonly known: ZoneNumber | null } | null;
  /** It is looked soon whether there is one. */
  looksSoon: boolean;
}
/** Asked by who tells the secondaries: answered with a `ZoneNumber | null` as soon as it is another one than this. */
export interface ZoneNews {
  readonly zone: "news";
  readonly known: ZoneNumber | null;
}

/** Seconds. Short, since a VM may get another address with its next interface. */
const ttl = 5;
/** The contents are looked at once for all that changes in so long. */
const zoneTimer = "zone";
const lookAfterMs = 100;
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Clients: `controller.<cell>`. Records: `name/<name>`, `zone`, `zone-key/<name>`. Requests: `NameQuery` → `NameAnswer`, `ZoneNews` →
 * `ZoneNumber | null`, `ZoneKeyGiven` → `ZoneKeyTaken`, `{ zone: "state" }` → `ZoneState`.
 */
export function createDnsManager(options: DnsManagerOptions): Service<DnsState> {
  const { domain = "cells.internal", externalPools = [] } = options;
  return {
    restore,
    step: (state, input, { wallMs }) => {
      const around = { domain, externalPools, wallMs };
      take(state, input, around);
      settleNews(state, input, around);
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("dns-manager", peer, key),
    accepts: (peer, key) => mayDesire("dns-manager", peer, key),
    read: documentsOf("dns-manager"),
    measure: ({ owners, wanted }) => [
      gauge("cells_dns_names", "Names that are served.", [sample(owners.size)]),
      gauge("cells_dns_wishes", "Names that controllers want, those that another has included.", [sample(wanted.size)]),
    ],
  };
}

function restore(restored: Restored): DnsState {
  const names = [...restored.records].filter(([key]) => key.startsWith("name/"));
  const owners = new Map(names.map(([key, value]) => [key.slice("name/".length), ownerIn(value)]));
  return {
    outbox: createOutbox(restored),
    started: false,
    wanted: new Map(),
    unread: new Set(),
    owners,
    candidates: new Map(),
    reverse: new Map(),
    ancestors: new Map(),
    zone: null,
    doors: new Map(),
    handed: handedIn(restored.records.get(zoneKey) ?? null),
    keys: keysIn(restored.records),
    touched: true,
    waiting: null,
    looksSoon: false,
  };
}
const handedIn = (record: Json): DnsState["handed"] =>
  isObject(record) && typeof record.serial === "number" && typeof record.mark === "string"
    ? { serial: record.serial, mark: record.mark }
    : null;
const ownerIn = (record: Json): string => (isObject(record) && typeof record.owner === "string" ? record.owner : "");

interface Around {
  readonly domain: string;
  readonly externalPools: readonly string[];
  readonly wallMs: number;
}
function take(state: DnsState, input: Input, around: Around): void {
  const { domain } = around;
  if (input.kind === "desired" && input.key === zoneKey) {
    state.zone = desiredZone.of(input.value);
    state.touched = true;
  } else if (input.kind === "desired" && input.key === doorsKey) takeDoors(state, input.from, input.value);
  else if (input.kind === "desired") takeDesired(state, input.from, input.key, input.value, domain);
  else if (input.kind === "start") start(state);
  else if (input.kind === "request") {
    const query = isObject(input.request) ? input.request : {};
    if (query.zone === "news") {
      answerNews(state, around);
      state.waiting = { id: input.id, known: (query as unknown as ZoneNews).known };
      return;
    }
    const answer =
      query.zone === "key"
        ? takeKey(state, query as unknown as ZoneKeyGiven)
        : query.zone === "state"
          ? zoneState(state, around)
          : answerName(state, query as unknown as NameQuery, around);
    state.outbox.effects.push({ kind: "reply", id: input.id, response: toJson(answer) });
  }
}

function takeDoors(state: DnsState, client: PeerName, value: Json): void {
  const doors = desiredDoors.of(value);
  if (doors === null) state.doors.delete(client);
  else state.doors.set(client, doors);
  if (cellOfController(client) === state.zone?.entrance?.cell) state.touched = true;
}

function answerName(state: DnsState, query: Partial<NameQuery>, around: Around): NameAnswer {
  const cell = typeof query.cell === "string" ? query.cell : null;
  const [name, type] = [String(query.name ?? ""), String(query.type ?? "")];
  const asker = { from: String(query.from ?? ""), key: query.key ?? null };
  return answerOfZone(state, name, type, asker, around) ?? answerQuery(state, name, type, cell, around.domain);
}

function takeKey({ keys, zone, outbox }: DnsState, { name, sealed }: ZoneKeyGiven): ZoneKeyTaken {
  const wasThere = keys.has(name);
  const declared = zone?.key === name;
  if (sealed !== null && !wasThere && keys.size >= mostKeys) return { wasThere, declared, full: true };
  if (sealed === null) keys.delete(name);
  else keys.set(name, sealed);
  write(outbox, recordOfKey(name), sealed === null ? null : { sealed });
  return { wasThere, declared, full: false };
}
const zoneState = (state: DnsState, around: Around): ZoneState => ({
  number: zoneNumber(state, around),
  declared: state.zone?.key ?? null,
  keys: [...state.keys].map(([name, sealed]) => ({ name, sealed })),
});

function start(state: DnsState): void {
  state.started = true;
  state.outbox.quiet = true;
  log(state.outbox, "service/restored", { names: state.owners.size });
  for (const name of new Set([...state.owners.keys(), ...state.candidates.keys()])) {
    const owner = state.owners.get(name);
    const wanted = owner === undefined ? undefined : state.wanted.get(owner);
    if (wanted !== undefined && wanted.document.name.toLowerCase() === name) serve(state, name, wanted);
    else if (owner !== undefined && state.unread.has(owner)) continue;
    else if (owner !== undefined) {
      state.owners.delete(name);
      write(state.outbox, `name/${name}`, null);
    }
    settleName(state, name);
  }
}

function takeDesired(state: DnsState, client: PeerName, key: string, value: Json, domain: string): void {
  const desire = actualKey(client, key);
  const before = state.wanted.get(desire);
  const document = desiredName.of(value);
  if (document === null && value !== null && !state.started) state.unread.add(desire);
  else if (state.unread.delete(desire)) forgetUnread(state, desire);
  const reason = value === null ? null : refusal(client, document, domain);
  if (before !== undefined && sameDocument(before.document, document) && reason === null) return;
  if (before !== undefined && document !== null && reason === null && hasName(before, document)) {
    replace(state, desire, before, { client, document });
    return;
  }
  if (before !== undefined) drop(state, desire, before);
  if (document !== null && reason === null) {
    const name = document.name.toLowerCase();
    state.wanted.set(desire, { client, document });
    state.candidates.set(name, (state.candidates.get(name) ?? new Set()).add(desire));
    if (state.started) settleName(state, name);
  } else {
    const failed: ActualName | null = reason === null ? null : progress("failed", reason);
    publish(state.outbox, desire, failed);
  }
  const was = before?.document.name.toLowerCase();
  if (was !== undefined && state.started) settleName(state, was);
}
/** It can be read now, or was taken back: whatever name it had is free before it is looked at. */
function forgetUnread(state: DnsState, desire: string): void {
  for (const [name, owner] of [...state.owners]) {
    if (owner !== desire) continue;
    state.owners.delete(name);
    write(state.outbox, `name/${name}`, null);
    settleName(state, name);
  }
}
const sameDocument = (a: DesiredName, b: DesiredName | null): boolean =>
  b !== null && a.name === b.name && a.address === b.address && a.public === b.public && a.heard === b.heard;
const hasName = ({ document }: Wanted, { name }: DesiredName): boolean =>
  document.name.toLowerCase() === name.toLowerCase();

/** The same name with another address, or seen by others: whoever had it goes on having it. */
function replace(state: DnsState, desire: string, before: Wanted, after: Wanted): void {
  const name = after.document.name.toLowerCase();
  state.wanted.set(desire, after);
  if (!state.started) return;
  if (state.owners.get(name) === desire) {
    unserve(state, name, before);
    serve(state, name, after);
  }
  settleName(state, name);
}

/** Why this client may not have this name; null: it may. */
function refusal(client: PeerName, document: DesiredName | null, domain: string): string | null {
  if (document === null) return "the name document is malformed; see core/documents/vocabulary.ts for its fields";
  const name = document.name.toLowerCase();
  const own = `${cellOfController(client)}.${domain}`;
  if (!name.endsWith(`.${own}`)) return `"${name}" is not below ${own}, the only names this cell may have`;
  if (name.length > 253 || !name.split(".").every((part) => label.test(part))) {
    return `"${name}" is no host name: letters, digits and hyphens, at most 63 between dots (RFC 1123, 2.1)`;
  }
  return parseIpv4(document.address) === null ? `"${document.address}" is no IPv4 address` : null;
}

/** Takes back what was desired, and the name from it if it had it. */
function drop(state: DnsState, desire: string, wanted: Wanted): void {
  const name = wanted.document.name.toLowerCase();
  state.wanted.delete(desire);
  const candidates = state.candidates.get(name);
  candidates?.delete(desire);
  if (candidates?.size === 0) state.candidates.delete(name);
  if (state.owners.get(name) !== desire || !state.started) return;
  state.owners.delete(name);
  write(state.outbox, `name/${name}`, null);
  unserve(state, name, wanted);
}

/** Gives a name without an owner to the first who wants it, and tells all who want it. */
function settleName(state: DnsState, name: string): void {
  const candidates = state.candidates.get(name) ?? new Set<string>();
  const [first] = candidates;
  const wanted = first === undefined ? undefined : state.wanted.get(first);
  if (!state.owners.has(name) && first !== undefined && wanted !== undefined) {
    state.owners.set(name, first);
    write(state.outbox, `name/${name}`, { owner: first });
    serve(state, name, wanted);
  }
  const owner = state.owners.get(name) ?? "";
  for (const desire of candidates) {
    const document = state.wanted.get(owner)?.document;
    const taken = progress("failed", `"${name}" is taken: it is the name of ${document?.address}`);
    publish(state.outbox, desire, desire === owner && document !== undefined ? served(document) : taken);
  }
}

const served = ({ uid: _uid, ...serves }: DesiredName): ActualName => ({ ...progress("ready"), serves });

function serve(state: DnsState, name: string, wanted: Wanted): void {
  const { address, heard } = wanted.document;
  if (wanted.document.public === true) state.touched = true;
  // Whoever has that address would be called by a name that is not his.
  if (heard !== true) state.reverse.set(address, (state.reverse.get(address) ?? new Set()).add(name));
  for (const ancestor of ancestorsFor(name, wanted)) {
    state.ancestors.set(ancestor, (state.ancestors.get(ancestor) ?? 0) + 1);
  }
}
function unserve(state: DnsState, name: string, wanted: Wanted): void {
  if (wanted.document.public === true) state.touched = true;
  const names = state.reverse.get(wanted.document.address);
  names?.delete(name);
  if (names?.size === 0) state.reverse.delete(wanted.document.address);
  for (const ancestor of ancestorsFor(name, wanted)) {
    const left = (state.ancestors.get(ancestor) ?? 1) - 1;
    if (left === 0) state.ancestors.delete(ancestor);
    else state.ancestors.set(ancestor, left);
  }
}
const ancestorsOf = (name: string): readonly string[] => {
  const parts = name.split(".");
  return parts.slice(1).map((_part, index) => parts.slice(index + 1).join("."));
};
/** A name as a cell sees it; null: as everybody does. */
const nameFor = (cell: string | null, name: string): string => `${cell ?? ""}/${name}`;
const ancestorsFor = (name: string, { client, document }: Wanted): readonly string[] =>
  ancestorsOf(name).flatMap((ancestor) => [
    nameFor(cellOfController(client), ancestor),
    ...(document.public === true ? [nameFor(null, ancestor)] : []),
  ]);

/** What is served under a name, as far as this cell may see it. */
function visible(state: DnsState, name: string, cell: string | null): DesiredName | null {
  const wanted = state.wanted.get(state.owners.get(name) ?? "");
  if (wanted === undefined) return null;
  const isOwn = cell !== null && cellOfController(wanted.client) === cell;
  return isOwn || wanted.document.public === true ? wanted.document : null;
}

const zonesOf = (
  state: DnsState,
  zone: DesiredZone,
  { domain, externalPools: known }: Around,
): readonly HandedZone[] => {
  const externalPools = zone.pools ?? known;
  const documents = [...state.owners.values()].flatMap((owner) => state.wanted.get(owner)?.document ?? []);
  const { entrance } = zone;
  const doors = entrance === undefined ? undefined : state.doors.get(peerName(`controller.${entrance.cell}`));
  return handedZones(zone, documents, domain, externalPools, doors ?? null);
};
/** The number under which these contents are handed out. */
function numbered(state: DnsState, zones: readonly HandedZone[], wallMs: number): number {
  const mark = markOf(zones.flatMap(({ contents }) => contents));
  state.touched = false;
  if (state.handed?.mark === mark) return state.handed.serial;
  state.handed = { serial: nextSerial(state.handed?.serial ?? null, wallMs), mark };
  write(state.outbox, zoneKey, { ...state.handed });
  return state.handed.serial;
}
function zoneNumber(state: DnsState, around: Around): ZoneNumber | null {
  const { zone, handed } = state;
  if (zone === null) return null;
  const serial =
    handed !== null && !state.touched ? handed.serial : numbered(state, zonesOf(state, zone, around), around.wallMs);
  const zones = [zone.zone, ...(zone.pools ?? around.externalPools).flatMap(reverseZones).map(({ name }) => name)];
  return { zones, serial, secondaries: zone.secondaries };
}
/** Whoever waits is told at once what is another already, and within 100 ms what becomes another. */
function settleNews(state: DnsState, input: Input, around: Around): void {
  const isTimer = input.kind === "timer" && input.name === zoneTimer;
  if (isTimer) state.looksSoon = false;
  const { waiting } = state;
  if (waiting === null || !state.started) return;
  if (isTimer || (input.kind === "request" && input.id === waiting.id)) {
    if (!isSameNumber(zoneNumber(state, around), waiting.known)) answerNews(state, around);
  } else if (state.touched && !state.looksSoon) {
    state.looksSoon = true;
    state.outbox.effects.push({ kind: "timer", name: zoneTimer, afterMs: lookAfterMs });
  }
}
function answerNews(state: DnsState, around: Around): void {
  const { waiting, outbox } = state;
  if (waiting === null) return;
  outbox.effects.push({ kind: "reply", id: waiting.id, response: zoneNumber(state, around) as Json });
  state.waiting = null;
}
const isSameNumber = (one: ZoneNumber | null, other: ZoneNumber | null): boolean =>
  one?.zones.join() === other?.zones.join() &&
  one?.serial === other?.serial &&
  one?.secondaries.join() === other?.secondaries.join();

/**
 * A secondary's question after a zone or what is in it; null: the question is after something else. Type AXFR: all of it, between two
 * SOA records (RFC 5936, 2.2). What is new gets its number when somebody asks.
 */
function answerOfZone(
  state: DnsState,
  asked: string,
  type: string,
  { from, key }: Pick<NameQuery, "from" | "key">,
  around: Around,
): NameAnswer | null {
  const { zone } = state;
  const refused = { rcode: "REFUSED", answers: [] } as const;
  const name = asked.toLowerCase().replace(/\.$/, "");
  const isIn = (other: string): boolean => name === other || name.endsWith(`.${other}`);
  const hasKey = zone?.key === undefined || zone.key === key;
  const isSecondary = hasKey && zone?.secondaries.some((each) => each === from) === true;
  if (zone === null || !isSecondary) return type === "AXFR" || (zone !== null && isIn(zone.zone)) ? refused : null;
  const zones = zonesOf(state, zone, around);
  const found = zones.find((each) => isIn(each.name));
  if (found === undefined) return type === "AXFR" ? refused : null;
  const soa = soaOf(zone, found.name, numbered(state, zones, around.wallMs));
  if (type === "AXFR")
    return name === found.name ? { rcode: "NOERROR", answers: [soa, ...found.contents, soa] } : refused;
  const here = [soa, ...found.contents].filter((each) => each.name === name);
  return {
    rcode: here.length > 0 ? "NOERROR" : "NXDOMAIN",
    answers: here.filter((each) => each.type === type).map((each) => ({ ...each, name: asked })),
  };
}

/** A and PTR; any other type of a name that exists has no answers. Names compare without case (RFC 4343). */
function answerQuery(state: DnsState, asked: string, type: string, cell: string | null, domain: string): NameAnswer {
  const name = asked.toLowerCase().replace(/\.$/, "");
  if (name.endsWith(".in-addr.arpa")) {
    const address = name.slice(0, -".in-addr.arpa".length).split(".").reverse().join(".");
    const names = [...(state.reverse.get(address) ?? [])].filter((each) => visible(state, each, cell) !== null);
    if (names.length === 0) return { rcode: "NXDOMAIN", answers: [] };
    const wanted = type === "PTR" || type === "ANY" ? names : [];
    return { rcode: "NOERROR", answers: wanted.map((data) => ({ name: asked, type: "PTR", ttl, data })) };
  }
  if (name !== domain && !name.endsWith(`.${domain}`)) return { rcode: "REFUSED", answers: [] };
  const found = visible(state, name, cell);
  if (found !== null) {
    const data = found.address;
    const answers = type === "A" || type === "ANY" ? [{ name: asked, type: "A" as const, ttl, data }] : [];
    return { rcode: "NOERROR", answers };
  }
  const isBetween = [cell, null].some((viewer) => state.ancestors.has(nameFor(viewer, name)));
  return { rcode: name === domain || isBetween ? "NOERROR" : "NXDOMAIN", answers: [] };
}
