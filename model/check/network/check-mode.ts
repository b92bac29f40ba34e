import type { Cell, Element, NetworkRuleElement, RuleEnd } from "../../cell/cell.ts";
import type { ElementPath } from "../../cell/identifiers.ts";
import { isPlain, type Mode, mostRulesOfGroup, mostRulesOfModeCell } from "../../cell/network/modes.ts";
import type { ReportFault } from "../fault.ts";
import { anyPort, openings } from "./rule-openings.ts";

/*
 * What an element means in a mode of Eucalyptus (decision 161): a subnet is a security group, the VMs with an interface in it are its members, and a
 * rule is about all of them. What such rules cannot say, or what only Diverter does, is refused at its attribute.
 */

const code = "cell/network-mode";

type Said = (attribute: string, what: string, hint: string) => void;

/** @param mode the cell's, for good */
export function checkMode(cell: Cell, mode: Mode, fault: ReportFault): void {
  const saidOf =
    (path: ElementPath): Said =>
    (attribute, what, hint) =>
      fault(code, `${what}, and the networks of \`${cell.name}\` are made by the mode ${mode}`, path, {
        attribute,
        hint,
      });
  checkWhole(cell, saidOf(cell.path));
  if (isPlain(mode)) checkIsolation(cell, saidOf(cell.path));
  const interfaceOf = new Map<ElementPath, ElementPath>();
  const members = new Map<ElementPath, number>();
  const counted: Counted = { ofGroup: new Map(), inAll: 0 };
  for (const element of cell.elements.values()) {
    const said = saidOf(element.path);
    checkElement(element, said);
    if (isPlain(mode)) checkPlain(element, said);
    if (element.type === "VirtualInterface") {
      const first = interfaceOf.get(element.vm);
      if (first === undefined) interfaceOf.set(element.vm, element.path);
      else
        said(
          "x.vm",
          `\`${element.vm}\` has the interface \`${first}\` already`,
          "A VM has one interface in a mode of Eucalyptus: leave this one out.",
        );
      checkRoom(cell, element, members, said);
    }
    if (element.type === "NetworkRule") countRule(element, counted, said);
  }
}

/** An elastic address is had by each member, and `x.size` says how many the cell has. */
function checkRoom(
  cell: Cell,
  { subnet }: Extract<Element, { readonly type: "VirtualInterface" }>,
  members: Map<ElementPath, number>,
  said: Said,
): void {
  const of = cell.elements.get(subnet);
  if (of?.type !== "Subnet" || of.addressRange !== "external") return;
  const count = (members.get(subnet) ?? 0) + 1;
  members.set(subnet, count);
  if (count === of.size + 1)
    said(
      "x.subnet",
      `\`${subnet}\` has more than ${of.size} members, each with an elastic address`,
      `Give \`${subnet}\` a larger \`x.size\`.`,
    );
}

function checkWhole({ policy, forward, deploy }: Cell, said: Said): void {
  if (deploy === "all-or-none")
    said(
      "x.policy.deploy",
      "An address is had once its VM has a host, and not before all others have theirs",
      "Leave `x.policy.deploy` out.",
    );
  if (policy.broadcast === "on")
    said(
      "x.policy.broadcast",
      "A packet to many reaches nobody but the DHCP server",
      "Leave `x.policy.broadcast` out.",
    );
  if (forward === true)
    said("x.policy.forward", "`cells forward` reaches no VM", "Leave `x.policy.forward` out, or use Diverter.");
}

/** Where all that is there speaks in the site's own network, the cell itself says that this is what it wants. */
function checkIsolation({ isolation, policy }: Cell, said: Said): void {
  if (isolation !== "none")
    said(
      "x.policy.isolation",
      "Nothing is kept from anybody there",
      'Write `x.policy.isolation "none"` in the cell if whoever is in the site\'s network may reach its VMs, and they it; else leave out `x.networkMode` where the cell is made, or write "EDGE".',
    );
  const closed = "Nothing is let in or kept out there";
  if (policy.subnetConnectivity === false)
    said("x.policy.subnetConnectivity", closed, "Leave `x.policy.subnetConnectivity` out.");
  if (policy.internet === "none") said("x.policy.internet", closed, "Leave `x.policy.internet` out.");
}

/** What a mode without rules and public addresses lacks beside what all modes do. */
function checkPlain(element: Element, said: Said): void {
  if (element.type === "NetworkRule")
    said(
      "x.address1",
      "No rule is in force",
      "Leave the rule out: whoever is in the site's network is reached and reaches the VM without one.",
    );
  if (element.type === "Subnet" && element.addressRange === "external")
    said(
      "x.addressRange",
      "Nobody has an elastic address",
      "Leave `x.addressRange` out: a VM has one address, of the site's own network.",
    );
}

/** Attributes of which each stands for something that is Diverter's alone. */
function checkElement(element: Element, said: Said): void {
  switch (element.type) {
    case "VM":
      if (element.liveness !== undefined)
        said(
          element.liveness.interface === undefined ? "x.liveness.protocol" : "x.liveness.interface",
          "Nobody asks a VM by its interface whether it lives",
          "Leave `x.liveness` out.",
        );
      return;
    case "Subnet":
      if (element.addressRange === "management")
        said(
          "x.addressRange",
          "A security group has no management addresses",
          'Leave `x.addressRange` out, or write "external": then each member has an elastic address beside its own.',
        );
      if (element.cidr !== undefined)
        said(
          "x.cidr",
          "Addresses come from the network configuration",
          "Leave `x.cidr` out, and name the subnet itself in rules.",
        );
      if (element.router !== undefined)
        said("x.router", "No VM takes what leaves a security group", "Leave `x.router` out.");
      return;
    case "VirtualInterface": {
      const fixed = "Leave it out: the Network View Manager gives the instance its own, which it keeps.";
      if (element.address !== undefined) said("x.address", "Addresses come from the network configuration", fixed);
      if (element.mac !== undefined) said("x.mac", "A MAC address comes from the instance's id", fixed);
      if (element.forwards !== undefined) said("x.forwards", "No VM speaks for others", "Leave `x.forwards` out.");
      if (element.groups !== undefined)
        said("x.groups", "A packet to many reaches nobody", "Leave `x.groups` out, or use Diverter.");
      return;
    }
    case "NetworkRule":
      for (const [attribute, end] of [
        ["x.address1", element.address1],
        ["x.address2", element.address2],
      ] as const)
        checkEnd(end, attribute, said);
      checkPorts(element, said);
      return;
    default:
  }
}

const ends: Readonly<Record<Exclude<RuleEnd["kind"], "cidr" | "internet">, readonly [what: string, hint: string]>> = {
  element: [
    "a rule is about all members of a security group, and not about one VM",
    "Name the subnet, and put the VM into one of its own.",
  ],
  controller: ["the cell's controller is not on such a network", "Leave the rule out."],
  foreign: [
    "another cell's security groups are not known here",
    'Name a network, as in `x.address1 "10.9.0.0/16";`, and let the other cell do the same.',
  ],
};
function checkEnd(end: RuleEnd, attribute: string, said: Said): void {
  if (end.kind === "cidr" || end.kind === "internet" || isGroup(end)) return;
  const [what, hint] = ends[end.kind];
  const name = end.kind === "controller" ? "It" : `\`${end.path}\``;
  said(attribute, `${name} can be no end of a rule: ${what}`, hint);
}

function checkPorts(rule: NetworkRuleElement, said: Said): void {
  if (openings(rule).every(({ sourcePorts }) => sourcePorts.from === anyPort.from && sourcePorts.to === anyPort.to))
    return;
  said(
    "x.port1",
    "A rule does not ask from which port a connection is opened",
    "Leave `x.port1` out; the port of the service is that of the second end.",
  );
}

const isGroup = (end: RuleEnd): end is Extract<RuleEnd, { kind: "element" }> & { readonly type: "Subnet" } =>
  end.kind === "element" && end.type === "Subnet";

interface Counted {
  readonly ofGroup: Map<ElementPath, number>;
  inAll: number;
}
function countRule(rule: NetworkRuleElement, counted: Counted, said: Said): void {
  const more = openings(rule).length;
  const isFirstAbove = (count: number, most: number): boolean => count - more <= most && count > most;
  for (const end of [rule.address1, rule.address2]) {
    if (!isGroup(end)) continue;
    const count = (counted.ofGroup.get(end.path) ?? 0) + more;
    counted.ofGroup.set(end.path, count);
    counted.inAll += more;
    if (isFirstAbove(count, mostRulesOfGroup))
      said(
        "x.address1",
        `\`${end.path}\` has more than ${mostRulesOfGroup} rules`,
        "Name fewer and wider networks, or divide the subnet.",
      );
    if (isFirstAbove(counted.inAll, mostRulesOfModeCell))
      said(
        "x.address1",
        `The subnets of the cell have more than ${mostRulesOfModeCell} rules together`,
        "Name fewer and wider networks, or divide the cell.",
      );
  }
}
