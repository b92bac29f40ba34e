import { formatNetwork, type Network, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { NetworkRuleElement, RuleEnd } from "../../../model/cell/cell.ts";
import {
  type CellName,
  type Cidr,
  cidr as cidrOf,
  type ElementPath,
  type HostName,
  type Ipv4,
  type Mac,
  type Uid,
} from "../../../model/cell/identifiers.ts";
import { NetworkIndex } from "../../../model/cell/network/network-index.ts";
import { anyPort, openings } from "../../../model/check/network/rule-openings.ts";
import type { Effective } from "../../../model/check/openness.ts";
import type { DesiredWant } from "../../documents/cells.ts";
import type { Forwarded, PolicyNetwork, PolicyRouter } from "../../documents/network/policy.ts";
import type { CellPolicy, CompiledRule } from "../../documents/vocabulary.ts";
import { sameJson, toJson } from "../../outbox.ts";

/**
 * Compiles a cell's NetworkRules into directed rules between identities.
 *
 * A packet's endpoint has the identities of its interface, its VM and its subnet; an address that is no interface of the
 * cell has the one identity of the longest network that holds it. A rule names identities, so two subnets of 200 VMs each
 * need one entry, not 40,000 (decision 5). Because only the longest network counts at the host, what is granted to a wide
 * network is repeated here for each narrower one inside it, and for interfaces of the cell that it covers. An end in
 * another cell is the addresses that this cell shows, as networks like any other: that the other cell has to open the
 * same is checked where the packet arrives, by the rules of that cell. The controller is reached by name only: no network
 * ever stands for it.
 */
export interface PolicyInterface {
  readonly path: ElementPath;
  readonly address: Ipv4;
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
  readonly forwards?: readonly Forwarded[];
  readonly groups?: readonly Ipv4[];
}
export interface PolicySubnet {
  readonly cidr: Cidr | null;
  readonly identity: number;
  /** Its addresses are known outside. */
  readonly external?: true;
  /** The interface that takes what goes outside from here. */
  readonly router?: PolicyRouterEnd;
}
type PolicyRouterEnd = Omit<PolicyRouter, "subnet">;
export interface PolicyInput {
  readonly cell: CellName;
  readonly cellNumber: number;
  readonly version: number;
  readonly openness: Effective;
  readonly controller: { readonly address: Ipv4; readonly mac: Mac; readonly identity: number };
  readonly interfaces: readonly PolicyInterface[];
  readonly subnets: readonly PolicySubnet[];
  readonly rules: readonly { readonly uid: Uid; readonly element: NetworkRuleElement }[];
  readonly hosts: readonly HostName[];
  /** Addresses of an element of another cell; null while it is not visible. Absent: no other cell is. */
  readonly foreignNetworks?: (want: DesiredWant) => ForeignNetworks | null;
  /** Identity of an element of the cell; undefined while it has none. */
  readonly identityOf: (path: ElementPath) => number | undefined;
  /** Identity of a network that a rule names; the same for the same network, for good. */
  readonly networkIdentity: (cidr: Cidr) => number;
  /** Number of a compiled rule by a key of its element, null: of none; the same for the same two. */
  readonly ruleId: (key: string, of: Uid | null) => number;
}

export interface ForeignNetworks {
  readonly networks: readonly Cidr[];
  /** They are the range of one Subnet. */
  readonly isSubnet: boolean;
}

const anyAddress = cidrOf("0.0.0.0/0");

/** The networks that a rule's end names; empty for an end that is no network. */
function networksOf(end: RuleEnd, { foreignNetworks }: PolicyInput): readonly Cidr[] {
  const named = (): readonly Cidr[] => {
    if (end.kind === "internet") return [anyAddress];
    if (end.kind === "foreign") return foreignNetworks?.({ domain: end.domain, path: end.path })?.networks ?? [];
    return end.kind === "cidr" ? [end.cidr] : [];
  };
  return named().flatMap((cidr) => {
    const range = parseNetwork(cidr);
    return range === null ? [] : [cidrOf(formatNetwork(range))];
  });
}

interface NamedNetwork {
  readonly cidr: Cidr;
  readonly range: Network;
  readonly identity: number;
}

/**
 * What came of each rule of the cell, and of whom its ends stood for. A rule that is as it was, between the same identities, comes
 * to the same objects the next time, so whoever rests on them sees what has changed without reading the rest.
 */
export interface Compiled {
  readonly policy: CellPolicy;
  readonly rules: ReadonlyMap<Uid, CompiledElement>;
  /** Of those that no element of the model stands for. */
  readonly builtIn: readonly CompiledRule[];
  /** By the text of an end. */
  readonly ends: ReadonlyMap<string, readonly number[]>;
  readonly networks: ReadonlyMap<Cidr, PolicyNetwork>;
}
export interface CompiledElement {
  readonly element: NetworkRuleElement;
  readonly first: readonly number[];
  readonly second: readonly number[];
  /** In the order of their numbers. */
  readonly rules: readonly CompiledRule[];
  /** By key of the element. */
  readonly ids: { readonly [key: string]: number };
}

const sameNumbers = (one: readonly number[], other: readonly number[]): boolean =>
  one === other || (one.length === other.length && one.every((each, at) => each === other[at]));

/** Of whom each end stands for, found once for all rules that have it. */
class Ends {
  readonly #before: Compiled["ends"];
  readonly #find: (end: RuleEnd) => readonly number[];
  readonly found = new Map<string, readonly number[]>();

  constructor(before: Compiled["ends"], find: (end: RuleEnd) => readonly number[]) {
    this.#before = before;
    this.#find = find;
  }
  of(end: RuleEnd): readonly number[] {
    const text = JSON.stringify(end);
    const known = this.found.get(text);
    if (known !== undefined) return known;
    const [now, was] = [this.#find(end), this.#before.get(text)];
    const identities = was !== undefined && sameNumbers(was, now) ? was : now;
    this.found.set(text, identities);
    return identities;
  }
}

/** Every identity that an end stands for; empty while it stands for nobody. */
function identitiesOf(end: RuleEnd, input: Inside, networks: NetworkIndex<NamedNetwork>): readonly number[] {
  if (end.kind === "controller") return [input.controller.identity];
  if (end.kind === "element") {
    const identity = input.identityOf(end.path);
    return identity === undefined ? [] : [identity];
  }
  const identities = new Set<number>();
  for (const cidr of networksOf(end, input)) {
    const range = parseNetwork(cidr);
    if (range === null) continue;
    for (const network of networks.inside(range)) identities.add(network.identity);
    // "internet" means addresses outside; written as a CIDR, a network also means the cell's own interfaces inside it.
    if (end.kind === "cidr") for (const identity of coveredIdentities(range, input)) identities.add(identity);
  }
  return [...identities];
}

/** With the addresses of what is in the cell, read once, and where each stands among its kind. */
interface Inside extends PolicyInput {
  readonly subnetsAt: NetworkIndex<Placed<PolicySubnet>>;
  readonly interfacesAt: NetworkIndex<Placed<PolicyInterface>>;
}
interface Placed<Value> {
  readonly value: Value;
  readonly at: number;
  readonly range: Network;
}
function insideOf(input: PolicyInput): Inside {
  const placed = <Value>(
    values: readonly Value[],
    textOf: (value: Value) => string | null,
  ): NetworkIndex<Placed<Value>> =>
    new NetworkIndex(
      values.flatMap((value, at) => {
        const text = textOf(value);
        const range = text === null ? null : parseNetwork(text);
        return range === null ? [] : [{ value, at, range }];
      }),
    );
  return {
    ...input,
    subnetsAt: placed(input.subnets, ({ cidr }) => cidr),
    interfacesAt: placed(input.interfaces, ({ address }) => address),
  };
}
/** In the order in which they were given. */
const inRange = <Value>(index: NetworkIndex<Placed<Value>>, range: Network): readonly Value[] =>
  index
    .inside(range)
    .toSorted((one, other) => one.at - other.at)
    .map(({ value }) => value);

/** Whole subnets by their own identity, so that the rules stay few; of a part, each interface. */
function coveredIdentities(range: Network, { subnetsAt, interfacesAt }: Inside): readonly number[] {
  const whole = new Set(inRange(subnetsAt, range).map(({ identity }) => identity));
  const parts = inRange(interfacesAt, range).filter(({ subnetIdentity }) => !whole.has(subnetIdentity));
  return [...whole, ...parts.map(({ identity }) => identity)];
}

const byId = (one: CompiledRule, other: CompiledRule): number => one.id - other.id;

function compileRule(
  { uid, element }: PolicyInput["rules"][number],
  { ruleId }: PolicyInput,
  ends: Ends,
  before: CompiledElement | undefined,
): CompiledElement {
  const kinds = [element.address1.kind, element.address2.kind];
  // A controller is reached from inside its cell only, whatever its address would let through.
  const isNothing = kinds.includes("foreign") && kinds.includes("controller");
  const first = isNothing ? [] : ends.of(element.address1);
  const second = isNothing ? [] : ends.of(element.address2);
  if (before !== undefined && sameNumbers(before.first, first) && sameNumbers(before.second, second))
    if (sameJson(toJson(before.element), toJson(element))) return before;
  const rules: CompiledRule[] = [];
  const ids: Record<string, number> = {};
  const seen = new Set<string>();
  for (const { direction, sourcePorts, ports } of openings(element)) {
    const [sources, targets] = direction === "1to2" ? [first, second] : [second, first];
    for (const from of sources) {
      for (const to of targets) {
        // A rule from a subnet to itself says the same in both directions.
        const meaning = `${from}>${to} ${sourcePorts.from}-${sourcePorts.to} ${ports.from}-${ports.to}`;
        if (seen.has(meaning)) continue;
        seen.add(meaning);
        const key = `${direction} ${from}>${to}`;
        const id = ids[key] ?? ruleId(key, uid);
        ids[key] = id;
        rules.push({ id, path: element.path, from, to, protocol: element.protocol, sourcePorts, ports });
      }
    }
  }
  return { element, first, second, rules: rules.sort(byId), ids };
}

/** Of the rule within each subnet, where `x.policy.subnetConnectivity` is true. */
export const subnetConnectivityPath = "[subnet connectivity]";

/** Of the rule from each subnet with a way out to the outside, where `x.policy.internet` is "out". */
export const internetOutPath = "[internet out]";
const hasWayOut = ({ external, router }: PolicySubnet): boolean => external === true || router !== undefined;
const isOpenOutwards = ({ openness, subnets }: PolicyInput): boolean =>
  openness.internet === "out" && subnets.some(hasWayOut);

function builtInRules(input: PolicyInput, ends: Ends): readonly CompiledRule[] {
  const rules: CompiledRule[] = [];
  const outside = isOpenOutwards(input) ? ends.of({ kind: "internet" }) : [];
  for (const subnet of input.subnets) {
    const { identity } = subnet;
    for (const protocol of ["udp", "tcp"] as const) {
      rules.push({
        id: input.ruleId(`[name service] ${protocol} ${identity}`, null),
        path: "[name service]",
        from: identity,
        to: input.controller.identity,
        protocol,
        sourcePorts: anyPort,
        ports: { from: 53, to: 53 },
      });
    }
    const open = (path: string, key: string, to: number): void => {
      const id = input.ruleId(`${path} ${key}`, null);
      rules.push({ id, path, from: identity, to, protocol: "any", sourcePorts: anyPort, ports: anyPort });
    };
    if (input.openness.subnetConnectivity) open(subnetConnectivityPath, String(identity), identity);
    if (hasWayOut(subnet)) for (const to of outside) open(internetOutPath, `${identity}>${to}`, to);
  }
  return rules;
}

/** The policy of a cell, complete; the caller decides whether it is a new version. */
export const compilePolicy = (input: PolicyInput): CellPolicy => compile(input).policy;

/** The same, and what came of what, for the next time. @param before of the last time; nothing of it changes what comes out */
export function compile(given: PolicyInput, before: Compiled | null = null): Compiled {
  const input = insideOf(given);
  const cidrs = new Set(
    input.rules.flatMap(({ element }) => [
      ...networksOf(element.address1, input),
      ...networksOf(element.address2, input),
    ]),
  );
  if (isOpenOutwards(input)) cidrs.add(anyAddress);
  const controllerCidr = cidrOf(`${input.controller.address}/32`);
  const networks: NamedNetwork[] = [...cidrs].sort().flatMap((cidr) => {
    const range = parseNetwork(cidr);
    // The controller's own address keeps the controller's identity.
    if (range === null || cidr === controllerCidr) return [];
    return [{ cidr, range, identity: input.networkIdentity(cidr) }];
  });
  const index = new NetworkIndex(networks);
  const ends = new Ends(before?.ends ?? new Map(), (end) => identitiesOf(end, input, index));
  const builtIn = builtInRules(input, ends);
  const compiled = new Map(
    input.rules.map((rule) => [rule.uid, compileRule(rule, input, ends, before?.rules.get(rule.uid))]),
  );
  const isSame = isAsBefore(before, compiled, builtIn);
  const rules = isSame ? [] : [...builtIn, ...[...compiled.values()].flatMap((each) => each.rules)].sort(byId);
  const foreign = foreignSubnets(input);
  const named = networks.map(({ cidr, identity }): PolicyNetwork => {
    const now = { cidr, identity, ...(foreign.has(cidr) ? { subnet: true as const } : {}) };
    const was = before?.networks.get(cidr);
    return was !== undefined && sameJson(toJson(was), toJson(now)) ? was : now;
  });
  const policy: CellPolicy = {
    cell: input.cell,
    cellNumber: input.cellNumber,
    version: input.version,
    rules: isSame && before !== null ? before.policy.rules : rules,
    networks: kept(before?.policy.networks, [...named, { cidr: controllerCidr, identity: input.controller.identity }]),
    controller: input.controller,
    hosts: [...input.hosts].sort(),
    ...(input.openness.broadcast === "off" ? { broadcast: "off" as const } : {}),
    subnets: kept(
      before?.policy.subnets,
      input.subnets.flatMap(({ identity, cidr }) => (cidr === null ? [] : [{ identity, cidr }])),
    ),
    ...routersOf(input),
    ...traitsOf(input),
  };
  return {
    policy,
    builtIn,
    rules: compiled,
    ends: ends.found,
    networks: new Map(named.map((network) => [network.cidr, network])),
  };
}

/** The list of before, where it says the same. */
const kept = <Value extends object>(before: readonly Value[] | undefined, now: readonly Value[]): readonly Value[] =>
  before !== undefined && sameJson(toJson(before), toJson(now)) ? before : now;

/** Did the same rules come of the same elements? */
function isAsBefore(before: Compiled | null, rules: Compiled["rules"], builtIn: readonly CompiledRule[]): boolean {
  if (before === null || before.rules.size !== rules.size) return false;
  for (const [uid, { rules: own }] of rules) if (before.rules.get(uid)?.rules !== own) return false;
  return sameJson(toJson(before.builtIn), toJson(builtIn));
}

function traitsOf({ interfaces }: PolicyInput): Pick<CellPolicy, "traits"> {
  const traits = interfaces.flatMap(({ identity, forwards, groups }) =>
    forwards === undefined && groups === undefined
      ? []
      : [{ identity, forwards: forwards ?? [], groups: groups ?? [] }],
  );
  return traits.length === 0 ? {} : { traits };
}

/** Networks that are a whole Subnet of another cell. */
function foreignSubnets({ rules, foreignNetworks }: PolicyInput): ReadonlySet<Cidr> {
  const found = rules.flatMap(({ element: { address1, address2 } }) =>
    [address1, address2].flatMap((end) => {
      const shown = end.kind === "foreign" ? foreignNetworks?.({ domain: end.domain, path: end.path }) : null;
      return shown?.isSubnet === true ? shown.networks : [];
    }),
  );
  return new Set(found);
}

/** Who takes what goes outside, of each subnet whose router has an address. */
function routersOf({ subnets }: PolicyInput): Pick<CellPolicy, "routers"> {
  const routers = subnets.flatMap(({ identity, router }) =>
    router === undefined ? [] : [{ subnet: identity, ...router }],
  );
  return routers.length === 0 ? {} : { routers };
}

/** Identities that have to know where the other is: ends of a rule, and a subnet with who takes what goes outside of it. */
export function* connectionsIn({
  rules,
  routers = [],
}: Pick<CellPolicy, "rules" | "routers">): Generator<{ readonly from: number; readonly to: number }> {
  yield* rules;
  for (const { subnet, identity } of routers) yield { from: subnet, to: identity };
}

/** Where an interface of a running VM is. */
export interface PlacedInterface extends PolicyInterface {
  readonly host: HostName;
}

/**
 * Per interface the other hosts that may know its address: those with another endpoint of the cell that a rule connects
 * with it, in either direction, or that is its router. By the interface's identity; sorted. Linear in rules and interfaces: hosts are looked up by identity.
 */
export function audiences(
  policy: Pick<CellPolicy, "rules" | "routers">,
  placed: readonly PlacedInterface[],
): ReadonlyMap<number, readonly HostName[]> {
  const hostsOf = new Map<number, Set<HostName>>();
  for (const entry of placed) {
    for (const identity of [entry.identity, entry.vmIdentity, entry.subnetIdentity]) {
      const hosts = hostsOf.get(identity) ?? new Set<HostName>();
      hostsOf.set(identity, hosts.add(entry.host));
    }
  }
  const reach = new Map<number, Set<HostName>>();
  const join = (identity: number, other: number): void => {
    const hosts = hostsOf.get(other);
    if (hosts === undefined) return;
    const reached = reach.get(identity) ?? new Set<HostName>();
    for (const host of hosts) reached.add(host);
    reach.set(identity, reached);
  };
  for (const { from, to } of connectionsIn(policy)) {
    join(from, to);
    join(to, from);
  }
  return new Map(
    placed.map((entry) => {
      const hosts = [entry.identity, entry.vmIdentity, entry.subnetIdentity].flatMap((identity) => [
        ...(reach.get(identity) ?? []),
      ]);
      return [entry.identity, [...new Set(hosts)].filter((host) => host !== entry.host).sort()];
    }),
  );
}
