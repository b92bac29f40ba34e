import { formatIpv4, formatNetwork, type Network, parseNetwork } from "../../model/addresses/addresses.ts";
import { type Cidr, cidr, ipv4, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { AddressOffer } from "../../model/check/network/check-addresses.ts";
import type { Json } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { ActualSubnet, DesiredSubnet } from "../documents/network/network.ts";
import { mayDesire, maySee } from "../documents/permissions.ts";
import { desiredSubnet } from "../documents/readers/network.ts";
import { documentsOf } from "../documents/readers/table.ts";
import { isOffersRequest } from "../documents/supply.ts";
import { actualKey, type Progress } from "../documents/vocabulary.ts";
import type { Input, Restored, Service } from "../env.ts";
import { createOutbox, isObject, log, type Outbox, progress, publish, takeEffects, toJson, write } from "../outbox.ts";
import { gauge, sample } from "../telemetry/metrics.ts";
import { type Block, type Blocks, createBlocks, firstFree, free, ownerIn, take } from "./blocks.ts";
import {
  beginRecovery,
  mayGiveNew,
  type Recovery,
  recoveryRecord,
  restoreRecovery,
  showsRange,
  spoke,
  takeControllers,
} from "./recovery.ts";

/*
 * The IP Address Manager gives every subnet of the installation a block of its own: no two overlap, so an address means
 * one interface everywhere and nothing is ever translated. A block is durable before its controller hears of it, and
 * stays until the subnet's tombstone. What it does without its store: `recovery.ts`.
 */

export interface AddressManagerOptions {
  readonly self: PeerName;
  /** CIDR that subnets without an own one are cut from, by `x.addressRange`. */
  readonly internalPool: string;
  readonly externalPool: string;
  /** CIDRs that nobody gets: the underlay and whatever else the machines need. */
  readonly reserved?: readonly string[];
  /** `controller.<cell>` of each cell that there is at the start; later ones it is told (`AddressReport`). */
  readonly controllers: readonly PeerName[];
}
/** From the service's edge: which cells there are. */
export interface AddressReport {
  readonly kind: "controllers";
  readonly controllers: readonly PeerName[];
}

interface SubnetRecord {
  readonly client: PeerName;
  readonly path: string;
  readonly cidr: string;
}
interface Wanted {
  readonly client: PeerName;
  readonly document: DesiredSubnet;
}
export interface AddressState {
  readonly outbox: Outbox;
  started: boolean;
  readonly wanted: Map<Uid, Wanted>;
  readonly subnets: Map<Uid, SubnetRecord>;
  readonly blocks: Blocks<string>;
  /** Desires without a block: looked at again whenever one is freed. */
  readonly unplaced: Set<Uid>;
  /** Stored desires that cannot be read: what they have stays theirs. */
  readonly unread: Set<Uid>;
  readonly recovery: Recovery;
}

/** RFC 1918. */
const privateNetworks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
/** Network, gateway and broadcast take three addresses, so fewer than eight are hardly a subnet. */
const smallestOrder = 3;
const largestOrder = 24;

/** Clients: `controller.<cell>`. Records: `subnet/<uid>`, `recovery`. */
export function createAddressManager(options: AddressManagerOptions): Service<AddressState> {
  const pools = { internal: blockOf(options.internalPool), external: blockOf(options.externalPool) };
  const offer = toJson(addressOfferOf(options));
  return {
    restore: (restored) => restore(restored, options),
    step: (state, input) => {
      receive(state, input, pools, offer);
      if (input.kind === "start") state.outbox.effects.push({ kind: "publish", key: "addresses", value: offer });
      state.outbox.quiet = false;
      return { state, effects: takeEffects(state.outbox) };
    },
    audience: () => null,
    entitled: (_state, peer, key) => maySee("address-manager", peer, key),
    accepts: (peer, key) => mayDesire("address-manager", peer, key),
    read: documentsOf("address-manager"),
    measure: ({ subnets, unplaced }) => {
      const addresses = [...subnets.values()].reduce((sum, record) => sum + 2 ** blockOf(record.cidr).order, 0);
      return [
        gauge("cells_subnets", "Subnets that have a range.", [sample(subnets.size)]),
        gauge("cells_subnets_waiting", "Subnets for which no range is free.", [sample(unplaced.size)]),
        gauge("cells_subnet_addresses", "Addresses in the ranges that are given.", [sample(addresses)]),
      ];
    },
  };
}
type Pools = { readonly internal: Block; readonly external: Block };

/**
 * What the pools could ever give, for controllers to tell what can never be given: the same rules as below, as if nobody
 * had a subnet yet.
 */
export function addressOfferOf({
  internalPool,
  externalPool,
  reserved = [],
}: Pick<AddressManagerOptions, "internalPool" | "externalPool" | "reserved">): AddressOffer {
  const empty = createBlocks<string>();
  for (const text of reserved) take(empty, blockOf(text), "the installation itself");
  const largest = (pool: Block): number => {
    let order = Math.min(pool.order, largestOrder);
    while (order >= smallestOrder && firstFree(empty, pool, order) === null) order -= 1;
    return order < smallestOrder ? 0 : 2 ** order;
  };
  const [internal, external] = [blockOf(internalPool), blockOf(externalPool)];
  return {
    internal: { pool: internalPool, largest: largest(internal), fixed: [internalPool, ...privateNetworks] },
    external: { pool: externalPool, largest: largest(external), fixed: [externalPool] },
    reserved,
    shortestPrefix: 32 - largestOrder,
    longestPrefix: 32 - smallestOrder,
  };
}

/** Configuration is the operator's: a pool that is no CIDR is a fault of the installation. */
function blockOf(text: string): Block {
  const network = parseNetwork(text);
  if (network === null || network.hostBits) throw new Error(`"${text}" is not a network in CIDR notation`);
  return toBlock(network);
}
const toBlock = (network: Network): Block => ({ first: network.first, order: 32 - network.prefixLength });
const cidrOf = (block: Block): string => `${formatIpv4(block.first)}/${32 - block.order}`;
const within = (block: Block, outer: Block): boolean =>
  block.order <= outer.order && block.first >= outer.first && block.first < outer.first + 2 ** outer.order;

function restore(restored: Restored, { reserved = [], controllers }: AddressManagerOptions): AddressState {
  const blocks = createBlocks<string>();
  for (const text of reserved) take(blocks, blockOf(text), "the installation itself");
  const subnets = new Map<Uid, SubnetRecord>();
  for (const [key, value] of restored.records) {
    if (key === recoveryRecord) continue;
    const record = value as unknown as SubnetRecord;
    subnets.set(key.slice("subnet/".length) as Uid, record);
    take(blocks, blockOf(record.cidr), `"${record.path}"`);
  }
  const outbox = createOutbox(restored);
  const [wanted, unplaced, unread] = [new Map<Uid, Wanted>(), new Set<Uid>(), new Set<Uid>()];
  const recovery = restoreRecovery(restored, controllers);
  return { outbox, started: false, wanted, subnets, blocks, unplaced, unread, recovery };
}

function receive(state: AddressState, input: Input, pools: Pools, offer: Json): void {
  if (input.kind === "desired") {
    const uid = input.key.slice("subnet/".length) as Uid;
    const hadNone = !state.subnets.has(uid) && state.wanted.get(uid)?.document.has === undefined;
    takeDesired(state, input.from, uid, input.value);
    if (!state.started) return;
    if (hadNone && state.wanted.get(uid)?.document.has !== undefined)
      showsRange(state.recovery, state.outbox, input.from);
    reconcile(state, uid, pools);
  } else if (input.kind === "start") {
    state.started = true;
    state.outbox.quiet = true;
    log(state.outbox, "service/restored", { subnets: state.subnets.size });
    const isBlank = state.subnets.size + state.wanted.size + state.unread.size === 0;
    beginRecovery(state.recovery, state.outbox, isBlank);
    // Those that have a block first, so that nothing new takes the place of a subnet that only changes.
    for (const uid of [...state.subnets.keys(), ...state.wanted.keys()]) reconcile(state, uid, pools);
  } else if (input.kind === "complete" || input.kind === "excused") {
    if (spoke(state.recovery, state.outbox, input.peer)) placeWaiting(state, pools);
  } else if (input.kind === "request") {
    const report = input.request as unknown as AddressReport;
    if (isObject(input.request) && report.kind === "controllers")
      if (takeControllers(state.recovery, state.outbox, report.controllers)) placeWaiting(state, pools);
    const response = isOffersRequest(input.request) ? offer : { subnets: state.subnets.size };
    state.outbox.effects.push({ kind: "reply", id: input.id, response });
  }
}

function placeWaiting(state: AddressState, pools: Pools): void {
  for (const uid of [...state.unplaced]) reconcile(state, uid, pools);
}

function takeDesired(state: AddressState, client: PeerName, uid: Uid, value: Json): void {
  const owner = state.wanted.get(uid)?.client ?? state.subnets.get(uid)?.client ?? client;
  const refuse = (reason: string) => say(state, client, uid, progress("failed", reason), null);
  if (owner !== client) {
    if (value === null) publish(state.outbox, actualKey(client, `subnet/${uid}`), null);
    else refuse(`the UID ${uid} belongs to an element of another cell`);
    return;
  }
  state.unread.delete(uid);
  if (value === null) {
    state.wanted.delete(uid);
    state.unplaced.delete(uid);
    if (!state.subnets.has(uid)) publish(state.outbox, actualKey(client, `subnet/${uid}`), null);
    return;
  }
  const document = desiredSubnet.of(value, uid);
  if (document === null) {
    if (!state.wanted.has(uid)) state.unread.add(uid);
    refuse("the subnet document is malformed; see core/documents/readers/network.ts for its fields");
  } else state.wanted.set(uid, { client, document });
}

/** Brings one subnet in line with what is wanted of it. */
function reconcile(state: AddressState, uid: Uid, pools: Pools): void {
  if (state.unread.has(uid)) return;
  const wanted = state.wanted.get(uid);
  const record = state.subnets.get(uid);
  if (record !== undefined && (wanted === undefined || !satisfies(record, wanted.document, pools))) {
    release(state, uid, record);
    if (wanted === undefined) publish(state.outbox, actualKey(record.client, `subnet/${uid}`), null);
    else allocate(state, uid, wanted, pools);
    placeWaiting(state, pools);
  } else if (record !== undefined && wanted !== undefined) {
    const renamed = { ...record, path: wanted.document.path };
    write(state.outbox, `subnet/${uid}`, renamed);
    state.subnets.set(uid, renamed);
    say(state, wanted.client, uid, progress("ready"), renamed);
  } else if (wanted !== undefined) {
    allocate(state, uid, wanted, pools);
  }
}

function release(state: AddressState, uid: Uid, record: SubnetRecord): void {
  free(state.blocks, blockOf(record.cidr));
  state.subnets.delete(uid);
  write(state.outbox, `subnet/${uid}`, null);
  log(state.outbox, "subnet/freed", { uid, path: record.path, cidr: record.cidr });
}

function allocate(state: AddressState, uid: Uid, { client, document }: Wanted, pools: Pools): void {
  const found = find(state, client, document, pools);
  if (!found.ok) {
    state.unplaced.add(uid);
    const { taken, ...why } = found.error;
    say(state, client, uid, why, null, taken);
    return;
  }
  state.unplaced.delete(uid);
  const record: SubnetRecord = { client, path: document.path, cidr: cidrOf(found.value) };
  take(state.blocks, found.value, `"${document.path}"`);
  state.subnets.set(uid, record);
  write(state.outbox, `subnet/${uid}`, record);
  log(state.outbox, "subnet/allocated", { uid, path: record.path, cidr: record.cidr });
  say(state, client, uid, progress("ready"), record);
}

/** Why a subnet gets no block. */
type Lack = Progress & Pick<ActualSubnet, "taken">;

function find(state: AddressState, client: PeerName, document: DesiredSubnet, pools: Pools): Result<Block, Lack> {
  const had = document.cidr === null ? given(state, document, pools) : null;
  if (had !== null) return had;
  const may = mayGiveNew(state.recovery);
  if (!may.ok && (document.cidr === null || document.cidr !== document.has)) return may;
  return document.cidr === null ? cut(state, client, document, pools) : fixed(state, document, pools);
}

const orderFor = (size: number): number => Math.max(smallestOrder, Math.ceil(Math.log2(size)));

function cut(state: AddressState, client: PeerName, document: DesiredSubnet, pools: Pools): Result<Block, Progress> {
  const pool = pools[document.addressRange];
  const order = orderFor(document.size);
  if (order > pool.order || order > largestOrder) {
    const most = 2 ** Math.min(pool.order, largestOrder);
    return fail(progress("failed", `${document.size} addresses are more than a subnet can have here: at most ${most}`));
  }
  const block = firstFree(state.blocks, pool, order);
  if (block !== null) return ok(block);
  return fail(
    progress(
      "waiting",
      `the ${document.addressRange} pool ${cidrOf(pool)} has no ${2 ** order} addresses together left: ${whatFrees(state, client, pool, order)}`,
    ),
  );
}

/** Subnets that wait, up to which each is told which of its cell's others has what it needs. */
const mostAdvised = 64;
const mostNamed = 3;
/** What would make room for a block: other cells' subnets are not named. */
function whatFrees(state: AddressState, client: PeerName, pool: Block, order: number): string {
  let fits = order - 1;
  while (fits >= smallestOrder && firstFree(state.blocks, pool, fits) === null) fits -= 1;
  const smaller = fits >= smallestOrder ? [`make it smaller (\`x.size ${2 ** fits}\` fits)`] : [];
  const own =
    state.unplaced.size > mostAdvised
      ? []
      : [...state.subnets.values()].filter((record) => {
          const block = blockOf(record.cidr);
          return record.client === client && block.order >= order && within(block, pool);
        });
  const names = own.slice(0, mostNamed).map(({ path }) => path);
  const others = own.length === 0 ? [] : [`delete a subnet of the cell that has as many (${names.join(", ")})`];
  return [...smaller, ...others, "have the operator enlarge the pool, or wait until another cell gives some back"].join(
    "; ",
  );
}

/**
 * The block that the subnet has had before this service lost its store: machines use it. Null: it had none that would do.
 * Another has it where this service had forgotten whose it is, and more often where the controller's store is older: the subnet
 * was deleted since, and is wanted again. The controller knows whether a machine still uses it, and gives it up where none does.
 */
function given(state: AddressState, document: DesiredSubnet, pools: Pools): Result<Block, Lack> | null {
  const { has } = document;
  const network = parseNetwork(has ?? "");
  if (has === undefined || network === null || network.hostBits) return null;
  const block = toBlock(network);
  if (block.order < smallestOrder || block.order > largestOrder || 2 ** block.order < document.size) return null;
  if (!isAllowed(block, document.addressRange, pools)) return null;
  const owner = ownerIn(state.blocks, block);
  if (owner === null) return ok(block);
  const reason = `its range ${has} was given to ${owner}: it gets another one as soon as no machine uses it`;
  return fail({ ...progress("failed", reason), taken: has });
}

function fixed(state: AddressState, document: DesiredSubnet, pools: Pools): Result<Block, Progress> {
  const failed = (reason: string) => fail(progress("failed", reason));
  const network = parseNetwork(document.cidr ?? "");
  if (network === null) return failed(`"${document.cidr}" is not a network in CIDR notation, as 10.64.8.0/24 is`);
  if (network.hostBits) {
    return failed(`${document.cidr} has bits set beyond its prefix; the network is ${formatNetwork(network)}`);
  }
  const block = toBlock(network);
  if (block.order < smallestOrder || block.order > largestOrder) {
    return failed(`${document.cidr} is a /${network.prefixLength}; a subnet is between /${32 - largestOrder} and /29`);
  }
  if (2 ** block.order < document.size) {
    return failed(`${document.cidr} has ${2 ** block.order} addresses, fewer than the size of ${document.size}`);
  }
  if (!isAllowed(block, document.addressRange, pools)) {
    const right =
      document.addressRange === "external"
        ? `inside the external pool ${cidrOf(pools.external)}`
        : `inside the internal pool ${cidrOf(pools.internal)} or private (${privateNetworks.join(", ")})`;
    return failed(`${document.cidr} cannot be used: an ${document.addressRange} subnet is ${right}`);
  }
  const owner = ownerIn(state.blocks, block);
  return owner === null ? ok(block) : failed(`${document.cidr} is not free: ${owner} has it or a part of it`);
}

function isAllowed(block: Block, range: DesiredSubnet["addressRange"], pools: Pools): boolean {
  if (within(block, pools[range])) return true;
  return range === "internal" && privateNetworks.some((text) => within(block, blockOf(text)));
}

/** May the subnet keep the block that it has? */
function satisfies(record: SubnetRecord, document: DesiredSubnet, pools: Pools): boolean {
  const block = blockOf(record.cidr);
  if (2 ** block.order < document.size || !isAllowed(block, document.addressRange, pools)) return false;
  return document.cidr === null || document.cidr === record.cidr;
}

function say(
  state: AddressState,
  client: PeerName,
  uid: Uid,
  what: Progress,
  record: SubnetRecord | null,
  taken?: Cidr,
): void {
  const actual: ActualSubnet = {
    ...what,
    cidr: record === null ? null : cidr(record.cidr),
    gateway: record === null ? null : ipv4(formatIpv4(blockOf(record.cidr).first + 1)),
    ...(taken === undefined ? {} : { taken }),
  };
  publish(state.outbox, actualKey(client, `subnet/${uid}`), actual);
}
