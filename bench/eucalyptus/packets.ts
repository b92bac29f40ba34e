import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { absolute, bridgedWays, divertedWays, relative, type Ways } from "../dataplane/dataplane.ts";
import { PacketProgram } from "../dataplane/packet-program.ts";
import { interleave } from "../measure.ts";
import { type EdgeSite, edgeSite, type ManagedSite, managedSite, type SiteWay } from "./sites.ts";

/*
 * What the rules of Eucalyptus cost a packet, in one run with Diverter and with bridges that have no rules at all. In EDGE a packet of a
 * connection is let pass by one of the first rules, and one that nobody has answered meets those of all groups before its own.
 */

const diverterRules = 10;
const sizes = [10, 100, 1000] as const;

interface Sites {
  readonly bridge: Ways;
  readonly diverter: Ways;
  readonly edge: ReadonlyMap<number, EdgeSite>;
  readonly managed: ManagedSite;
}
/** In the order in which the program has them. */
const waysOf = ({ edge, managed }: Sites): readonly (readonly [string, SiteWay])[] => [
  ...[...edge].flatMap(
    ([groups, { answered, unanswered }]) =>
      [
        [`edge${groups}`, answered],
        [`unanswered${groups}`, unanswered],
      ] as const,
  ),
  ["managed", managed.within],
  ["between", managed.between],
];

const burst = 128;
type Cost = (name: string, packets: number) => Promise<number>;
/** All flows but those that are to stay unanswered become connections. */
async function connect(sites: Sites, cost: Cost): Promise<void> {
  for (const [name, way] of waysOf(sites)) {
    await cost(name, burst);
    if (!name.startsWith("unanswered")) await way.answer();
  }
}
/** The rules take as connections what is to be one, and nothing else. */
async function control({ edge, managed }: Sites, cost: Cost): Promise<void> {
  const edges = [...edge].flatMap(([groups, site]) => [
    // Both nodes look.
    [`edge${groups}`, site, 2 * burst] as const,
    [`unanswered${groups}`, site, 0] as const,
  ]);
  for (const [name, site, expected] of [...edges, ["between", managed, burst] as const]) {
    const before = site.accepted();
    await cost(name, burst);
    const accepted = site.accepted() - before;
    if (accepted !== expected)
      throw new Error(
        `${name}: rules took ${burst} packets ${accepted} times as parts of connections, not ${expected}`,
      );
  }
}

function figuresOf({ managed: { form } }: Sites, measured: Readonly<Record<string, readonly number[]>>): Figure[] {
  const of = (name: string): readonly number[] => measured[name] ?? [];
  const rows: (readonly [what: string, name: string])[] = [
    [`Diverter, ${diverterRules} rules`, "diverter"],
    ...sizes.map((groups) => [`EDGE, ${groups.toLocaleString("en")} groups, a connection`, `edge${groups}`] as const),
    ...sizes.map(
      (groups) => [`EDGE, ${groups.toLocaleString("en")} groups, nobody answers`, `unanswered${groups}`] as const,
    ),
    ["MANAGED, within a group", "managed"],
    ["MANAGED, to another group by the network host", "between"],
  ];
  return [
    ...rows.map(([what, name]) => ({
      ...relative(`${what}, relative to the bridge`, of(name), of("bridge"), null),
      ...(name === "managed" ? { note: `VLANs by ${form}` } : {}),
    })),
    absolute("a packet through plain bridges", of("bridge")),
    ...rows.map(([what, name]) => absolute(`a packet, ${what}`, of(name))),
  ];
}

async function measure(sites: Sites, program: PacketProgram, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const names = ["bridge", "diverter", ...waysOf(sites).map(([name]) => name)];
  const cost: Cost = (name, packets) => program.cost(names.indexOf(name), packets);
  for (const name of ["bridge", "diverter"]) await cost(name, burst);
  await connect(sites, cost);
  await control(sites, cost);
  const packets = burst * (quick ? 4 : 16);
  const variants = Object.fromEntries(names.map((name) => [name, () => cost(name, packets)]));
  await interleave(2, variants);
  say(`sending ${packets} packets a round`);
  const measured = await interleave(quick ? 5 : 101, variants);
  // What was one at the beginning is one still.
  await control(sites, cost);
  return figuresOf(sites, measured);
}

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const [world, ways] = [new World(), [] as Ways[]];
  let program: PacketProgram | null = null;
  try {
    const bridge = await bridgedWays();
    ways.push(bridge);
    const diverter = await divertedWays(diverterRules);
    ways.push(diverter);
    const edge = new Map<number, EdgeSite>();
    for (const groups of sizes) {
      options.say(`two nodes in EDGE with ${groups} groups`);
      edge.set(groups, await edgeSite(world, groups));
    }
    options.say("two nodes and a network host in MANAGED");
    const sites = { bridge, diverter, edge, managed: await managedSite(world) };
    const paths = [bridge.guests, diverter.guests, ...waysOf(sites).map(([, { path }]) => path)];
    program = new PacketProgram(paths, 1);
    return await measure(sites, program, options);
  } finally {
    await program?.stop();
    await world.end();
    await Promise.all(ways.map((way) => way.stop()));
  }
}

export const packets: Bench = {
  title: "CPU per packet under the rules of Eucalyptus",
  method:
    "UDP packets of 60 bytes in 64 flows from a guest (a namespace with a network stack) at one node to one at another, one thread on " +
    "one CPU; its CPU time per packet that arrived, the guests' own included. The agents have put all in place that hosts of cells have, " +
    "with three rules a group; the receiver's group stands in the middle. A connection is one whose receiver has answered once; the " +
    "machines' own counters say that their rules take it so. Diverter and bridges without rules are in the same turns; ratios are taken within a " +
    "round; the range is from the 10th to the 90th percentile.",
  run,
};
