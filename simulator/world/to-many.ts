import type { DesiredInterface } from "../../core/documents/vocabulary.ts";
import type { HostName, Ipv4, Uid } from "../../model/cell/identifiers.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { admits, type Identified, policyOf } from "./dataplane.ts";
import { everybody, groupOf, listName } from "./memberships.ts";
import type { InterfaceTruth, MachineTruth, MemberTruth, Truth } from "./truth.ts";

export interface Sent {
  readonly from: MachineTruth;
  readonly fromInterface: DesiredInterface;
  /** Or 255.255.255.255. */
  readonly group: Ipv4;
  readonly port: number;
}

/**
 * Sends a datagram to a group, or to all of the sender's subnet, as Diverter does: by the lists that were written last where it
 * leaves, judged for each member there; one copy for each host, and there again for each member that it has by its own lists.
 * @returns whom a copy has reached, in order
 */
export const sendToMany = (kernel: Kernel, truth: Truth, sent: Sent): readonly MachineTruth[] => {
  const { from, fromInterface, group } = sent;
  const sender = truth.dataplane(from.host);
  const source = sender.endpoints.get(fromInterface.address);
  if (source?.vm !== from.vm || !sender.taps.has(fromInterface.uid)) return [];
  const { cellNumber, desired } = source;
  const rules = policyOf(sender.policies, cellNumber);
  const hosts = new Set<HostName>();
  const reached: MachineTruth[] = [];
  for (const member of sender.lists.get(listName(cellNumber, desired.subnetIdentity, group)) ?? []) {
    if (member.address === desired.address || !admits(rules, desired, member, "udp", sent.port)) continue;
    if (member.host === from.host) reached.push(...deliver(truth, sent, source, desired, member));
    else hosts.add(member.host);
  }
  for (const host of hosts)
    if (kernel.network.isOpen(from.host, host)) reached.push(...arrive(truth, sent, source, host));
  return reached.sort((one, other) => (one.name < other.name ? -1 : 1));
};

/** One datagram of a VM to a group, or to 255.255.255.255: nobody gets one where it does not run. */
export const sendFrom = (
  kernel: Kernel,
  truth: Truth,
  vm: Uid | null,
  to: string,
  port: number,
): readonly MachineTruth[] => {
  const group = to === everybody ? everybody : groupOf(to);
  const from = [...truth.machines].find((machine) => machine.vm === vm);
  const [fromInterface] = from?.interfaces ?? [];
  if (from === undefined || fromInterface === undefined) return [];
  return sendToMany(kernel, truth, { from, fromInterface, group, port });
};

/** The one copy for a host that has members. */
const arrive = (truth: Truth, sent: Sent, source: InterfaceTruth, host: HostName): readonly MachineTruth[] => {
  const receiver = truth.dataplane(host);
  const place = receiver.locations.get(source.desired.address);
  // From elsewhere only what is known to come from there is believed.
  if (place?.host !== sent.from.host) return [];
  const list = receiver.lists.get(listName(place.cellNumber, place.subnetIdentity, sent.group)) ?? [];
  return list.flatMap((member) => (member.host === host ? deliver(truth, sent, source, place, member) : []));
};

/** `sender`: as it is known where the member is. */
const deliver = (
  truth: Truth,
  { from, fromInterface, group, port }: Sent,
  { cellNumber: fromCell }: InterfaceTruth,
  sender: Identified,
  member: MemberTruth,
): readonly MachineTruth[] => {
  const { host, address } = member;
  const receiver = truth.dataplane(host);
  const target = receiver.endpoints.get(address);
  if (target === undefined || !receiver.taps.has(target.desired.uid)) return [];
  const { cellNumber: toCell, desired: toInterface } = target;
  if (!admits(policyOf(receiver.policies, toCell), sender, toInterface, "udp", port)) return [];
  const to = truth.machineAt(host, target.vm);
  if (to === undefined) return [];
  const copy = { from, to, fromInterface, toInterface, fromCell, toCell, protocol: "udp", group, port } as const;
  truth.tell((watcher) => watcher.copied?.(copy));
  return [to];
};
