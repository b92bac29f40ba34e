import { cellName, type Ipv4, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type Entrance, entranceKey, entrancePrefix } from "../../documents/cells.ts";
import type { ActualEnrolment, DesiredEnrolment, IdentityGrant } from "../../documents/identity.ts";
import { mayDesire, maySee } from "../../documents/permissions.ts";
import { entrance } from "../../documents/readers/identity.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import { doorName } from "../../documents/service-roles.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Input, Instant, Restored, Service } from "../../env.ts";
import { createOutbox, isObject, log, publish, takeEffects, toJson, write } from "../../outbox.ts";
import { readCurrentKeys, writeCurrentKeys } from "../current-keys.ts";
import { isPinnable } from "../presented.ts";
import { publishedPins, publishPin } from "../published-pins.ts";
import { besideOf, keepFound, knowsNobody, lostIn, recordsWith, release } from "./beside.ts";
import { newBook, selfRecord } from "./book.ts";
import { answerGossip, restoreGossip } from "./gossip-epochs.ts";
import { addressFault, enrolmentFault, equalHashes, isEntrance, readEnrolment } from "./grants.ts";
import { isOfLaterLife, type KeyRecord, noteIssued, wasReplaced } from "./key-records.ts";
import { defaultLifetimeMs, validFromOf } from "./lifetime.ts";
import { measure } from "./measure.ts";
import type { AuthorityAnswer, AuthorityRefusal, Issue } from "./requests.ts";
import type { AuthorityOptions, AuthorityState, Identity, Spent } from "./state.ts";

/*
 * The installation's certificate authority decides here who gets which certificate; its edge holds the key and signs what
 * was decided (decision 29).
 *
 * What may be enrolled is desired by controllers; the two facts that are the authority's own are durable before anyone is
 * answered: which key spent a token (`spent/`), and which key a name has (`identity/`). So a request that comes again,
 * after a lost answer or a crash between any two steps, gets the same answer, for the same key and for no other.
 * A name is renewed as long as some enrolment grants it; taking back the last one ends it.
 */

const logEveryMs = 60_000;
const mostPerClient = 2048;
const fingerprint = /^[0-9a-f]{64}$/;
const rootController = "controller.root";

/** Clients: `controller.<cell>`. Records: `self`, `book`, `spent/<desire>`, `identity/<name>`, `key/<name>`, `enrolment/<id>` (the operator's). */
export function createAuthorityService(options: AuthorityOptions): Service<AuthorityState> {
  return {
    restore: (restored) => restore(restored, options),
    step: (state, input, now) => {
      take(state, input, now);
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("authority", peer, key),
    accepts: (peer, key) => mayDesire("authority", peer, key),
    read: documentsOf("authority"),
    isLost: ({ lost }) => lost !== null,
    measure,
  };
}

function restore({ records: stored, ...others }: Restored, options: AuthorityOptions): AuthorityState {
  const { records, isLost } = recordsWith(stored, options);
  const state: AuthorityState = {
    options,
    outbox: createOutbox({ records: stored, ...others }),
    started: false,
    enrolments: new Map(),
    spent: new Map(),
    unread: new Set(),
    entrances: new Map(),
    identities: new Map(),
    keys: new Map(),
    found: new Map(isLost ? records : []),
    lost: lostIn(records),
    told: new Map(),
    gossip: restoreGossip(records),
    book: null,
    waiting: new Map(),
    refused: new Map(),
    refusedLogged: new Map(),
  };
  for (const [key, value] of records) {
    const name = key.slice(key.indexOf("/") + 1);
    if (key.startsWith("spent/")) state.spent.set(name, value as unknown as Spent);
    if (key.startsWith("identity/")) state.identities.set(name as PeerName, value as unknown as Identity);
    if (key.startsWith("key/")) state.keys.set(name as PeerName, value as unknown as KeyRecord);
    if (key.startsWith("enrolment/")) setEnrolment(state, options.self, key, value);
  }
  return state;
}

function take(state: AuthorityState, input: Input, now: Instant): void {
  if (input.kind === "start") start(state);
  else if (input.kind === "desired" && input.key.startsWith(entrancePrefix)) {
    if (input.from === rootController) takeEntrance(state, input.key.slice(entrancePrefix.length), input.value);
  } else if (input.kind === "desired") {
    const desire = actualKey(input.from, input.key);
    const wasUnread = state.unread.has(desire);
    const names = setEnrolment(state, input.from, input.key, input.value);
    if (state.started) settle(state, desire, wasUnread ? [...state.identities.keys()] : names);
    // A cell's controller that was there first gives way; and what is given back may be another's.
    if (state.started && (isTrusted(state, input.from) || input.value === null)) judgeAddresses(state);
  } else if (input.kind === "excused") {
    if (input.peer === state.options.self && release(state)) settleAll(state);
  } else if (input.kind === "request") {
    const { id, request } = input;
    if (isObject(request) && request.kind === "peers") state.waiting.set(id, Number(request.known));
    else state.outbox.effects.push({ kind: "reply", id, response: toJson(answer(state, request, now)) });
  }
  if (state.started) tellWhere(state, now);
}

/** Of the root cell's controller: nobody else may desire one. What that cell has asked for before is judged anew. */
function takeEntrance(state: AuthorityState, cell: string, value: Json): void {
  const way = entrance.of(value);
  if (way === null) state.entrances.delete(cell);
  else state.entrances.set(cell, way);
  for (const [desire, { client, asked }] of [...state.enrolments]) {
    if (client !== `controller.${cell}`) continue;
    const names = setEnrolment(state, client, desire.slice(actualKey(client, "").length), asked);
    if (state.started) settle(state, desire, names);
  }
  if (state.started) publishEntrance(state, cell);
}

/** Hosts hear it from here, and keep it: they are not followed by the root controller where nothing of it runs. */
function publishEntrance({ outbox, entrances }: AuthorityState, cell: string): void {
  const way = entrances.get(cell);
  const value = way === undefined ? null : toJson({ address: way.address } satisfies Entrance);
  outbox.effects.push({ kind: "publish", key: entranceKey(cell), value });
}

/** The version is durable before the book that it names leaves. */
function tellWhere(state: AuthorityState, now: Instant): void {
  state.book ??= newBook(state, now);
  if (knowsNobody(state)) return;
  for (const [id, known] of state.waiting) {
    if (known === state.book.version) continue;
    state.waiting.delete(id);
    const { version, peers, cells, keys, ring } = state.book;
    const response = toJson({ kind: "peers", version, peers, cells, keys: writeCurrentKeys(keys), gossip: ring });
    state.outbox.effects.push({ kind: "reply", id, response });
  }
}

function start(state: AuthorityState): void {
  state.started = true;
  state.outbox.quiet = true;
  keepFound(state);
  judgeAddresses(state);
  log(state.outbox, "service/restored", { identities: state.identities.size, enrolments: state.enrolments.size });
  settleAll(state);
  for (const cell of state.entrances.keys()) publishEntrance(state, cell);
  // A snapshot without it would have every host forget it.
  const own = state.outbox.records.get(selfRecord);
  if (isObject(own) && typeof own.key === "string") publishPin(state.outbox, state.options.self, own.key);
}

function settleAll(state: AuthorityState): void {
  for (const desire of new Set([...state.spent.keys(), ...state.enrolments.keys()])) settle(state, desire, []);
  for (const name of [...state.identities.keys()]) settleIdentity(state, name);
}

/** Returns the names that were granted under this key until now. */
function setEnrolment(state: AuthorityState, client: PeerName, key: string, value: Json): readonly PeerName[] {
  const desire = actualKey(client, key);
  const names = state.enrolments.get(desire)?.document.grants.map(({ name }) => name) ?? [];
  state.enrolments.delete(desire);
  state.unread.delete(desire);
  state.book = null;
  if (value === null) return names;
  const document = readEnrolment(value);
  if (document === null && !state.started) state.unread.add(desire);
  const { self, parentOf = () => null } = state.options;
  const entranceOf = (cell: string): Ipv4 | null => state.entrances.get(cell)?.address ?? null;
  const fault =
    document === null
      ? "the enrolment is malformed; see DesiredEnrolment in core/documents/vocabulary.ts"
      : clientDesires(state, client) >= mostPerClient
        ? `"${client}" has ${mostPerClient} enrolments already; take back those that are over`
        : (enrolmentFault(client, self, document, parentOf, entranceOf) ??
          (isTrusted(state, client) ? null : addressFault(document, addressesOfOthers(state, client))));
  const nothing: DesiredEnrolment = { hash: "", cell: cellName(""), grants: [], endsAtMs: 0 };
  const granted = fault === null && document !== null ? document : nothing;
  state.enrolments.set(desire, { client, document: granted, asked: value, fault });
  return names;
}
/** The root cell's controller and the operator say where the cloud's own services are: they come first, whoever was before. */
const isTrusted = ({ options }: AuthorityState, client: PeerName): boolean =>
  client === options.self || client === rootController;

/** Addresses that are taken in enrolments of other clients, or fixed; and by whom. */
function* addressesOfOthers(state: AuthorityState, client: PeerName): Iterable<readonly [string, string]> {
  for (const other of state.enrolments.values()) {
    if (other.client === client) continue;
    for (const { name, addresses } of other.document.grants) for (const each of addresses) yield [each, name];
  }
  for (const [name, entry] of Object.entries(state.options.fixedPeers ?? {})) yield [entry.split(":")[0] ?? "", name];
}

/** What the cells' controllers have asked for, by who has which address now. */
function judgeAddresses(state: AuthorityState): void {
  for (const [desire, { client, asked, fault }] of [...state.enrolments]) {
    if (isTrusted(state, client)) continue;
    const names = setEnrolment(state, client, desire.slice(actualKey(client, "").length), asked);
    if (state.enrolments.get(desire)?.fault !== fault) settle(state, desire, names);
  }
}

const clientDesires = (state: AuthorityState, client: PeerName): number =>
  [...state.enrolments.values()].filter((each) => each.client === client).length;

/** Brings what follows from an enrolment in step with it. `names`: those that it granted before. */
function settle(state: AuthorityState, desire: string, names: readonly PeerName[]): void {
  if (state.unread.has(desire)) return;
  const enrolment = state.enrolments.get(desire);
  // A new token under an old key is unspent.
  if (state.spent.get(desire)?.hash !== enrolment?.document.hash) {
    state.spent.delete(desire);
    write(state.outbox, `spent/${desire}`, null);
  }
  const key = state.spent.get(desire)?.key;
  // Other addresses, say, go into the next certificate; a name that is new here waits until the token is shown again.
  for (const grant of enrolment?.document.grants ?? []) {
    const identity = state.identities.get(grant.name);
    if (identity !== undefined && identity.key === key) setIdentity(state, { ...identity, ...grant });
  }
  for (const name of names) settleIdentity(state, name);
  tell(state, desire);
}

function setIdentity(state: AuthorityState, identity: Identity): void {
  state.book = null;
  state.identities.set(identity.name, identity);
  write(state.outbox, `identity/${identity.name}`, identity);
}

function tell(state: AuthorityState, desire: string): void {
  const enrolment = state.enrolments.get(desire);
  if (enrolment?.client === state.options.self) return;
  const key = state.spent.get(desire)?.key ?? null;
  const waiting = "nobody has shown the token yet";
  const actual: ActualEnrolment | null =
    enrolment === undefined
      ? null
      : enrolment.fault !== null
        ? { phase: "failed", reason: enrolment.fault, key: null }
        : enrolment.refused !== undefined
          ? { phase: "failed", reason: enrolment.refused, key }
          : { phase: key === null ? "waiting" : "ready", reason: key === null ? waiting : null, key };
  publish(state.outbox, desire, actual);
}

const isGranted = (state: AuthorityState, name: PeerName): boolean =>
  [...state.enrolments.values()].some(({ document }) => document.grants.some((grant) => grant.name === name));

function settleIdentity(state: AuthorityState, name: PeerName): void {
  const identity = state.identities.get(name);
  if (identity !== undefined && !isGranted(state, name) && state.unread.size === 0) {
    state.identities.delete(name);
    state.book = null;
    write(state.outbox, `identity/${name}`, null);
    log(state.outbox, "identity/ended", { peer: name, cell: identity.cell });
  }
  if (isPinnable(name)) publishPin(state.outbox, name, state.identities.get(name)?.key ?? null);
}

function answer(state: AuthorityState, request: Json, now: Instant): AuthorityAnswer {
  const asked = isObject(request) ? request : {};
  const key = typeof asked.key === "string" && fingerprint.test(asked.key) ? asked.key : null;
  if (asked.kind === "gossip" || asked.kind === "gossip-turn") return answerGossip(state, asked);
  if (asked.kind === "beside") return { kind: "beside", beside: besideOf(state) };
  if (asked.kind === "pins") return { kind: "pins", pins: publishedPins(state.outbox) };
  if (asked.kind === "cell-uid") {
    const identity = state.identities.get(asked.name as PeerName);
    return { kind: "cell-uid", cellUid: identity?.key === key ? (identity?.cellUid ?? null) : null };
  }
  if (asked.kind === "enrolment" && typeof asked.id === "string")
    return operate(state, asked.id, asked.enrolment ?? null);
  if (key !== null && asked.kind === "self") {
    state.book = null;
    state.told = readCurrentKeys(asked.told) ?? new Map();
    write(state.outbox, selfRecord, { key });
    publishPin(state.outbox, state.options.self, key);
    return { kind: "taken" };
  }
  if (key !== null && asked.kind === "enrol" && typeof asked.hash === "string" && fingerprint.test(asked.hash))
    return enrol(state, asked.hash, key, now);
  if (key !== null && asked.kind === "renew" && typeof asked.name === "string")
    return renew(state, asked.name as PeerName, { key, beganMs: asked.beganMs }, now);
  return refuse(state, "malformed", "the request to the authority is malformed", now);
}

/** The operator's enrolments are the authority's own records: nobody else's store holds them. */
function operate(state: AuthorityState, id: string, value: Json): AuthorityAnswer {
  const { self } = state.options;
  const key = `enrolment/${id}`;
  const desire = actualKey(self, key);
  const before = state.outbox.records.get(key) ?? null;
  const names = setEnrolment(state, self, key, value);
  const fault = /^[A-Za-z0-9-]{1,64}$/.test(id)
    ? state.enrolments.get(desire)?.fault
    : `"${id}" is no id of an enrolment: it takes letters, digits and "-"`;
  if (typeof fault === "string") {
    setEnrolment(state, self, key, before);
    return { kind: "refused", because: "not-granted", why: fault };
  }
  write(state.outbox, key, value as object | null);
  settle(state, desire, names);
  return { kind: "taken" };
}

function enrol(state: AuthorityState, hash: string, key: string, now: Instant): AuthorityAnswer {
  // Every hash is looked at, so that the time of an answer tells nothing of them.
  const found = [...state.enrolments].filter(([, { document }]) => equalHashes(document.hash, hash));
  const [match] = found;
  if (match === undefined) return refuse(state, "unknown", "no enrolment has this token", now);
  const [desire, { document }] = match;
  if (found.length > 1)
    return refuse(state, "not-granted", "more than one enrolment has this token: each needs a token of its own", now);
  // Who desires it hears of it too: it knows the token, and whose service waits for its name.
  const unfit = (because: AuthorityRefusal, why: string): AuthorityAnswer => {
    setRefused(state, desire, why);
    return refuse(state, because, `${why}; ${desire} needs a new one`, now);
  };
  if (now.wallMs > document.endsAtMs) return unfit("expired", "the token's time is over");
  const spent = state.spent.get(desire);
  if (spent !== undefined && spent.key !== key) return unfit("spent", "the token was spent by another key");
  const superseded = document.grants.find(
    ({ name }) => (state.identities.get(name)?.key ?? key) !== key || isReplaced(state, name, key, now),
  );
  if (spent !== undefined && superseded !== undefined)
    return unfit("superseded", `"${superseded.name}" has a newer key, from a newer token`);
  state.spent.set(desire, { hash, key });
  write(state.outbox, `spent/${desire}`, { hash, key });
  setRefused(state, desire, null);
  for (const grant of document.grants) {
    setIdentity(state, { ...grant, cell: document.cell, key });
    settleIdentity(state, grant.name);
    const fields = { peer: grant.name, cell: document.cell, enrolment: desire, again: spent !== undefined };
    log(state.outbox, "identity/enrolled", fields);
  }
  tell(state, desire);
  return {
    kind: "issue",
    certificates: document.grants.map((grant) => issue(state, { ...grant, cell: document.cell }, now)),
  };
}

const isReplaced = (state: AuthorityState, name: PeerName, key: string, now: Instant): boolean =>
  wasReplaced(name, key, state.keys.get(name), state.told, now.wallMs);

/** Kept in memory alone: whoever is refused asks again. */
function setRefused(state: AuthorityState, desire: string, why: string | null): void {
  const before = state.enrolments.get(desire);
  if (before === undefined || (before.refused ?? null) === why) return;
  const { client, document, asked, fault } = before;
  state.enrolments.set(desire, { client, document, asked, fault, ...(why === null ? {} : { refused: why }) });
  tell(state, desire);
}

function renew(
  state: AuthorityState,
  name: PeerName,
  { key, beganMs }: { readonly key: string; readonly beganMs: Json | undefined },
  now: Instant,
): AuthorityAnswer {
  const identity = state.identities.get(name);
  if (identity === undefined) {
    const why =
      state.lost === null
        ? `"${name}" is not enrolled any more: whoever had it enrolled took it back`
        : `the store of this authority was lost, and "${name}" has yet to show its token again`;
    return refuse(state, "no-identity", why, now);
  }
  const replaced = (each: PeerName): boolean => isReplaced(state, each, key, now);
  if (replaced(name))
    return refuse(
      state,
      "superseded",
      `"${name}" got another key, or was taken out, after what this authority's store knows: the store was set back; ` +
        "whoever has the name since may renew it, and this key needs a new token",
      now,
    );
  if (identity.key !== key && isOfLaterLife(state.keys.get(name), beganMs, validFromOf(state, now)))
    adopt(state, identity, key);
  else if (identity.key !== key)
    return refuse(state, "another-key", `"${name}" has another key by now, from a newer token`, now);
  // One machine may have several names over its one key, and whoever renews them speaks for all of them.
  const all = [...state.identities.values()].filter((each) => each.key === key && !replaced(each.name));
  // Who was refused under its token was another: the one that has the name goes on.
  for (const [desire, spent] of state.spent) if (spent.key === key) setRefused(state, desire, null);
  for (const each of all) log(state.outbox, "identity/renewed", { peer: each.name, cell: each.cell });
  return { kind: "issue", certificates: all.map((each) => issue(state, each, now)) };
}

/** This store is older than what was issued: the name goes on with the key that it had got. */
function adopt(state: AuthorityState, identity: Identity, key: string): void {
  for (const [desire, spent] of state.spent) {
    const grants = state.enrolments.get(desire)?.document.grants ?? [];
    if (spent.key !== identity.key || !grants.some(({ name }) => name === identity.name)) continue;
    state.spent.set(desire, { ...spent, key });
    write(state.outbox, `spent/${desire}`, { ...spent, key });
    tell(state, desire);
  }
  setIdentity(state, { ...identity, key });
  settleIdentity(state, identity.name);
  log(state.outbox, "identity/adopted", { peer: identity.name, cell: identity.cell });
}

const issue = (state: AuthorityState, of: IdentityGrant & { readonly cell: string }, now: Instant): Issue => {
  const { lifetimeMs = defaultLifetimeMs } = state.options;
  const { name, role, addresses, cell } = of;
  const validFromMs = validFromOf(state, now);
  noteIssued(state, name, validFromMs);
  const validToMs = Math.ceil((now.wallMs + lifetimeMs) / 1000) * 1000;
  return { name, role, addresses: [...addresses, ...namesOutside(state, of)], cell, validFromMs, validToMs };
};
/**
 * Clients outside know a personality at the way in by its name there. It comes with the next certificate, as another address does. The gateway's is left
 * to a certificate of the operator's own, which browsers trust: by a name in this one nobody would be shown that any more.
 */
function namesOutside({ entrances }: AuthorityState, of: IdentityGrant & { readonly cell: string }): readonly string[] {
  const { address, zone } = entrances.get(of.cell) ?? {};
  const isDoor = of.role !== "gateway" && address !== undefined && isEntrance(of, address);
  return zone === undefined || !isDoor ? [] : [doorName(of.role, zone)];
}

/** Counted always, logged once a minute for each reason: whoever guesses tokens cannot fill the disk. */
function refuse(state: AuthorityState, because: AuthorityRefusal, why: string, now: Instant): AuthorityAnswer {
  const count = (state.refused.get(because) ?? 0) + 1;
  state.refused.set(because, count);
  const logged = state.refusedLogged.get(because);
  if (logged === undefined || now.ms - logged >= logEveryMs) {
    state.refusedLogged.set(because, now.ms);
    log(state.outbox, "identity/refused", { reason: because, why, count });
  }
  return { kind: "refused", because, why };
}
