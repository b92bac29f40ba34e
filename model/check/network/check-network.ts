import { formatIpv4, formatNetwork, type Network, parseNetwork } from "../../addresses/addresses.ts";
import { nobodys, whatOverlaps } from "../../addresses/pools.ts";
import type { Cell, Element, NetworkRuleElement, SubnetElement, VirtualInterfaceElement } from "../../cell/cell.ts";
import type { ElementPath } from "../../cell/identifiers.ts";
import type { ReportFault } from "../fault.ts";
import type { AddressOffer } from "./check-addresses.ts";

/**
 * Ways out of a cell and to many receivers, as far as its specification shows what cannot work. A model that was accepted
 * before is read as it was.
 */
export function checkNetwork(cell: Cell, fault: ReportFault): void {
  const broadcasts = broadcastAddresses(cell);
  for (const element of cell.elements.values()) {
    if (element.type === "Subnet") checkRouter(cell, element, fault);
    else if (element.type === "VirtualInterface") checkForwards(cell, element, fault);
    else if (element.type === "NetworkRule") checkEnds(element, broadcasts, fault);
  }
}

const groups: Network = { first: 0xe000_0000, last: 0xefff_ffff, prefixLength: 4, hostBits: false };
const inside = (inner: Network, outer: Network): boolean => inner.first >= outer.first && inner.last <= outer.last;

function checkRouter(cell: Cell, { path, router, addressRange }: SubnetElement, fault: ReportFault): void {
  const taker = router === undefined ? undefined : cell.elements.get(router);
  if (taker?.type !== "VirtualInterface") return;
  const refuse = (message: string, hint: string): void =>
    fault("cell/router", message, path, { attribute: "x.router", hint });
  if (addressRange !== "internal") {
    const why = addressRange === "external" ? "its addresses are known outside" : "it is the network of the hosts";
    refuse(
      `\`${path}\` has no use for a router: ${why}`,
      "Leave out `x.router`, or make the subnet an internal one by leaving out `x.addressRange`.",
    );
  } else if (taker.forwards === undefined)
    refuse(
      `\`${taker.path}\` may not answer for what is outside: it has no \`x.forwards\``,
      `Give \`${taker.path}\` \`x.forwards ["internet"];\`, or the networks outside that it leads to.`,
    );
}

function checkForwards(cell: Cell, { path, forwards, subnet }: VirtualInterfaceElement, fault: ReportFault): void {
  if (forwards === undefined) return;
  const refuse = (message: string, hint: string): void =>
    fault("cell/forwards", message, path, { attribute: "x.forwards", hint });
  const network = cell.elements.get(subnet);
  if (network?.type === "Subnet" && network.addressRange !== "internal")
    refuse(
      `\`${path}\` is on the ${network.addressRange} subnet \`${subnet}\`, where nobody speaks for others`,
      "Give `x.forwards` to the VM's interface on an internal subnet: that is where the machines are that it leads outside.",
    );
  for (const text of forwards) {
    const range = text === "internet" ? null : parseNetwork(text);
    const nobody = range === null ? undefined : whatOverlaps(range, nobodys);
    // All of the internet is most likely meant, and what the checks of the installation will say.
    if (nobody === undefined || range?.prefixLength === 0) continue;
    refuse(
      `\`x.forwards\` has ${text}, and no machine sends as an address of ${nobody}`,
      'Name networks of machines; all addresses outside are "internet".',
    );
  }
}

/** Of subnets with a fixed range, by their broadcast address. */
function broadcastAddresses(cell: Cell): ReadonlyMap<number, ElementPath> {
  const found = new Map<number, ElementPath>();
  for (const element of cell.elements.values()) {
    const range = element.type === "Subnet" && element.cidr !== undefined ? parseNetwork(element.cidr) : null;
    if (range !== null) found.set(range.last, element.path);
  }
  return found;
}

function checkEnds(rule: NetworkRuleElement, broadcasts: ReadonlyMap<number, ElementPath>, fault: ReportFault): void {
  for (const attribute of ["x.address1", "x.address2"] as const) {
    const end = attribute === "x.address1" ? rule.address1 : rule.address2;
    const network = end.kind === "cidr" ? parseNetwork(end.cidr) : null;
    if (network === null) continue;
    const refuse = (message: string, hint: string): void => fault("cell/rule", message, rule.path, { attribute, hint });
    const subnet = network.prefixLength === 32 ? broadcasts.get(network.first) : undefined;
    const limited = network.first === 0xffff_ffff;
    if (inside(network, groups))
      refuse(
        `${formatNetwork(network)} is a multicast group, and no rule is about a group`,
        "A packet to a group reaches each member to whom its sender may send the same packet: name the members' subnets, VMs or interfaces.",
      );
    else if (subnet !== undefined || limited) {
      const address = formatIpv4(network.first);
      const whose = subnet === undefined ? "that of the sender's own subnet" : `that of \`${subnet}\``;
      const never = rule.protocol === "icmp" ? ", and a ping to one never passes: all would answer at once" : "";
      refuse(
        `${address} is a broadcast address, ${whose}; no rule is about one${never}`,
        `A packet to all of a subnet reaches each machine to whom its sender may send the same packet: name the subnet, with "udp" or "any", as in \`"<ref:/${subnet ?? "…"}>"\`.`,
      );
    }
  }
}

/** `x.forwards` must leave out whatever the installation has addresses from. */
export function checkForwardedNetworks(elements: readonly Element[], offer: AddressOffer, fault: ReportFault): void {
  const own = [offer.internal.pool, ...offer.external.fixed, ...(offer.kept ?? []), ...offer.reserved];
  for (const element of elements) {
    if (element.type !== "VirtualInterface") continue;
    for (const text of element.forwards ?? []) {
      const range = text === "internet" ? null : parseNetwork(text);
      const clash = range === null ? undefined : whatOverlaps(range, own);
      if (clash === undefined) continue;
      const pool = parseNetwork(clash);
      const contains = range !== null && pool !== null && inside(pool, range);
      fault(
        "cell/forwards",
        `\`x.forwards\` has ${text}, which ${contains ? "contains" : "is in"} ${clash}, addresses of the installation itself`,
        element.path,
        {
          attribute: "x.forwards",
          hint: 'Whoever has such an address speaks for himself: name networks outside, of which all together are "internet".',
        },
      );
    }
  }
}
