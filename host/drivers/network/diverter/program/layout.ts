import { type Ipv4, ipv4, type Mac, mac } from "../../../../../model/cell/identifiers.ts";

/**
 * Layouts of the dataplane's keys and values, declared once: everything in TypeScript encodes and decodes by these, and a
 * test compares them with the BTF of the compiled object. Fields follow C's natural alignment.
 *
 * `ipv4`, `mac` and `port` are in network order and appear as text and number; integers are the machine's (little endian).
 */
type FieldType = "u8" | "u16" | "u32" | "u64" | "port" | "ipv4" | "mac" | { readonly bytes: number };
type ValueOf<T> = T extends "u64"
  ? bigint
  : T extends "ipv4"
    ? Ipv4
    : T extends "mac"
      ? Mac
      : T extends { readonly bytes: number }
        ? Uint8Array
        : number;
type Fields = { readonly [name: string]: FieldType };
export type Decoded<L> = L extends Layout<infer F> ? { readonly [K in keyof F]: ValueOf<F[K]> } : never;

export interface Layout<F extends Fields> {
  readonly name: string;
  readonly size: number;
  readonly offsets: { readonly [K in keyof F]: number };
  encode(values: { readonly [K in keyof F]?: ValueOf<F[K]> }): Buffer;
  decode(bytes: Uint8Array): { readonly [K in keyof F]: ValueOf<F[K]> };
}

const sizes = { u8: 1, u16: 2, u32: 4, u64: 8, port: 2, ipv4: 4, mac: 6 } as const;
const alignments = { u8: 1, u16: 2, u32: 4, u64: 8, port: 2, ipv4: 4, mac: 1 } as const;
const sizeOf = (type: FieldType): number => (typeof type === "string" ? sizes[type] : type.bytes);
const alignmentOf = (type: FieldType): number => (typeof type === "string" ? alignments[type] : 1);

/** Four octets of a dotted address; throws on anything else, for an address reaches this place only checked. */
export function octets(address: string): readonly number[] {
  const parts = address.split(".").map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255))
    throw new Error(`"${address}" is no IPv4 address; four numbers from 0 to 255 with dots between them are`);
  return parts;
}
export const toNumber = (address: string): number => octets(address).reduce((sum, part) => sum * 256 + part, 0);
export const fromNumber = (value: number): Ipv4 =>
  ipv4([24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join("."));

type Write = (buffer: Buffer, value: unknown) => void;
/** Writes a value at its place. Entries are made by the ten thousand, so what to do is chosen once for each field. */
function writer(offset: number, type: FieldType): Write {
  if (typeof type !== "string")
    return (buffer, value) => buffer.set((value as Uint8Array).subarray(0, type.bytes), offset);
  switch (type) {
    case "u64":
      return (buffer, value) => buffer.writeBigUInt64LE(value as bigint, offset);
    case "ipv4":
      return (buffer, value) => buffer.set(octets(value as string), offset);
    case "mac":
      return (buffer, value) =>
        buffer.set(
          (value as string).split(":").map((part) => Number.parseInt(part, 16)),
          offset,
        );
    case "port":
      return (buffer, value) => buffer.writeUInt16BE(value as number, offset);
    case "u32":
      return (buffer, value) => buffer.writeUInt32LE(value as number, offset);
    case "u16":
      return (buffer, value) => buffer.writeUInt16LE(value as number, offset);
    case "u8":
      return (buffer, value) => buffer.writeUInt8(value as number, offset);
  }
}
function read(buffer: Buffer, offset: number, type: FieldType): unknown {
  if (typeof type !== "string") return Uint8Array.prototype.slice.call(buffer, offset, offset + type.bytes);
  switch (type) {
    case "u64":
      return buffer.readBigUInt64LE(offset);
    case "ipv4":
      return ipv4([...buffer.subarray(offset, offset + 4)].join("."));
    case "mac":
      return mac([...buffer.subarray(offset, offset + 6)].map((part) => part.toString(16).padStart(2, "0")).join(":"));
    case "port":
      return buffer.readUInt16BE(offset);
    default:
      return buffer.readUIntLE(offset, sizeOf(type));
  }
}

function layout<const F extends Fields>(name: string, fields: F): Layout<F> {
  let end = 0;
  let widest = 1;
  const offsets: Record<string, number> = {};
  for (const [field, type] of Object.entries(fields)) {
    const alignment = alignmentOf(type);
    widest = Math.max(widest, alignment);
    end = Math.ceil(end / alignment) * alignment;
    offsets[field] = end;
    end += sizeOf(type);
  }
  const size = Math.ceil(end / widest) * widest;
  const writers = Object.entries(fields).map(([field, type]) => [field, writer(offsets[field]!, type)] as const);
  return {
    name,
    size,
    offsets: offsets as { readonly [K in keyof F]: number },
    encode(values) {
      const buffer = Buffer.allocUnsafe(size).fill(0);
      for (const [field, write] of writers) if (values[field] !== undefined) write(buffer, values[field]);
      return buffer;
    },
    decode(bytes) {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, size);
      const entries = Object.entries(fields).map(([field, type]) => [field, read(buffer, offsets[field]!, type)]);
      return Object.fromEntries(entries) as { readonly [K in keyof F]: ValueOf<F[K]> };
    },
  };
}

export const config = layout("config", { uplink: "u32", host_address: "ipv4", host_mac: "mac", gateway_mac: "mac" });
export const interfaceState = layout("interface_state", {
  address: "ipv4",
  mask: "ipv4",
  gateway: "ipv4",
  cell: "u32",
  identity: "u32",
  vm_identity: "u32",
  subnet_identity: "u32",
  mac: "mac",
  mtu: "u16",
  slot: "u32",
});
export const identityKey = layout("identity_key", { cell: "u32", address: "ipv4" });
export const identities = layout("identities", { identity: "u32", vm_identity: "u32", subnet_identity: "u32" });
export const location = layout("location", { mac: "mac", padding: { bytes: 2 }, cell: "u32" });
export const controller = layout("controller", {
  address: "ipv4",
  identity: "u32",
  mac: "mac",
  padding: { bytes: 2 },
});
export const policyState = layout("policy_state", { version: "u32" });
export const policyKey = layout("policy_key", {
  prefix_length: "u32",
  kind: "u8",
  protocol: "u8",
  zero: "u16",
  from: "u32",
  to: "u32",
  port: "port",
  padding: "u16",
});
export const sourceRange = layout("source_range", { rule: "u32", first: "u16", last: "u16" });
/** Source ranges that one entry of a policy can hold. */
export const sourceRanges = 8;
export const policyEntry = layout("policy_entry", {
  count: "u32",
  ranges: { bytes: sourceRanges * sourceRange.size },
});
export const flowKey = layout("flow_key", {
  remote: "ipv4",
  local_port: "u16",
  remote_port: "u16",
  protocol: "u8",
  kind: "u8",
  zero: "u16",
});
export const flow = layout("flow", {
  last_seen: "u64",
  host: "u64",
  rule: "u32",
  generation: "u32",
  local_port: "u16",
  remote_port: "u16",
  opened_out: "u8",
  finished: "u8",
  counted: "u8",
  answered: "u8",
});
/** In the order of `enum drop_reason`, without PASS. */
export const dropReasons = [
  "malformed",
  "spoofed-mac",
  "spoofed-address",
  "ipv6",
  "other-ethertype",
  "rogue-dhcp",
  "rogue-arp",
  "broadcast",
  "no-rule",
  "no-location",
  "fragment",
  "wrong-host",
  "inside-from-outside",
  "not-from-router",
  "no-router",
] as const;
export const interfaceCounters = layout("interface_counters", {
  sent_packets: "u64",
  sent_bytes: "u64",
  received_packets: "u64",
  received_bytes: "u64",
  drops: { bytes: 16 * 8 },
});
export const ruleKey = layout("rule_key", { cell: "u32", rule: "u32" });
export const ruleCounters = layout("rule_counters", { packets: "u64", bytes: "u64" });
export const dhcpAnswer = layout("dhcp_answer", {
  names: { bytes: 192 },
  cookie: { bytes: 4 },
  options: { bytes: 308 },
});
export const probeKey = layout("probe_key", {
  ifindex: "u32",
  here: "u16",
  there: "u16",
  protocol: "u8",
  padding: { bytes: 3 },
});
/** Ethernet type of a host's question to a machine of another host, and of its answer. */
export const questionType = 0x88b5;
export const askedKey = layout("asked_key", { host: "u64", address: "ipv4", here: "u16", there: "u16" });
export const asker = layout("asker", { mac: "mac", padding: { bytes: 2 } });
export const outside = layout("outside", { router: "u64", device: "u32", mac: "mac" });
export const router = layout("router", { mac: "u64", heard: "u64", address: "ipv4" });
/** Routers that a host may have. */
export const mostRouters = 4;
export const networkKey = layout("network_key", { prefix_length: "u32", address: "ipv4" });
/** `enum network_kind`. */
export const networkKinds = { elsewhere: 0, notOutside: 1, external: 2 } as const;
export const fanoutKey = layout("fanout_key", { cell: "u32", subnet: "u32", group: "ipv4" });
export const member = layout("member", { address: "ipv4", ifindex: "u32", mac: "mac", padding: { bytes: 2 } });
/** Members that a list may have: those behind are left out. */
export const mostMembers = 1024;
export const subnetKey = layout("subnet_key", { cell: "u32", subnet: "u32" });
/** Groups that a guest may have joined by itself. */
export const mostGroups = 16;
export const joined = layout("joined", { heard: { bytes: 8 * mostGroups }, groups: { bytes: 4 * mostGroups } });
export const copies = layout("copies", { last: "u64", left: "u64" });
export const word = layout("u32", { value: "u32" });
export const addressKey = layout("address", { address: "ipv4" });

/** Every struct that the object must declare in the same way. */
export const declared = [
  config,
  interfaceState,
  identityKey,
  identities,
  location,
  controller,
  policyState,
  policyKey,
  sourceRange,
  policyEntry,
  flowKey,
  flow,
  interfaceCounters,
  ruleKey,
  ruleCounters,
  dhcpAnswer,
  probeKey,
  askedKey,
  asker,
  outside,
  router,
  networkKey,
  fanoutKey,
  member,
  subnetKey,
  copies,
  joined,
] as const;

/** Maps of the object with the sizes of their keys and values; per-CPU values count once. */
export const mapSizes = {
  config: [4, config.size],
  generations: [4, 4],
  outside: [4, outside.size],
  routers: [4, router.size],
  networks: [networkKey.size, 4],
  interfaces: [4, interfaceState.size],
  endpoints: [4, 4],
  services: [4, 4],
  identities: [identityKey.size, identities.size],
  locations: [4, location.size],
  controllers: [4, controller.size],
  policies: [4, policyState.size],
  fanout: [fanoutKey.size, 4],
  broadcasts: [identityKey.size, subnetKey.size],
  copies_left: [4, copies.size],
  memberships: [4, joined.size],
  parts: [4, 4],
  dhcp: [4, dhcpAnswer.size],
  probes: [probeKey.size, 4],
  asked: [askedKey.size, 4],
  askers: [probeKey.size, asker.size],
  rules: [4, 4],
  flows: [4, 4],
  openings: [4, 4],
  counters: [4, interfaceCounters.size],
  slots: [4, 4],
  rule_counts: [ruleKey.size, ruleCounters.size],
} as const satisfies { readonly [map: string]: readonly [number, number] };
export type MapName = keyof typeof mapSizes;
export const mapNames = Object.keys(mapSizes) as readonly MapName[];
