import { formatIpv4, formatNetwork, parseNetwork } from "../../model/addresses/addresses.ts";
import { type Cidr, cidr, ipv4, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { AddressOffer } from "../../model/check/network/check-addresses.ts";
import type { Json } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type ActualSubnet, type DesiredSubnet, poolsKey } from "../documents/network/network.ts";
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
  blockOf,
  cidrOf,
  type ExternalPools,
  hadFrom,
  isExternal,
  keptNow,
  noteRange,
  notInternal,
  overlap,
  privateNetworks,
  publishPools,
  restorePools,
  type SubnetRecord,
  takePools,
  toBlock,
  toOffer,
  within,
} from "./pools.ts";
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
  readonly external: ExternalPools;
}

/** Network, gateway and broadcast take three addresses, so fewer than eight are hardly a subnet. */
const smallestOrder = 3;
const largestOrder = 24;

/** Clients: `controller.<cell>`, for pools that of the root cell. Records: `subnet/<uid>`, `recovery`. */
export function createAddressManager(options: AddressManagerOptions): Service<AddressState> {
  return {
    restore: (restored) => restore(restored, options),
    step: (state, input) => {
      receive(state, input);
      if (state.started) settlePools(state);
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
interface Pools {
  readonly internal: Block;
  readonly external: readonly Block[];
  readonly had: readonly Block[];
  readonly notInternal: readonly Block[];
}
/** Asked for each range: what is given back may bring a pool into force. */
const poolsOf = ({ external }: AddressState): Pools => ({
  internal: blockOf(external.options.internalPool),
  external: external.inForce.map(blockOf),
  had: hadFrom(external).map(blockOf),
  notInternal: notInternal(external).map(blockOf),
});
const offerOf = ({ external }: AddressState): Json =>
  toJson(addressOfferOf({ ...external.options, externalPools: toOffer(external).pools, kept: keptNow(external) }));

/**
 * What the pools could ever give, for controllers to tell what can never be given: the same rules as below, as if nobody
 * had a subnet yet.
 */
export function addressOfferOf({
  internalPool,
  externalPool,
  externalPools = [externalPool],
  reserved = [],
  kept = [],
}: Pick<AddressManagerOptions, "internalPool" | "externalPool" | "reserved"> & {
  readonly externalPools?: readonly string[];
  readonly kept?: readonly string[];
}): AddressOffer {
  const empty = createBlocks<string>();
  for (const text of reserved) take(empty, blockOf(text), "the installation itself");
  const largest = (pool: Block): number => {
    let order = Math.min(pool.order, largestOrder);
    while (order >= smallestOrder && firstFree(empty, pool, order) === null) order -= 1;
    return order < smallestOrder ? 0 : 2 ** order;
  };
  const internal = blockOf(internalPool);
  const [pool = externalPool] = externalPools;
  return {
    internal: { pool: internalPool, largest: largest(internal), fixed: [internalPool, ...privateNetworks] },
    external: { pool, largest: Math.max(...externalPools.map((each) => largest(blockOf(each)))), fixed: externalPools },
    reserved,
    ...(kept.length === 0 ? {} : { kept }),
    shortestPrefix: 32 - largestOrder,
    longestPrefix: 32 - smallestOrder,
  };
}

function restore(restored: Restored, options: AddressManagerOptions): AddressState {
  const { reserved = [], controllers } = options;
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
  const external = restorePools(subnets, options);
  return { outbox, started: false, wanted, subnets, blocks, unplaced, unread, recovery, external };
}

function receive(state: AddressState, input: Input): void {
  if (input.kind === "desired" && input.key === poolsKey) {
    takePools(state.external, input.value);
    if (state.started) placeWaiting(state);
    return;
  }
  if (input.kind === "desired") {
    const uid = input.key.slice("subnet/".length) as Uid;
    const hadNone = !state.subnets.has(uid) && state.wanted.get(uid)?.document.has === undefined;
    takeDesired(state, input.from, uid, input.value);
    if (!state.started) return;
    if (hadNone && state.wanted.get(uid)?.document.has !== undefined)
      showsRange(state.recovery, state.outbox, input.from);
    reconcile(state, uid);
  } else if (input.kind === "start") {
    state.started = true;
    publishOffer(state);
    state.outbox.quiet = true;
    log(state.outbox, "service/restored", { subnets: state.subnets.size });
    const isBlank = state.subnets.size + state.wanted.size + state.unread.size === 0;
    beginRecovery(state.recovery, state.outbox, isBlank);
    // Those that have a block first, so that nothing new takes the place of a subnet that only changes.
    for (const uid of [...state.subnets.keys(), ...state.wanted.keys()]) reconcile(state, uid);
  } else if (input.kind === "complete" || input.kind === "excused") {
    if (spoke(state.recovery, state.outbox, input.peer)) placeWaiting(state);
  } else if (input.kind === "request") {
    const report = input.request as unknown as AddressReport;
    if (isObject(input.request) && report.kind === "controllers")
      if (takeControllers(state.recovery, state.outbox, report.controllers)) placeWaiting(state);
    const response = isOffersRequest(input.request) ? offerOf(state) : { subnets: state.subnets.size };
    state.outbox.effects.push({ kind: "reply", id: input.id, response });
  }
}

/** Whoever waits for a range may get one of pools that are others than before. */
function settlePools(state: AddressState): void {
  const { external, outbox, blocks } = state;
  while (external.offered !== toOffer(external).mark) {
    publishOffer(state);
    placeWaiting(state);
  }
  // After a loss the root controller says which pools there are, and every other one what machines have outside them: until all have, hosts
  // keep what they were told.
  if (mayGiveNew(state.recovery).ok) publishPools(external, blocks, outbox);
}
function publishOffer(state: AddressState): void {
  state.external.offered = toOffer(state.external).mark;
  state.outbox.effects.push({ kind: "publish", key: "addresses", value: offerOf(state) });
}

function placeWaiting(state: AddressState): void {
  for (const uid of [...state.unplaced]) reconcile(state, uid);
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
function reconcile(state: AddressState, uid: Uid): void {
  if (state.unread.has(uid)) return;
  const wanted = state.wanted.get(uid);
  const record = state.subnets.get(uid);
  if (record !== undefined && (wanted === undefined || !satisfies(state, record, wanted.document))) {
    release(state, uid, record);
    if (wanted === undefined) publish(state.outbox, actualKey(record.client, `subnet/${uid}`), null);
    else allocate(state, uid, wanted);
    placeWaiting(state);
  } else if (record !== undefined && wanted !== undefined) {
    const renamed = { ...record, path: wanted.document.path };
    write(state.outbox, `subnet/${uid}`, renamed);
    state.subnets.set(uid, renamed);
    say(state, wanted.client, uid, progress("ready"), renamed);
  } else if (wanted !== undefined) {
    allocate(state, uid, wanted);
  }
}

function release(state: AddressState, uid: Uid, record: SubnetRecord): void {
  free(state.blocks, blockOf(record.cidr));
  noteRange(state.external, uid, null);
  state.subnets.delete(uid);
  write(state.outbox, `subnet/${uid}`, null);
  log(state.outbox, "subnet/freed", { uid, path: record.path, cidr: record.cidr });
}

function allocate(state: AddressState, uid: Uid, { client, document }: Wanted): void {
  const found = find(state, client, document);
  if (!found.ok) {
    state.unplaced.add(uid);
    const { taken, ...why } = found.error;
    say(state, client, uid, why, null, taken);
    return;
  }
  state.unplaced.delete(uid);
  const external = document.addressRange === "external" ? { external: true as const } : {};
  const record: SubnetRecord = { client, path: document.path, cidr: cidrOf(found.value), ...external };
  take(state.blocks, found.value, `"${document.path}"`);
  noteRange(state.external, uid, record);
  state.subnets.set(uid, record);
  write(state.outbox, `subnet/${uid}`, record);
  log(state.outbox, "subnet/allocated", { uid, path: record.path, cidr: record.cidr });
  say(state, client, uid, progress("ready"), record);
}

/** Why a subnet gets no block. */
type Lack = Progress & Pick<ActualSubnet, "taken">;

function find(state: AddressState, client: PeerName, document: DesiredSubnet): Result<Block, Lack> {
  const pools = poolsOf(state);
  const had = hadBlock(state, client, document, pools);
  if (had !== null && document.cidr === null) return given(state, had, document);
  if (had !== null && document.cidr === document.has) return fixed(state, document, pools, true);
  const may = mayGiveNew(state.recovery);
  if (!may.ok) return may;
  if (document.addressRange === "external" && pools.external.length === 0)
    return fail(
      progress("waiting", "internal subnets have a part of each declared external pool: none is in force yet"),
    );
  return document.cidr === null ? cut(state, client, document, pools) : fixed(state, document, pools, false);
}

const orderFor = (size: number): number => Math.max(smallestOrder, Math.ceil(Math.log2(size)));

function cut(state: AddressState, client: PeerName, document: DesiredSubnet, pools: Pools): Result<Block, Progress> {
  const all = document.addressRange === "internal" ? [pools.internal] : pools.external;
  const order = orderFor(document.size);
  const largest = Math.min(largestOrder, Math.max(...all.map((pool) => pool.order)));
  if (order > largest) {
    const most = 2 ** largest;
    return fail(progress("failed", `${document.size} addresses are more than a subnet can have here: at most ${most}`));
  }
  for (const pool of all) {
    const block = firstFree(state.blocks, pool, order);
    if (block !== null) return ok(block);
  }
  const named = `${all.length === 1 ? "pool" : "pools"} ${all.map(cidrOf).join(", ")} ${all.length === 1 ? "has" : "have"}`;
  return fail(
    progress(
      "waiting",
      `the ${document.addressRange} ${named} no ${2 ** order} addresses together left: ${whatFrees(state, client, all, order)}`,
    ),
  );
}

/** Subnets that wait, up to which each is told which of its cell's others has what it needs. */
const mostAdvised = 64;
const mostNamed = 3;
/** What would make room for a block: other cells' subnets are not named. */
function whatFrees(state: AddressState, client: PeerName, pools: readonly Block[], order: number): string {
  let fits = order - 1;
  while (fits >= smallestOrder && pools.every((pool) => firstFree(state.blocks, pool, fits) === null)) fits -= 1;
  const smaller = fits >= smallestOrder ? [`make it smaller (\`x.size ${2 ** fits}\` fits)`] : [];
  const own =
    state.unplaced.size > mostAdvised
      ? []
      : [...state.subnets.values()].filter((record) => {
          const block = blockOf(record.cidr);
          return record.client === client && block.order >= order && pools.some((pool) => within(block, pool));
        });
  const names = own.slice(0, mostNamed).map(({ path }) => path);
  const others = own.length === 0 ? [] : [`delete a subnet of the cell that has as many (${names.join(", ")})`];
  return [...smaller, ...others, "have the operator enlarge the pool, or wait until another cell gives some back"].join(
    "; ",
  );
}

/**
 * The block that the subnet has had before this service lost its store: machines use it, whatever became of its pool since. Null: it had none
 * that would do. An internal one may be in what is a pool now, by the word of a controller which says for the first time since this
 * start what it desires.
 */
function hadBlock(state: AddressState, client: PeerName, document: DesiredSubnet, pools: Pools): Block | null {
  const { has, size, addressRange } = document;
  const network = parseNetwork(has ?? "");
  if (network === null || network.hostBits) return null;
  const block = toBlock(network);
  if (block.order < smallestOrder || block.order > largestOrder || 2 ** block.order < size) return null;
  const isFirstWord = !state.recovery.spoke.has(client);
  const old: Pools = { ...pools, external: pools.had, notInternal: isFirstWord ? [] : pools.notInternal };
  return isAllowed(block, addressRange, old) ? block : null;
}

/**
 * The same block, if nobody else has it. Another has it where this service had forgotten whose it is, and more often where the controller's store is older: the subnet
 * was deleted since, and is wanted again. The controller knows whether a machine still uses it, and gives it up where none does.
 */
function given(state: AddressState, block: Block, { has }: DesiredSubnet): Result<Block, Lack> {
  const owner = ownerIn(state.blocks, block);
  if (owner === null) return ok(block);
  const reason = `its range ${has} was given to ${owner}: it gets another one as soon as no machine uses it`;
  return fail({ ...progress("failed", reason), taken: cidr(cidrOf(block)) });
}

/** @param isHad it had that range before, in what was a pool then */
function fixed(state: AddressState, document: DesiredSubnet, pools: Pools, isHad: boolean): Result<Block, Progress> {
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
  if (!isHad && !isAllowed(block, document.addressRange, pools)) {
    const right =
      document.addressRange === "external"
        ? `inside the external ${pools.external.length === 1 ? "pool" : "pools"} ${pools.external.map(cidrOf).join(", ")}`
        : `inside the internal pool ${cidrOf(pools.internal)} or private (${privateNetworks.join(", ")}), and in no external pool`;
    return failed(`${document.cidr} cannot be used: an ${document.addressRange} subnet is ${right}`);
  }
  const owner = ownerIn(state.blocks, block);
  return owner === null ? ok(block) : failed(`${document.cidr} is not free: ${owner} has it or a part of it`);
}

function isAllowed(block: Block, range: DesiredSubnet["addressRange"], pools: Pools): boolean {
  if (range === "external") return pools.external.some((pool) => within(block, pool));
  if (within(block, pools.internal)) return true;
  const isOutside = pools.notInternal.some((pool) => overlap(block, pool));
  return !isOutside && privateNetworks.some((text) => within(block, blockOf(text)));
}

/**
 * May the subnet keep the block that it has? Machines use it: other pools that were declared since take it from nobody, as long
 * as the subnet is of the range that it was given for.
 */
function satisfies(state: AddressState, record: SubnetRecord, document: DesiredSubnet): boolean {
  const block = blockOf(record.cidr);
  const range = isExternal(state.external, record) ? "external" : "internal";
  if (2 ** block.order < document.size || range !== document.addressRange) return false;
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
