import type { AttributeKind, AttributeSchema, ChangeEffect } from "../../cell/attributes/kinds.ts";
import { cellAttributes } from "../../cell/attributes/of-cells.ts";
import type { ElementType } from "../../cell/cell.ts";
import { commonAttributes, elementSchemas } from "../../cell/schema.ts";

/** The table of the schema as an editor shows it, in Markdown. */
export function attributeText(name: string, schema: AttributeSchema): string {
  const facts = [
    `**\`${name}\`** ${kindText(schema.kind)}${schema.unit === undefined ? "" : ` (${schema.unit})`}`,
    schema.docs,
    factsOf(schema),
  ];
  return facts.join("\n\n");
}

function factsOf({ required, default: standard, effect }: AttributeSchema): string {
  const presence = required
    ? "Required."
    : standard === undefined
      ? "Optional."
      : `Default: \`${JSON.stringify(standard)}\`.`;
  return `${presence} ${effects[effect]}`;
}

const effects: Readonly<Record<ChangeEffect, string>> = {
  change: "A change is made in place.",
  restart: "A change restarts the VM.",
  replace: "A change replaces the element by a new one.",
  none: "A change has no effect on what runs.",
};

export function kindText(kind: AttributeKind): string {
  switch (kind.kind) {
    case "integer":
      return `whole number, ${kind.minimum} to ${kind.maximum}`;
    case "boolean":
      return "`true` or `false`";
    case "choice":
      return kind.values.map((value) => `"${value}"`).join(" or ");
    case "text":
      return "text";
    case "label":
      return "DNS label";
    case "address":
      return "IPv4 address";
    case "network":
      return "IPv4 network, as in `10.0.0.0/24`";
    case "networks":
      return 'list of networks or "internet", as in `["192.168.0.0/16"]`';
    case "groups":
      return 'list of multicast addresses, as in `["239.255.0.1"]`';
    case "labels":
      return kind.paths
        ? 'list of paths of accounts, as in `["ROOT/acme/dev"]`'
        : kind.images
          ? 'list of images, as in `["debian"]`'
          : 'list of words, as in `["ssd"]`';
    case "rules":
      return 'list of rules, as in `["deny vm.console", "allow vm.*"]`';
    case "words":
      return `list of ${kind.values.join(", ")}`;
    case "addresses":
      return 'list of IPv4 addresses, as in `["10.0.0.9"]`';
    case "mac":
      return "MAC address";
    case "link":
      return `reference to a ${kind.to.join(" or ")}${kind.foreign ? ", of another cell too" : ""}`;
    case "domain":
      return "reference to another cell";
    case "end":
      return "reference to a Subnet, VM or VirtualInterface, or an address";
    case "ports":
      return 'port or "from-to"';
    case "path":
      return "path of an element";
    case "data":
      return "any structure";
  }
}

const typeTexts: Readonly<Record<ElementType | "Cell", string>> = {
  Cell: "The cell: everything that is to be deployed stands inside.",
  VM: "A virtual machine.",
  Volume: "A block volume.",
  VolumeCopy: "A volume that starts as a copy of another.",
  Subnet: "A virtual network segment.",
  VolumeConnection: "A volume as a disk of a VM.",
  VirtualInterface: "A network interface of a VM on a subnet.",
  NetworkRule: "What may pass between two ends; what no rule permits is dropped.",
  VolumeGrant: "Permission for others to use a volume.",
  CellController: "A child cell.",
  Host: "A machine of the installation, in the root cell.",
  Domain: "A domain of tenants, in the root cell.",
  Account: "An account of tenants, in the root cell.",
  Role: "A role of tenants, in the root cell.",
  Zone: "A part of the installation that stands for itself.",
  Pod: "A part of a zone.",
  Cluster: "Machines of a pod that stand together.",
  Dedication: "A place or a host that one domain or account has for itself.",
  AffinityGroup: "VMs of an account that stand at one host, or at different ones.",
  Offering: "What machines of one kind have, and where they stand, in the root cell.",
  HostFlavor: "A kind of whole hosts that accounts can have, in the root cell.",
  Pool: "Whole hosts that the cell's account has for itself, and for whom it authorises.",
  PoolHost: "A host of a pool.",
};

export function typeText(type: ElementType | "Cell"): string {
  const required = requiredOf(type).map((name) => `\`${name}\``);
  return `**${type}**\n\n${typeTexts[type]}${required.length > 0 ? `\n\nNeeds ${required.join(", ")}.` : ""}`;
}

export const requiredOf = (type: ElementType | "Cell"): readonly string[] =>
  Object.entries(tableOf(type)).flatMap(([name, { required }]) => (required ? [name] : []));

const tableOf = (type: ElementType | "Cell"): Readonly<Record<string, AttributeSchema>> =>
  type === "Cell" ? cellAttributes : elementSchemas[type];

/** Attributes that a component of a type may have, by name. */
export const attributesOf = (type: ElementType | "Cell"): readonly (readonly [string, AttributeSchema])[] => [
  ...Object.entries(tableOf(type)),
  ...Object.entries(commonAttributes),
];

/** Values as they are written. */
export function literalsOf({ kind, default: standard }: AttributeSchema): readonly string[] {
  if (kind.kind === "boolean") return ["true", "false"];
  if (kind.kind === "choice") return kind.values.map((value) => `"${value}"`);
  if (kind.kind === "end") return ['"internet"', '"controller"'];
  return kind.kind === "integer" && standard !== undefined ? [String(standard)] : [];
}
