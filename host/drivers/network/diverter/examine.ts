import type { Ipv4, Mac } from "../../../../model/cell/identifiers.ts";
import type { Announced, PacketCheck, PacketQuestion } from "../driver.ts";
import { examineWayIn, examineWayOut } from "./outside/examine-outside.ts";
import { examineOwnRouter } from "./outside/examine-router.ts";
import type { Dataplane } from "./program/dataplane.ts";
import {
  addressKey,
  controller,
  identities,
  identityKey,
  interfaceState,
  location,
  octets,
  policyEntry,
  policyKey,
  policyState,
  sourceRange,
  word,
} from "./program/layout.ts";
import { attachedProgram, openInner, programId } from "./program/libbpf.ts";
import { protocolNumbers } from "./program/protocol-numbers.ts";
import { examineMany } from "./rules/examine-many.ts";
import { kinds } from "./rules/policy.ts";
import { deviation, type RuleFound, type Told } from "./rules/told.ts";

/**
 * Answers "why does this pass, or not?" by reading the maps in force and going through them as the program does. Nothing
 * here looks at the model: an entry that is wrong in the kernel is wrong here too. Where an entry on the way is not what
 * this host was told, a check "entry" says so; it passes if the packet passes nevertheless.
 */
export interface Knowledge {
  readonly rulePath: (cell: number, rule: number) => string | null;
  /** Null until this process has put something in force. */
  readonly told: Told | null;
  readonly announced?: () => Announced | null;
}

const key = (value: number): Buffer => word.encode({ value });
const pass = (check: string, detail: string): PacketCheck => ({ check, passes: true, detail });
const stop = (check: string, detail: string): PacketCheck => ({ check, passes: false, detail });

interface Local {
  readonly ifindex: number;
  readonly address: Ipv4;
  readonly cell: number;
  readonly mac: Mac;
}

function localEndpoint(dataplane: Dataplane, address: Ipv4): number | null {
  const found = dataplane.maps.endpoints.get(addressKey.encode({ address }));
  return found === null ? null : word.decode(found).value;
}

type Layouted = Parameters<typeof deviation>[0];
/** What is wrong with an entry in force; null: nothing, or nobody can tell. */
function deviating(
  dataplane: Dataplane,
  { told }: Knowledge,
  map: Parameters<Told["entry"]>[0],
  entryKey: Buffer,
  layout: Layouted,
): string | null {
  if (told === null) return null;
  return deviation(layout, dataplane.maps[map].get(entryKey), told.entry(map, entryKey));
}

function examineService(dataplane: Dataplane, address: Ipv4, ifindex: number): PacketCheck {
  const place = `${address} is on device ${ifindex}, on the management network`;
  return attachedProgram(ifindex) === programId(dataplane.programs.from_service)
    ? pass("interface", `${place}, where no rule is asked`)
    : stop("interface", `${place}, and does not carry the program that guards it`);
}

/** The interface of an address on this host, with the checks that its entries agree and its filter is in place. */
function examineInterface(
  dataplane: Dataplane,
  address: Ipv4,
  knowledge: Knowledge,
): { checks: PacketCheck[]; local: Local | null } {
  const ifindex = localEndpoint(dataplane, address);
  const astray = deviating(dataplane, knowledge, "endpoints", addressKey.encode({ address }), word);
  if (astray !== null)
    return { checks: [stop("entry", `the device of ${address} in the endpoints in force: ${astray}`)], local: null };
  const service = dataplane.maps.services.get(addressKey.encode({ address }));
  if (ifindex === null && service !== null)
    return { checks: [examineService(dataplane, address, word.decode(service).value)], local: null };
  if (ifindex === null)
    return { checks: [stop("interface", `this host has no interface with the address ${address}`)], local: null };
  const bytes = dataplane.maps.interfaces.get(key(ifindex));
  if (bytes === null)
    return {
      checks: [stop("interface", `${address} leads to device ${ifindex}, which is closed: it has no entry of its own`)],
      local: null,
    };
  const state = interfaceState.decode(bytes);
  if (state.address !== address)
    return {
      checks: [
        stop(
          "interface",
          `${address} leads to device ${ifindex}, whose own entry says ${state.address}: the maps contradict each other`,
        ),
      ],
      local: null,
    };
  const changed = deviating(dataplane, knowledge, "interfaces", key(ifindex), interfaceState);
  if (changed !== null)
    return { checks: [stop("entry", `the entry in force of device ${ifindex} says ${changed}`)], local: null };
  const checks = [pass("interface", `${address} is on device ${ifindex} with ${state.mac}, in cell ${state.cell}`)];
  if (attachedProgram(ifindex) !== programId(dataplane.programs.from_vm))
    checks.push(stop("filter", `device ${ifindex} does not carry the Diverter's program at its ingress`));
  else if (dataplane.maps.flows.get(key(state.slot)) === null)
    checks.push(stop("filter", `device ${ifindex} has no table of flows, so nothing passes`));
  else checks.push(pass("filter", `device ${ifindex} carries the Diverter's program`));
  return { checks, local: { ifindex, address, cell: state.cell, mac: state.mac } };
}

type Trie = NonNullable<ReturnType<typeof openInner>>;
function openRules(dataplane: Dataplane, cell: number): Trie | null {
  const id = dataplane.maps.rules.get(key(cell));
  return id === null ? null : openInner(word.decode(id).value, policyKey.size, policyEntry.size);
}

const networkKey = (address: Ipv4): Buffer =>
  policyKey.encode({
    prefix_length: 64,
    kind: kinds.network,
    from: Buffer.from(octets(address)).readUInt32LE(),
  });

/** Identities of an address within a cell, most particular first. */
function identify(dataplane: Dataplane, rules: Trie, cell: number, address: Ipv4): readonly number[] {
  const known = dataplane.maps.identities.get(identityKey.encode({ cell, address }));
  if (known !== null) {
    const { identity, vm_identity, subnet_identity } = identities.decode(known);
    return [identity, vm_identity, subnet_identity].filter((value) => value !== 0);
  }
  const authority = dataplane.maps.controllers.get(key(cell));
  if (authority !== null && controller.decode(authority).address === address)
    return [controller.decode(authority).identity];
  const network = rules.get(networkKey(address));
  return network === null ? [] : [sourceRange.decode(policyEntry.decode(network).ranges).rule];
}

/**
 * The rule for one pair and protocol. A question leaves the source port open, so it passes if any port would; the answer
 * says which ports these are.
 */
function matchRule(rules: Trie, from: number, to: number, protocol: number, port: number): RuleFound | null {
  const bytes = rules.get(policyKey.encode({ prefix_length: 112, kind: kinds.rule, protocol, from, to, port }));
  if (bytes === null) return null;
  const entry = policyEntry.decode(bytes);
  return entry.count === 0 ? null : sourceRange.decode(entry.ranges);
}

/** Entries that say who the two ends are, where they are not as this host was told. */
function strangeIdentities(
  dataplane: Dataplane,
  cell: number,
  addresses: readonly Ipv4[],
  knowledge: Knowledge,
): readonly string[] {
  return addresses.flatMap((address) => {
    const wrong = deviating(dataplane, knowledge, "identities", identityKey.encode({ cell, address }), identities);
    return wrong === null ? [] : [`who ${address} is in cell ${cell}, by the entry in force: ${wrong}`];
  });
}

interface Match {
  readonly from: number;
  readonly to: number;
  readonly found: RuleFound;
  /** What should have been found in this place; undefined: nobody can tell. */
  readonly told: RuleFound | null | undefined;
}
/** Goes through the pairs of identities as the program does. */
function findRule(
  rules: Trie,
  cell: number,
  { from, to }: { readonly from: readonly number[]; readonly to: readonly number[] },
  question: PacketQuestion,
  { told }: Knowledge,
): { readonly inForce: Match | null; readonly missing: RuleFound | null } {
  const port = question.protocol === "icmp" ? 0 : (question.port ?? 0);
  let missing: RuleFound | null = null;
  for (const a of from)
    for (const b of to)
      for (const protocol of [protocolNumbers[question.protocol], protocolNumbers.any]) {
        const found = matchRule(rules, a, b, protocol, port);
        const expected = told?.rule(cell, a, b, protocol, port);
        if (found !== null) return { inForce: { from: a, to: b, found, told: expected }, missing };
        missing ??= expected ?? null;
      }
  return { inForce: null, missing };
}

function examineRules(
  dataplane: Dataplane,
  cell: number,
  question: PacketQuestion,
  knowledge: Knowledge,
): readonly PacketCheck[] {
  const policy = dataplane.maps.policies.get(key(cell));
  const rules = openRules(dataplane, cell);
  if (policy === null || rules === null)
    return [stop("rule", `no rules of cell ${cell} are in force on this host, so nothing passes`)];
  try {
    const strange = strangeIdentities(dataplane, cell, [question.source, question.destination], knowledge);
    const from = identify(dataplane, rules, cell, question.source);
    const to = identify(dataplane, rules, cell, question.destination);
    const unknown = from.length === 0 ? question.source : to.length === 0 ? question.destination : null;
    if (unknown !== null)
      return [
        ...strange.map((what) => stop("entry", what)),
        stop(
          "identity",
          `this host was told of nobody at ${unknown} in cell ${cell}: no rule in force here joins it with an interface of this host`,
        ),
      ];
    const who = `${question.source} is identity ${from.join(", ")} and ${question.destination} is ${to.join(", ")} in cell ${cell}`;
    const what = question.protocol === "icmp" ? "icmp" : `${question.protocol} ${question.port ?? 0}`;
    const name = (rule: number): string => {
      const path = knowledge.rulePath(cell, rule);
      return path === null ? `rule ${rule}` : `rule ${rule} (${path})`;
    };
    const { inForce, missing } = findRule(rules, cell, { from, to }, question, knowledge);
    if (inForce === null) {
      const version = policyState.decode(policy).version;
      return [
        pass("identity", who),
        ...strange.map((text) => stop("entry", text)),
        ...(missing === null
          ? []
          : [
              stop(
                "entry",
                `this host was told of ${name(missing.rule)}, which would let it pass, but the rules in force do not have it`,
              ),
            ]),
        stop(
          "rule",
          `no rule of cell ${cell} (version ${version}) lets identity ${from.join("/")} reach identity ${to.join("/")} on ${what}`,
        ),
      ];
    }
    const { found, told } = inForce;
    const range = (entry: RuleFound): string =>
      entry.first === 0 && entry.last === 65535 ? "" : ` from ports ${entry.first}-${entry.last}`;
    const asTold = told === undefined || (told !== null && told.rule === found.rule && range(told) === range(found));
    const instead = told === null || told === undefined ? "no rule" : `${name(told.rule)}${range(told)}`;
    return [
      pass("identity", who),
      ...strange.map((text) => pass("entry", text)),
      pass(
        "rule",
        `${name(found.rule)} lets identity ${inForce.from} reach identity ${inForce.to} on ${what}${range(found)}`,
      ),
      ...(asTold
        ? []
        : [pass("entry", `the rules in force were changed: this host was told of ${instead} in this place`)]),
    ];
  } finally {
    rules.close();
  }
}

/** Where an address that is on no interface of this host can be reached; null: nobody told this host. */
function hostOf(dataplane: Dataplane, cell: number, address: Ipv4): { mac: Mac; what: string } | null {
  const known = dataplane.maps.locations.get(addressKey.encode({ address }));
  if (known !== null) return { mac: location.decode(known).mac, what: "the host" };
  const authority = dataplane.maps.controllers.get(key(cell));
  if (authority === null || controller.decode(authority).address !== address) return null;
  return { mac: controller.decode(authority).mac, what: "the controller's machine" };
}

/** The entry by which another host or the controller's machine is found or believed, where it is not as this host was told. */
function strangeHost(dataplane: Dataplane, cell: number, address: Ipv4, knowledge: Knowledge): string | null {
  const wrong = deviating(dataplane, knowledge, "locations", addressKey.encode({ address }), location);
  if (wrong !== null) return `where ${address} is, by the locations in force: ${wrong}`;
  const authority = dataplane.maps.controllers.get(key(cell));
  if (authority === null || controller.decode(authority).address !== address) return null;
  const other = deviating(dataplane, knowledge, "controllers", key(cell), controller);
  return other === null ? null : `where the controller ${address} is, by the entry in force: ${other}`;
}

/** The rule in force for one packet; `only`: with that identity as its end. */
function ruleFor(dataplane: Dataplane, cell: number, question: PacketQuestion, only: number | null): RuleFound | null {
  const rules = openRules(dataplane, cell);
  if (rules === null) return null;
  try {
    const from = identify(dataplane, rules, cell, question.source);
    const to = only === null ? identify(dataplane, rules, cell, question.destination) : [only];
    return findRule(rules, cell, { from, to }, question, { rulePath: () => null, told: null }).inForce?.found ?? null;
  } finally {
    rules.close();
  }
}

function examineSender(dataplane: Dataplane, question: PacketQuestion, knowledge: Knowledge): readonly PacketCheck[] {
  const { checks, local } = examineInterface(dataplane, question.source, knowledge);
  if (local === null) return checks;
  const many = examineMany(dataplane, local, question, (to, only) => {
    const found = ruleFor(dataplane, local.cell, { ...question, destination: to }, only);
    if (found === null) return null;
    const path = knowledge.rulePath(local.cell, found.rule);
    return path === null ? `rule ${found.rule}` : `rule ${found.rule} (${path})`;
  });
  if (many !== null) return [...checks, ...many];
  checks.push(...examineRules(dataplane, local.cell, question, knowledge));
  const there = localEndpoint(dataplane, question.destination);
  if (there !== null)
    checks.push(
      there === local.ifindex
        ? stop("location", "source and destination are the same interface")
        : pass("location", `${question.destination} is on this host too, device ${there}`),
    );
  else {
    const host = hostOf(dataplane, local.cell, question.destination);
    const strange = strangeHost(dataplane, local.cell, question.destination, knowledge);
    if (strange !== null) checks.push(stop("entry", strange));
    checks.push(
      host === null
        ? (examineOwnRouter(dataplane, "sender", local.cell, question.source, question.destination) ??
            examineWayOut(dataplane, question.source, question.destination))
        : pass("location", `${question.destination} is behind ${host.mac}, ${host.what}`),
    );
  }
  return checks;
}

function examineReceiver(dataplane: Dataplane, question: PacketQuestion, knowledge: Knowledge): readonly PacketCheck[] {
  const { checks, local } = examineInterface(dataplane, question.destination, knowledge);
  if (local === null) return checks;
  if (localEndpoint(dataplane, question.source) !== null)
    checks.push(pass("source", `${question.source} is an interface of this host`));
  else {
    const host = hostOf(dataplane, local.cell, question.source);
    const strange = strangeHost(dataplane, local.cell, question.source, knowledge);
    if (strange !== null) checks.push(stop("entry", strange));
    if (host !== null)
      checks.push(pass("source", `frames from ${question.source} are accepted from ${host.mac} alone, ${host.what}`));
    else {
      const own = examineOwnRouter(dataplane, "receiver", local.cell, question.destination, question.source);
      const { announced } = knowledge;
      checks.push(
        ...(own === null ? examineWayIn(dataplane, question.destination, question.source, announced) : [own]),
      );
    }
  }
  checks.push(...examineRules(dataplane, local.cell, question, knowledge));
  return checks;
}

/** Checks in the order in which the packet meets them. Reads the maps in force and changes nothing. */
export const examinePacket = (
  dataplane: Dataplane,
  question: PacketQuestion,
  knowledge: Knowledge,
): readonly PacketCheck[] =>
  question.side === "sender"
    ? examineSender(dataplane, question, knowledge)
    : examineReceiver(dataplane, question, knowledge);
