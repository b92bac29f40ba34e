import { formatIpv4, parseNetwork } from "../../../../../model/addresses/addresses.ts";
import type { IngressRule, Instance } from "../../../../../model/eucalyptus/view/network-view.ts";

/**
 * What a rule of a group lets in, as arguments: source, protocol, ports or ICMP type.
 * @param source in place of the rule's own network
 */
export function matchOf(rule: IngressRule, source = rule.cidr): string {
  const from = source === undefined ? [] : [`-s ${source}`];
  return [...from, ...protocolOf(rule)].join(" ");
}

function protocolOf({ protocol, fromPort, toPort, icmpType, icmpCode }: IngressRule): readonly string[] {
  switch (protocol) {
    case -1:
      return [];
    case 1: {
      const code = icmpCode === -1 ? "" : `/${icmpCode}`;
      return [`-p icmp -m icmp --icmp-type ${icmpType === -1 ? "any" : `${icmpType}${code}`}`];
    }
    case 6:
    case 17: {
      const name = protocol === 6 ? "tcp" : "udp";
      const ports = portsOf(fromPort, toPort);
      return [`-p ${name} -m ${name}`, ...(ports === null ? [] : [`--dport ${ports}`])];
    }
    default:
      return [`-p ${protocol}`];
  }
}

/** Null: all of them, which is what a rule without ports and one from 0 to 65535 say. */
function portsOf(from: number, to: number): string | null {
  if (from === 0 && (to === 0 || to === 65_535)) return null;
  return to > from ? `${from}:${to}` : String(from);
}

/** Instances with a public address by it, for rules whose network holds a public address and not the private one behind it. */
export class PublicAddresses {
  readonly #sorted: readonly (readonly [address: number, order: number, instance: Instance])[];

  constructor(instances: readonly Instance[]) {
    this.#sorted = instances
      .flatMap((instance, order): (readonly [number, number, Instance])[] =>
        instance.publicIp === undefined || instance.privateIp === undefined
          ? []
          : [[instance.publicIp, order, instance]],
      )
      .sort(([a], [b]) => a - b);
  }

  /**
   * In the order of the view, those whose public address alone is in the network. Null: the network is all addresses, or none.
   */
  only(cidr: string): readonly Instance[] | null {
    const network = parseNetwork(cidr);
    if (network === null || network.prefixLength === 0) return null;
    const within = (address: number | undefined): boolean =>
      address !== undefined && network.first <= address && address <= network.last;
    const found: (readonly [number, Instance])[] = [];
    for (let at = this.#firstFrom(network.first); at < this.#sorted.length; at += 1) {
      const [address, order, instance] = this.#sorted[at] ?? [0, 0, null];
      if (instance === null || address > network.last) break;
      if (!within(instance.privateIp)) found.push([order, instance]);
    }
    return found.sort(([a], [b]) => a - b).map(([, instance]) => instance);
  }

  #firstFrom(address: number): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle]?.[0] ?? 0) < address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export const privateOf = ({ privateIp }: Instance): string => formatIpv4(privateIp ?? 0);
