import type { Mode } from "../../cell/network/modes.ts";
import type { AddressRange } from "../addresses/ranges.ts";
import type { ManagedSubnet } from "../addresses/segments.ts";
import type { Subnet } from "../configuration/effective.ts";

/*
 * The global network view (GNI of the paper): all that hosts need to know of an installation's networks, in one mode. Addresses are
 * unsigned 32-bit numbers; 0, which XML writes as 0.0.0.0, is absent here.
 */

/** What may come in. */
export interface IngressRule {
  /** An IP protocol number; -1 is any. */
  readonly protocol: number;
  /** Of TCP and UDP; 0: the field is not there. */
  readonly fromPort: number;
  readonly toPort: number;
  /** Of ICMP; -1 is any. */
  readonly icmpType: number;
  readonly icmpCode: number;
  /** From there, as written, or from members of a group. */
  readonly cidr?: string;
  readonly group?: string;
  readonly groupOwner?: string;
}
export interface SecurityGroup {
  readonly id: string;
  readonly owner: string;
  readonly ingress: readonly IngressRule[];
  readonly egress: readonly IngressRule[];
}
export interface Instance {
  readonly id: string;
  readonly owner?: string;
  /** Six bytes in capitals, with colons. */
  readonly mac?: string;
  readonly publicIp?: number;
  readonly privateIp?: number;
  readonly securityGroups: readonly string[];
}
export interface Node {
  /** Its address, by which a machine finds itself. */
  readonly name: string;
  readonly instances: readonly string[];
}
export interface Cluster {
  readonly name: string;
  /** Not in the MANAGED modes. */
  readonly subnet?: Subnet;
  readonly enabledCcIp: number;
  readonly macPrefix: string;
  readonly privateIps: readonly AddressRange[];
  readonly nodes: readonly Node[];
}
export interface NetworkView {
  readonly version?: string;
  readonly appliedVersion?: string;
  readonly mode: Mode;
  readonly publicIps: readonly AddressRange[];
  readonly publicGateway?: number;
  /** Who answers for metadata. */
  readonly enabledClcIp: number;
  readonly instanceDnsDomain: string;
  readonly instanceDnsServers: readonly number[];
  /** That no cluster has. */
  readonly subnets: readonly Subnet[];
  readonly managedSubnet?: ManagedSubnet;
  readonly clusters: readonly Cluster[];
  readonly instances: readonly Instance[];
  readonly securityGroups: readonly SecurityGroup[];
}

/** Members of a group in the order of the view; an instance that names a group twice is one member. */
export function membersOf({ instances }: NetworkView): ReadonlyMap<string, readonly Instance[]> {
  const members = new Map<string, Instance[]>();
  for (const instance of instances)
    for (const group of new Set(instance.securityGroups)) {
      const list = members.get(group);
      if (list === undefined) members.set(group, [instance]);
      else list.push(instance);
    }
  return members;
}
