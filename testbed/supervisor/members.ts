import { isPersonality, servicePeer } from "../../core/documents/service-roles.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { network, type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { type Door, doors, type InstallationRecord } from "../record.ts";

export type Role = ProcessConfiguration["role"];

/** One machine of the testbed: a network namespace on the underlay and the one process of Cells in it. */
export interface Member {
  /** Short name, of its directory, its namespace and in commands: `h1`, `controller.shop`. */
  readonly name: string;
  readonly peer: PeerName;
  readonly role: Role;
  readonly address: string;
  /** File of the repository that Node runs. */
  readonly main: string;
  /** All of these answer when it is up; the gateway's own port is outside. */
  readonly answersOn: readonly number[];
  readonly number: number;
}

/** Whose own port is outside, on a socket that it is handed. */
export const isOutside = (role: Role): boolean => role === "gateway" || isPersonality(role);
export const doorMember = (door: Door): Member => service(`personality.${door}`, network[door]);

const service = (name: Role, address: string): Member => ({
  name,
  peer: peerName(name),
  role: name,
  address,
  main: isOutside(name) ? "gateway/main.ts" : "runtime/main.ts",
  answersOn: isOutside(name) ? [] : [ports.distribution],
  number: 0,
});

/** Members of the Presence group: a majority of three goes on without one. */
export const presenceMembers = 3;
const presenceMember = (number: number): Member => ({
  ...service("presence", network.presence(number)),
  name: `presence.${number}`,
  peer: peerName(`presence.${number}`),
  number,
});

/** A second, third, … Placer and Storage Manager, at addresses that nobody else has. */
const furtherMembers = (number: number): readonly Member[] =>
  (["storage-manager", "placer"] as const).map((role, index) => ({
    ...service(role, `10.0.0.${100 + 50 * index + number}`),
    name: `${role}.${number}`,
    peer: servicePeer(role, number),
    number,
  }));

export const hostMember = (number: number): Member => ({
  name: `h${number}`,
  peer: peerName(`host.h${number}`),
  role: "host",
  address: network.host(number),
  main: "host/main.ts",
  answersOn: [ports.distribution, ports.http],
  number,
});

export const serverMember = (number: number): Member => ({
  name: `s${number}`,
  peer: peerName(`agent.s${number}`),
  role: "agent",
  address: network.server(number),
  main: "host/storage-agent/main.ts",
  answersOn: [ports.distribution, ports.http],
  number,
});

export const controllerMember = (cell: string, cellNumber: number): Member => ({
  name: `controller.${cell}`,
  peer: peerName(`controller.${cell}`),
  role: "controller",
  address: network.controller(cellNumber),
  main: "runtime/main.ts",
  answersOn: [ports.distribution, ports.http],
  number: cellNumber,
});

/** Everything that a testbed consists of, as `cells status` lists it. `installation.ts` starts hosts and servers first. */
export const membersOf = (record: InstallationRecord): readonly Member[] =>
  record.profile === undefined
    ? [...coreMembers(record), ...substrateOf(record), ...edgeOf(record)]
    : substrateOf(record);

const coreMembers = ({ services = 1, ha, networkModes, rootCell }: InstallationRecord): readonly Member[] => [
  service("storage-manager", network.storageManager),
  service("address-manager", network.addressManager),
  service("dns-manager", network.dnsManager),
  service("placer", network.placer),
  service("directory", network.directory),
  ...(ha === true ? [service("ha-manager", network.haManager)] : []),
  ...(rootCell === true ? [service("cell-manager", network.cellManager)] : []),
  service("tenancy", network.tenancy),
  ...(networkModes === undefined ? [] : [service("network-view-manager", network.networkViewManager)]),
  ...Array.from({ length: services - 1 }, (_, index) => furtherMembers(index + 2)).flat(),
  ...Array.from({ length: presenceMembers }, (_, index) => presenceMember(index + 1)),
];
/** What is a machine itself, however the rest runs. */
const substrateOf = (record: InstallationRecord): readonly Member[] => [
  ...Array.from({ length: record.servers }, (_, index) => serverMember(index + 1)),
  ...Array.from({ length: record.hosts }, (_, index) => hostMember(index + 1)),
];
const edgeOf = (record: InstallationRecord): readonly Member[] => [
  ...Object.entries(record.cells).map(([cell, { cellNumber }]) => controllerMember(cell, cellNumber)),
  service("gateway", network.gateway),
  ...doorsOf(record).map(doorMember),
];
/** In the order in which their sockets were handed over. */
export const doorsOf = ({ doors: open = {} }: InstallationRecord): readonly Door[] =>
  doors.filter((door) => open[door] !== undefined);

/** A locally administered address that says whose it is: `02:00` and the four bytes of the underlay address. */
export const macOf = (address: string): string =>
  ["02", "00", ...address.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"))].join(":");

/** Peer → address, for `peers.json`. */
export const peersOf = (members: readonly Member[]): Readonly<Record<string, string>> =>
  Object.fromEntries(members.map(({ peer, address }) => [peer, address]));
