import type { Random } from "../random.testing.ts";
import {
  address,
  type Cell,
  hostAddresses,
  type Interface,
  type Place,
  type Range,
  range,
  type Subnet,
  type World,
} from "../world.testing.ts";

/** Cells with a few subnets, machines and interfaces each: few enough that every packet concerns many of them. */
export const mostInterfaces = 10;
const macBase = 0x020000000000;

function drawSubnets(random: Random, cell: number): readonly Subnet[] {
  const internal = (at: number): Range => ({
    first: address(`10.64.${cell}.${at * 64}`),
    prefixLength: random.pick([26, 27, 28]),
  });
  const external: Range = { first: address(`198.18.${cell}.0`), prefixLength: 28 };
  const ranges = [internal(0), ...(random.percent(60) ? [internal(1)] : []), ...(random.percent(60) ? [external] : [])];
  return ranges.map((each, at) => ({ name: `s${cell}${at}`, cell, range: each, identity: 10 + at }));
}

function drawInterfaces(
  random: Random,
  subnets: readonly Subnet[],
  count: number,
  first: number,
): readonly Interface[] {
  const interfaces: Interface[] = [];
  const { cell } = subnets[0]!;
  for (let at = 0; at < count; at += 1) {
    const subnet = random.pick(subnets);
    const before = interfaces.at(-1);
    // Some machines have two interfaces.
    const vm = before !== undefined && random.percent(25) ? before : null;
    interfaces.push({
      at: first + at,
      name: `i${cell}${at}`,
      cell,
      subnet,
      identity: 100 + at,
      vm: vm?.vm ?? `v${cell}${at}`,
      vmIdentity: vm?.vmIdentity ?? 200 + at,
      address: subnet.range.first + 2 + at,
      mac: macBase + 0xaa00 + first + at,
    });
  }
  return interfaces;
}

export function drawWorld(random: Random): World {
  const cells: Cell[] = [];
  let first = 0;
  for (const [cell, count] of random
    .pick([
      [4, 4],
      [5, 3, 2],
      [4, 3, 3],
    ])
    .entries()) {
    const number = cell + 1;
    const subnets = drawSubnets(random, number);
    const interfaces = drawInterfaces(random, subnets, count, first);
    first += count;
    const controller = { address: address(`10.0.3.${number}`), mac: macBase + 0x0300 + number };
    cells.push({ number, controller, subnets, interfaces });
  }
  const wayOut = random.pick(["own", "own", "uplink", "none"] as const);
  return { wayOut, cells, interfaces: cells.flatMap(({ interfaces }) => interfaces) };
}

/** Most are at one of the two hosts. */
export const drawPlace = (random: Random): Place => random.pick(["a", "a", "a", "a", "b", "b", "b", "b", "c", null]);

/** Networks that rules may name without naming an element. */
export const someRanges = (world: World): readonly Range[] => [
  ...world.cells.flatMap(({ subnets }) => subnets.map((subnet) => subnet.range)),
  ...world.interfaces.map((each) => ({ first: each.address, prefixLength: 32 })),
  ...world.cells.map(({ controller }) => ({ first: controller.address, prefixLength: 32 })),
  ...["0.0.0.0/0", "10.64.0.0/10", "10.0.0.0/16", "203.0.113.0/24", "203.0.113.9/32", "198.18.0.0/15"].map(range),
  { first: hostAddresses.a, prefixLength: 32 },
];
