import type { BridgePlan, LocalPlan, TunnelPlan } from "../plan/plan.ts";
import type { FoundTag, Tag } from "../tags/tags.ts";
import { type Command, type Devices, everyMac, ip, type Link, vlanOf } from "./devices.ts";
import type { Run } from "./run.ts";

/*
 * What is of a group's segment: a bridge by the group's name, the VLAN `vl_N` of the wire, and where the group has members in other clusters the
 * tunnel `vx_N`, both ports of it. A tunnel gives nothing back to where it came from, so no frame goes in a circle, however many clusters there are.
 */

type Wanted = Pick<LocalPlan, "bridges" | "wire" | "tunnels">;
/** How a VLAN is made: a device of the kernel's, or one without a way out, for which programs give tags and take them. */
export type TagForm = "device" | "program";
const kinds = { device: "vlan", program: "ifb" } as const;

export const tunnelOf = (tag: number): string => `vx_${tag}`;
/** Known from the gateway's address: the same at whichever machine has it, and another one than any other gateway's. */
function gatewayMac(gateway: number): string {
  const bytes = [0x02, 0xce, ...[24, 16, 8, 0].map((shift) => (gateway >>> shift) & 0xff)];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/**
 * A machine's kernel may be without 802.1Q: tried at the device itself. Only its word that it has no such devices makes it one, since the other form
 * takes all of them away: a trial that came to no end is made again.
 */
export async function probeForm(run: Run, wire: string): Promise<TagForm> {
  const [probe, tag] = ["vl_probe", "4094"];
  try {
    await run("ip", ["link", "add", "link", wire, "name", probe, "type", "vlan", "id", tag]);
  } catch (error) {
    const { message } = error as Error;
    if (message.includes("File exists")) return "device";
    if (/Unknown device type|not supported/.test(message)) return "program";
    throw error;
  }
  await run("ip", ["link", "delete", "dev", probe]);
  return "device";
}

const up = (name: string, link: Link | undefined): readonly Command[] =>
  link?.isUp === true ? [] : [ip("link", "set", "dev", name, "addrgenmode", "none", "up")];
const joined = (name: string, bridge: string, link: Link | undefined): readonly Command[] =>
  link?.master === bridge ? [] : [ip("link", "set", "dev", name, "master", bridge)];

function bridgeChanges({ name, gateway }: BridgePlan, links: Devices["links"]): readonly Command[] {
  const link = links.get(name);
  const mac = gateway === null ? null : gatewayMac(gateway);
  const address = mac === null || mac === link?.mac ? [] : [ip("link", "set", "dev", name, "address", mac)];
  return [
    ...(link === undefined ? [ip("link", "add", "name", name, "type", "bridge")] : []),
    ...address,
    ...up(name, link),
  ];
}
function vlanChanges(
  { name: bridge, tag }: BridgePlan,
  wire: string,
  links: Devices["links"],
  form: TagForm,
): readonly Command[] {
  const name = vlanOf(tag);
  const found = links.get(name);
  const link = found !== undefined && isVlan(found, tag, wire, form) ? found : undefined;
  const id = String(tag);
  const mtu = String(links.get(wire)?.mtu ?? 1500);
  const made =
    form === "device"
      ? ip("link", "add", "link", wire, "name", name, "type", "vlan", "id", id)
      : ip("link", "add", "name", name, "mtu", mtu, "type", kinds.program);
  return [
    ...(found !== undefined && link === undefined ? [ip("link", "delete", "dev", name)] : []),
    ...(link === undefined ? [made] : []),
    ...joined(name, bridge, link),
    ...up(name, link),
  ];
}
const isVlan = ({ kind, number, lower }: Link, tag: number, wire: string, form: TagForm): boolean =>
  kind === kinds[form] && (form === "program" || (number === tag && lower === wire));

function tunnelChanges(
  { tag, bridge, local, remotes }: TunnelPlan,
  wire: string,
  links: Devices["links"],
): readonly Command[] {
  const name = tunnelOf(tag);
  const found = links.get(name);
  const isSame = found?.kind === "vxlan" && found.number === tag && found.local === local;
  const link = isSame ? found : undefined;
  const mtu = String(links.get(wire)?.mtu ?? 1500);
  const made = ["name", name, "mtu", mtu, "type", "vxlan", "id", String(tag), "local", local, "dstport", "4789"];
  const end = (verb: string, remote: string): Command => [
    "bridge",
    ...["fdb", verb, everyMac, "dev", name, "dst", remote, "self", "permanent"],
  ];
  return [
    ...(found !== undefined && link === undefined ? [ip("link", "delete", "dev", name)] : []),
    ...(link === undefined ? [ip("link", "add", ...made)] : []),
    ...[...(link?.remotes ?? [])].filter((remote) => !remotes.includes(remote)).map((remote) => end("del", remote)),
    ...remotes.filter((remote) => link?.remotes.has(remote) !== true).map((remote) => end("append", remote)),
    ...joined(name, bridge, link),
    ...up(name, link),
  ];
}

/**
 * What is to be run so that segments' devices are there, and those of no segment are not.
 * @param form absent: as what there is says
 */
export function segmentChanges(
  { bridges, wire, tunnels }: Wanted,
  { links }: Pick<Devices, "links">,
  form?: TagForm,
): readonly Command[] {
  const formOf = (tag: number): TagForm =>
    form ?? (links.get(vlanOf(tag))?.kind === kinds.program ? "program" : "device");
  const keep = new Set([
    ...bridges.flatMap(({ name, tag }) => [name, vlanOf(tag)]),
    ...tunnels.map(({ tag }) => tunnelOf(tag)),
  ]);
  return [
    ...bridges.flatMap((bridge) => [
      ...bridgeChanges(bridge, links),
      ...vlanChanges(bridge, wire, links, formOf(bridge.tag)),
    ]),
    ...tunnels.flatMap((tunnel) => tunnelChanges(tunnel, wire, links)),
    ...[...links.values()]
      .filter((link) => isSegments(link) && !keep.has(link.name))
      .map(({ name }) => ip("link", "delete", "dev", name)),
  ];
}
const isSegments = ({ name, kind }: Link): boolean =>
  (name.startsWith("sg-") && kind === "bridge") ||
  (/^vl_(?:\d+|probe)$/.test(name) && (kind === kinds.device || kind === kinds.program)) ||
  (/^vx_\d+$/.test(name) && kind === "vxlan");

/** Of devices that have tags by programs. */
export function wantedTags({ bridges, wire }: Wanted, { links }: Pick<Devices, "links">): readonly Tag[] {
  const below = links.get(wire);
  return bridges.flatMap(({ tag }) => {
    const link = links.get(vlanOf(tag));
    return below === undefined || link?.kind !== kinds.program ? [] : [{ wire: below.index, tag, device: link.index }];
  });
}
const textOf = ({ wire, tag, device }: Tag): string => `${wire} ${tag} ${device}`;
export function areTagsDue(wanted: readonly Tag[], found: readonly FoundTag[]): boolean {
  const working = new Set(found.filter(({ works }) => works).map(textOf));
  return wanted.length !== found.length || wanted.some((tag) => !working.has(textOf(tag)));
}
