import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { DeviceAddress, LocalPlan } from "../plan/plan.ts";
import type { Run } from "./run.ts";

/*
 * Devices of this machine and their addresses. What a site has of its own stays: an address goes only where the plan says that its range is
 * the plan's, a device only where it is an instance's tap.
 */

export interface Link {
  readonly name: string;
  readonly index: number;
  readonly mtu: number;
  /** Device of which it is a VLAN. */
  readonly lower: string | null;
  /** Of a VLAN its tag, of a tunnel its number. */
  readonly number: number | null;
  /** Of a tunnel: this machine's address, and those at the other ends. */
  readonly local: string | null;
  readonly remotes: ReadonlySet<string>;
  readonly mac: string;
  /** Bridge of which it is a port. */
  readonly master: string | null;
  readonly isUp: boolean;
  /** As a port it gives back what came by it: an instance reaches its own public address. */
  readonly isHairpin: boolean;
  /** As the kernel says it: `tun`, `veth`, `bridge`; null: a card. */
  readonly kind: string | null;
  /** As 10.0.0.1/24. */
  readonly addresses: ReadonlySet<string>;
}
export interface Devices {
  readonly links: ReadonlyMap<string, Link>;
  readonly forwards: boolean;
  /** What passes a bridge is seen by iptables. */
  readonly filtersBridges: boolean;
}
interface ShownLink {
  readonly ifname: string;
  readonly ifindex: number;
  readonly mtu?: number;
  readonly link?: string | null;
  readonly address?: string;
  readonly master?: string;
  readonly flags: readonly string[];
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: { readonly id?: number; readonly local?: string };
    readonly info_slave_data?: { readonly hairpin?: boolean };
  };
  readonly addr_info?: readonly { readonly family: string; readonly local: string; readonly prefixlen: number }[];
}
const addressesOf = ({ addr_info = [] }: ShownLink): ReadonlySet<string> =>
  new Set(addr_info.flatMap(({ family, local, prefixlen }) => (family === "inet" ? [`${local}/${prefixlen}`] : [])));
const switches = ["net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"] as const;

export async function readDevices(run: Run): Promise<Devices> {
  // Where no bridge has been filtered yet, the kernel does not have the second one.
  const [text, said] = await Promise.all([
    run("ip", ["-j", "-d", "address", "show"]),
    run("sysctl", ["-e", ...switches]),
  ]);
  const shown = JSON.parse(text) as readonly ShownLink[];
  const ends = shown.some(({ linkinfo }) => linkinfo?.info_kind === "vxlan")
    ? await readEnds(run)
    : new Map<string, ReadonlySet<string>>();
  const links = shown.map((each): Link => {
    const { ifname, ifindex, address = "", master = null, flags, linkinfo, mtu = 1500 } = each;
    const data = linkinfo?.info_data;
    return {
      name: ifname,
      index: ifindex,
      mtu,
      lower: each.link ?? null,
      number: data?.id ?? null,
      local: data?.local ?? null,
      remotes: ends.get(ifname) ?? new Set(),
      mac: address,
      master,
      isUp: flags.includes("UP"),
      kind: linkinfo?.info_kind ?? null,
      isHairpin: linkinfo?.info_slave_data?.hairpin === true,
      addresses: addressesOf(each),
    };
  });
  const isOn = (name: string): boolean => said.includes(`${name} = 1`);
  return {
    links: new Map(links.map((link) => [link.name, link])),
    forwards: isOn(switches[0]),
    filtersBridges: isOn(switches[1]),
  };
}

/** Of one device; null: it is not there. */
export async function macOf(run: Run, device: string): Promise<string | null> {
  const text = await run("ip", ["-j", "link", "show", "dev", device]).catch((error: Error) => {
    if (/does not exist|Cannot find device/.test(error.message)) return "[]";
    throw error;
  });
  return (JSON.parse(text) as readonly ShownLink[]).find(({ ifname }) => ifname === device)?.address ?? null;
}

interface ShownEnd {
  readonly mac: string;
  readonly ifname: string;
  readonly dst?: string;
}
export const everyMac = "00:00:00:00:00:00";
/** Where tunnels send what is for all, by the tunnel's name. */
async function readEnds(run: Run): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const ends = new Map<string, Set<string>>();
  for (const { mac, ifname, dst } of JSON.parse(await run("bridge", ["-j", "fdb", "show"])) as readonly ShownEnd[])
    if (mac === everyMac && dst !== undefined) ends.set(ifname, (ends.get(ifname) ?? new Set()).add(dst));
  return ends;
}

/** The VLAN of a group's bridge. */
export const vlanOf = (tag: number): string => `vl_${tag}`;
export type Command = readonly [program: string, ...args: string[]];
export const ip = (...args: readonly string[]): Command => ["ip", ...args];

/** What is to be run so that the plan's devices are there; none: they are. Addresses are another call. */
export function deviceChanges(
  { bridge, taps, forwards, filtersBridges }: Pick<LocalPlan, "bridge" | "taps" | "forwards" | "filtersBridges">,
  { links, ...found }: Devices,
): readonly Command[] {
  const known = bridge === null ? undefined : links.get(bridge.name);
  const isJoined = taps.some((tap) => tap.bridge === bridge?.name && links.get(tap.name)?.master !== tap.bridge);
  return [
    ...(forwards && !found.forwards ? [["sysctl", "-q", "-w", `${switches[0]}=1`] as const] : []),
    ...(filtersBridges === null || filtersBridges === found.filtersBridges
      ? []
      : [["sysctl", "-q", "-w", `${switches[1]}=${filtersBridges ? 1 : 0}`] as const]),
    // Of itself a bridge takes the MAC of one of its ports, and another one when that goes; one that was set it keeps.
    ...(bridge === null || (known?.mac.toUpperCase() === bridge.mac.toUpperCase() && !isJoined)
      ? []
      : [ip("link", "set", "dev", bridge.name, "address", bridge.mac)]),
    ...(bridge === null || known?.isUp === true ? [] : [ip("link", "set", "dev", bridge.name, "up")]),
    ...taps.flatMap((tap) => {
      const link = links.get(tap.name);
      return [
        ...(link === undefined ? [ip("tuntap", "add", "dev", tap.name, "mode", "tap", "vnet_hdr")] : []),
        ...(link?.master === tap.bridge ? [] : [ip("link", "set", "dev", tap.name, "master", tap.bridge)]),
        ...(link?.master === tap.bridge && link.isHairpin
          ? []
          : [ip("link", "set", "dev", tap.name, "type", "bridge_slave", "hairpin", "on")]),
        ...(link?.isUp === true ? [] : [ip("link", "set", "dev", tap.name, "up")]),
      ];
    }),
    ...staleTaps(taps, links),
  ];
}
/**
 * Devices by the names that they had before 4.2, as they are called now: taps `vnetN`, whose instance the last four bytes of the MAC tell, and
 * bridges `eucabrN` of the tag N, with the wire's VLAN that is a port of it. A VLAN that is no port of such a bridge is the site's, and what it
 * leads to is no group's. A device that is up can be renamed from Linux 6.2 on.
 */
export function renamedDevices(
  { taps, bridges, wire }: Pick<LocalPlan, "taps" | "bridges" | "wire">,
  { links }: Pick<Devices, "links">,
): readonly { readonly device: string; readonly name: string }[] {
  const wanted = new Set(taps.map(({ name }) => name));
  // Of an upgrade that ended in the middle the bridge is called otherwise already.
  const isGroups = (tag: number | null, master: string | null): boolean =>
    bridges.some((bridge) => bridge.tag === tag && (master === `eucabr${tag}` || master === bridge.name));
  return [...links.values()].flatMap(({ name, mac, kind, lower, number, master }) => {
    const [, tag] = /^eucabr(\d{1,4})$/.exec(name) ?? [];
    const tap = `vn_i-${mac.split(":").slice(2).join("").toLowerCase()}`;
    const now = /^vnet\d+$/.test(name)
      ? wanted.has(tap)
        ? tap
        : undefined
      : kind === "vlan" && lower === wire && isGroups(number, master)
        ? vlanOf(number ?? 0)
        : bridges.find((bridge) => String(bridge.tag) === tag)?.name;
    return now === undefined || links.has(now) ? [] : [{ device: name, name: now }];
  });
}

/** Taps of instances that are not here any more; another kind of device is somebody's, and is no port any longer. */
function staleTaps(taps: LocalPlan["taps"], links: Devices["links"]): readonly Command[] {
  const keep = new Set(taps.map(({ name }) => name));
  return [...links.values()].flatMap(({ name, kind, master }) => {
    if (!name.startsWith("vn_i-") || keep.has(name)) return [];
    if (kind === "tun") return [ip("link", "delete", "dev", name)];
    return master === null ? [] : [ip("link", "set", "dev", name, "nomaster")];
  });
}

const textOf = ({ address, prefixLength }: DeviceAddress): string => `${formatIpv4(address)}/${prefixLength}`;
export interface AddressChanges {
  readonly added: readonly DeviceAddress[];
  readonly removed: readonly { readonly device: string; readonly address: string }[];
}
export function addressChanges(
  { addresses, managed }: Pick<LocalPlan, "addresses" | "managed">,
  { links }: Devices,
): AddressChanges {
  const wanted = new Set(addresses.map(keyOf));
  const added = addresses.filter((each) => links.get(each.device)?.addresses.has(textOf(each)) !== true);
  const removed = managed.flatMap(({ device, ranges }) =>
    [...(links.get(device)?.addresses ?? [])]
      .filter((text) => {
        const address = parseIpv4(text.split("/")[0] ?? "") ?? -1;
        return (
          ranges.some(({ first, last }) => first <= address && address <= last) && !wanted.has(`${device} ${text}`)
        );
      })
      .map((address) => ({ device, address })),
  );
  return { added, removed };
}
/** So many seconds are left of the lease by which this machine has addresses; null: it has them without one. */
export type LeftOfLease = () => number | null;
const isOver = (seconds: number | null): boolean => seconds !== null && seconds < 1;

export async function applyAddresses(
  run: Run,
  { added, removed }: AddressChanges,
  left: LeftOfLease = () => null,
): Promise<void> {
  // One that had an end may have come to it meanwhile.
  await inOne(
    run,
    removed.map(({ device, address }) => `address del ${address} dev ${device}`),
    (message) => message.includes("Address not found"),
  );
  for (let next = 0; next < added.length; ) {
    const seconds = left();
    if (isOver(seconds)) throw new Error("the lease by which this machine carries its cluster is over");
    // Under a lease each anew: this process may have stood still since the one before.
    const due = added.slice(next, next + (seconds === null ? mostInOne : 1));
    const words = lifetime(seconds);
    await inOne(
      run,
      due.map((each) => ["address", "add", textOf(each), "dev", each.device, ...words].join(" ")),
    );
    next += due.length;
  }
}
/** A machine may carry a thousand addresses, and the kernel takes up to 0.1 s for some calls, of which none lasts for ever. */
const mostInOne = 200;
/** Calls of `ip` one behind the other, until one fails. @param passes what is no failure */
async function inOne(
  run: Run,
  lines: readonly string[],
  passes: (message: string) => boolean = () => false,
): Promise<void> {
  for (let next = 0; next < lines.length; ) {
    const due = lines.slice(next, next + mostInOne);
    next += due.length;
    try {
      const [first = ""] = due;
      if (due.length === 1) await run("ip", first.split(" "));
      else await run("ip", ["-batch", "-"], due.map((line) => `${line}\n`).join(""));
    } catch (error) {
      const { message } = error as Error;
      if (!passes(message)) throw error;
      // What stands behind it has not been tried.
      const at = due.length === 1 ? 1 : Number(/^Command failed -:(\d+)$/m.exec(message)?.[1] ?? 0);
      if (at === 0) throw error;
      next += at - due.length;
    }
  }
}
const lifetime = (seconds: number | null): readonly string[] =>
  seconds === null ? [] : ["valid_lft", String(seconds), "preferred_lft", String(seconds)];
/**
 * Has the kernel take addresses away when the lease is over, in place of when that was to be before. It does so whatever runs. Those alone that are
 * there: `change` would bring others, before what translates them and without a word to neighbours, and `add` would fail then.
 */
export async function prolong(run: Run, wanted: () => readonly DeviceAddress[], left: LeftOfLease): Promise<void> {
  if (wanted().length === 0) return;
  const shown = JSON.parse(await run("ip", ["-j", "address", "show"])) as readonly ShownLink[];
  const there = new Map(shown.map((link) => [link.ifname, addressesOf(link)]));
  const seconds = left();
  const addresses = wanted().filter((each) => there.get(each.device)?.has(textOf(each)) === true);
  if (addresses.length === 0 || isOver(seconds)) return;
  const words = seconds === null ? ["valid_lft", "forever", "preferred_lft", "forever"] : lifetime(seconds);
  const lines = addresses.map((each) => ["address", "change", textOf(each), "dev", each.device, ...words].join(" "));
  await run("ip", ["-force", "-batch", "-"], `${lines.join("\n")}\n`);
}

const keyOf = (each: DeviceAddress): string => `${each.device} ${textOf(each)}`;
/** Tells neighbours where addresses are now. Takes a second each, so nobody waits for it; what failed is due again. */
export class Announcer {
  readonly #run: Run;
  readonly #failed = new Map<string, DeviceAddress>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #waiting: DeviceAddress[] = [];

  constructor(run: Run) {
    this.#run = run;
  }
  /** Of the addresses that a plan has, those whose announcement failed; what it has no more is nobody's to announce. */
  failedOf(wanted: readonly DeviceAddress[]): readonly DeviceAddress[] {
    const keep = new Set(wanted.map(keyOf));
    for (const [key] of this.#failed) if (!keep.has(key)) this.#failed.delete(key);
    return [...this.#failed.values()];
  }
  announce(addresses: readonly DeviceAddress[]): void {
    this.#waiting.push(...addresses);
    while (this.#underWay.size < mostAtOnce) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const work = this.#one(next).finally(() => {
        this.#underWay.delete(work);
        this.announce([]);
      });
      this.#underWay.add(work);
    }
  }
  async #one(address: DeviceAddress): Promise<void> {
    try {
      const { device, address: number } = address;
      await this.#run("arping", ["-c", "5", "-w", "1", "-U", "-I", device, formatIpv4(number)]);
      this.#failed.delete(keyOf(address));
    } catch {
      this.#failed.set(keyOf(address), address);
    }
  }
  /** Done when all that was asked for has been tried. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
}
const mostAtOnce = 16;
