import type { Cell, DedicationElement, Element, HostElement, PlaceElement } from "../../../model/cell/cell.ts";
import { getAt, removeAt } from "../../../model/cell/document.ts";
import type { HostName } from "../../../model/cell/identifiers.ts";
import {
  type Dedications,
  dedicate,
  faultOf,
  type HostRule,
  isSameOwner,
  type Level,
  levels,
  named,
  type Owner,
  ownerIn,
  ownerText,
  type Resource,
  ruleOf,
  type Tree,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import { type Marks, mostMarks, readProperties } from "../../../model/cell/tenants/dedication/marks.ts";
import { pathPattern, pathRule } from "../../../model/contract/tenancy/tenancy.ts";
import { closestName } from "../../../model/diagnostics/closest-name.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { isObject, type JsonObject } from "../../../model/json/json.ts";
import { rootCell } from "../../documents/cells.ts";
import { type DesiredDedicated, type DesiredMarks, dedicatedKey, marksKey } from "../../documents/tenancy.ts";
import type { Desires } from "../changes/desires.ts";
import { addDesire, type ControllerState } from "../state.ts";
import { endingOwners, isOwner } from "./ending-owners.ts";
import { hostElements, hostOf, isRoot, placersOf } from "./hosts.ts";

/*
 * Zones, pods, clusters and dedications are elements of the root cell: `root/places/z1/p1/c1`, `root/dedications/<any name>`; where a host
 * stands is its `x.cluster`. What is written there is made into one rule for each host that is somebody's, and that goes to every Placer with
 * whose cells are (decision 128). With nothing written nothing is said, and hosts are everybody's as before.
 */
const [placesAt, dedicationsAt] = [`${rootCell}/places/`, `${rootCell}/dedications/`];

interface Places {
  readonly tree: Tree;
  readonly dedications: Dedications;
  readonly rules: ReadonlyMap<HostName, HostRule>;
  readonly faults: readonly Diagnostic[];
}
const placesIn = new WeakMap<Cell, Places>();
/** All that a model says of places and owners, and what is wrong with it. */
export function placesOf(cell: Cell): Places {
  const known = placesIn.get(cell);
  if (known !== undefined) return known;
  const faults: Diagnostic[] = [];
  const elements = [...cell.elements.values()];
  const tree = treeOf(elements, faults);
  const dedications = dedicationsOf(elements, tree, faults);
  const rules = new Map<HostName, HostRule>();
  for (const host of hostElements(cell)) {
    const rule = dedications.size === 0 ? null : ruleOf(tree, dedications, hostOf(host));
    if (rule !== null) rules.set(hostOf(host), rule);
  }
  const found = { tree, dedications, rules, faults };
  placesIn.set(cell, found);
  return found;
}

const isPlace = (element: Element): element is PlaceElement =>
  element.type === "Zone" || element.type === "Pod" || element.type === "Cluster";
const levelOf = { Zone: "zone", Pod: "pod", Cluster: "cluster" } as const satisfies Record<PlaceElement["type"], Level>;
const placeName = ({ path }: PlaceElement): string => path.slice(placesAt.length);

const told = (
  { path, position }: Element,
  code: "cell/place" | "cell/dedication",
  message: string,
  hint: string,
  attribute?: string,
): Diagnostic => ({
  code,
  message,
  hint,
  path,
  ...(attribute === undefined ? {} : { attribute }),
  ...(position === undefined ? {} : { position }),
});

function treeOf(elements: readonly Element[], faults: Diagnostic[]): Tree {
  const tree = new Map<string, Resource>();
  for (const element of elements) {
    if (!isPlace(element)) continue;
    const [name, level] = [placeName(element), levelOf[element.type]];
    const names = name.split("/");
    if (!element.path.startsWith(placesAt) || names.length !== levels.indexOf(level) + 1) {
      const right = levels.slice(0, levels.indexOf(level) + 1).map((each) => `<${each}>`);
      const message = `\`${element.path}\` is a ${element.type}, and stands elsewhere than as \`${placesAt}${right.join("/")}\``;
      faults.push(told(element, "cell/place", message, placeForm));
    } else tree.set(name, { level, above: names.length === 1 ? null : names.slice(0, -1).join("/") });
  }
  for (const [name, { above }] of tree) {
    const element =
      above !== null && !tree.has(above) ? elements.find(({ path }) => path === placesAt + name) : undefined;
    if (element !== undefined)
      faults.push(
        told(
          element,
          "cell/place",
          `\`${element.path}\` stands in \`${placesAt}${above}\`, which is no such place`,
          placeForm,
        ),
      );
  }
  for (const element of elements) {
    if (element.type !== "Host") continue;
    const host = hostOf(element);
    const zone = tree.get(host)?.level === "zone" ? elements.find(({ path }) => path === placesAt + host) : undefined;
    if (zone !== undefined)
      faults.push(
        told(zone, "cell/place", `A zone and a host are both called \`${host}\``, "Give the zone another name."),
      );
    tree.set(host, { level: "host", above: clusterOf(element, tree, faults) });
  }
  return tree;
}
const placeForm =
  "Write each place in the one that it is a part of: `places extends { z1 extends Zone { p1 extends Pod { c1 extends Cluster; } } }` in the cell `root`.";

function clusterOf(host: HostElement, tree: Tree, faults: Diagnostic[]): string | null {
  const { cluster } = host;
  if (cluster === undefined) return null;
  if (tree.get(cluster)?.level === "cluster") return cluster;
  const there = [...tree].flatMap(([name, { level }]) => (level === "cluster" ? [name] : []));
  const message = `\`${host.path}\` stands in the cluster ${quoted(cluster)}, which is none`;
  faults.push(told(host, "cell/place", message, whatThereIs(cluster, there, "clusters"), "x.cluster"));
  return null;
}
const quoted = (text: string): string => JSON.stringify(text.slice(0, 200));
function whatThereIs(wrong: string, there: readonly string[], what: string): string {
  if (there.length === 0) return `There are no ${what}. ${placeForm}`;
  const close = closestName(wrong, there);
  return `${close === undefined ? "" : `Did you mean \`${close}\`? `}The ${what} are ${named([...there].sort())}.`;
}

function dedicationsOf(elements: readonly Element[], tree: Tree, faults: Diagnostic[]): Dedications {
  const written = new Map<string, DedicationElement>();
  for (const element of elements) {
    if (element.type !== "Dedication") continue;
    const { path, of, to } = element;
    const fault = (message: string, hint: string, attribute?: string): void =>
      void faults.push(told(element, "cell/dedication", message, hint, attribute));
    const other = written.get(of);
    if (!path.startsWith(dedicationsAt) || path.slice(dedicationsAt.length).includes("/"))
      fault(
        `\`${path}\` is a Dedication, and stands elsewhere than as \`${dedicationsAt}<name>\``,
        "Write it as `dedications extends { racks extends Dedication { … } }` in the cell `root`.",
      );
    else if (!tree.has(of))
      fault(
        `There is no zone, pod, cluster or host ${quoted(of)}`,
        whatThereIs(of, [...tree.keys()], "places and hosts"),
        "x.of",
      );
    else if (!pathPattern.test(to))
      fault(`${quoted(to)} is no path of a domain`, `Write ${pathRule}; \`cells domain list\` shows them.`, "x.to");
    else if (other !== undefined)
      fault(
        `${of} is dedicated already, by \`${other.path}\``,
        `Release ${of} first: leave out one of the two.`,
        "x.of",
      );
    else written.set(of, element);
  }
  const dedications = new Map([...written].map(([of, element]) => [of, ownerIn(element.to, element.account)]));
  for (const [of, element] of written) {
    const unlawful = faultOf(tree, dedications, of);
    if (unlawful !== null) faults.push(told(element, "cell/dedication", unlawful.why, unlawful.hint, "x.of"));
  }
  return dedications;
}

/** Why a model must not say of places and owners what it says; empty if it may. */
export function dedicationRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  if (isRoot(state)) return [...placesOf(cell).faults, ...givenToWhoEnds(state, cell)];
  return [...cell.elements.values()].flatMap((element): readonly Diagnostic[] => {
    if (!isPlace(element) && element.type !== "Dedication") return [];
    const message = `\`${element.path}\` is a ${element.type}, and whose hosts are says the root cell alone`;
    const code = isPlace(element) ? "cell/place" : "cell/dedication";
    return [told(element, code, message, "Leave it out: what a VM wants of its host stands in its `x.placement`.")];
  });
}

/** What is given anew to an account or a domain that is being deleted would be nobody's a moment later, or keep it from its end. */
function givenToWhoEnds(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const ending = endingOwners(state);
  if (ending.length === 0) return [];
  const before = state.cell === null ? new Map<string, Owner>() : placesOf(state.cell).dedications;
  return [...cell.elements.values()].flatMap((element): readonly Diagnostic[] => {
    const owner = element.type === "Dedication" ? ending.find((each) => isOwner(each, element)) : undefined;
    if (owner === undefined || element.type !== "Dedication") return [];
    const former = before.get(element.of);
    if (former !== undefined && isSameOwner(former, owner)) return [];
    const message = `\`${element.path}\` gives ${element.of} to ${ownerText(owner)}, which is being deleted`;
    return [told(element, "cell/dedication", message, "Give it to another one, or leave it out.", "x.to")];
  });
}

/**
 * The document without what goes into a dedication that is written at `path`: what the very same owner has below. It is given back in the same
 * change, and the plan shows that.
 */
export function withoutBelow({ cell, options }: ControllerState, document: JsonObject, path: string): JsonObject {
  if (options.cell !== rootCell || cell === null || !path.startsWith(dedicationsAt)) return document;
  const written = getAt(document, path);
  const { "x.of": of, "x.to": to, "x.account": account } = written.ok && isObject(written.value) ? written.value : {};
  if (typeof of !== "string" || typeof to !== "string") return document;
  const owner = ownerIn(to, typeof account === "string" ? account : undefined);
  const { tree, dedications } = placesOf(cell);
  const outcome = dedicate(tree, new Map([...dedications].filter(([each]) => each !== of)), of, owner);
  const released = new Set(outcome.ok ? outcome.released : []);
  let left = document;
  for (const element of cell.elements.values()) {
    const goes = element.type === "Dedication" && released.has(element.of) && element.path !== path;
    const removed = goes ? removeAt(left, element.path) : null;
    if (removed?.ok === true) left = removed.value;
  }
  return left;
}

/** Of hosts that are nobody's nothing is said. */
export function desireDedications(state: ControllerState, desires: Desires): void {
  if (!isRoot(state) || state.cell === null) return;
  const placers = placersOf(state.cell);
  for (const [host, rule] of placesOf(state.cell).rules) {
    const { epoch } = state.claims.get(host) ?? {};
    const document: DesiredDedicated = { host, ...rule, ...(epoch === undefined ? {} : { epoch }) };
    for (const peer of placers) addDesire(desires, peer, dedicatedKey(host), document);
  }
}
/** Keys under which something is said of this model's hosts. */
export const dedicatedKeys = (cell: Cell): readonly string[] => [
  ...[...placesOf(cell).rules.keys()].map(dedicatedKey),
  ...marksIn(cell).map(({ host }) => marksKey(host)),
];

/** What VMs may ask for of hosts, at each Placer. */
export function desireMarks(state: ControllerState, desires: Desires): void {
  if (!isRoot(state) || state.cell === null) return;
  const placers = placersOf(state.cell);
  for (const document of marksIn(state.cell))
    for (const peer of placers) addDesire(desires, peer, marksKey(document.host), document);
}
const marksIn = (cell: Cell): readonly DesiredMarks[] =>
  hostElements(cell).flatMap((element): readonly DesiredMarks[] => {
    const { cluster, tags } = element;
    const properties = readProperties(element.properties);
    const marks: Marks = {
      ...(cluster === undefined ? {} : { cluster }),
      ...(tags === undefined || tags.length === 0 ? {} : { tags: tags.slice(0, mostMarks) }),
      ...(properties === null ? {} : { properties }),
    };
    return Object.keys(marks).length === 0 ? [] : [{ host: hostOf(element), ...marks }];
  });
