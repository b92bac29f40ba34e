import type { Random } from "../random.testing.ts";
import {
  type Cell,
  type End,
  holds,
  networks,
  type Place,
  type Ports,
  type Rule,
  type RuleSet,
  range,
  type Told,
  type View,
  type World,
} from "../world.testing.ts";
import { someRanges } from "./worlds.testing.ts";

/** Few ports, so that packets and rules often mean the same ones. */
export const somePorts = [80, 443, 53, 67, 68, 5000, 5001] as const;
const portRanges: readonly Ports[] = [
  { from: 80, to: 80 },
  { from: 443, to: 443 },
  { from: 80, to: 443 },
  { from: 53, to: 53 },
  { from: 5000, to: 5001 },
  { from: 1, to: 65535 },
];
const kinds = ["interface", "vm", "subnet", "subnet", "subnet"] as const;
const nameIn = (random: Random, cell: Cell, kind: (typeof kinds)[number]): string => {
  if (kind === "subnet") return random.pick(cell.subnets).name;
  const found = random.pick(cell.interfaces);
  return kind === "vm" ? found.vm : found.name;
};
const drawElement = (random: Random, cell: Cell): End => {
  const kind = random.pick(kinds);
  return { kind, name: nameIn(random, cell, kind) };
};
function drawOther(random: Random, world: World, cell: Cell): End {
  const chance = random.below(100);
  if (chance < 45) return drawElement(random, cell);
  if (chance < 58) return { kind: "cidr", range: random.pick(someRanges(world)) };
  if (chance < 70) return { kind: "internet" };
  if (chance < 77) return { kind: "controller" };
  const other = random.pick(world.cells.filter((each) => each !== cell));
  const of = random.pick(kinds);
  return { kind: "foreign", cell: other.number, of, name: nameIn(random, other, of) };
}
/** One end is of the cell, as the check of specifications demands. */
export function drawRule(random: Random, world: World, cell: Cell, name: string): Rule {
  const ends: readonly [End, End] = [drawElement(random, cell), drawOther(random, world, cell)];
  const protocol = random.pick(["any", "any", "tcp", "tcp", "udp", "udp", "icmp"] as const);
  const ports = (): Ports | null => (random.percent(55) ? random.pick(portRanges) : null);
  return {
    name,
    ends: random.percent(50) ? ends : [ends[1], ends[0]],
    protocol,
    ports: protocol === "tcp" || protocol === "udp" ? [ports(), ports()] : [null, null],
    direction: random.pick(["both", "1to2"] as const),
  };
}

/** Networks outside that a machine may be a router to. */
const someNetworks = [null, null, range("203.0.113.0/24"), range("8.8.8.8/32"), range("0.0.0.0/0")];
/** Who leads outside: some subnets have a router, which may be on any subnet of the cell, and speaks for some networks. */
export function drawRouters(random: Random, cell: Cell): Pick<RuleSet, "routers" | "forwards"> {
  const forwards = cell.interfaces
    .filter(() => random.percent(35))
    .map(({ at }) => ({ interface: at, networks: [random.pick(someNetworks), random.pick(someNetworks)] }));
  if (forwards.length === 0) return { routers: new Map(), forwards };
  // One with external addresses has no use for a router, as the check of specifications says.
  const routed = cell.subnets.filter((subnet) => !holds(networks.external, subnet.range.first) && random.percent(75));
  return { routers: new Map(routed.map(({ name }) => [name, random.pick(forwards).interface])), forwards };
}

/** Of a subnet, of a cell, and some that nobody joins. */
export const someGroups = [0xe0000001, 0xe00000fb, 0xefc00001, 0xeffffffa, 0xe1020304] as const;
const drawMany = (random: Random, cell: Cell): Pick<RuleSet, "groups" | "broadcast"> => ({
  broadcast: random.percent(85) ? "on" : "off",
  groups: new Map(
    cell.interfaces
      .filter(() => random.percent(60))
      .map(({ at }) => [at, [...new Set([random.pick(someGroups), random.pick(someGroups)])]]),
  ),
});

export function drawRules(random: Random, world: World, cell: Cell, before: RuleSet | null): RuleSet {
  const version = (before?.version ?? 0) + 1;
  const subnetConnectivity = before === null ? random.percent(40) : before.subnetConnectivity !== random.percent(5);
  if (before === null) {
    const rules = Array.from({ length: random.between(3, 8) }, (_, at) =>
      drawRule(random, world, cell, `r${version}-${at}`),
    );
    return { version, rules, subnetConnectivity, ...drawRouters(random, cell), ...drawMany(random, cell) };
  }
  // Some go, some come.
  const kept = before.rules.filter(() => !random.percent(25));
  const more = Array.from({ length: random.below(3) }, (_, at) => drawRule(random, world, cell, `r${version}-${at}`));
  const { routers, forwards } = random.percent(15) ? drawRouters(random, cell) : before;
  const { groups, broadcast } = random.percent(15) ? drawMany(random, cell) : before;
  const now = random.percent(5) ? [] : [...kept, ...more];
  return { version, rules: now, subnetConnectivity, routers, forwards, groups, broadcast };
}

/** Rules of two cells that let the same ends speak with one another, as their owners would agree on them. */
function drawAgreement(random: Random, [one, other]: readonly [Cell, Cell], name: string): readonly [Rule, Rule] {
  const [kind, otherKind] = [random.pick(kinds), random.pick(kinds)];
  const [own, foreign] = [nameIn(random, one, kind), nameIn(random, other, otherKind)];
  const protocol = random.pick(["any", "tcp", "udp", "icmp"] as const);
  const port = protocol === "tcp" || protocol === "udp" ? random.pick(portRanges) : null;
  const rule = (ends: readonly [End, End], ports: Rule["ports"]): Rule => ({
    name,
    ends,
    protocol,
    ports,
    direction: "both",
  });
  return [
    rule(
      [
        { kind, name: own },
        { kind: "foreign", cell: other.number, of: otherKind, name: foreign },
      ],
      [null, port],
    ),
    rule(
      [
        { kind: otherKind, name: foreign },
        { kind: "foreign", cell: one.number, of: kind, name: own },
      ],
      [port, null],
    ),
  ];
}
export function drawAllRules(random: Random, world: World): Map<number, RuleSet> {
  const all = new Map(world.cells.map((cell) => [cell.number, drawRules(random, world, cell, null)]));
  const add = ({ number }: Cell, rule: Rule): void => {
    const set = all.get(number)!;
    all.set(number, { ...set, rules: [...set.rules, rule] });
  };
  for (let at = random.below(4); at > 0; at -= 1) {
    const one = random.pick(world.cells);
    const other = random.pick(world.cells.filter((each) => each !== one));
    const [first, second] = drawAgreement(random, [one, other], `agreed-${at}`);
    add(one, first);
    add(other, second);
  }
  return all;
}

const isEnd = (end: End, at: World["interfaces"][number]): boolean =>
  (end.kind === "interface" && end.name === at.name) ||
  (end.kind === "vm" && end.name === at.vm) ||
  (end.kind === "subnet" && end.name === at.subnet.name);
/** Of what other cells' rules may be about, roughly: what is told too much or too little is the host's view all the same. */
function mayKnow(
  random: Random,
  world: World,
  rules: ReadonlyMap<number, RuleSet>,
  own: number,
  other: number,
): boolean {
  if (random.percent(4)) return random.percent(50);
  const [one, two] = [world.interfaces[own]!, world.interfaces[other]!];
  const set = rules.get(one.cell);
  if (set === undefined) return false;
  if (one.cell !== two.cell)
    return [one, two].every((each) =>
      rules.get(each.cell)?.rules.some(({ ends }) => ends.some(({ kind }) => kind === "foreign")),
    );
  if (set.subnetConnectivity && one.subnet === two.subnet) return true;
  if (set.routers.get(one.subnet.name) === two.at || set.routers.get(two.subnet.name) === one.at) return true;
  return set.rules.some(
    ({ ends: [a, b] }) =>
      (isEnd(a, one) && (isEnd(b, two) || b.kind === "cidr")) ||
      (isEnd(b, one) && (isEnd(a, two) || a.kind === "cidr")),
  );
}

/** What a host is told when interfaces are at these places. */
export function drawView(
  random: Random,
  world: World,
  host: "a" | "b",
  places: readonly Place[],
  rules: ReadonlyMap<number, RuleSet>,
): View {
  const here = places.flatMap((place, at) => (place === host ? [at] : []));
  const cellsHere = new Set(here.map((at) => world.interfaces[at]!.cell));
  const told: Told[] = [];
  for (const [at, place] of places.entries()) {
    if (place === null || place === host) continue;
    const { cell } = world.interfaces[at]!;
    const of = here.filter((each) => mayKnow(random, world, rules, each, at));
    if (of.length === 0) continue;
    told.push({ interface: at, place, isOwn: of.some((each) => world.interfaces[each]!.cell === cell) });
  }
  const known = [...rules].filter(([cell]) => cellsHere.has(cell) !== random.percent(2));
  return { rules: new Map(known), here, elsewhere: told };
}
