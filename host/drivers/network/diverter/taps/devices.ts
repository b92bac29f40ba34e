import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync } from "node:fs";
import type { Uid } from "../../../../../model/cell/identifiers.ts";
import { indexOf, ioctl } from "../program/libbpf.ts";

/** Network devices of the namespace that this process is in. */

const TUNSETIFF = 0x400454ca;
const TUNSETPERSIST = 0x400454cb;
const TUNSETOWNER = 0x400454cc;
const TUNSETGROUP = 0x400454ce;
/** IFF_TAP | IFF_NO_PI | IFF_VNET_HDR: what QEMU opens it with, so that checksums and segmentation can stay undone. */
const tapFlags = 0x0002 | 0x1000 | 0x4000;

/** Name of the tap of an interface: `t` and twelve hexadecimal digits, within the kernel's 15 characters. */
export const tapName = (interfaceUid: Uid): string =>
  `t${createHash("sha256").update(interfaceUid).digest("hex").slice(0, 12)}`;

/** Names of the devices that look like the driver's own taps. */
export function findTaps(): readonly string[] {
  return readFileSync("/proc/self/net/dev", "utf8")
    .split("\n")
    .map((line) => line.split(":")[0]?.trim() ?? "")
    .filter((name) => /^t[0-9a-f]{12}$/.test(name));
}

/** Makes a tap that stays when no process holds it open; `owner` may open it without privileges. */
export function createTap(name: string, owner: { readonly uid: number; readonly gid: number }): void {
  const fd = openSync("/dev/net/tun", "r+");
  try {
    const request = Buffer.alloc(40);
    request.write(name, 0, "ascii");
    request.writeUInt16LE(tapFlags, 16);
    ioctl(fd, TUNSETIFF, request, `making tap ${name}`);
    ioctl(fd, TUNSETOWNER, owner.uid, `giving tap ${name} to user ${owner.uid}`);
    ioctl(fd, TUNSETGROUP, owner.gid, `giving tap ${name} to group ${owner.gid}`);
    ioctl(fd, TUNSETPERSIST, 1, `keeping tap ${name}`);
  } finally {
    closeSync(fd);
  }
}

const ip = (...args: readonly string[]): string => execFileSync("ip", [...args], { encoding: "utf8" });
/** Up, as large as the underlay's frames, and without IPv6 addresses of the host's own. */
export const bringUp = (name: string, mtu: number): void => {
  ip("link", "set", "dev", name, "mtu", String(mtu), "addrgenmode", "none", "up");
};
export const removeDevice = (name: string): void => {
  ip("link", "delete", "dev", name);
};
/** MAC and IPv4 addresses of a device, these as `<address>/<prefix length>`; null: there is none of that name. */
export function findDevice(name: string): { readonly mac: string; readonly addresses: readonly string[] } | null {
  if (indexOf(name) === 0) return null;
  const [link] = JSON.parse(ip("-j", "-4", "address", "show", "dev", name)) as readonly {
    readonly addr_info?: readonly { readonly local: string; readonly prefixlen: number }[];
  }[];
  const [{ address = "" } = {}] = JSON.parse(ip("-j", "link", "show", "dev", name)) as readonly {
    readonly address?: string;
  }[];
  return { mac: address, addresses: (link?.addr_info ?? []).map(({ local, prefixlen }) => `${local}/${prefixlen}`) };
}

/** Names of a bridge's ports. */
export function portsOf(bridge: string): ReadonlySet<string> {
  const links = JSON.parse(ip("-j", "link", "show", "master", bridge)) as readonly { readonly ifname?: string }[];
  return new Set(links.flatMap(({ ifname }) => ifname ?? []));
}
export const joinBridge = (port: string, bridge: string): void => {
  ip("link", "set", "dev", port, "master", bridge);
};
export const leaveBridge = (port: string): void => {
  ip("link", "set", "dev", port, "nomaster");
};

/** What a device has sent, which is what the guest behind a tap has received. */
export function sentBy(name: string): { readonly packets: number; readonly bytes: number } {
  const line = readFileSync("/proc/self/net/dev", "utf8")
    .split("\n")
    .find((text) => text.trim().startsWith(`${name}:`));
  const [, bytes = "0", packets = "0"] = /:(?:\s+\d+){8}\s+(\d+)\s+(\d+)/.exec(line ?? "") ?? [];
  return { packets: Number(packets), bytes: Number(bytes) };
}
