import { formatIpv4, type Network, parseNetwork } from "../../model/addresses/addresses.ts";
import { nobodys, poolFault } from "../../model/addresses/pools.ts";
import { type Cidr, cidr, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type ActualPools, mostRanges, poolsKey } from "../documents/network/network.ts";
import { desiredPools } from "../documents/readers/network.ts";
import { actualKey } from "../documents/vocabulary.ts";
import { log, type Outbox, publishValue } from "../outbox.ts";
import { type Block, type Blocks, firstFree } from "./blocks.ts";

export interface SubnetRecord {
  readonly client: PeerName;
  readonly path: string;
  readonly cidr: string;
  /** It is an external subnet's. Absent: it is in the configured external pool, or it is not. */
  readonly external?: true;
}
interface PoolOptions {
  readonly internalPool: string;
  readonly externalPool: string;
  readonly reserved?: readonly string[];
}

/**
 * The pools of external addresses, which the root cell may declare (`x.pools.external`). The root controller refuses a
 * declaration that takes away what subnets have, by what it hears from here; one that comes nevertheless, as when a subnet was
 * given something meanwhile, takes nothing from anybody: it stays external and is told of as `kept`. A pool in which an
 * internal subnet has a range is not in force until that is given back, since its machines would be outside.
 */
export interface ExternalPools {
  readonly options: PoolOptions;
  /** As the root controller has them; null: nobody says so, and that of the configuration counts. */
  declared: readonly Cidr[] | null;
  /** Of pools that are no more: what a subnet has of these it may have again. */
  had: readonly Cidr[];
  /** The root controller has said something of pools, so it hears what there is of them. */
  isAsked: boolean;
  inForce: readonly Cidr[];
  /** Mark of what controllers were told last; null: nothing yet. */
  offered: string | null;
  /** Ranges outside all pools in force. */
  readonly kept: Map<Uid, string>;
  /** So often these were others. */
  keptChanges: number;
  /** Of internal subnets, outside the internal pool. */
  readonly inside: Map<Uid, string>;
  /** Of external subnets. */
  readonly ranges: Map<Uid, string>;
  /** What the root controller is told may be another by now: that is found by looking at all of them. */
  touched: boolean;
}
export const root = peerName("controller.root");
/** RFC 1918: where an internal subnet may ask for a range. */
export const privateNetworks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

/** Configuration is the operator's: a pool that is no CIDR is a fault of the installation. */
export function blockOf(text: string): Block {
  const network = parseNetwork(text);
  if (network === null || network.hostBits) throw new Error(`"${text}" is not a network in CIDR notation`);
  return toBlock(network);
}
export const toBlock = (network: Network): Block => ({ first: network.first, order: 32 - network.prefixLength });
export const cidrOf = (block: Block): string => `${formatIpv4(block.first)}/${32 - block.order}`;
export const within = (block: Block, outer: Block): boolean =>
  block.order <= outer.order && block.first >= outer.first && block.first < outer.first + 2 ** outer.order;
export const overlap = (one: Block, other: Block): boolean => within(one, other) || within(other, one);

export function restorePools(
  subnets: ReadonlyMap<Uid, SubnetRecord>,
  { internalPool, externalPool, reserved = [] }: PoolOptions,
): ExternalPools {
  const pools: ExternalPools = {
    options: { internalPool, externalPool, reserved },
    declared: null,
    had: [],
    isAsked: false,
    inForce: [cidr(externalPool)],
    offered: null,
    kept: new Map(),
    keptChanges: 0,
    inside: new Map(),
    ranges: new Map(),
    touched: true,
  };
  for (const [uid, record] of subnets) noteRange(pools, uid, record);
  return pools;
}

export const isExternal = ({ options }: ExternalPools, { cidr, external }: SubnetRecord): boolean =>
  external === true || within(blockOf(cidr), blockOf(options.externalPool));

/** A subnet has got its range; null: it has none any more. */
export function noteRange(pools: ExternalPools, uid: Uid, record: SubnetRecord | null): void {
  const wasInside = pools.inside.delete(uid);
  if (pools.ranges.delete(uid) || wasInside) pools.touched = true;
  if (pools.kept.delete(uid)) pools.keptChanges += 1;
  if (record === null) {
    // A pool may have waited for it.
    if (wasInside) settle(pools);
    return;
  }
  if (isExternal(pools, record)) {
    pools.ranges.set(uid, record.cidr);
    pools.touched = true;
    if (!isIn(record.cidr, pools.inForce)) {
      pools.kept.set(uid, record.cidr);
      pools.keptChanges += 1;
    }
  } else if (!isIn(record.cidr, [pools.options.internalPool])) {
    pools.inside.set(uid, record.cidr);
    pools.touched = true;
    const block = blockOf(record.cidr);
    if (pools.inForce.some((pool) => overlap(block, blockOf(pool)))) settle(pools);
  }
}
const isIn = (range: string, pools: readonly string[]): boolean => {
  const block = blockOf(range);
  return pools.some((pool) => within(block, blockOf(pool)));
};

/** What could ever be given: while no pool is in force, of those that will be. The mark tells the two apart. */
export const toOffer = ({
  inForce,
  declared,
  keptChanges,
}: ExternalPools): { readonly pools: readonly Cidr[]; readonly mark: string } =>
  inForce.length === 0 && declared !== null
    ? { pools: declared, mark: `none of ${declared.join()} ${keptChanges}` }
    : { pools: inForce, mark: `${inForce.join()} ${keptChanges}` };
export const keptNow = ({ kept, options }: ExternalPools): readonly Cidr[] =>
  keptOf([...kept.values()], [options.internalPool, ...(options.reserved ?? [])]);

/** What the root controller declares. One that is malformed changes nothing. */
export function takePools(pools: ExternalPools, value: Json): void {
  const document = value === null ? null : desiredPools.of(value);
  if (value !== null && document === null) return;
  const { internalPool, reserved = [] } = pools.options;
  const own = [internalPool, ...reserved];
  const isNone = document === null || (document.external.length === 0 && document.had !== undefined);
  const external = isNone ? null : document.external;
  if (external !== null && poolFault(external, own) !== null) return;
  pools.declared = external;
  const others = [...own, ...nobodys].map(blockOf);
  pools.had = (document?.had ?? []).filter((had) => !others.some((other) => overlap(other, blockOf(had))));
  pools.isAsked = document !== null;
  settle(pools);
}
/** Where an external subnet that says it has a range may have it from. */
export const hadFrom = ({ inForce, had, options }: ExternalPools): readonly string[] => [
  ...inForce,
  ...had,
  options.externalPool,
];
/** Where no internal subnet gets a range: also of a pool that waits, or it would wait for ever. */
export const notInternal = ({ inForce, declared }: ExternalPools): readonly string[] => [
  ...inForce,
  ...(declared ?? []),
];

function settle(pools: ExternalPools): void {
  pools.touched = true;
  const before = pools.inForce.join();
  const { declared, options, inside } = pools;
  const blocks = [...inside.values()].map(blockOf);
  const isFree = (pool: string): boolean => blocks.every((block) => !overlap(block, blockOf(pool)));
  pools.inForce = declared?.filter(isFree) ?? [cidr(options.externalPool)];
  if (pools.inForce.join() === before) return;
  pools.kept.clear();
  pools.keptChanges += 1;
  for (const [uid, range] of pools.ranges) if (!isIn(range, pools.inForce)) pools.kept.set(uid, range);
}

/** To the root controller, once there is something to say: where nothing is external, nobody needs to know. */
export function publishPools(pools: ExternalPools, blocks: Blocks<string>, outbox: Outbox): void {
  if (!pools.touched) return;
  pools.touched = false;
  const { declared, inForce, options } = pools;
  const key = actualKey(root, poolsKey);
  if (!pools.isAsked && pools.ranges.size + pools.inside.size === 0 && !outbox.published.has(key)) return;
  const said: ActualPools = {
    external: inForce,
    otherwise: cidr(options.externalPool),
    used: inForce.flatMap((pool) => usedIn(blocks, blockOf(pool)) ?? []),
    kept: keptNow(pools),
    inside: insideOf([...pools.inside.values()]),
  };
  const left = (declared ?? []).filter((pool) => !inForce.includes(pool));
  if (publishValue(outbox, key, said) && left.length > 0) log(outbox, "pools/left-out", { pools: left });
}

/** The smallest block with all that is taken of this one; null: nothing is. */
function usedIn(blocks: Blocks<string>, pool: Block): Cidr | null {
  const isFree = (block: Block): boolean => firstFree(blocks, block, block.order) !== null;
  if (isFree(pool)) return null;
  let used = pool;
  while (used.order > 0) {
    const lower: Block = { first: used.first, order: used.order - 1 };
    const upper: Block = { first: used.first + 2 ** lower.order, order: lower.order };
    const [isLowerFree, isUpperFree] = [isFree(lower), isFree(upper)];
    // Of one that is taken as a whole, each half is taken.
    if (isLowerFree === isUpperFree) break;
    used = isLowerFree ? upper : lower;
  }
  return cidr(cidrOf(used));
}

/**
 * Up to so many, all that machines have is among them: blocks that lie side by side are told as the smallest one that holds both, again and again,
 * unless that has addresses of the installation's own.
 */
function keptOf(ranges: readonly string[], own: readonly string[]): readonly Cidr[] {
  const others = own.map(blockOf);
  let blocks = ranges.map(blockOf);
  for (let order = 1; blocks.length > mostRanges && order <= 32; order += 1) {
    const holder = ({ first }: Block): Block => ({ first: first - (first % 2 ** order), order });
    blocks = [
      ...Map.groupBy(blocks, (block) => (block.order < order ? holder(block).first : `${block.first} whole`)),
    ].flatMap(([, [block, ...more]]): readonly Block[] => {
      if (block === undefined) return [];
      const all = [block, ...more];
      return more.length === 0 || others.some((other) => overlap(other, holder(block))) ? all : [holder(block)];
    });
  }
  return blocks.slice(0, mostRanges).map((block) => cidr(cidrOf(block)));
}

const insideOf = (ranges: readonly string[]): readonly Cidr[] => {
  if (ranges.length <= mostRanges) return ranges.map((range) => cidr(range));
  const whole = privateNetworks.filter((network) => ranges.some((range) => isIn(range, [network])));
  return whole.map((range) => cidr(range));
};
