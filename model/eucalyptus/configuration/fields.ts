import { parseIpv4 } from "../../addresses/addresses.ts";
import { isMode, modes, otherMode } from "../../cell/network/modes.ts";
import { didYouMean } from "../../diagnostics/closest-name.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";
import type { Pointer } from "../../json/pointer.ts";
import { type AddressRange, prefixOfNetmask, readRange } from "../addresses/ranges.ts";
import type {
  ClusterConfiguration,
  ManagedConfiguration,
  NetworkConfiguration,
  SubnetConfiguration,
} from "./configuration.ts";
import type { Faults } from "./faults.ts";

/*
 * The fields, each by itself: of the right type and form. What they mean together is in `check.ts`. A value that is wrong is told
 * and left out.
 */

/** Ranges and items of one list. */
const mostItems = 10_000;
const longestName = 255;

const shown = (json: Json): string => {
  const text = JSON.stringify(json);
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
};

type Read<T> = (json: Json, path: Pointer, faults: Faults) => T | undefined;

/** `fault` gives a sentence for what is no value, `read` the value of a text. */
const textual =
  <T>(read: (text: string) => T | null, right: string): Read<T> =>
  (json, path, faults) => {
    const value = typeof json === "string" ? read(json) : null;
    if (value === null) faults.add(path, `${shown(json)} is not ${right}`);
    return value ?? undefined;
  };

const name = textual(
  (text) => (text.length <= longestName && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text) ? text : null),
  `a name: letters, digits, ".", "_" and "-", beginning with a letter or digit, at most ${longestName} characters`,
);
const subnetName = textual(
  (text) => (text.length <= longestName && /^[A-Za-z0-9][A-Za-z0-9._/ -]*$/.test(text) ? text : null),
  `a name of letters, digits, ".", "_", "/" and "-", at most ${longestName} characters`,
);
const address = textual(parseIpv4, "an IPv4 address");
const netmask = textual((text) => {
  const mask = parseIpv4(text);
  return mask === null || mask === 0 || prefixOfNetmask(mask) === null ? null : mask;
}, "a netmask: ones and then zeros, as 255.255.255.0");
const macPrefix = textual(
  (text) => (/^[0-9a-fA-F]{2}:[0-9a-fA-F]{2}$/.test(text) ? text.toLowerCase() : null),
  'a MAC prefix: two bytes in hexadecimal digits, as "d0:0d"',
);
/** RFC 1123, 2.1. */
const isDomain = (text: string): boolean =>
  text.length <= 253 && text.split(".").every((label) => /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label));
const domain = textual((text) => (isDomain(text) ? text : null), "a domain name");
const mode = textual(
  (text) => (isMode(text) || text === otherMode ? text : null),
  `a network mode: ${modes.join(", ")} are there`,
);

const whole: Read<number> = (json, path, faults) => {
  const value = typeof json === "string" && /^\d{1,9}$/.test(json) ? Number(json) : json;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  faults.add(path, `${shown(json)} is not a whole number`);
  return undefined;
};

const mostMinutes = 525_600;
const minutes: Read<number> = (json, path, faults) => {
  const value = whole(json, path, faults);
  if (value === undefined || (value >= 1 && value <= mostMinutes)) return value;
  faults.add(path, `${shown(json)} is no number of minutes from 1 to ${mostMinutes}`);
  return undefined;
};

const range: Read<AddressRange> = (json, path, faults) => {
  const read = typeof json === "string" ? readRange(json) : null;
  if (read === null || !read.ok)
    faults.add(path, read === null ? `${shown(json)} is neither an address nor a range of addresses` : read.error);
  return read?.ok ? read.value : undefined;
};

const list =
  <T>(item: Read<T>): Read<readonly T[]> =>
  (json, path, faults) => {
    if (!Array.isArray(json) || json.length > mostItems) {
      faults.add(path, `${shown(json)} is not a list of at most ${mostItems} items`);
      return undefined;
    }
    return json.flatMap((each: Json, index) => {
      const value = item(each, [...path, String(index)], faults);
      return value === undefined ? [] : [value];
    });
  };

/** Values of the fields that are there and right; a name that is none of them is told. */
function fieldsOf<T extends object>(
  readers: { readonly [K in keyof T]: readonly [name: string, read: Read<T[K]>] },
  ignored: readonly string[] = [],
): Read<Partial<T>> {
  const all = Object.entries(readers) as [keyof T, readonly [string, Read<T[keyof T]>]][];
  const names = [...all.map(([, [field]]) => field), ...ignored];
  return (json, path, faults) => {
    if (!isObject(json)) {
      faults.add(path, `${shown(json)} is not an object`);
      return undefined;
    }
    for (const field of Object.keys(json))
      if (!names.includes(field)) {
        const { hint } = didYouMean(field, names);
        const right = hint ?? `What is there: ${names.join(", ")}`;
        faults.add([...path, field], `there is no ${shown(field)} here. ${right}`);
      }
    const values: Partial<T> = {};
    for (const [key, [field, read]] of all) {
      const value = json[field];
      const found = value === undefined || value === null ? undefined : read(value, [...path, field], faults);
      if (found !== undefined) values[key] = found;
    }
    return values;
  };
}

const subnet: Read<SubnetConfiguration> = fieldsOf<Required<SubnetConfiguration>>({
  name: ["Name", subnetName],
  subnet: ["Subnet", address],
  netmask: ["Netmask", netmask],
  gateway: ["Gateway", address],
});
/** What the paper writes there and nothing reads. */
export const withoutEffect = ["Name", "NetSize"] as const;
const managedSubnet: Read<ManagedConfiguration> = fieldsOf<Required<ManagedConfiguration>>(
  {
    subnet: ["Subnet", address],
    netmask: ["Netmask", netmask],
    minVlan: ["MinVlan", whole],
    maxVlan: ["MaxVlan", whole],
    segmentSize: ["SegmentSize", whole],
  },
  withoutEffect,
);
const clusterFields = fieldsOf<Required<ClusterConfiguration>>({
  name: ["Name", name],
  macPrefix: ["MacPrefix", macPrefix],
  subnet: ["Subnet", subnet],
  privateIps: ["PrivateIps", list(range)],
});
const cluster: Read<ClusterConfiguration> = (json, path, faults) => {
  const fields = clusterFields(json, path, faults);
  if (fields === undefined) return undefined;
  if (fields.name === undefined && !faults.told([...path, "Name"])) faults.add(path, "a cluster needs a Name");
  // What it says beside its name is checked though it has none.
  return { ...fields, name: fields.name ?? "" };
};

const topFields = fieldsOf<Required<NetworkConfiguration>>(
  {
    mode: ["Mode", mode],
    instanceDnsDomain: ["InstanceDnsDomain", domain],
    instanceDnsServers: ["InstanceDnsServers", list(address)],
    macPrefix: ["MacPrefix", macPrefix],
    publicIps: ["PublicIps", list(range)],
    publicGateway: ["PublicGateway", address],
    privateIps: ["PrivateIps", list(range)],
    subnets: ["Subnets", list(subnet)],
    managedSubnet: ["ManagedSubnet", managedSubnet],
    clusters: ["Clusters", list(cluster)],
    instanceTimeout: ["InstanceTimeout", minutes],
  },
  ["Mido"],
);

/** The fields of a document; what is wrong with each goes into `faults`. */
export function readFields(document: JsonObject, faults: Faults): NetworkConfiguration {
  const fields = topFields(document, [], faults) ?? {};
  return { mode: "EDGE", publicIps: [], subnets: [], clusters: [], ...fields };
}
