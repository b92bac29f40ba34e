import { type Ipv4, ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { fanoutKey, identityKey, interfaceState, member, mostMembers, subnetKey, word } from "../program/layout.ts";
import { openInner } from "../program/libbpf.ts";
import { isOfSubnet } from "./lists.ts";

/** Who gets a copy of what an interface here sends to a broadcast address or a group, and who does not. */
const everybody = ipv4("255.255.255.255");
const key = (value: number): Buffer => word.encode({ value });
const number = (address: Ipv4): number => Buffer.from(address.split(".").map(Number)).readUInt32BE();

export interface Sender {
  readonly ifindex: number;
  readonly cell: number;
  readonly address: Ipv4;
}
/** The list that a destination stands for. Null: it is an ordinary address. */
function listOf({ maps }: Dataplane, { ifindex, cell }: Sender, destination: Ipv4) {
  const bytes = maps.interfaces.get(key(ifindex));
  if (bytes === null) return null;
  const { subnet_identity: subnet, address, mask } = interfaceState.decode(bytes);
  const isGroup = number(destination) >>> 28 === 14;
  if (isGroup)
    return { list: { cell, subnet: isOfSubnet(destination) ? subnet : 0, group: destination }, only: null, isGroup };
  const own = (number(address) | ~number(mask)) >>> 0 === number(destination);
  if (own || destination === everybody) return { list: { cell, subnet, group: everybody }, only: null, isGroup };
  const directed = maps.broadcasts.get(identityKey.encode({ cell, address: destination }));
  if (directed === null) return null;
  const of = subnetKey.decode(directed);
  return { list: { ...of, group: everybody }, only: of.subnet, isGroup };
}

/**
 * Null: the destination is an ordinary address.
 *
 * @param mayHave whether a rule of the sender's cell admits the packet to one member; `only`: by a rule with that end
 */
export function examineMany(
  dataplane: Dataplane,
  sender: Sender,
  { destination, protocol }: PacketQuestion,
  mayHave: (to: Ipv4, only: number | null) => string | null,
): readonly PacketCheck[] | null {
  const found = listOf(dataplane, sender, destination);
  if (found === null) return null;
  const stop = (check: string, detail: string): readonly PacketCheck[] => [{ check, passes: false, detail }];
  const what = found.isGroup ? `the group ${destination}` : `the broadcast address ${destination}`;
  if (protocol === "tcp") return stop("broadcast", `TCP is between two machines, and ${what} is of many`);
  if (found.only !== null && protocol === "icmp")
    return stop("broadcast", `a ping to ${what} of another subnet never passes: all would answer at once`);
  const id = dataplane.maps.fanout.get(fanoutKey.encode(found.list));
  const list = id === null ? null : openInner(word.decode(id).value, 4, member.size);
  if (list === null)
    return stop(
      "broadcast",
      found.isGroup
        ? `nobody whom this host was told of is a member of ${what}, or \`x.policy.broadcast\` is "off"`
        : `nobody is known behind ${what}, or \`x.policy.broadcast\` is "off"`,
    );
  try {
    const getting: string[] = [];
    const others: string[] = [];
    for (let at = 0; at < Math.min(list.mostEntries(), mostMembers); at++) {
      const bytes = list.get(key(at));
      if (bytes === null) break;
      const { address, ifindex, mac } = member.decode(bytes);
      if (address === sender.address) continue;
      const rule = mayHave(address, found.only);
      if (rule === null) others.push(address);
      else getting.push(`${address} ${ifindex === 0 ? `behind ${mac}` : `on device ${ifindex}`}, by ${rule}`);
    }
    const missing = others.length === 0 ? "" : `; no rule lets it reach ${others.join(", ")}`;
    if (getting.length === 0)
      return stop(
        "copies",
        `nobody gets a copy of what is sent to ${what}${missing}: a rule opens it whose end is their subnet, a VM or an interface there`,
      );
    return [{ check: "copies", passes: true, detail: `a copy goes to ${getting.join("; ")}${missing}` }];
  } finally {
    list.close();
  }
}
