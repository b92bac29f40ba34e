import { isObject, type Json } from "../../../../../model/json/json.ts";

/*
 * What an instance is told of itself, by the paths of EC2's metadata. Pure. All of a guest's processes may ask, so nothing of `x.data` is told
 * but what is there to be told: the text `userData`, and keys in `publicKeys`.
 */

/** Of one instance. */
export interface InstanceFacts {
  /** `i-xxxxxxxx` */
  readonly instance: string;
  readonly address: string;
  readonly mac: string;
  readonly hostName: string;
  readonly cluster: string;
  /** Its elastic address, if it has one. */
  readonly publicAddress?: string;
  /** `x.data` of its VM. */
  readonly data: Json;
}
/** A text, or names in a folder: those of folders end with a slash. */
type Metadata = string | ReadonlyMap<string, Metadata>;

const inData = (data: Json, name: string): Json => (isObject(data) ? (data[name] ?? null) : null);

/** By name, in the order of the model. */
function keysOf(data: Json): readonly (readonly [name: string, key: string])[] {
  const keys = inData(data, "publicKeys");
  return Object.entries(isObject(keys) ? keys : {}).flatMap(([name, key]) =>
    typeof key === "string" ? [[name, key] as const] : [],
  );
}
function treeOf({ instance, address, mac, hostName, cluster, publicAddress, data }: InstanceFacts): Metadata {
  const keys = keysOf(data);
  const userData = inData(data, "userData");
  const metaData = new Map<string, Metadata>([
    ["hostname", hostName],
    ["instance-id", instance],
    ["local-hostname", hostName],
    ["local-ipv4", address],
    ["mac", mac],
    ["placement", new Map([["availability-zone", cluster]])],
    ...(publicAddress === undefined ? [] : [["public-ipv4", publicAddress] as const]),
    ...(keys.length === 0 ? [] : [["public-keys", keyFolder(keys)] as const]),
  ]);
  return new Map<string, Metadata>([
    ["meta-data", metaData],
    ...(typeof userData === "string" ? [["user-data", userData] as const] : []),
  ]);
}
/** Listed as `0=name`, asked for as `0`. */
const keyFolder = (keys: ReturnType<typeof keysOf>): Metadata =>
  new Map(keys.map(([name, key], at) => [`${at}=${name}`, new Map([["openssh-key", key]])]));

/** Versions of EC2's metadata by which it is asked for; all say the same here. */
const versions = ["1.0", "2009-04-04", "latest"];
const mostParts = 8;

/** Null: there is no such thing. @param path of the request, as it came */
export function metadataAt(facts: InstanceFacts, path: string): string | null {
  const [before = ""] = path.split("?");
  const parts = before.split("/").filter((part) => part !== "");
  if (parts.length > mostParts) return null;
  const [version, ...rest] = parts;
  if (version === undefined) return versions.join("\n");
  if (!versions.includes(version)) return null;
  let at: Metadata = treeOf(facts);
  for (const part of rest) {
    if (typeof at === "string") return null;
    const next: Metadata | undefined = at.get(part) ?? byNumber(at, part);
    if (next === undefined) return null;
    at = next;
  }
  if (typeof at === "string") return at;
  // Of keys a listing names each with its number.
  return [...at]
    .map(([name, value]) => (typeof value === "string" || name.includes("=") ? name : `${name}/`))
    .join("\n");
}
const byNumber = (folder: ReadonlyMap<string, Metadata>, part: string): Metadata | undefined =>
  /^\d{1,4}$/.test(part) ? [...folder].find(([name]) => name.startsWith(`${part}=`))?.[1] : undefined;
