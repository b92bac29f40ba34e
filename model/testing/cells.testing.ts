import fc from "fast-check";
import type { AttributeKind } from "../cell/attributes/kinds.ts";
import type { ElementType } from "../cell/cell.ts";
import { elementSchemas } from "../cell/schema.ts";
import type { Json, JsonObject } from "../json/json.ts";

/*
 * Cells for property tests, as documents: elements of every type with any of their attributes, as literals or through
 * references, in groups and beside values of the author's own. Nearly all are sound; a test counts how many.
 */
const texts = fc.oneof(
  fc.constantFrom(
    "yes",
    "on",
    "no",
    "null",
    "true",
    "~",
    "1",
    "1e3",
    "0x1f",
    ".5",
    "",
    " ",
    "- a",
    "a: b",
    "a #b",
    "{",
    "*a",
  ),
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom(
    "two\nlines\n",
    "tab\t",
    "\u0001",
    "\u2028",
    "<<",
    "=",
    "2001-01-01",
    "…",
    "'",
    '"',
    "\\",
    "trailing ",
  ),
);
const scalars = fc.oneof(
  texts,
  fc.integer(),
  fc.boolean(),
  fc
    .double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 })
    .map((number) => Math.round(number * 8) / 8 + 0),
);
/** Any structure without references in it; vectors hold no objects, which SmartFrog's cannot. */
const vectors: fc.Arbitrary<Json> = fc.array(fc.oneof(scalars, fc.array(scalars, { maxLength: 2 })), { maxLength: 3 });
const ownNames = fc.constantFrom(
  "note",
  "a",
  "b",
  "on",
  "yes",
  "null",
  "1",
  "a-b",
  "with space",
  "ä",
  "<<",
  "'q'",
  "size",
);
const plain = (json: Json): boolean => !JSON.stringify(json).includes("ref:");
const structures: fc.Arbitrary<JsonObject> = fc
  .dictionary(ownNames, fc.oneof(scalars, vectors, fc.dictionary(ownNames, scalars, { maxKeys: 3 })), { maxKeys: 4 })
  .map((object) => ({ ...object }))
  .filter(plain);

/** A literal of a kind; undefined for links, which depend on what there is. `index` makes it the only one in its cell. */
/** Values that demand something of others: a port, an address of each interface, that nothing rests on the volume, that the machine boots. */
const demanding: Readonly<Record<string, string>> = {
  "x.liveness.protocol": "udp",
  "x.addressRange": "management",
  "x.recreatable": "true",
  "x.display": "vga",
};

function literals(kind: AttributeKind, name: string, index: number): fc.Arbitrary<Json> | undefined {
  switch (kind.kind) {
    case "integer":
      return fc.integer({ min: kind.minimum, max: Math.min(kind.maximum, 65_535) });
    case "boolean":
      return name in demanding ? fc.constant(false) : fc.boolean();
    case "choice":
      return fc.constantFrom(...kind.values.filter((value) => demanding[name] !== value));
    case "label":
      return fc.constantFrom(`a${index}`, `b-${index}`, kind.mixedCase ? `C${index}` : `c${index}`);
    case "text":
      return fc.constantFrom("tiny", "debian-13", "a b");
    case "network":
      return fc.constant(`10.${64 + (index % 64)}.0.0/16`);
    case "mac":
      return fc.constantFrom(
        `02:00:00:00:00:${index.toString(16).padStart(2, "0")}`,
        `02:AA:00:00:00:${index.toString(16).padStart(2, "0")}`,
      );
    case "networks":
      return fc.constantFrom<Json[]>(["internet"], ["192.168.0.0/16", "203.0.113.0/24"], []).map((each): Json => each);
    case "groups":
      return fc.constantFrom<Json>(["239.255.0.1"], ["224.1.2.3", "239.192.0.1"]);
    case "labels":
      return fc.constantFrom<Json>(["ssd"], ["ssd", "gpu-2"]);
    case "end":
      return fc.constantFrom("internet", "controller", "10.0.0.1", "10.0.0.0/8");
    case "ports":
      return fc.constantFrom<Json>(80, "80", "8000-8080", "1-65535");
    case "path":
      return fc.constant(`gone/e${index}`);
    case "domain":
      return fc.constant("<ref://other.cells.example.com/>");
    case "data":
      return name === "x.properties" ? fc.constantFrom<Json>({}, { gpu: "a100", sriov: 8 }) : structures;
    default:
      return undefined;
  }
}

interface Piece {
  readonly type: ElementType;
  readonly group: boolean;
  /** Which of the optional attributes, and how each is written. */
  readonly picks: readonly number[];
  readonly values: readonly Json[];
  readonly own: JsonObject;
}
const names = (type: ElementType): readonly string[] => [
  ...Object.keys(elementSchemas[type]),
  "x.public",
  "x.movedFrom",
];
const kindOf = (type: ElementType, name: string): AttributeKind =>
  name === "x.public"
    ? { kind: "boolean" }
    : name === "x.movedFrom"
      ? { kind: "path" }
      : (elementSchemas[type][name]?.kind ?? { kind: "data" });

const piece = (type: ElementType, index: number): fc.Arbitrary<Piece> =>
  fc.record({
    type: fc.constant(type),
    group: fc.boolean(),
    picks: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: names(type).length, maxLength: names(type).length }),
    values: fc.tuple(...names(type).map((name) => literals(kindOf(type, name), name, index) ?? fc.constant(null))),
    own: structures,
  });

const types: readonly ElementType[] = [
  ...(["VM", "Volume", "Subnet", "VM", "VolumeCopy", "VolumeConnection", "VirtualInterface", "NetworkRule"] as const),
  ...(["VolumeGrant", "VM", "Subnet", "NetworkRule", "CellController", "Host"] as const),
];
/** What a link of each type of target leads to: the first of the elements, which are always there. */
const targetOf: Readonly<Record<string, string>> = { VM: "e0", Volume: "e1", Subnet: "e2" };

/** Documents of one cell, `shop`, with parameters in `params`. */
export const cells: fc.Arbitrary<JsonObject> = fc
  .record({
    pieces: fc.tuple(...types.map((type, index) => piece(type, index))),
    left: fc.array(fc.boolean(), { minLength: types.length, maxLength: types.length }),
    limited: fc.boolean(),
    beside: structures,
  })
  .map(({ pieces, left, limited, beside }) => {
    const params: Record<string, Json> = {};
    const inCell: Record<string, Json> = {};
    const group: Record<string, Json> = {};
    pieces.forEach((each, index) => {
      // The first three are what the others refer to.
      if (index < 3) inCell[`e${index}`] = element(each, index, params);
      else if (left[index]) (each.group ? group : inCell)[`e${index}`] = element(each, index, params);
    });
    // Every interface is on the first subnet; one that leads outside is for internal ones alone.
    if (pieces[2]?.values[names("Subnet").indexOf("x.addressRange")] !== "internal")
      for (const each of [...Object.values(inCell), ...Object.values(group)])
        delete (each as Record<string, Json>)["x.forwards"];
    const attributes = limited ? { "x.limits.vms": 100, "x.policy.subnetConnectivity": true, "x.public": false } : {};
    return { shop: { "x.type": "Cell", ...attributes, ...inCell, group }, params, beside };
  });

function element({ type, picks, values, own }: Piece, index: number, params: Record<string, Json>): JsonObject {
  const attributes: Record<string, Json> = { "x.type": type };
  names(type).forEach((name, at) => {
    const pick = picks[at] ?? 0;
    const required = elementSchemas[type][name]?.required === true;
    // What only makes sense together with something else is left to tests of its own.
    if (
      !required &&
      (pick < 2 || ["x.address", "x.cpuSpeed", "x.gateway", "x.liveness.interface", "x.router"].includes(name))
    )
      return;
    const kind = kindOf(type, name);
    const literal = values[at] ?? null;
    const written = name === "x.placement.*" ? "x.placement.pool" : name;
    const target =
      kind.kind === "link" || (kind.kind === "end" && name === "x.address1")
        ? targetOf[kind.kind === "link" ? (kind.to[0] ?? "") : "VM"]
        : undefined;
    if (target !== undefined) attributes[written] = `<ref:/shop/${target}>`;
    else if (pick % 2 === 1 && kind.kind !== "data" && kind.kind !== "domain") {
      params[`p${index}-${at}`] = literal;
      attributes[written] = pick === 1 ? `ref:/params/p${index}-${at}` : `<ref:/params/p${index}-${at}>`;
    } else attributes[written] = literal;
  });
  if (type === "Subnet") {
    attributes["x.size"] = 8;
  }
  // It is given to one: a machine, a cell, an account or a domain.
  if (type === "VolumeGrant") {
    const [first = "x.cell", ...others] = ["x.vm", "x.account", "x.domain"].filter((name) => name in attributes);
    for (const name of others) delete attributes[name];
    if (first === "x.cell") attributes["x.cell"] = "<ref://other.cells.example.com/>";
    else delete attributes["x.cell"];
    if (first === "x.account") attributes["x.account"] = "ROOT/acme/dev";
    if (first === "x.domain") attributes["x.domain"] = "ROOT/acme";
    if (first === "x.vm") delete attributes["x.holder"];
    else if ("x.holder" in attributes) attributes["x.holder"] = "u-1";
    // A volume is held for a copy that a cell makes.
    if (first !== "x.cell" || attributes["x.grant"] !== "copy") delete attributes["x.hold"];
  }
  if (type === "NetworkRule" && attributes["x.protocol"] !== "tcp") {
    attributes["x.protocol"] = "udp";
  }
  if (type === "VolumeCopy") delete attributes["x.size"];
  // STATIC and SYSTEM take a cell that says that nothing is kept from anybody there.
  if (type === "CellController") attributes["x.cell"] = { child: { "x.type": "Cell", "x.policy.isolation": "none" } };
  return { ...attributes, ...own };
}
