import { type DocumentContext, type Meaning, readValue } from "../cell/attribute-value.ts";
import type { AttributeSchema } from "../cell/attributes/kinds.ts";
import { cellAttributes } from "../cell/attributes/of-cells.ts";
import type { Cell, Element, ElementType } from "../cell/cell.ts";
import { childDocument } from "../cell/child-document.ts";
import { AttributeValues, buildElement } from "../cell/elements.ts";
import { hintOf } from "../cell/example-value.ts";
import { cellName, cidr, type ElementPath, elementPath } from "../cell/identifiers.ts";
import { attributeNames, attributeSchema, elementSchemas, isElementType, standardPrototypes } from "../cell/schema.ts";
import { ValueFault } from "../cell/value-fault.ts";
import { closestName, didYouMean } from "../diagnostics/closest-name.ts";
import type { Position } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Positions } from "../diagnostics/positions.ts";
import { isIncomplete, isUnknown } from "../diagnostics/unknown.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { limits, tooManyElements } from "../limits.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import { checkBounds } from "./check-bounds.ts";
import { checkCell } from "./check-cell.ts";
import { checkKept, checkLimits, limitsOf } from "./check-limits.ts";
import { acceptedBefore, checkSupply, type Supply } from "./check-supply.ts";
import type { ReportFault } from "./fault.ts";
import { checkMode } from "./network/check-mode.ts";
import { checkNetwork } from "./network/check-network.ts";
import { checkRules } from "./network/check-rules.ts";
import { checkSourcePorts } from "./network/check-source-ports.ts";
import { opennessOf } from "./openness.ts";
import { backupOf } from "./root-cell/check-backup.ts";
import { haSettingsOf } from "./root-cell/check-ha.ts";
import { placementSettingsOf } from "./root-cell/check-placement.ts";
import { zoneOf } from "./root-cell/check-zone.ts";

/**
 * Step 2: a canonical document to a cell. Every component of the cell is checked against the schema and its references
 * are followed; all faults go to `diagnostics`, then the answer is null. What the cell's limits forbid is a fault, and so is what
 * `supply` could never give.
 */
export function checkTree(
  document: JsonObject,
  positions: Positions,
  diagnostics: Diagnostics,
  supply: Supply,
): Cell | null {
  return inOneGo(checkTreeInSlices(document, positions, diagnostics, supply));
}
export function checkTreeInSlices(
  document: JsonObject,
  positions: Positions,
  diagnostics: Diagnostics,
  supply: Supply,
): InSlices<Cell | null> {
  return new Checker(document, positions, diagnostics).check(supply);
}

/**
 * The initial model of a child cell: a component of type Cell, or a document with one. Null if it is no sound cell, which
 * is said when the child is made. Its own limits are left to the caller.
 */
export function readChild(json: Json): Cell | null {
  const document = childDocument(json, "child");
  return document === null ? null : checkTree(document, new Map(), new Diagnostics(), acceptedBefore);
}

/** Of a child that is made on a mode, what that cannot do: else it were refused by the child alone, which nobody reads at once. */
function checkModes(cell: Cell, fault: ReportFault): void {
  for (const { path, ...element } of cell.elements.values()) {
    if (element.type !== "CellController" || element.networkMode === undefined) continue;
    const child = readChild(element.cell);
    const attribute = "x.cell";
    if (child !== null)
      checkMode(child, element.networkMode, (code, message, at, { attribute: name = "", hint } = {}) =>
        fault(code, `\`${name}\` of \`${at}\`: ${message}`, path, { attribute, hint }),
      );
  }
}

type Required = readonly [name: string, schema: AttributeSchema][];
/** What an element of a type cannot be without. */
const requiredOf = new Map<string, Required>();
function required(type: ElementType | "Cell"): Required {
  const known = requiredOf.get(type);
  if (known) return known;
  const table = type === "Cell" ? cellAttributes : elementSchemas[type];
  const found = Object.entries(table).filter(([, schema]) => schema.required);
  requiredOf.set(type, found);
  return found;
}

function hasElementAttribute(names: Iterable<string>): boolean {
  for (const name of names) if (name.startsWith("x.")) return true;
  return false;
}

const lacksType = (value: Json): boolean =>
  isObject(value) && (isIncomplete(value) || isUnknown(value)) && !Object.hasOwn(value, "x.type");

interface Found {
  /** The component that holds it; many have it in common. */
  readonly around: readonly string[];
  readonly name: string;
  readonly joined: string;
  readonly component: JsonObject;
  readonly type: ElementType;
  readonly position: Position | undefined;
  /** A component around it that is no element says where it was before; null: none does, or an element in between. */
  readonly moved: Moved | null;
}
/** `x.movedFrom` of a component that holds elements, for what is inside of it at `rest`. */
interface Moved {
  readonly around: readonly string[];
  readonly name: string;
  readonly joined: string;
  readonly component: JsonObject;
  /** Names below it, each with a `/` in front. */
  readonly rest: string;
}
const movedFrom = "x.movedFrom";
const saysFormer = (component: JsonObject): boolean => (component[movedFrom] ?? null) !== null;

/** How large a volume must be is the image's to say, which an author may not know. */
const imageHint = (volume: JsonObject): string => {
  const image = volume["x.import"];
  if (typeof image !== "string") return "";
  return ` It must be at least as large as the image \`${image}\`: \`cells image list\` shows its size.`;
};
const isScalar = (json: Json): boolean => typeof json !== "object";

class Checker {
  readonly #document: JsonObject;
  readonly #positions: Positions;
  readonly #diagnostics: Diagnostics;
  readonly #found: Found[] = [];
  readonly #types = new Map<string, ElementType>();
  readonly #byPath = new Map<string, Found>();
  #pathNames = 0;
  #pathCharacters = 0;
  /** A limit was passed: nothing more is looked at. */
  #tooMany = false;
  /** An element that was made from each template, and which templates have components in them. */
  readonly #elementsOf = new Map<JsonObject, Element | null>();
  /** Of components that say `x.movedFrom` and are no elements; null: it is wrong, and was told. */
  readonly #formerPaths = new Map<JsonObject, string | null>();
  readonly #holding = new Map<JsonObject, boolean>();

  constructor(document: JsonObject, positions: Positions, diagnostics: Diagnostics) {
    this.#document = document;
    this.#positions = positions;
    this.#diagnostics = diagnostics;
  }

  *check(supply: Supply): InSlices<Cell | null> {
    const root = this.#cellComponent();
    if (!root) return null;
    const { name, component, position } = root;
    const moved = saysFormer(component) ? { around: [], name, joined: name, component, rest: "" } : null;
    yield* this.#collect(component, [], name, name, moved);
    if (this.#tooMany) return null;
    const context: DocumentContext = {
      document: this.#document,
      types: this.#types,
      cellPath: name,
      budget: limits.attributes,
      characters: limits.characters,
      copies: new Map(),
    };
    const values = this.#read(context, { around: [], name, joined: name, component, type: "Cell", position });
    const elements = new Map<ElementPath, Element>();
    for (const found of this.#found) {
      if (this.#diagnostics.full) return null;
      const path = elementPath(found.joined);
      const element = this.#element(context, found, path);
      if (element) elements.set(path, element);
      yield 1;
    }
    const cell = values && this.#cell(name, values, elements, position);
    if (cell) yield* this.#checkWhole(cell, component, position, supply);
    return this.#diagnostics.none ? cell : null;
  }

  /** What no element shows alone. Each check goes over the whole cell, and costs little of each element. */
  *#checkWhole(cell: Cell, component: JsonObject, position: Position | undefined, supply: Supply): InSlices<void> {
    const faultOfCell: ReportFault = (code, message, path, more = {}) => {
      const { attribute } = more;
      const at = path === cell.path && attribute ? this.#at(component, attribute, "value", position) : {};
      this.#fault(code, message, path, { ...more, ...at });
    };
    checkCell(cell, faultOfCell);
    yield cell.elements.size;
    if (supply.accepted) return;
    checkBounds(cell, this.#fault);
    checkNetwork(cell, this.#fault);
    checkSourcePorts(cell, this.#fault);
    checkModes(cell, this.#fault);
    checkLimits(cell, readChild, faultOfCell);
    checkKept(cell, readChild, supply, faultOfCell);
    yield cell.elements.size;
    checkRules(cell, faultOfCell);
    checkSupply(cell, supply, faultOfCell);
    yield cell.elements.size;
  }

  /** The document's one component of type Cell. */
  #cellComponent(): { name: string; component: JsonObject; position: Position | undefined } | null {
    // A component without its type may be the cell.
    const isWhole = !isIncomplete(this.#document) && !Object.values(this.#document).some(lacksType);
    const cells = Object.entries(this.#document).filter(([, value]) => isObject(value) && value["x.type"] === "Cell");
    const [first, second] = cells;
    if (!first || !isObject(first[1])) {
      if (!isWhole) return null;
      this.#diagnostics.add({
        code: "schema/no-cell",
        message: "The document has no component of type Cell",
        hint: "Put everything that is to be deployed into `name extends Cell { … }`.",
      });
      return null;
    }
    if (second) {
      this.#fault("schema/several-cells", `\`${second[0]}\` is a second cell beside \`${first[0]}\``, second[0], {
        ...this.#at(this.#document, second[0], "name"),
        hint: "A document describes exactly one cell; use one document for each.",
      });
      return null;
    }
    return { name: first[0], component: first[1], position: this.#positions.get(this.#document)?.get(first[0])?.name };
  }

  #cell(
    name: string,
    values: AttributeValues,
    elements: ReadonlyMap<ElementPath, Element>,
    position: Position | undefined,
  ): Cell | null {
    const wanted = values.text("x.name") ?? name;
    if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(wanted)) {
      this.#fault("schema/cell-name", `\`${wanted}\` cannot be a cell's name: it must be a DNS label`, name, {
        ...(position ? { position } : {}),
        hint: 'Give the cell an `x.name` of lower-case letters, digits and `-`, such as `x.name "shop";`.',
      });
      return null;
    }
    const backup = backupOf(values);
    const ha = haSettingsOf(
      (attribute) => values.number(attribute),
      (attribute) => values.texts(attribute),
    );
    const placement = placementSettingsOf((attribute) => values.number(attribute));
    const zone = zoneOf(values);
    const externalPools = values.texts("x.pools.external")?.map((each) => cidr(each));
    const defaults = opennessOf(values, "x.defaults");
    const hasDefaults = Object.keys(defaults).length > 0;
    const limited = limitsOf((attribute) => values.number(attribute));
    return Object.freeze({
      name: cellName(wanted),
      path: elementPath(name),
      document: this.#document,
      policy: opennessOf(values, "x.policy"),
      deploy: values.text("x.policy.deploy") === "all-or-none" ? "all-or-none" : "as-possible",
      ...(values.flag("x.policy.forward") === true ? { forward: true } : {}),
      ...(values.text("x.policy.isolation") === "none" ? { isolation: "none" } : {}),
      ...(hasDefaults ? { defaults } : {}),
      ...(limited === null ? {} : { limits: limited }),
      ...(backup === null ? {} : { backup }),
      ...(ha === null ? {} : { ha }),
      ...(placement === null ? {} : { placement }),
      ...(zone === null ? {} : { zone }),
      ...(externalPools === undefined ? {} : { externalPools: Object.freeze(externalPools) }),
      elements,
    });
  }

  #holds(template: JsonObject): boolean {
    const known = this.#holding.get(template);
    if (known !== undefined) return known;
    const holds = Object.entries(template).some(([name, value]) => !name.startsWith("x.") && isObject(value));
    this.#holding.set(template, holds);
    return holds;
  }

  /** Finds the elements inside a component, in document order; `x.` attributes hold none. */
  *#collect(
    component: JsonObject,
    around: readonly string[],
    own: string,
    joined: string,
    outer: Moved | null,
  ): InSlices<void> {
    let path: readonly string[] | null = null;
    const made = this.#positions.madeFrom?.(component);
    for (const name of made && !this.#holds(made.template) ? made.own.keys() : Object.keys(component)) {
      if (name.startsWith("x.")) continue;
      const value = component[name];
      if (!isObject(value) || isUnknown(value)) continue;
      const here = `${joined}/${name}`;
      const at = this.#at(component, name, "name");
      // Most components hold no other one, and need no path as such.
      path ??= [...around, own];
      if (path.length > limits.nesting) {
        this.#fault("limit/nesting", `Components are nested deeper than ${limits.nesting} levels`, here, at);
        return;
      }
      if (name === "" || name === "." || name === ".." || name.includes("/"))
        this.#fault("schema/name", `\`${name}\` cannot name a component of a cell`, here, {
          ...at,
          hint: "A name is a part of a path: it is not empty, not `.` or `..`, and has no `/` in it.",
        });
      const isElement = Object.hasOwn(value, "x.type");
      const says = saysFormer(value);
      const inherited = outer === null || says ? null : { ...outer, rest: `${outer.rest}/${name}` };
      const moved = says && !isElement ? { around: path, name, joined: here, component: value, rest: "" } : inherited;
      this.#classify(value, { around: path, name, joined: here, component: value, position: at.position, moved });
      if (this.#tooMany) return;
      yield* this.#collect(value, path, name, here, moved);
      if (this.#tooMany) return;
      if (isElement) yield 1;
    }
  }

  #classify(component: JsonObject, place: Omit<Found, "type">): void {
    const { name, joined, position } = place;
    const type = Object.hasOwn(component, "x.type") ? component["x.type"] : undefined;
    if (isUnknown(type) || (type === undefined && isIncomplete(component))) return;
    if (type === undefined) {
      const stray = Object.keys(component).find((each) => each.startsWith("x.") && each !== movedFrom);
      if (stray !== undefined)
        this.#fault("schema/no-type", `\`${stray}\` means nothing here: \`${name}\` has no type`, joined, {
          ...this.#at(component, stray, "name"),
          hint:
            this.#replacedHint(component, name, "x.type") ??
            "Make the component of a type, as in `name extends VM { … }`; templates stand outside the cell.",
        });
    } else if (typeof type === "string" && isElementType(type)) this.#add({ ...place, type });
    else {
      const cell = type === "Cell";
      const message = cell ? "A cell cannot stand inside a cell" : `${JSON.stringify(type)} is not a type of element`;
      const hint = cell
        ? "A child cell is made by a `CellController` with `x.cell`."
        : `Types are ${standardPrototypes.join(", ")}.`;
      this.#fault("schema/unknown-type", message, joined, {
        ...this.#at(component, "x.type", "value", position),
        hint: (cell ? undefined : didYouMean(String(type), standardPrototypes).hint) ?? hint,
      });
    }
  }

  #add(found: Found): void {
    const { around, joined, type, position } = found;
    this.#types.set(joined, type);
    this.#found.push(found);
    this.#byPath.set(joined, found);
    this.#pathNames += around.length + 1;
    this.#pathCharacters += joined.length;
    const told = this.#found.length > limits.elements ? tooManyElements : null;
    const long = this.#pathNames > limits.pathNames || this.#pathCharacters > limits.pathCharacters;
    if (told === null && !long) return;
    this.#tooMany = true;
    this.#diagnostics.add({
      ...(told ?? {
        code: "limit/paths",
        message: `The paths of all elements together have more than ${limits.pathNames} names or ${limits.pathCharacters} characters`,
        hint: "Let what holds many elements stand in fewer groups, or in groups with shorter names.",
      }),
      ...(position ? { position } : { path: joined }),
    });
  }

  /** Null if an attribute is wrong. What differs from others of its template in nothing that an element has is read once. */
  #element(context: DocumentContext, found: Found, path: ElementPath): Element | null {
    const { component, type, position } = found;
    const made = this.#positions.madeFrom?.(component);
    const template = made && !hasElementAttribute(made.own.keys()) ? made.template : null;
    const like = template && this.#elementsOf.get(template);
    if (like && position) return this.#moved(context, found, Object.freeze({ ...like, path, position }));
    // What is wrong with it has been told of the first.
    if (like === null && template) return null;
    const read = this.#read(context, found);
    const element = read && buildElement(type, path, read, position);
    if (template) this.#elementsOf.set(template, element);
    return element && this.#moved(context, found, element);
  }

  /** Where it was before, as the closest group around it says; null if that is wrong. */
  #moved(context: DocumentContext, { moved }: Found, element: Element): Element | null {
    if (moved === null || element.movedFrom !== undefined) return element;
    const { component, around, name, joined, rest } = moved;
    const known = this.#formerPaths.get(component);
    const former = known === undefined ? this.#formerPath(context, component, [...around, name], joined) : known;
    this.#formerPaths.set(component, former);
    return former === null ? null : Object.freeze({ ...element, movedFrom: elementPath(`${former}${rest}`) });
  }
  #formerPath(context: DocumentContext, component: JsonObject, path: readonly string[], joined: string): string | null {
    const schema = attributeSchema("Cell", movedFrom);
    const json = component[movedFrom];
    if (schema === undefined || json === undefined || isUnknown(json)) return null;
    const meaning = readValue(context, path, movedFrom, schema, json);
    if (meaning instanceof ValueFault)
      this.#fault(meaning.code, meaning.message, joined, {
        ...this.#at(component, movedFrom, "value"),
        hint: meaning.hint,
      });
    return !(meaning instanceof ValueFault) && meaning.kind === "text" ? meaning.value : null;
  }

  /** All attributes of one element, defaults included; null if one of them is wrong. */
  #read(
    context: DocumentContext,
    found: Omit<Found, "type" | "moved"> & { readonly type: ElementType | "Cell" },
  ): AttributeValues | null {
    const { component, around, name: own, joined, type, position } = found;
    let path: readonly string[] | null = null;
    const meanings = new Map<string, Meaning>();
    let sound = true;
    /** Names that unknown ones were surely meant to be: these are not missed again below. */
    const meant = new Set<string | undefined>();
    const wrong = (code: string, message: string, more: { position?: Position; hint?: string | undefined }): void => {
      sound = false;
      this.#fault(code, message, joined, more);
    };
    for (const name of Object.keys(component)) {
      if (!name.startsWith("x.") || name === "x.type") continue;
      const json = component[name];
      if (json === undefined) continue;
      if (this.#diagnostics.full) return null;
      const schema = attributeSchema(type, name);
      if (!schema) {
        const names = attributeNames(type);
        meant.add(closestName(name, names));
        wrong("schema/unknown-attribute", `\`${name}\` is not an attribute of ${type}`, {
          ...this.#at(component, name, "name"),
          hint: didYouMean(name, names).hint ?? `A ${type} has ${names.join(", ")}.`,
        });
        continue;
      }
      if (json === null && schema.kind.kind !== "data") continue;
      if (isUnknown(json)) {
        sound = false;
        continue;
      }
      if (typeof json === "string" || typeof json === "object") path ??= [...around, own];
      const meaning = readValue(context, path ?? around, name, schema, json);
      if (!(meaning instanceof ValueFault) && meaning.kind === "unknown") sound = false;
      else if (meaning instanceof ValueFault)
        wrong(meaning.code, meaning.message, { ...this.#at(component, name, "value", position), hint: meaning.hint });
      else meanings.set(name, meaning);
    }
    const missing = required(type).filter(([name]) => {
      const given = Object.hasOwn(component, name) && component[name] !== null;
      return !given && !meant.has(name);
    });
    if (isIncomplete(component)) return null;
    if (missing.length > 0) {
      const names = missing.map(([name]) => `\`${name}\``).join(" and no ");
      wrong("schema/required", `\`${own}\` has no ${names}, which a ${type} needs`, {
        ...(position ? { position } : {}),
        hint: this.#missingHint(component, own, type, missing),
      });
    }
    return sound ? new AttributeValues(type, meanings) : null;
  }

  #missingHint(component: JsonObject, element: string, type: string, missing: Required): string {
    const prefix = missing.find(([name]) => Object.hasOwn(component, name.slice("x.".length)))?.[0];
    if (prefix !== undefined)
      return `Attributes that mean something to the cloud begin with \`x.\`: write \`${prefix}\` instead of \`${prefix.slice("x.".length)}\`.`;
    for (const [name] of missing) {
      const replaced = this.#replacedHint(component, element, name);
      if (replaced !== undefined) return replaced;
    }
    const hints = missing.map(([name, schema]) => hintOf(name, schema)).join(" ");
    return type === "Volume" ? `${hints}${imageHint(component)}` : hints;
  }

  /** Where a template has what is missing here: whoever writes a component again may think that the two are merged. */
  #replacedHint(component: JsonObject, name: string, missing: string): string | undefined {
    const replaced = this.#positions.replaced?.(component);
    if (!replaced?.has(missing)) return undefined;
    const own = Object.entries(component).find(([each, value]) => each !== "x.type" && isScalar(value));
    const inside = own ? `${own[0]} ${JSON.stringify(own[1])};` : "…";
    return (
      `A nested component that is redefined is replaced, not merged: what \`${replaced.template}\` gives ` +
      `\`${name}\` is gone. To keep it, write \`${name} extends ${replaced.component} { ${inside} }\`.`
    );
  }

  #at(component: JsonObject, name: string, which: "name" | "value", otherwise?: Position): { position?: Position } {
    const position = this.#positions.get(component)?.get(name)?.[which] ?? otherwise;
    return position ? { position } : {};
  }
  /** Reports a fault of the element at `path`; `attribute` finds the position if none is given. */
  readonly #fault = (
    code: string,
    message: string,
    path: string,
    more: { readonly position?: Position; readonly hint?: string | undefined; readonly attribute?: string } = {},
  ): void => {
    if (!this.#diagnostics.wants(code)) return;
    const found = more.position ? undefined : this.#byPath.get(path);
    const position =
      found && more.attribute
        ? this.#at(found.component, more.attribute, "value", found.position).position
        : (more.position ?? found?.position);
    this.#diagnostics.add({
      code,
      message,
      path,
      ...(more.hint === undefined ? {} : { hint: more.hint }),
      ...(position ? { position } : {}),
    });
  };
}
