import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import type { Deviation } from "../driver.ts";
import { tapOf } from "../plan/guard.ts";
import { type Lookup, lookUp } from "../plan/lookup.ts";
import { metadataAddress } from "../plan/metadata.ts";
import { allSets } from "../plan/own.ts";
import type { LocalPlan, Self } from "../plan/plan.ts";
import { isMember, type Judged, judge, type Packet } from "./judge.ts";
import { foreignChains, type InstanceKnowledge, pass, stop } from "./knowledge.ts";
import { examineBetween, isBetween, toNetworkHost } from "./network-host.ts";

/*
 * Answers "why does this pass, or not?" of an instance, by the chains, sets and devices in force on its machine. Where one on the packet's
 * way is other than it was put there, a check "entry" says so; it passes if the packet passes nevertheless. What a plan says decides nothing.
 */

/** Of an instance here: whether a question is about one. */
export function instanceAt(view: NetworkView, self: Self, address: string): Instance | null {
  const lookup = lookUp(view, self.address);
  const number = parseIpv4(address);
  const own = lookup.node === null ? [] : lookup.instancesOf(lookup.node);
  return own.find(({ privateIp, publicIp }) => privateIp === number || publicIp === number) ?? null;
}

export function examineInstance(knowledge: InstanceKnowledge, question: PacketQuestion): readonly PacketCheck[] {
  if (isBetween(question)) return examineBetween(knowledge, question, judged);
  const { view, self, found, plan } = knowledge;
  const address = question.side === "sender" ? question.source : question.destination;
  const instance = instanceAt(view, self, address);
  if (instance === null)
    return [stop("interface", `no view of the network that has come to this host has an instance at ${address} here`)];
  const tap = tapOf(instance);
  const link = found.devices.links.get(tap);
  const bridge = plan.taps.find(({ name }) => name === tap)?.bridge ?? null;
  const astray =
    link === undefined
      ? `there is no device ${tap}`
      : !link.isUp
        ? `the device ${tap} is down`
        : bridge !== null && link.master !== bridge
          ? `the device ${tap} is no port of the bridge ${bridge}`
          : null;
  if (astray !== null)
    return [stop("interface", `${address} is the instance ${instance.id}, and ${astray} on this host`)];
  const checks = [pass("interface", `${address} is the instance ${instance.id}, on device ${tap}`)];
  const packet = packetOf(knowledge, question, instance, tap);
  if (packet === null)
    return [...checks, stop("interface", `${question.source} or ${question.destination} is no address`)];
  return [
    ...checks,
    ...(question.side === "sender" ? [] : filtered(knowledge, question, packet, instance)),
    ...guarded(knowledge, question, packet),
    ...(question.side === "sender" ? filtered(knowledge, question, packet, instance) : []),
    ...(question.side === "sender" ? [located(knowledge, question, instance)] : []),
  ];
}

function packetOf(
  { view, self, plan }: InstanceKnowledge,
  { side, source, destination, protocol, port }: PacketQuestion,
  instance: Instance,
  tap: string,
): Packet | null {
  const [from, to] = [parseIpv4(source), parseIpv4(destination)];
  if (from === null || to === null) return null;
  const isSender = side === "sender";
  const bridge = plan.bridge?.name ?? null;
  const other = instanceAt(view, self, isSender ? destination : source);
  return {
    source: isSender ? (instance.privateIp ?? from) : from,
    destination: to,
    asked: to,
    protocol,
    port: protocol === "icmp" ? 0 : (port ?? 0),
    mark: 0,
    from: isSender ? tap : other === null ? bridge : tapOf(other),
    to: isSender ? null : tap,
    mac: isSender ? (instance.mac ?? null) : (other?.mac ?? null),
  };
}

const ended = ({ by, verdict }: Pick<Judged, "by" | "verdict">): string =>
  by === null ? `policy ${verdict}` : `"${by.rule}" of ${by.chain}`;
const isForeign = ({ by }: Pick<Judged, "by">, foreign: ReadonlySet<string>): boolean =>
  by !== null && foreign.has(by.chain);
/** Its rules are made of what cells say, and their words are no secret of the site's. */
const isOfCells = (chain: string): boolean => /^(?:CELLS_|EUCA_|sg-)/.test(chain) && !chain.endsWith("USERHOOK");
/** What decided, and what of it is for who runs the machines: rules of the site's own name whatever the site has. */
function endedFor(
  judged: Pick<Judged, "by" | "verdict">,
  foreign: ReadonlySet<string>,
): readonly [told: string, apart?: string] {
  const { by } = judged;
  if (isForeign(judged, foreign)) return ["a rule of another cell's group"];
  if (by === null || isOfCells(by.chain)) return [ended(judged)];
  return [`a rule of the chain ${by.chain}`, ended(judged)];
}
type Decided = ReturnType<typeof endedFor>;
const passFor = (check: string, [rule, apart]: Decided, text: (rule: string) => string): PacketCheck =>
  pass(check, text(rule), apart);
const stopFor = (check: string, [rule, apart]: Decided, text: (rule: string) => string): PacketCheck =>
  stop(check, text(rule), apart);

/**
 * What of what the packet met is other than it was put in place. A packet that passes does so nevertheless. Sets of all groups of the cloud are
 * asked about each packet: one that has the same answer as it should have is not on its way, whatever else it has.
 */
function astray(
  { deviations, plan, found }: InstanceKnowledge,
  tool: Deviation["tool"],
  met: readonly Pick<Judged, "chains" | "sets">[],
  passes: boolean,
  foreign: ReadonlySet<string> = new Set(),
): readonly PacketCheck[] {
  const isOther = (name: string): boolean => {
    const wanted = new Set(allSets(plan).find((set) => set.name === name)?.members);
    const present = found.sets.get(name) ?? new Set();
    const asked = met.flatMap(({ sets }) => [...(sets.get(name) ?? [])]);
    return asked.some((address) => isMember(wanted, address) !== isMember(present, address));
  };
  const isMet = (each: Deviation): boolean =>
    each.tool === "ipset" ? isOther(each.name) : each.tool === tool && met.some(({ chains }) => chains.has(each.name));
  const shown = deviations
    .filter(isMet)
    .map(({ name, what }) =>
      foreign.has(name.split(" ").at(-1) ?? "")
        ? "what is in force here for another cell's group reads otherwise than it was put in place"
        : what,
    );
  return [...new Set(shown)].map((what) => ({
    check: "entry",
    passes,
    detail: `${what}; it is put in place anew within 5 seconds`,
  }));
}
const noChains: ReadonlySet<string> = new Set();
/** Who asks reads a hundred checks at most, and a site may have thousands of rules. */
const mostDoubts = 20;
const doubtsOf = ({ doubts }: Judged, foreign: ReadonlySet<string>): readonly PacketCheck[] => [
  ...doubts
    .slice(0, mostDoubts)
    .map((by) =>
      passFor(
        "doubt",
        endedFor({ by, verdict: "RETURN" }, foreign),
        (rule) => `what ${rule} asks for cannot be told from here`,
      ),
    ),
  ...(doubts.length > mostDoubts
    ? [pass("doubt", `${doubts.length - mostDoubts} more rules ask for what cannot be told from here`)]
    : []),
];

/** At the bridge: each tap is held to its instance's MAC and address. */
function guarded(knowledge: InstanceKnowledge, { side }: PacketQuestion, packet: Packet): readonly PacketCheck[] {
  const inForce = { printed: knowledge.found.ebtables, sets: knowledge.found.sets };
  const isSender = side === "sender";
  // A tap that is not known has no rule of its own at the bridge.
  const there = { ...packet, from: packet.from ?? "", to: packet.to ?? "" };
  const steps = (isSender ? ["nat PREROUTING", "filter FORWARD"] : ["filter FORWARD", "nat POSTROUTING"]).map(
    (each) => {
      const [table = "", chain = ""] = each.split(" ");
      return judge(inForce, table, chain, there);
    },
  );
  const dropped = steps.find(({ verdict }) => verdict === "DROP");
  const doubts = dropped === undefined ? [] : doubtsOf(dropped, noChains);
  const wrong = astray(knowledge, "ebtables", steps, dropped === undefined);
  return [
    ...wrong,
    ...doubts,
    dropped === undefined
      ? pass("guard", `the bridge lets what ${isSender ? "it sends" : "comes to it"} pass`)
      : stopFor("guard", endedFor(dropped, noChains), (rule) => `the bridge drops it: ${rule}`),
  ];
}

/** Rules of groups, where the mode has them at nodes. */
const filtered = (
  knowledge: InstanceKnowledge,
  question: PacketQuestion,
  packet: Packet,
  own: Instance,
): readonly PacketCheck[] => toNetworkHost(knowledge, question) ?? judged(knowledge, packet, own);

/** By chains of groups, and addresses that are made into others. */
function judged(knowledge: InstanceKnowledge, packet: Packet, own: Instance): readonly PacketCheck[] {
  const { view, found, plan } = knowledge;
  const foreign = foreignChains(view, own);
  const inForce = { printed: found.iptables, sets: found.sets };
  const before = judge(inForce, "nat", "PREROUTING", packet);
  const filter = judge(inForce, "filter", "FORWARD", before.packet);
  // An elastic address that nothing translates is this machine's own, and nobody's behind it.
  const ends = plan.addresses.some(
    ({ address, announced, prefixLength }) => announced && prefixLength === 32 && address === before.packet.destination,
  );
  const passes = filter.verdict !== "DROP" && !ends;
  const behind = judge(inForce, "nat", "POSTROUTING", filter.packet);
  return [
    ...unasked(knowledge),
    ...[before, filter].flatMap((each) => doubtsOf(each, foreign)),
    ...astray(knowledge, "iptables", [before, filter], passes, foreign),
    ...translated(view, own, packet, before.packet, "goes to", "destination"),
    ...(ends
      ? [stop("address", `${formatIpv4(before.packet.destination)} goes to no instance: it ends at this host`)]
      : []),
    filter.verdict !== "DROP"
      ? passFor("rule", endedFor(filter, foreign), (rule) => `${rule} lets it pass`)
      : stopped(filter, foreign, plan),
    ...(passes ? translated(view, own, packet, behind.packet, "leaves as", "source") : []),
  ];
}
/** Where the kernel does not ask, what passes the bridge meets no rule at all. */
function unasked({ plan, found: { devices } }: InstanceKnowledge): readonly PacketCheck[] {
  const off = [
    ...(devices.filtersBridges || plan.filtersBridges === false
      ? []
      : ["net.bridge.bridge-nf-call-iptables is off: what passes a bridge here meets no rule"]),
    ...(devices.forwards ? [] : ["net.ipv4.ip_forward is off: nothing goes by the gateway"]),
  ];
  return off.map((what) => pass("entry", `${what}; it is switched on within 5 seconds`));
}
/** Which two addresses are one instance's is told of the cell's own alone. */
function translated(
  { instances }: NetworkView,
  { owner }: Pick<Instance, "owner">,
  was: Packet,
  now: Packet,
  how: string,
  what: "source" | "destination",
): readonly PacketCheck[] {
  const isOthers = instances.some(
    ({ privateIp, publicIp, owner: whose }) =>
      whose !== owner && [was[what], now[what]].some((address) => address === privateIp || address === publicIp),
  );
  if (was[what] === now[what] || isOthers) return [];
  // Who answers there may be a machine of the installation.
  if (was[what] === metadataAddress)
    return [pass("address", `${formatIpv4(was[what])} ${how} who answers for metadata`, formatIpv4(now[what]))];
  return [pass("address", `${formatIpv4(was[what])} ${how} ${formatIpv4(now[what])}`)];
}
/** Whose a chain is decides who could open it. */
function stopped(judged: Judged, foreign: ReadonlySet<string>, plan: LocalPlan): PacketCheck {
  const { by } = judged;
  // There the policy is the mode's: what no rule of a group lets in goes no further.
  if (by === null && closes(plan)) return stop("rule", `no rule of a group lets it pass: ${ended(judged)} of FORWARD`);
  if (isForeign(judged, foreign))
    return stop("foreign-group", "a rule of another cell's group drops it, and only that cell can open it");
  if (by === null || !isOfCells(by.chain))
    return stop(
      "site-rule",
      `${by === null ? ended(judged) : `a rule of the chain ${by.chain}`} drops it: that is no rule of the cell, but one of the site's own on this host, which its operator can change`,
      ended(judged),
    );
  if (by.chain.startsWith("CELLS_i-") && by.rule.startsWith("-d "))
    return stop(
      "underlay",
      "no rule about a network lets instances reach the installation's own machines, unless the operator says CELLS_UNDERLAY_OPEN=Y on this host",
      ended(judged),
    );
  return stop("rule", `${ended(judged)} drops it`);
}

const closes = ({ iptables }: LocalPlan): boolean =>
  iptables.some(
    ({ name, chains }) =>
      name === "filter" && chains.some((chain) => chain.name === "FORWARD" && chain.policy === "DROP"),
  );

/** Where it goes from here. All cells are in one view: who has another cell's address, and where, is not for who asks. */
function located(
  { view, self }: InstanceKnowledge,
  { destination }: PacketQuestion,
  { owner }: Pick<Instance, "owner">,
): PacketCheck {
  const number = parseIpv4(destination);
  const lookup: Lookup = lookUp(view, self.address);
  const there = view.instances.find(({ privateIp, publicIp }) => privateIp === number || publicIp === number);
  if (there === undefined || there.owner !== owner)
    return pass("location", `no instance of the cell has ${destination}: it goes on to whoever else has it`);
  const node = view.clusters.flatMap(({ nodes }) => nodes).find(({ instances }) => instances.includes(there.id));
  const where =
    node === undefined ? "no node has it" : node.name === lookup.node?.name ? "on this host too" : "at another host";
  const apart = where === "at another host" ? node?.name : undefined;
  return pass("location", `${destination} is the instance ${there.id}, ${where}`, apart);
}
