import type { GlobalNetwork, InterfaceGroups } from "../../host/drivers/network/driver.ts";
import { type HostName, type Ipv4, ipv4 } from "../../model/cell/identifiers.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Life } from "../kernel/process.ts";
import type { MachineTruth, MemberTruth, Truth } from "./truth.ts";

/** What a host's querier does (decision 93): when it asks, when who is silent is a member no more, and when it looks. */
const [askAgainMs, forgetAfterMs, lookWithinMs, lookAgainMs] = [125_000, 260_000, 200, 10_000];
/** Of a guest's agent and its software, from the start of its machine. */
const joinsAfterMs = 3000;
const triesAgainMs = 1000;
/** That a guest can join. */
export const mostGroups = 16;
/** Everybody in the sender's subnet. */
export const everybody = ipv4("255.255.255.255");

/** A group that a guest may join; throws a sentence for what is none. */
export const groupOf = (text: string): Ipv4 => {
  const bytes = text.split(".").map(Number);
  const isAddress = bytes.length === 4 && bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255);
  if (!isAddress || (bytes[0] ?? 0) >> 4 !== 14)
    throw new Error(`"${text}" should be a multicast group, such as 239.1.2.3`);
  return ipv4(text);
};
/** Not of the whole cell (RFC 5771, RFC 2365). */
export const isOfSubnet = (group: Ipv4): boolean =>
  group === everybody || group.startsWith("224.0.0.") || group.startsWith("239.255.");
export const listName = (cell: number, subnet: number, group: Ipv4): string =>
  `${cell} ${isOfSubnet(group) ? subnet : 0} ${group}`;

/** Its guest reports at the tap what it is a member of now. */
const report = (kernel: Kernel, truth: Truth, machine: MachineTruth): void => {
  const { memberships, taps, reported } = truth.dataplane(machine.host);
  for (const { uid } of machine.interfaces) {
    if (!taps.has(uid)) continue;
    const known = memberships.get(uid) ?? new Map<Ipv4, number>();
    // What it left it reported as left; what somebody before it at this tap had joined nobody has.
    for (const group of machine.groups)
      if (known.size < mostGroups || known.has(group)) known.set(group, kernel.clock.nowMs);
    memberships.set(uid, known);
  }
  reported();
};

/** The software of a VM's guest, which joins groups whenever it starts. */
export const beginGroups = (kernel: Kernel, truth: Truth): void => {
  truth.watchers.push({
    machineStarted: (machine) => {
      if (truth.joins.has(machine.vm)) kernel.clock.after(joinsAfterMs, () => joinAgain(kernel, truth, machine));
    },
  });
};
const isAwake = ({ hung, stalled }: MachineTruth): boolean => !hung && !stalled;
const joinAgain = (kernel: Kernel, truth: Truth, machine: MachineTruth): void => {
  if (!truth.machines.has(machine)) return;
  if (!isAwake(machine)) {
    kernel.clock.after(triesAgainMs, () => joinAgain(kernel, truth, machine));
    return;
  }
  const wanted = truth.joins.get(machine.vm) ?? new Set<Ipv4>();
  const { memberships } = truth.dataplane(machine.host);
  for (const group of machine.groups) {
    if (wanted.has(group)) continue;
    machine.groups.delete(group);
    for (const { uid } of machine.interfaces) {
      memberships.get(uid)?.delete(group);
      truth.tell((watcher) => watcher.left?.(uid, group));
    }
  }
  for (const group of wanted) machine.groups.add(group);
  report(kernel, truth, machine);
};

/** From now on its software joins the group, or does not: also wherever it is started later. */
export const setJoined = (kernel: Kernel, truth: Truth, vm: MachineTruth["vm"], group: Ipv4, joins: boolean): void => {
  const wanted = truth.joins.get(vm) ?? new Set();
  truth.joins.set(vm, wanted);
  if (joins) wanted.add(group);
  else wanted.delete(group);
  for (const machine of truth.machines)
    if (machine.vm === vm && kernel.clock.nowMs - machine.startedMs >= joinsAfterMs) joinAgain(kernel, truth, machine);
};

interface Watched {
  readonly host: HostName;
  readonly kernel: Kernel;
  readonly truth: Truth;
  readonly onGroups: (groups: readonly InterfaceGroups[]) => void;
}

/**
 * The driver's look at what guests have reported, for one life of a Host Manager: it asks, forgets the silent, makes the lists anew
 * and says what is others than before. Reports are there whether it lives or not.
 */
export const watchMemberships = (life: Life, { host, kernel, truth, onGroups }: Watched) => {
  const { clock } = kernel;
  const beganMs = clock.nowMs;
  let told: GlobalNetwork | null = null;
  let said = "[]";
  let isDue = false;
  const look = (): void => {
    const { memberships } = truth.dataplane(host);
    for (const groups of memberships.values())
      for (const [group, heardMs] of groups)
        if (clock.nowMs - Math.max(heardMs, beganMs) > forgetAfterMs) groups.delete(group);
    if (told === null) return;
    const facts = told.interfaces.flatMap(({ desired: { uid } }) => {
      const groups = [...(memberships.get(uid)?.keys() ?? [])].sort();
      return groups.length === 0 ? [] : [{ interface: uid, groups }];
    });
    const text = JSON.stringify(facts);
    if (text === said) return;
    said = text;
    writeLists(told);
    onGroups(facts);
  };
  const writeLists = ({ interfaces, locations }: GlobalNetwork): void => {
    const now = truth.dataplane(host);
    const lists = new Map<string, MemberTruth[]>();
    const put = (cell: number, group: Ipv4, member: MemberTruth): void => {
      const name = listName(cell, member.subnetIdentity, group);
      lists.set(name, [...(lists.get(name) ?? []), member]);
    };
    const here = new Set<string>();
    for (const { cellNumber, desired } of interfaces) {
      if (desired.management === true) continue;
      here.add(desired.address);
      for (const group of [everybody, ...(now.memberships.get(desired.uid)?.keys() ?? [])])
        put(cellNumber, group, { ...desired, host });
    }
    for (const location of locations) {
      if (here.has(location.address)) continue;
      for (const group of [everybody, ...(location.groups?.slice(0, mostGroups) ?? [])])
        put(location.cellNumber, group, location);
    }
    now.lists = lists;
  };
  const ask = (): void => {
    for (const machine of truth.machines)
      if (machine.host === host && isAwake(machine) && machine.groups.size > 0) report(kernel, truth, machine);
    life.timer(askAgainMs, ask);
  };
  const again = (): void => {
    look();
    life.timer(lookAgainMs, again);
  };
  const chance = kernel.random.fork(`memberships ${host} ${beganMs}`);
  truth.dataplane(host).reported = () => {
    if (isDue) return;
    isDue = true;
    life.timer(lookWithinMs * chance.next(), () => {
      isDue = false;
      look();
    });
  };
  life.timer(askAgainMs, ask);
  again();
  return {
    tell: (global: GlobalNetwork): void => {
      told = global;
      writeLists(global);
      look();
    },
  };
};
