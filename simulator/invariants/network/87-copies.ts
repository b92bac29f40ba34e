import type { CellPolicy, DesiredInterface } from "../../../core/documents/vocabulary.ts";
import type { GlobalNetwork } from "../../../host/drivers/network/driver.ts";
import type { HostName, Ipv4 } from "../../../model/cell/identifiers.ts";
import { labelOf, ruleName } from "../../world/cell-text.ts";
import type { Copied, Delivered, Truth } from "../../world/truth.ts";
import type { Invariant, View } from "../invariant.ts";

type Identified = Pick<DesiredInterface, "identity" | "vmIdentity" | "subnetIdentity">;

/** A host that is well notices within this long that its guest has left a group. */
const leftWithinMs = 1000;
const isForAll = (group: Ipv4): boolean => group === "255.255.255.255";

/**
 * Where a copy or a packet leaves, and where it arrives, a rule is in force that some user of the cell has written for just that:
 * these two, this protocol, this port. For each host elsewhere one copy leaves, by a rule for one of its members; which of them get it
 * is judged there, and hosts may have different versions of a cell's rules for a while. A copy stays in its cell, or its subnet, and reaches whose guest has joined. At rest hosts know of
 * each other's guests exactly what those have joined. Counted are copies alone; packets there are many.
 */
export const copies: Invariant = {
  number: 87,
  title: "no copy and no packet without both rules, and a copy only for who has joined",
  watch: (view, verdict) => {
    const { truth } = view;
    const hasBoth = rulesOfBoth(view);
    const isMember = membersOf(view);
    const describe = ({ from, to, port, protocol }: Delivered): string =>
      `from ${from.name} at ${from.host} to ${protocol} port ${port} of ${to.name} at ${to.host}`;
    truth.watchers.push({
      delivered: (packet) => {
        // Of a mode of Eucalyptus, which has rules of its own, the invariants 20 and 82 say what may pass.
        if (packet.toInterface.instance === undefined && !hasBoth(packet))
          verdict.violate(`a packet ${describe(packet)} passed without a rule at both`);
      },
      copied: (copy) => {
        verdict.check(hasBoth(copy), () => `a copy ${describe(copy)} passed without a rule at both`);
        if (!isInScope(copy)) verdict.violate(`a copy for ${copy.group} ${describe(copy)} went too far`);
        if (!isMember(copy)) verdict.violate(`a copy for ${copy.group} ${describe(copy)}, whose guest has not joined`);
      },
    });
    return () => {
      for (const sentence of unlikeGuests(truth)) verdict.violate(sentence);
    };
  },
};

/** Is a rule for just that in force at both ends? Who an end is in the other cell, that one alone can tell. */
const rulesOfBoth = ({ truth, users, installation }: View): ((packet: Delivered) => boolean) => {
  /** The path of a rule of this kind that a user of the cell has written, in any version; null: nobody has. */
  const written = (cell: string, from: string, to: string, { protocol, port }: Delivered): string | null => {
    const name = ruleName({ from, to, port, ...(protocol === "udp" ? { protocol } : {}) });
    const versions = users.submitted.get(cell) ?? [];
    return versions.some(({ rules }) => rules.some((each) => ruleName(each) === name))
      ? `${labelOf(cell)}/${name}`
      : null;
  };
  const isEnd = (identity: number, of: Identified | null): boolean =>
    of === null || [of.identity, of.vmIdentity, of.subnetIdentity].includes(identity);
  const isInForce = (
    host: HostName,
    cell: number,
    path: string | null,
    [one, other]: readonly [DesiredInterface | null, DesiredInterface | null],
  ): boolean => {
    const policies: readonly CellPolicy[] = [...truth.dataplane(host).policies.values()];
    const own = policies.filter(({ cellNumber }) => cellNumber === cell).flatMap(({ rules }) => rules);
    return own.some((rule) => rule.path === path && isEnd(rule.from, one) && isEnd(rule.to, other));
  };
  /** Does a rule in force where it leaves let it go to somebody of these, as its host has them? */
  const lets = (
    { from, fromCell, fromInterface, protocol, port }: Delivered,
    isOne: (there: GlobalNetwork["locations"][number]) => boolean,
  ): boolean => {
    const sender = truth.dataplane(from.host);
    const there = [...sender.locations.values()].filter(isOne);
    const rules = [...sender.policies.values()].filter(({ cellNumber }) => cellNumber === fromCell);
    return rules
      .flatMap((policy) => policy.rules)
      .filter((rule) => ["any", protocol].includes(rule.protocol) && rule.ports.from <= port && port <= rule.ports.to)
      .some((rule) => isEnd(rule.from, fromInterface) && there.some((at) => isEnd(rule.to, at)));
  };
  const leaves = (packet: Delivered): boolean => lets(packet, ({ host }) => host === packet.to.host);
  /** Another machine had the address when its host heard of it last, by whose rule it left: one that is cut off knows no better. */
  const leavesForFormer = (packet: Delivered): boolean =>
    packet.fromCell === packet.toCell &&
    lets(
      packet,
      ({ host, address, vmIdentity }) =>
        host === packet.to.host &&
        address === packet.toInterface.address &&
        vmIdentity !== packet.toInterface.vmIdentity,
    );
  return (packet) => {
    const { from, to, fromCell, toCell, fromInterface, toInterface } = packet;
    const [one, other] = [installation.cellOf(fromCell), installation.cellOf(toCell)];
    const isOfOne = fromCell === toCell;
    const there = written(one, from.name, isOfOne ? to.name : `${other}/${to.name}`, packet);
    const here = written(other, isOfOne ? from.name : `${one}/${from.name}`, to.name, packet);
    return (
      ("group" in packet && from.host !== to.host
        ? leaves(packet)
        : isInForce(from.host, fromCell, there, [fromInterface, isOfOne ? toInterface : null]) ||
          leavesForFormer(packet)) && isInForce(to.host, toCell, here, [isOfOne ? fromInterface : null, toInterface])
    );
  };
};

const isInScope = ({ group, fromCell, toCell, fromInterface, toInterface }: Copied): boolean => {
  const [first, second, third] = group.split(".").map(Number);
  const isOfSubnet =
    isForAll(group) || (first === 239 && second === 255) || (first === 224 && second === 0 && third === 0);
  return fromCell === toCell && (!isOfSubnet || fromInterface.subnetIdentity === toInterface.subnetIdentity);
};

/** Has the guest reported the group at its tap, or left it while its Host Manager could not see that yet? */
const membersOf = ({ kernel: { clock }, truth, installation }: View): ((copy: Copied) => boolean) => {
  const leftMs = new Map<string, number>();
  const nameOf = (uid: string, group: Ipv4): string => `${uid} ${group}`;
  truth.watchers.push({ left: (uid, group) => leftMs.set(nameOf(uid, group), clock.nowMs) });
  return ({ group, to: { host }, toInterface: { uid } }) => {
    if (isForAll(group) || truth.dataplane(host).memberships.get(uid)?.has(group) === true) return true;
    const left = leftMs.get(nameOf(uid, group));
    if (left === undefined) return false;
    const process = installation.managers.get(host);
    const wellMs = process?.isRunning === true && !process.isPaused ? process.wellSinceMs : clock.nowMs;
    return clock.nowMs - Math.max(left, wellMs) < leftWithinMs;
  };
};

/** Of whose guests a host has other groups than they have reported where they are. */
const unlikeGuests = ({ dataplanes }: Truth): readonly string[] =>
  [...dataplanes].flatMap(([host, { locations }]) =>
    [...locations.values()].flatMap((location) => {
      const there = dataplanes.get(location.host);
      const uid = there?.endpoints.get(location.address)?.desired.uid;
      if (there === undefined || uid === undefined) return [];
      const [said, reported] = [location.groups ?? [], there.memberships.get(uid)?.keys() ?? []].map((groups) =>
        [...groups].sort().join(" and "),
      );
      return said === reported
        ? []
        : [
            `${host} has ${said || "no group"} of ${location.address} at ${location.host}, whose guest has joined ${reported || "none"}`,
          ];
    }),
  );
