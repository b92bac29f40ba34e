import type { AttributeSchema } from "./attributes/kinds.ts";
import type { ElementType } from "./cell.ts";

/** Elements by the names that people give them. */
const names: Readonly<Record<ElementType, string>> = {
  VM: "vm",
  Volume: "data",
  VolumeCopy: "bootvol",
  Subnet: "net",
  VolumeConnection: "disk",
  VirtualInterface: "nic",
  NetworkRule: "rule",
  VolumeGrant: "grant",
  CellController: "child",
  Host: "h1",
  Zone: "z1",
  Pod: "p1",
  Cluster: "c1",
  Dedication: "racks",
  AffinityGroup: "replicas",
  Offering: "small",
  HostFlavor: "large",
  Pool: "pool",
  PoolHost: "rack",
  Domain: "acme",
  Account: "dev",
  Role: "operators",
};

/** How an attribute would be written in SmartFrog, as its hint shows it: `x.memory 1024;`. Right by its kind, and common. */
export function exampleOf(name: string, schema: AttributeSchema): string {
  if (name === "x.cell" && schema.kind.kind === "data") return `${name} extends Cell { … }`;
  return `${name} ${written(schema)};`;
}

function written({ kind, unit }: AttributeSchema): string {
  switch (kind.kind) {
    case "integer":
      return String(Math.min(Math.max(unit === "MiB" ? 1024 : 8, kind.minimum), kind.maximum));
    case "boolean":
      return "true";
    case "choice":
      return `"${kind.values[0]}"`;
    case "label":
      return '"web"';
    case "address":
      return '"10.64.0.5"';
    case "network":
      return '"10.64.0.0/24"';
    case "networks":
      return '["internet"]';
    case "groups":
      return '["239.255.0.1"]';
    case "labels":
      return kind.paths ? '["ROOT/acme/dev"]' : kind.images ? '["debian"]' : '["ssd"]';
    case "rules":
      return '["deny vm.console", "allow vm.*"]';
    case "words":
      return JSON.stringify(kind.values.slice(0, 2));
    case "addresses":
      return '["10.0.0.9"]';
    case "mac":
      return '"02:00:0a:40:00:05"';
    case "link":
      return `"<ref:../${names[kind.to[0] ?? "VM"]}>"`;
    case "end":
      return '"<ref:../vm>"';
    case "domain":
      return '"<ref://other.cells.example.com/>"';
    case "ports":
      return "80";
    case "path":
      return '"shop/web"';
    case "data":
      return "extends { … }";
    case "text":
      return '"…"';
  }
}

/** What a missing attribute is, in what it is counted, and what could be written. */
export function hintOf(name: string, schema: AttributeSchema): string {
  const { docs, unit } = schema;
  const counted = unit === undefined ? "" : ` in ${unit}`;
  return `${docs.replace(/\.$/, "")}${counted}, as in \`${exampleOf(name, schema)}\`.`;
}
