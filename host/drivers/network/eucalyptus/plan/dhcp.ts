import type { Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { DhcpPlan, DhcpSubnet } from "./plan.ts";

/** What a DHCP server of a view tells; an instance without a MAC or an address is told nothing. As dnsmasq reads it: `../handlers/dhcp.ts`. */
export const dhcpPlan = (
  { instanceDnsDomain, instanceDnsServers }: NetworkView,
  subnets: readonly DhcpSubnet[],
  instances: readonly Instance[],
): DhcpPlan => ({
  domain: instanceDnsDomain,
  nameServers: instanceDnsServers,
  subnets,
  hosts: instances.flatMap(({ mac, privateIp }) =>
    mac === undefined || privateIp === undefined ? [] : [{ mac, address: privateIp }],
  ),
});
