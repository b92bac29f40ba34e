import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { Instance } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { Table, TapPlan } from "./plan.ts";
import { TableBuilder } from "./tables.ts";

/*
 * What holds each tap to the MAC and address of its instance, at the bridge. By the paper's rules, in their order, which follow
 * libvirt's firewall example.
 */

const [before, behind] = ["EUCA_EBT_NAT_PRE", "EUCA_EBT_NAT_POST"] as const;
const reverse = (mac: string): string =>
  `-d Broadcast --arp-op Request_Reverse --arp-ip-src 0.0.0.0 --arp-ip-dst 0.0.0.0 --arp-mac-src ${mac} --arp-mac-dst ${mac} -j ACCEPT`;

export const tapOf = ({ id }: Pick<Instance, "id">): string => `vn_${id}`;
export const tapPlan = ({ id, mac }: Instance, bridge: string): TapPlan => ({
  name: tapOf({ id }),
  bridge,
  ...(mac === undefined ? {} : { mac }),
});

function guardInstance(nat: TableBuilder, tap: string, mac: string, address: string): void {
  for (const rule of [
    `-i ${tap} -s ! ${mac} -j DROP`,
    `-p IPv4 -i ${tap} -s ${mac} --ip-proto udp --ip-dport 67:68 -j ACCEPT`,
    `-p IPv4 -i ${tap} --ip-src ! ${address} -j DROP`,
    `-p IPv4 -i ${tap} -j ACCEPT`,
    `-i ${tap} -p ARP --arp-mac-src ! ${mac} -j DROP`,
    `-i ${tap} -p ARP --arp-ip-src ! ${address} -j DROP`,
    `-i ${tap} -p ARP --arp-op Request -j ACCEPT`,
    `-i ${tap} -p ARP --arp-op Reply -j ACCEPT`,
    `-i ${tap} -p ARP -j DROP`,
    `-i ${tap} -p 0x8035 -s ${mac} ${reverse(mac)}`,
    `-i ${tap} -p 0x8035 -j DROP`,
    // A machine that moves tells the bridge where it is.
    `-i ${tap} -p 0x835 -j ACCEPT`,
  ])
    nat.add(before, rule);
  for (const rule of [
    `-p IPv4 -o ${tap} -d ! ${mac} --ip-proto udp --ip-dport 67:68 -j DROP`,
    `-p IPv4 -o ${tap} -j ACCEPT`,
    `-p ARP -o ${tap} --arp-op Reply --arp-mac-dst ! ${mac} -j DROP`,
    `-p ARP -o ${tap} --arp-ip-dst ! ${address} -j DROP`,
    `-p ARP -o ${tap} --arp-op Request -j ACCEPT`,
    `-p ARP -o ${tap} --arp-op Reply -j ACCEPT`,
    `-p ARP -o ${tap} -j DROP`,
    `-p 0x8035 -o ${tap} ${reverse(mac)}`,
    `-p 0x8035 -o ${tap} -j DROP`,
  ])
    nat.add(behind, rule);
}

/**
 * The bridge's tables for instances of this machine; one without a MAC or an address gets nothing through.
 * @param answered who asks for the gateway is answered with the bridge's MAC; null where the gateway is on another machine
 * @param bridgeMac who may send DHCP answers to all; null where another machine answers
 */
export function guardTables(
  instances: readonly Instance[],
  answered: number | null,
  bridgeMac: string | null,
): readonly Table[] {
  const filter = new TableBuilder("filter", ["FORWARD"]);
  filter.chain("EUCA_EBT_FWD");
  filter.add("FORWARD", "-j EUCA_EBT_FWD");
  const nat = new TableBuilder("nat", ["PREROUTING", "POSTROUTING"]);
  nat.chain(before);
  nat.chain(behind);
  nat.add("PREROUTING", `-j ${before}`);
  nat.add("POSTROUTING", `-j ${behind}`);
  const server = bridgeMac === null ? "--ip-sport 67 --ip-dport 68" : "--ip-dport 67:68";
  const from = bridgeMac === null ? "" : `-s ${bridgeMac} `;
  nat.add(behind, `-p IPv4 -o vn_i+ ${from}-d Broadcast --ip-proto udp ${server} -j ACCEPT`);
  if (answered !== null && bridgeMac !== null && instances.length > 0)
    nat.add(before, `-i vn_i+ -p ARP --arp-ip-dst ${formatIpv4(answered)} -j arpreply --arpreply-mac ${bridgeMac}`);
  for (const instance of instances)
    if (instance.privateIp !== undefined && instance.mac !== undefined)
      guardInstance(nat, tapOf(instance), instance.mac, formatIpv4(instance.privateIp));
  nat.add(before, "-i vn_i+ -j DROP");
  nat.add(behind, "-o vn_i+ -j DROP");
  return [filter.table(), nat.table()];
}
