import { isManaged, isMode } from "../../cell/network/modes.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { fail, ok, type Result } from "../../result.ts";

/**
 * A network configuration from what an installation before 4.2 had: `VNET_*` values of the `eucalyptus.conf` of its cluster
 * controllers, and `cluster.minnetworktag` and `maxnetworktag` as `euca-describe-properties` prints them. All texts together.
 */
export interface Imported {
  /** As `readNetworkConfiguration` reads it: whoever imports checks it as any other. */
  readonly document: JsonObject;
  /** What is not in the document, and where it belongs, as sentences. */
  readonly notes: readonly string[];
}

/** Keys that each machine keeps for itself. */
const ofHosts = [
  "VNET_PUBINTERFACE",
  "VNET_PRIVINTERFACE",
  "VNET_BRIDGE",
  "VNET_DHCPDAEMON",
  "VNET_DHCPUSER",
  "DISABLE_TUNNELING",
  "VNET_LOCALIP",
];

/** The words of a value in quotes or without; what a shell would do with them is not done. */
const words = (value: string): readonly string[] => value.split(/[\s,]+/).filter((word) => word !== "");

interface Found {
  readonly values: ReadonlyMap<string, string>;
  readonly clusters: ReadonlyMap<string, { readonly min?: string; readonly max?: string }>;
}
/** The last line of a key counts, as in a shell. */
function read(text: string): Found {
  const values = new Map<string, string>();
  const clusters = new Map<string, { readonly min?: string; readonly max?: string }>();
  for (const line of text.split(/\r?\n/)) {
    const [, key, quoted, single, bare] =
      /^\s*([A-Z][A-Z0-9_]*)=(?:"([^"]*)"|'([^']*)'|([^\s#]*))\s*(?:#.*)?$/.exec(line) ?? [];
    if (key !== undefined) values.set(key, (quoted ?? single ?? bare ?? "").trim());
    const [, cluster, end, tag] = /^\s*PROPERTY\s+(\S+)\.cluster\.(min|max)networktag\s+(\S+)/.exec(line) ?? [];
    if (cluster !== undefined && tag !== undefined)
      clusters.set(cluster, { ...clusters.get(cluster), [end === "min" ? "min" : "max"]: tag });
  }
  return { values, clusters };
}

/** @param names of clusters, where no property names them */
export function importVnet(text: string, names: readonly string[] = []): Result<Imported, readonly string[]> {
  const { values, clusters } = read(text);
  const faults: string[] = [];
  const value = (key: string): string | undefined => {
    const found = values.get(key);
    return found === undefined || found === "" ? undefined : found;
  };
  if (![...values.keys()].some((key) => key.startsWith("VNET_")))
    return fail(["there is no VNET_… value in this text"]);
  const mode = value("VNET_MODE") ?? "MANAGED";
  if (!isMode(mode)) faults.push(`the mode ${mode} of VNET_MODE does not exist here`);
  const all = [...new Set([...clusters.keys(), ...names])];
  if (all.length === 0) faults.push("no cluster is named: neither by a property in the text nor by `--cluster`");
  const one = (end: "min" | "max"): string | undefined => {
    const tags = [...new Set([...clusters.values()].flatMap((tagged) => tagged[end] ?? []))];
    if (tags.length > 1)
      faults.push(`clusters have different ${end}networktag (${tags.join(", ")}): all share one subnet`);
    return tags[0];
  };
  const [minVlan, maxVlan] = [one("min"), one("max")];
  if (faults.length > 0 || !isMode(mode)) return fail(faults);
  const macPrefix = value("VNET_MACPREFIX");
  const [subnet, netmask] = [value("VNET_SUBNET"), value("VNET_NETMASK")];
  const dns = words(value("VNET_DNS") ?? "");
  const entries: (readonly [string, Json | undefined])[] = [
    ["Mode", mode],
    ["InstanceDnsDomain", value("VNET_DOMAINNAME")],
    ["InstanceDnsServers", dns.length > 0 ? dns : undefined],
    ["MacPrefix", macPrefix],
    ["PublicIps", value("VNET_PUBLICIPS") === undefined ? undefined : words(values.get("VNET_PUBLICIPS") ?? "")],
    ["PrivateIps", value("VNET_PRIVATEIPS") === undefined ? undefined : words(values.get("VNET_PRIVATEIPS") ?? "")],
    isManaged(mode)
      ? [
          "ManagedSubnet",
          defined([
            ["Subnet", subnet],
            ["Netmask", netmask],
            ["MinVlan", minVlan],
            ["MaxVlan", maxVlan],
            ["SegmentSize", value("VNET_ADDRSPERNET")],
          ]),
        ]
      : subnet === undefined
        ? ["Subnets", undefined]
        : [
            "Subnets",
            [
              defined([
                ["Subnet", subnet],
                ["Netmask", netmask],
                ["Gateway", value("VNET_ROUTER")],
              ]),
            ],
          ],
    ["Clusters", all.map((name) => ({ Name: name }))],
  ];
  return ok({ document: defined(entries), notes: notesOf(values) });
}

const defined = (entries: readonly (readonly [string, Json | undefined])[]): JsonObject =>
  Object.fromEntries(entries.filter((entry): entry is readonly [string, Json] => entry[1] !== undefined));

function notesOf(values: ReadonlyMap<string, string>): readonly string[] {
  const hosts = ofHosts.filter((key) => values.has(key));
  const used = /^VNET_(?:MODE|DOMAINNAME|DNS|MACPREFIX|PUBLICIPS|PRIVATEIPS|SUBNET|NETMASK|ADDRSPERNET|ROUTER)$/;
  const others = [...values.keys()].filter(
    (key) => key.startsWith("VNET_") && !ofHosts.includes(key) && !used.test(key),
  );
  return [
    ...(hosts.length === 0 ? [] : [`${hosts.join(", ")}: each machine keeps its own, in its host's configuration`]),
    ...(others.length === 0 ? [] : [`${others.join(", ")}: nothing here is said by these`]),
  ];
}
