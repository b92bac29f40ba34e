import type { AttributeKind, AttributeSchema, TypeSchema } from "../cell/attributes/kinds.ts";
import { cellAttributes } from "../cell/attributes/of-cells.ts";
import type { ElementType } from "../cell/cell.ts";
import { commonAttributes, elementSchemas, elementTypes, typeDocs } from "../cell/schema.ts";
import { limits } from "../limits.ts";
import { defaultOf, effectOf } from "./json-schema.ts";
import { referenceExamples } from "./reference-examples.ts";

/*
 * The reference of types and attributes as Markdown, from the one table (`cells spec reference`). What is not in the table
 * stands here: the rules for names, references, units and limits, which hold for every type.
 */

const quoted = (values: readonly string[]): string => values.map((value) => `\`"${value}"\``).join(", ");
const article = (types: readonly string[]): string =>
  types.map((type) => `[${type}](#${type.toLowerCase()})`).join(" or ");

/** What an attribute of a kind is, in a cell of a table. */
function kindText(kind: AttributeKind): string {
  switch (kind.kind) {
    case "integer":
      return "whole number";
    case "boolean":
      return "`true` or `false`";
    case "choice":
      return quoted(kind.values);
    case "text":
      return "text";
    case "label":
      return kind.mixedCase ? "DNS label" : "DNS label in lower case";
    case "address":
      return 'IPv4 address, such as `"10.64.8.10"`';
    case "network":
      return 'network, such as `"10.64.8.0/24"`';
    case "networks":
      return 'list of networks or `"internet"`, such as `["192.168.0.0/16"]`';
    case "groups":
      return 'list of multicast addresses, such as `["239.255.0.1"]`';
    case "labels":
      return kind.paths
        ? 'list of paths of accounts, such as `["ROOT/acme/dev"]`'
        : kind.images
          ? 'list of images, such as `["debian"]`'
          : 'list of words, such as `["ssd"]`';
    case "rules":
      return 'list of rules, such as `["deny vm.console", "allow vm.*"]`';
    case "words":
      return `list of ${kind.values.map((value) => `\`"${value}"\``).join(", ")}`;
    case "addresses":
      return 'list of IPv4 addresses, such as `["10.0.0.9"]`';
    case "mac":
      return 'MAC address, such as `"02:00:0a:40:00:05"`';
    case "link":
      return `reference to a ${article(kind.to)}${kind.foreign ? ", also of another cell" : ""}`;
    case "domain":
      return "reference to a cell";
    case "end":
      return `reference to a ${article(["Subnet", "VM", "VirtualInterface"])}, also of another cell; address or network; ${quoted(["internet", "controller"])}`;
    case "ports":
      return 'port, or range such as `"8000-8080"`';
    case "path":
      return "path of an element";
    case "data":
      return "any structure";
  }
}

const rangeText = (kind: AttributeKind): string => {
  if (kind.kind === "ports") return "1 to 65535";
  if (kind.kind !== "integer") return "";
  return kind.maximum === Number.MAX_SAFE_INTEGER ? `${kind.minimum} or more` : `${kind.minimum} to ${kind.maximum}`;
};
const cellText = (text: string): string => text.replaceAll("|", "\\|");
const row = (cells: readonly string[]): string => `| ${cells.map(cellText).join(" | ")} |`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => "---")), ...rows.map(row)].join("\n");

const attributeRow = ([name, schema]: readonly [string, AttributeSchema]): readonly string[] => {
  const { kind, unit, required, docs, effect } = schema;
  const fallback = defaultOf(schema);
  return [
    `\`${name}\``,
    kindText(kind),
    unit ?? "",
    required ? "**needed**" : fallback === undefined ? "" : `\`${fallback.split(" ")[0]}\``,
    rangeText(kind),
    effectOf(effect)
      .replace(/^A change /, "")
      .replace(/\.$/, ""),
    docs,
  ];
};
const attributes = (all: TypeSchema): string =>
  table(
    ["attribute", "kind", "unit", "default", "range", "a change", "meaning"],
    Object.entries(all).map(attributeRow),
  );

/** What the checks say of several attributes of a type together, and what is easily taken amiss. */
const remarks: Readonly<Partial<Record<ElementType | "Cell", string>>> = {
  Cell: "A document has exactly one. Its name is that of its component, or `x.name` where that is no DNS label in lower case. A limit counts what stands in the model, running or not, what the child cells have included; without one, only the parent's limits and the installation's resources bound the cell.",
  VM: 'An image that comes with the installation is known to have an agent or none; of one that was uploaded nothing is known. A guest that is waited for and does not answer within 300 s makes its VM `failed` and is left as it is; it is `ready` when it answers after all. A guest that resets itself is waited for again. A `udp` probe needs `x.liveness.port`. Names below `x.placement.` are wishes about the host: `x.placement.host` pins the VM to one, `x.placement.apartFrom` keeps it off the hosts of the VMs that it names, and VMs with the same word as `x.placement.spread` go to different hosts as long as there are others. `x.placement.groups` names groups of the cell\'s account: its affinity groups (see AffinityGroup), and those of dedicated hosts (see Dedication). With `x.placement.dedication "strict"` the VM stands where no VM of another account is, and nothing but its account\'s comes there until it has ended; with `"preferred"` it goes to such a host as long as there is one.',
  Volume:
    "A volume grows in place, while its VM runs where its file has room and its bus is not `ide`, else when the VM starts next; the plan says which. It is never made smaller, and an origin of copies stays as it is.",
  VolumeCopy:
    "The origin becomes immutable with its first copy. A copy is never smaller than its origin, and copies of copies are fine.",
  Subnet:
    "It needs `x.size` or `x.cidr`. The first two addresses are those of the network and its gateway, the last is the broadcast address. Fixed ranges of one cell do not overlap.",
  VolumeConnection: "One volume is connected to one VM once. A volume that can be written has one writer at a time.",
  VirtualInterface:
    "`x.address` needs a subnet with `x.cidr`. Addresses, MAC addresses and host names are each the only ones of their cell.",
  NetworkRule: "At least one end is in the cell. Ports are those of `tcp` and `udp`; `icmp` has none.",
  VolumeGrant:
    'It names one of `x.vm`, `x.cell`, `x.account` and `x.domain`. The other cell can see the volume only if that is `x.public`. `x.hold` stands beside `x.cell` and `x.grant "copy"`.',
  Host: "It stands in the component `hosts` of the cell `root` and nowhere else, under the name of a machine that has joined. Each is written there by itself when it joins; a text that does not name it leaves it as it is. `cells host drain` and `cells host resume` write `x.state`.",
  Domain:
    "It stands in the component `tenants` of the cell `root` and nowhere else, or in another `Domain` there; its path below `tenants` is its path below `ROOT`. One that is there already is taken over with all that it has. A component around it that is no `Domain` stands for one that is made by commands.",
  Account:
    "As a `Domain`. In it stands nothing: its users, their keys and passwords are no matter of a specification, and its cells name it in `x.account`. `cells account delete` deletes one that the text does not name any more.",
  Role: "It stands in the component of its domain; no built-in role can be declared. Verbs are those of `cells role add`.",
  Zone: "Its name is no host's. Zones, pods and clusters stand in the component `places` of the cell `root`, each within the one that it is a part of.",
  Dedication:
    "A resource is dedicated once. Below what an account has nothing is dedicated again; below what a domain has only to that domain, to domains below it and to their accounts. A VM asks for hosts of its account or of a domain above it by the name of their group as `x.placement.groups`: `DedicatedGrp-<account>`, `DedicatedGrp-domain-<domain>`. One that names none stands where nothing is dedicated, or in a zone that its account may use.",
  AffinityGroup:
    "Its name is the last part of its path, and counts for all cells of the account; of cells of no account, for one child cell of the root cell with all that is in it. Who names a group that is not there waits, as where two cells have groups of one name and different kinds. A VM that was stopped less than an hour ago counts at its last host. Cells that have different Placers do not know of each other's groups.",
  Pool: "It stands in a cell that the root cell has made, and is its account's. A VM asks for its hosts with `x.placement.pool`: in the same cell by the pool's path, elsewhere by its UID. One that asks for no pool stands at no host of a flavour.",
  PoolHost:
    "Which host it is nobody is told. It waits until one of its flavour is free, and is its account's alone from then on. It leaves the model disabled and empty: nothing else is accepted.",
  CellController:
    "What the child asks for counts in the limits of this cell. `x.services` counts when the child is made: a later change of it changes nothing.",
};

const typeSection = (type: ElementType | "Cell", all: TypeSchema): string =>
  [
    `## ${type}`,
    typeDocs[type],
    attributes(all),
    ...(remarks[type] === undefined ? [] : [remarks[type]]),
    `\`\`\`sf\n${referenceExamples[type]}\`\`\``,
  ].join("\n\n");

const mebi = 1024 * 1024;
/** Each limit with what it bounds; all of them, which the type sees to. */
const limitTexts: Readonly<Record<keyof typeof limits, readonly [amount: string, what: string]>> = {
  textLength: [`${limits.textLength / mebi} MiB`, "characters of all texts of a bundle together"],
  attributes: [`${limits.attributes}`, "attributes of the tree, copies by `extends` included"],
  characters: [`${limits.characters / mebi} MiB`, "characters of names and texts of the tree, copies included"],
  tokens: [`${limits.tokens}`, "words, signs and values of a SmartFrog text, named attributes of a JSON text"],
  elements: [`${limits.elements}`, "elements of a cell; of a document also those of its child cells"],
  compiledRules: [
    `${limits.compiledRules}`,
    "rules that a cell's rules come to between single networks, subnets, VMs and interfaces",
  ],
  compiledCharacters: [`${limits.compiledCharacters / mebi} MiB`, "characters of these as hosts are told them"],
  pathNames: [`${limits.pathNames}`, "names in the paths of all elements together"],
  pathCharacters: [`${limits.pathCharacters / mebi} MiB`, "characters of the paths of all elements together"],
  tags: [`${limits.tags}`, "tags of one attribute"],
  yamlLength: [`${limits.yamlLength / mebi} MiB`, "characters of a YAML text"],
  yamlTokens: [`${limits.yamlTokens}`, "names, values, signs and line ends of a YAML text"],
  aliased: [`${limits.aliased}`, "attributes that aliases and merge keys of a YAML text copy"],
  placed: [`${limits.placed}`, "attributes that placements make"],
  withFunctions: [`${limits.withFunctions}`, "attributes of a document with functions or assertions, copies included"],
  evaluation: [`${limits.evaluation}`, "steps of working out expressions"],
  nesting: [`${limits.nesting}`, "components or vectors inside one another"],
  layers: [`${limits.layers}`, "volumes of which each is a copy of the one before, the first one counted"],
  dataEntries: [`${limits.dataEntries}`, "attributes and items of `x.data` of a VM, at every depth"],
  dataBytes: [`${limits.dataBytes / 1024} KiB`, "`x.data` of a VM as JSON"],
  references: [`${limits.references}`, "references followed one after another"],
  includeDepth: [`${limits.includeDepth}`, "files that include one another"],
  diagnostics: [`${limits.diagnostics}`, "errors reported of one specification"],
};

const rules = `# Reference

Every type of element and every attribute. \`cells spec reference\` prints this page from the table that the checks are made
from; \`cells spec schema\` prints the same as a JSON Schema, with which editors check and complete JSON and YAML: name its
file as \`"$schema"\` in JSON, or in YAML in a comment at the top, \`# yaml-language-server: $schema=cells.schema.json\`.

## Documents

A specification is one document: exactly one component of type \`Cell\`, and the parameters and templates that stand beside
it. The extension of the file says its language: \`.sf\` is SmartFrog, \`.json\` JSON, \`.yaml\` or \`.yml\` YAML 1.2, \`.ts\`
TypeScript. All give the same tree of components with named attributes; JSON is the canonical form, in which a cell is stored
and shown.

- Attributes that the cloud heeds begin with \`x.\`. Every other name is the author's own: groups, parameters, notes.
- A component is an element if it has an \`x.type\`; in SmartFrog that comes from \`extends VM\` and the like. A component without
  a type is a group, and has no \`x.\` attributes.
- An element's name is its path: \`shop/web/vm\`. Names are parts of paths, so that they hold no \`/\`.
- An attribute without a value (null) counts as not written.
- \`"$schema"\` at the root of a document is for editors, and is left out when it is read.

In YAML names and texts need quotes only where YAML's own signs would be mistaken. \`yes\`, \`no\`, \`on\` and \`off\` are texts (a
boolean is \`true\` or \`false\`), times are texts, and names are what is written: \`on:\` and \`1:\` are names like any other.
Anchors, aliases and merge keys (\`<<\`) are read; tags and several documents in one text are not.

## References

A reference is a text, in every language, wherever a value may stand:

| written | leads to |
| --- | --- |
| \`<ref:/shop/vm>\` | what stands at that path from the document |
| \`<ref:../vm>\` | what stands there from the component that holds the attribute; \`..\` is its parent |
| \`<ref://other.cells.example.com/db/vm>\` | an element of another cell, if it is \`x.public\` |
| \`<ref://other.cells.example.com/>\` | another cell as a whole |

\`ref:…\` without the angle brackets means the same. A reference to an attribute takes its value, one to an element makes a link.
A reference into another cell waits until the element is there and public; until then both look the same from outside.

## Units

Every number has the unit that the tables name, and is written alone: \`x.memory 2048;\`, not \`2GiB\`. Memory and storage are
counted in MiB (2^20 bytes), times in milliseconds, the speed of processors in MHz, subnets in addresses.

## What a change does

| a change | |
| --- | --- |
| is made in place | the element goes on as it is |
| restarts the VM | of the element, or of those that it belongs to; their data stay |
| replaces the element by a new one | what it held is lost; where that is data, \`--allow-destroy\` must name the volume |
| touches no element | nothing that runs notices |

\`cells plan FILE\` says for each element what would happen, and which attribute causes it.

## Every element

${attributes(commonAttributes)}`;

const bounds = `## Limits

What is beyond one of these is refused with an error that names it.

${table(["at most", "of"], Object.values(limitTexts))}

## What an installation can give

A VM that no host could hold even if it were empty, a volume that no storage server could, and a subnet that the pools of
addresses could never give are refused when they are submitted; what does not fit at the moment waits. With
\`x.policy.deploy "all-or-none"\` the same holds for the cell as a whole. The errors say how much can be had.`;

/** The page, ending in a line feed. */
export function referencePage(): string {
  const types = elementTypes.map((type) => typeSection(type, elementSchemas[type]));
  return `${[rules, typeSection("Cell", cellAttributes), ...types, bounds].join("\n\n")}\n`;
}
