import { formatIpv4, parseIpv4 } from "../../model/addresses/addresses.ts";
import { type HostName, hostPeer, ipv4, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Pool } from "../../model/eucalyptus/configuration/check.ts";
import { configurationJson } from "../../model/eucalyptus/configuration/configuration.ts";
import { readConfigurationJson, refusedMode } from "../../model/eucalyptus/configuration/read.ts";
import type { NetworkView, SecurityGroup } from "../../model/eucalyptus/view/network-view.ts";
import type { Json } from "../../model/json/json.ts";
import { digestOfText } from "../distribution/views/slices.ts";
import {
  type ActualInstance,
  type ActualNetwork,
  type DesiredGroupRule,
  type DesiredInstance,
  type DesiredSecurityGroup,
  networkKey,
  networkSlice,
  networkViewKey,
} from "../documents/network/eucalyptus.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { actualNetwork, desiredInstance, desiredSecurityGroup } from "../documents/readers/eucalyptus.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Input, Instant, Restored, Service } from "../env.ts";
import {
  cellOfController,
  createOutbox,
  desire,
  isObject,
  log,
  progress,
  publishValue,
  sameJson,
  takeEffects,
  toJson,
  write,
} from "../outbox.ts";
import { createDeaths } from "../presence/group/deaths.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import type { BookedInstance } from "./book.ts";
import { groupKey, sayGroups, sweepIds } from "./groups-said.ts";
import { Ids } from "./ids.ts";
import { type Elastic, elasticNow, elasticSaid, giveElastic } from "./instances/elastic.ts";
import { addressBefore, endVanished, noteReturn, takeSilence, whyVanished } from "./instances/vanished.ts";
import { bootOf, fenceHosts, followFences, takeBoot, takeEnd, whyFenced } from "./network-hosts/fences.ts";
import { noLeases } from "./network-hosts/lease-state.ts";
import { carryClusters, takeBeat } from "./network-hosts/leases.ts";
import { hear, noticeOlder, settle } from "./recovered.ts";
import { restoreBook } from "./restored.ts";
import { slicedView } from "./sliced-view.ts";
import {
  ask,
  bookPrefix,
  hostOf,
  hostsOf,
  type NetworkViewManagerOptions,
  type NetworkViewState,
  rulesDigest,
  type Wanted,
} from "./state.ts";
import { type Beyond, fits, groupsBeyond, type Room, roomOfGroup, roomOfInstance, sum } from "./too-many-rules.ts";
import { viewOf } from "./view.ts";

/*
 * The Network View Manager: holds the network configuration, gives instances their addresses, builds the view of all clusters that have
 * hosts and hears from these what became of it. Who has which address is `step.ts`, over a book whose records are this service's store;
 * everything here follows from the book, what controllers desire and what hosts say.
 */

/** From the service's edge: which cells there are. */
export interface ControllersReport {
  readonly kind: "controllers";
  readonly controllers: readonly PeerName[];
}
/** From the gateway; answered with `ConfigurationAnswer`. */
export interface ConfigureRequest {
  readonly kind: "configure";
  readonly document: Json;
}
export const configurationRequest = { kind: "configuration" } as const;
/** `refused`: sentences; null: it is in force. */
export type ConfigurationAnswer =
  | { readonly refused: readonly string[] }
  | { readonly refused: null; readonly configuration: Json; readonly version: number };

const instanceKey = "instance/";

/** Clients: `controller.<cell>`. Records: `book/…` as `step.ts` writes them; `told`, what the view of which version was; `id/<uid>` (`ids.ts`). */
export const createNetworkViewManager = (options: NetworkViewManagerOptions): Service<NetworkViewState> => ({
  restore: (restored) => restore(restored, options),
  step: (state, input, now) => {
    receive(state, input, options);
    takeSilence(state, input, now);
    takeEnd(state, input);
    const isBeat = takeBeat(state, input, now);
    if (state.started && (!isBeat || carryClusters(state, options, now))) reconcile(state, options, now);
    state.outbox.quiet = false;
    return { state, effects: takeEffects(state.outbox) };
  },
  audience: () => null,
  entitled: (_state, peer, key) => maySee("network-view-manager", peer, key),
  accepts: (peer, key) => mayDesire("network-view-manager", peer, key),
  read: documentsOf("network-view-manager"),
  measure: ({ book }) => [
    gauge("cells_network_instances", "Instances under the rules of Eucalyptus.", [sample(book.instances.size)]),
    gauge("cells_network_addresses", "Addresses of theirs that are not free.", [sample(book.addresses.size)]),
  ],
});

function restore(restored: Restored, { controllers, presence }: NetworkViewManagerOptions): NetworkViewState {
  const records = [...restored.records].filter(([key]) => key.startsWith(bookPrefix));
  const book = restoreBook(new Map(records.map(([key, value]) => [key.slice(bookPrefix.length), value])));
  const outbox = createOutbox(restored);
  return {
    outbox,
    ids: new Ids(outbox),
    book,
    started: false,
    wanted: new Map(),
    groups: new Map(),
    unread: new Map(),
    groupSince: new Map(),
    said: new Map(),
    heard: new Map(),
    inStep: new Set(),
    controllers: new Set(controllers),
    complete: new Set(),
    wasRestored: restored.wasRestored === true,
    silentSince: new Map(),
    vanished: new Map(),
    returning: new Map(),
    silenceDueMs: null,
    leases: noLeases(),
    deaths: createDeaths(presence),
    taken: { elements: 0, characters: 0 },
    placed: null,
    groupsChanged: 0,
    placesChanged: 0,
    toldOf: "",
    beyond: { of: "", groups: new Map() },
    isIdDue: true,
    isOlder: false,
  };
}

function receive(state: NetworkViewState, input: Input, options: NetworkViewManagerOptions): void {
  switch (input.kind) {
    case "start":
      start(state, options);
      return;
    case "desired":
      takeDesired(state, input.from, input.key, input.value);
      return;
    case "actual": {
      const host = hostOf(input.from);
      if (host === null || input.key !== networkKey) return;
      const word = input.value === null ? null : actualNetwork.of(input.value);
      const past = word === null ? null : takeBoot(state, host, word);
      if (past !== null) log(state.outbox, "document/refused", { from: input.from, key: networkKey, why: past });
      const said = past === null ? word : null;
      if (placeOfHost(said) !== placeOfHost(state.said.get(host) ?? null)) state.placesChanged += 1;
      if (said === null) state.said.delete(host);
      else state.said.set(host, said);
      state.isIdDue = true;
      return;
    }
    case "reachable": {
      const host = hostOf(input.peer);
      if (host === null) return;
      if (input.reachable) state.inStep.add(host);
      else state.inStep.delete(host);
      return;
    }
    case "forked":
      if (input.forked) noticeOlder(state, options);
      return;
    case "behind":
    case "seen-later":
      noticeOlder(state, options);
      return;
    case "complete":
    case "excused":
      state.complete.add(input.peer);
      state.isIdDue = true;
      return;
    case "request":
      state.outbox.effects.push({ kind: "reply", id: input.id, response: answer(state, input.request, options) });
      return;
    default:
  }
}
/** What of a host's word a view has. */
const placeOfHost = (said: ActualNetwork | null): string =>
  said === null ? "" : `${said.address} ${said.cluster} ${said.peer} ${said.boot ?? ""}`;
function start(state: NetworkViewState, options: NetworkViewManagerOptions): void {
  const { book, outbox, wasRestored } = state;
  state.started = true;
  outbox.quiet = true;
  log(outbox, "service/restored", { instances: book.instances.size, version: book.version });
  for (const to of options.hosts) outbox.effects.push({ kind: "subscribe", to, prefix: networkKey });
  outbox.effects.push(...followFences(state));
  // A blank store may be one that was lost, and one that was put back is older.
  if (book.recovery !== null || book.version === 0 || wasRestored || state.isOlder)
    ask(state, { kind: "recover", hosts: hostsOf(options) });
}

/** A controller speaks for its own cell's VMs and subnets, and a UID stays its cell's: what it names becomes an id, an address and a tap. */
function takeDesired(state: NetworkViewState, client: PeerName, key: string, value: Json): void {
  const isInstance = key.startsWith(instanceKey);
  const uid = key.slice(isInstance ? instanceKey.length : groupKey.length) as Uid;
  const all: Map<Uid, Wanted<DesiredInstance | DesiredSecurityGroup>> = isInstance ? state.wanted : state.groups;
  const before = all.get(uid)?.client ?? state.unread.get(uid);
  if (value === null) {
    if (before !== client) return;
    all.delete(uid);
    state.groupsChanged += 1;
    state.unread.delete(uid);
    if (isInstance) for (const gone of [state.vanished, state.returning]) gone.delete(uid);
    state.groupSince.delete(uid);
    state.isIdDue = true;
    publishValue(state.outbox, actualKey(client, key), null);
    return;
  }
  const document = isInstance ? desiredInstance.of(value, uid) : desiredSecurityGroup.of(value, uid);
  const cell = cellOfController(client);
  const owner = state.ids.cellOf(uid);
  const known = state.ids.known(uid);
  const why =
    document === null
      ? "it is malformed; see core/documents/readers/eucalyptus.ts for its fields"
      : document.cell !== cell
        ? `it names the cell ${document.cell}`
        : (before !== undefined && before !== client) || (owner !== null && owner !== cell)
          ? `${uid} is another cell's`
          : known !== "" && known.startsWith("i-") !== isInstance
            ? `${uid} is ${isInstance ? "a security group" : "an instance"}`
            : null;
  if (document === null && before === undefined && !state.started) state.unread.set(uid, client);
  if (document === null || why !== null) {
    log(state.outbox, "document/refused", { from: client, key, why });
    return;
  }
  state.unread.delete(uid);
  all.set(uid, { client, document });
  if (!isInstance) state.groupsChanged += 1;
  state.ids.of(isInstance ? "i" : "sg", uid, document.cell);
}

function answer(state: NetworkViewState, request: Json, { pools = [] }: NetworkViewManagerOptions): Json {
  if (!isObject(request)) return null;
  const { kind } = request;
  if (kind === "controllers") {
    state.controllers = new Set((request as unknown as ControllersReport).controllers);
    state.isIdDue = true;
    return null;
  }
  if (kind === configurationRequest.kind) return toJson(configurationOf(state));
  return kind === "configure" ? toJson(configure(state, request.document ?? null, pools)) : null;
}
function configurationOf({ book }: NetworkViewState): ConfigurationAnswer {
  const { configuration, version } = book;
  if (configuration === null) return { refused: ["there is no network configuration yet: set one"] };
  return { refused: null, configuration: configurationJson(configuration), version };
}
function configure(state: NetworkViewState, document: Json, pools: readonly Pool[]): ConfigurationAnswer {
  if (!isObject(document)) return { refused: ["a network configuration is a JSON object"] };
  const read = readConfigurationJson(document, null, pools);
  if (!read.ok)
    return { refused: read.error.map(({ pointer, message }) => (pointer === "" ? message : `${pointer}: ${message}`)) };
  const { configuration } = read.value;
  const mode = refusedMode(configuration);
  if (mode !== null) return { refused: [`/Mode: ${mode}`] };
  const { refused } = ask(state, { kind: "configure", configuration });
  return refused === null ? configurationOf(state) : { refused: [refused] };
}

function reconcile(state: NetworkViewState, options: NetworkViewManagerOptions, now: Instant): void {
  const { ids, groups } = state;
  fenceHosts(state, options);
  hear(state);
  endVanished(state, now);
  state.taken = sum([
    placedRoom(state),
    ...[...groups].map(([uid, { client }]) => roomOfGroup(client, ids.rulesOf(uid) ?? 0)),
  ]);
  for (const id of [...state.book.instances.keys()]) if (!isWanted(state, id)) ask(state, { kind: "terminate", id });
  const placeAll = (): void => {
    const elastic = elasticNow(state);
    for (const [uid, wanted] of state.wanted) place(state, uid, wanted, elastic);
  };
  placeAll();
  // Who had to wait for what others have.
  if (settle(state)) placeAll();
  carryClusters(state, options, now);
  const beyond = beyondNow(state);
  tellHosts(state, options, beyond);
  sayGroups(state, options, beyond);
  if (state.isIdDue) sweepIds(state, options);
}

/** Every change of who is in the book is of another version. */
function placedRoom(state: NetworkViewState): Room {
  const { version, instances } = state.book;
  if (state.placed?.version === version) return state.placed.room;
  const room = sum([...instances.values()].map(({ owner }) => roomOfInstance(owner)));
  state.placed = { version, room };
  return room;
}

/**
 * Asked anew where a group says something else, or instances take another room. A group that had rules in the view and has too many now gives up
 * their room, which another one may have waited for: that has no such group in its turn, so it ends.
 */
function beyondNow(state: NetworkViewState): Beyond {
  const { ids, groups, groupsChanged } = state;
  const room = placedRoom(state);
  const of = `${groupsChanged} ${room.elements} ${room.characters}`;
  if (state.beyond.of === of) return state.beyond.groups;
  for (;;) {
    const beyond = groupsBeyond(groups, room, (uid) => ids.rulesOf(uid));
    const isRoomLeft = [...beyond.keys()].some((uid) => ids.rulesOf(uid) !== null);
    for (const [uid, { document }] of groups)
      ids.noteRules(uid, beyond.has(uid) ? null : document.ingress.length + document.egress.length);
    if (isRoomLeft) continue;
    state.beyond = { of, groups: beyond };
    return beyond;
  }
}

/** Unless its document cannot be read: what it has stays its own. */
function isWanted({ wanted, unread, ids }: NetworkViewState, id: string): boolean {
  const uid = ids.uidOf(id);
  const document = uid === undefined ? undefined : wanted.get(uid)?.document;
  return unread.size > 0 || (document !== undefined && document.off !== true);
}

/** Brings one instance in line with what is wanted of it, and says what it has. */
function place(
  state: NetworkViewState,
  uid: Uid,
  { client, document }: Wanted<DesiredInstance>,
  elastic: Elastic,
): void {
  const { book, outbox } = state;
  const said = (why: string | null, whyNoElastic = why): void => {
    const known = book.instances.get(id);
    const isReady = why === null && known?.ready === true;
    const awaited = known?.privateIp === 0 ? "it has this instance in its view" : "its address is in place";
    publishValue(outbox, actualKey(client, `${instanceKey}${uid}`), {
      ...progress(
        isReady ? "ready" : "waiting",
        isReady ? null : (why ?? `its host ${document.host} has yet to say that ${awaited}`),
      ),
      id,
      ...addressSaid(state, known),
      mac: known?.mac ?? null,
      ...(document.elastic === true ? { elastic: elasticSaid(state, elastic, id, whyNoElastic) } : {}),
    });
  };
  const id = state.ids.of("i", uid);
  if (document.off === true) {
    said("its VM is off", null);
    return;
  }
  const vanished = whyVanished(state, uid, document.host);
  if (vanished !== null) {
    said(vanished);
    return;
  }
  const cluster = state.said.get(document.host)?.cluster;
  if (cluster === undefined) {
    said(whyFenced(state, document.host) ?? `its host ${document.host} offers no networking mode beside Diverter`);
    return;
  }
  // Members of one group reach one another: nobody makes itself one of another cell's.
  const foreign = document.groups.find((group) => state.groups.get(group)?.client !== client);
  const before = book.instances.get(id);
  if (foreign !== undefined && before === undefined) {
    said(`its cell has no security group ${foreign}`);
    return;
  }
  // After a start its groups may be said later: until then it is in those in which it is.
  const groups =
    foreign !== undefined && before !== undefined
      ? before.groups
      : document.groups.map((group) => state.ids.of("sg", group));
  const room = roomOfInstance(document.cell);
  if (before === undefined && !fits(state.taken, room)) {
    said("a view of the network has no room for one more instance beside all that there are, with their groups' rules");
    return;
  }
  const had = before === undefined ? addressBefore(state, uid, id, document.host) : undefined;
  const again = had === undefined ? {} : { before: had };
  const instance = { id, owner: document.cell, cluster, node: document.host, groups, ...again };
  const run = ask(state, { kind: "run", instance });
  const { privateIp } = book.instances.get(id) ?? {};
  if (run.refused === null && privateIp !== undefined) noteReturn(state, uid, id, privateIp);
  // One that is refused takes no room, and one that is asked about again has it already.
  if (before === undefined && book.instances.has(id)) state.taken = sum([state.taken, room]);
  // Which group it is in is no reason to leave it where its host is no more.
  const known = book.instances.get(id);
  const isElsewhere = known !== undefined && known.node !== document.host;
  const move = isElsewhere ? ask(state, { kind: "move", id, cluster, node: document.host }).refused : null;
  const refused = run.refused ?? move;
  const hasPlace = known !== undefined && move === null;
  said(refused, hasPlace && document.elastic === true ? giveElastic(state, elastic, id, document) : refused);
}

/** Of one to which the site gives its address, what its host has heard that it has. */
function addressSaid(
  { said }: NetworkViewState,
  known: BookedInstance | undefined,
): Pick<ActualInstance, "address" | "learnt"> {
  if (known === undefined) return { address: null };
  if (known.privateIp !== 0) return { address: ipv4(formatIpv4(known.privateIp)) };
  const heard = said.get(known.node as HostName)?.instances?.find(({ id }) => id === known.id)?.private;
  return { address: heard?.state === "assigned" ? heard.address : null, learnt: true };
}

/** None about a group that nobody has said to be one: it has no members, and a name is no claim to its id. */
const rulesOf = (state: NetworkViewState, rules: readonly DesiredGroupRule[]): SecurityGroup["ingress"] =>
  rules.flatMap(({ group, ...rule }) => {
    if (group === undefined) return [rule];
    return state.groups.has(group) ? [{ ...rule, group: state.ids.of("sg", group) }] : [];
  });

function wholeView(state: NetworkViewState, address: string, beyond: Beyond): NetworkView | null {
  const { book, said } = state;
  const known = new Set(book.configuration?.clusters.map(({ name }) => name));
  const byCluster = Map.groupBy(
    [...said].filter(([, { cluster }]) => known.has(cluster)),
    ([, { cluster }]) => cluster,
  );
  const numberOf = (host: string | undefined): number => parseIpv4(said.get(host as HostName)?.address ?? "") ?? 0;
  const clusters = [...byCluster]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, hosts]) => {
      const names = hosts.map(([host]) => host).sort();
      const nodes = names.filter((host) => said.get(host)?.peer === "node");
      const active = book.networkHosts.get(name)?.active ?? nodes[0];
      return { name, ccIp: numberOf(active), nodes };
    });
  if (clusters.length === 0) return null;
  const taken = [...state.groups].filter(([uid]) => !beyond.has(uid));
  const groups = taken.map(([uid, { document }]) => ({
    id: state.ids.of("sg", uid),
    owner: document.cell,
    ingress: rulesOf(state, document.ingress),
    egress: rulesOf(state, document.egress),
  }));
  // A group whose rules have not come yet lets nobody in.
  const ruled = new Set(groups.map(({ id }) => id));
  const bare = [...book.instances.values()].flatMap(({ owner, groups: names }) =>
    names.filter((id) => !ruled.has(id)).map((id) => ({ id, owner, ingress: [], egress: [] })),
  );
  const securityGroups = [...groups, ...new Map(bare.map((group) => [group.id, group])).values()];
  const clcIp = parseIpv4(address) ?? 0;
  const view = viewOf(book, { clusters, clcIp, dnsDefault: [forwarder], securityGroups });
  if (view === null) return null;
  // Machines find themselves by their address.
  const inAddresses = view.clusters.map((cluster) => ({
    ...cluster,
    nodes: cluster.nodes.map((node) => ({ ...node, name: formatIpv4(numberOf(node.name)) })),
  }));
  return { ...view, clusters: inAddresses };
}
/** Each host's own, as in EC2. */
const forwarder = parseIpv4("169.254.169.253") ?? 0;

const toldRecord = "told";
/** A view of that version said something else: a host that has it in place has not what it is to have. */
function isUnderItsVersion({ book, outbox }: NetworkViewState, manifest: string): boolean {
  const told = outbox.records.get(toldRecord);
  // The version before noted nothing: what it has told may have been another one.
  if (!isObject(told)) return true;
  return told.version === book.version && !sameJson(told.digest, toJson(digestOfText(manifest)));
}

/** Every host has the whole view of the clusters; before all is known again after a loss it keeps the one that it has. */
function tellHosts(state: NetworkViewState, options: NetworkViewManagerOptions, beyond: Beyond): void {
  const { outbox, book, said } = state;
  // Most inputs are words of hosts, which change nothing in it.
  if (madeOf(state) === state.toldOf) return;
  const view = wholeView(state, options.address, beyond);
  if (view === null) return;
  const { slices, ...sliced } = slicedView(view);
  const leased = [...book.networkHosts].flatMap(([cluster, { leasedSince }]) =>
    leasedSince === null ? [] : [cluster],
  );
  const manifest = { ...sliced.manifest, ...(leased.length === 0 ? {} : { leased: leased.sort() }) };
  if (isUnderItsVersion(state, JSON.stringify(manifest))) ask(state, { kind: "regrouped" });
  write(outbox, toldRecord, { version: book.version, digest: digestOfText(JSON.stringify(manifest)) });
  for (const [uid, { document }] of state.groups) {
    const rules = rulesDigest(document);
    if (!sameJson(toJson(state.groupSince.get(uid)?.rules ?? []), toJson(rules)))
      state.groupSince.set(uid, { rules, version: book.version });
  }
  for (const host of said.keys()) {
    const peer = hostPeer(host);
    const has = new Set(slices.map(({ name }) => `${networkSlice}/${name}`));
    for (const { name, digest, values } of slices)
      desire(outbox, peer, `${networkSlice}/${name}`, { digest, items: values });
    desire(outbox, peer, networkViewKey, { version: book.version, ...manifest, ...bootOf(state, host) });
    for (const key of [...(outbox.desired.get(peer)?.keys() ?? [])])
      if (key.startsWith(`${networkSlice}/`) && !has.has(key)) desire(outbox, peer, key, null);
  }
  // What was done for it may have made the version another one.
  state.toldOf = madeOf(state);
}
/** All that a view is made of. */
const madeOf = ({ book, groupsChanged, placesChanged, beyond }: NetworkViewState): string =>
  [book.version, book.recovery === null, groupsChanged, placesChanged, beyond.of].join(" ");
