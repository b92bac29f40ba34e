import { formatIpv4, parseIpv4 } from "../../addresses/addresses.ts";
import { fail, ok, type Result } from "../../result.ts";
import { escaped, readXml, type XmlElement } from "../xml/read-xml.ts";

/*
 * What became of addresses on a machine (NRA of the paper): told back so that none is lost and a guest starts when its own is there. The
 * paper has two shapes, of which the first is not well formed as printed. The second is written, both are read.
 */

export const addressStates = ["pending", "assigned", "failed"] as const;
export type AddressState = (typeof addressStates)[number];
export interface AllocatedAddress {
  /** Unsigned, 32 bits. */
  readonly address: number;
  readonly state: AddressState;
  /** Why it failed, a sentence; of the others absent. */
  readonly reason?: string;
}
export interface InstanceAllocation {
  /** Of the instance. */
  readonly id: string;
  readonly privateIp?: AllocatedAddress;
  readonly publicIp?: AllocatedAddress;
}

export interface Allocation {
  readonly instances: readonly InstanceAllocation[];
  /** Of the latest view that is in place whole; absent: none is, or nobody says. */
  readonly appliedVersion?: string;
}

const addressesOf = (instances: readonly InstanceAllocation[], kind: "privateIp" | "publicIp") =>
  instances.flatMap((instance) => instance[kind] ?? []);
const shown = { pending: "Pending", assigned: "Assigned", failed: "Failed" } as const;

/** As XML. */
export function writeAllocation({ instances, appliedVersion }: Allocation): string {
  const states = (name: string, kind: "privateIp" | "publicIp"): readonly string[] => [
    `  <${name}>`,
    ...addressesOf(instances, kind).map(({ address, state, reason }) => {
      const why = reason === undefined ? "" : ` reason="${escaped(reason.slice(0, longestReason))}"`;
      return `    <property name="${formatIpv4(address)}"${why}>${shown[state]}</property>`;
    }),
    `  </${name}>`,
  ];
  return [
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
    `<network-resource-allocation${appliedVersion === undefined ? "" : ` applied-version="${escaped(appliedVersion)}"`}>`,
    "  <instances>",
    ...instances.flatMap(({ id, publicIp, privateIp }) => [
      `    <instance name="${escaped(id)}">`,
      ...(publicIp === undefined ? [] : [`      <publicIp>${formatIpv4(publicIp.address)}</publicIp>`]),
      ...(privateIp === undefined ? [] : [`      <privateIp>${formatIpv4(privateIp.address)}</privateIp>`]),
      "    </instance>",
    ]),
    "  </instances>",
    ...states("privateIps", "privateIp"),
    ...states("publicIps", "publicIp"),
    "</network-resource-allocation>",
    "",
  ].join("\n");
}
const longestReason = 1000;

const child = (of: XmlElement | undefined, name: string): XmlElement | undefined =>
  of?.children.find((each) => each.name.toLowerCase() === name.toLowerCase());
const stateOf = (text: string): AddressState | null =>
  addressStates.find((state) => state === text.trim().toLowerCase()) ?? null;

/** Of either shape; the error is a sentence. An address whose state nobody says is pending. */
export function readAllocation(text: string): Result<Allocation, string> {
  const read = readXml(text);
  if (!read.ok) return fail(`line ${read.error.line}: ${read.error.message}`);
  const root = read.value;
  if (root.name !== "network-resource-allocation" && root.name !== "network-resources")
    return fail(
      `line ${root.line}: the root element is ${root.name}, and an allocation is network-resource-allocation`,
    );
  const faults: string[] = [];
  const told = statesOf(root);
  const instances = (child(root, "instances")?.children ?? []).map((instance): InstanceAllocation => {
    const of = (name: string): AllocatedAddress | undefined => {
      const element = child(instance, name);
      if (element === undefined) return undefined;
      const named = element.attributes.get("name") ?? element.text;
      const address = parseIpv4(named);
      if (address === null) {
        faults.push(`line ${element.line}: ${JSON.stringify(named)} is no IPv4 address`);
        return undefined;
      }
      const own = stateOf(child(element, "state")?.text ?? "");
      return own === null ? (told.get(`${name} ${address}`) ?? { address, state: "pending" }) : { address, state: own };
    };
    const [privateIp, publicIp] = [of("privateIp"), of("publicIp")];
    return {
      id: instance.attributes.get("name") ?? "",
      ...(privateIp === undefined ? {} : { privateIp }),
      ...(publicIp === undefined ? {} : { publicIp }),
    };
  });
  const unnamed = instances.some(({ id }) => id === "");
  if (unnamed) faults.push("an instance has no name");
  const appliedVersion = root.attributes.get("applied-version");
  return faults.length > 0
    ? fail(faults.join("; "))
    : ok({ instances, ...(appliedVersion === undefined ? {} : { appliedVersion }) });
}

/** Of the second shape, by kind and address. */
function statesOf(root: XmlElement): ReadonlyMap<string, AllocatedAddress> {
  const states = new Map<string, AllocatedAddress>();
  for (const kind of ["privateIp", "publicIp"])
    for (const { attributes, text } of child(root, `${kind}s`)?.children ?? []) {
      const address = parseIpv4(attributes.get("name") ?? "");
      const state = stateOf(text);
      const reason = attributes.get("reason");
      if (address !== null && state !== null)
        states.set(`${kind} ${address}`, { address, state, ...(reason === undefined ? {} : { reason }) });
    }
  return states;
}
