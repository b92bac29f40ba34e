import type { Cell, Element, ElementType } from "./cell.ts";
import { describedAttributes, sameJson } from "./described.ts";
import type { ElementPath } from "./identifiers.ts";
import { elementPath } from "./identifiers.ts";
import type { Json } from "./json.ts";
import type { Plan, PlanAction, PlanStep } from "./plan-types.ts";
import { attributeSchema, type ChangeEffect } from "./schema.ts";

/*
 * How one cell becomes another. Elements are paired by path, or by the path that `x.movedFrom` names; what a changed
 * attribute does to its element is in the schema's table. Then the consequences are drawn along the links: what refers
 * to an element with a new identity must follow, and a VM whose disks or interfaces change is started again.
 */

type Cause = PlanStep["causes"][number];
interface Draft {
  readonly element: Element;
  readonly former: Element | null;
  action: PlanAction;
  readonly causes: Cause[];
}

/** Where each type stands in an order of execution; deletes go the other way round. */
const ranks: Readonly<Record<ElementType, number>> = {
  ...{ Subnet: 0, Volume: 0, VolumeCopy: 1, VolumeGrant: 2, VolumeConnection: 3, VirtualInterface: 3 },
  ...{ NetworkRule: 4, VM: 5, CellController: 6 },
};
const strength: readonly PlanAction[] = ["none", "change", "restart", "replace", "create"];

/** Nothing is to be done: the plan of a cell into itself. */
export const isEmptyPlan = (plan: Plan): boolean =>
  plan.steps.every((step) => step.action === "none" && step.movedFrom === undefined);

/**
 * What happens to every element when `from` becomes `to`; null is a cell that is not there. Pure and deterministic. A
 * change of the cell's own `x.policy.subnetConnectivity` shows as a change of its subnets.
 */
export function planChange(from: Cell | null, to: Cell | null): Plan {
  const formers = pairs(from, to);
  const renamed = new Map<ElementPath, ElementPath>();
  for (const [path, former] of formers) renamed.set(former.path, path);
  const drafts = new Map<ElementPath, Draft>();
  for (const [path, element] of to?.elements ?? [])
    drafts.set(
      path,
      compare(element, formers.get(path) ?? null, (old) => renamed.get(old) ?? old),
    );
  if (from && to && from.subnetConnectivity !== to.subnetConnectivity)
    for (const draft of drafts.values())
      if (draft.element.type === "Subnet" && draft.former)
        raise(draft, "change", {
          attribute: "x.policy.subnetConnectivity",
          from: from.subnetConnectivity,
          to: to.subnetConnectivity,
        });
  const gone = [...(from?.elements.values() ?? [])].filter((element) => !renamed.has(element.path));
  drawConsequences(drafts, gone, renamed);
  return Object.freeze({ steps: Object.freeze([...keptSteps(drafts, to), ...deleteSteps(gone, from)]) });
}

/** The former element of each path of `to` that goes on. */
function pairs(from: Cell | null, to: Cell | null): Map<ElementPath, Element> {
  const found = new Map<ElementPath, Element>();
  if (!from || !to) return found;
  const taken = new Set<ElementPath>();
  for (const path of to.elements.keys()) {
    const former = from.elements.get(path);
    if (!former) continue;
    found.set(path, former);
    taken.add(path);
  }
  for (const [path, element] of to.elements) {
    if (found.has(path)) continue;
    const former = from.elements.get(formerPath(to, element));
    if (!former || former.type !== element.type || taken.has(former.path)) continue;
    found.set(path, former);
    taken.add(former.path);
  }
  return found;
}

/** Where a new path was before: what its own `x.movedFrom` says, or that of the closest element around it. */
function formerPath(to: Cell, element: Element): ElementPath {
  if (element.movedFrom !== undefined) return element.movedFrom;
  const parts = element.path.split("/");
  for (let length = parts.length - 1; length > 0; length--) {
    const outer = to.elements.get(elementPath(parts.slice(0, length).join("/")));
    if (outer?.movedFrom !== undefined) return elementPath([outer.movedFrom, ...parts.slice(length)].join("/"));
  }
  return element.path;
}

function raise(draft: Draft, action: PlanAction, cause: Cause): void {
  if (draft.action === "create") return;
  if (strength.indexOf(action) > strength.indexOf(draft.action)) draft.action = action;
  if (!draft.causes.some(({ attribute }) => attribute === cause.attribute)) draft.causes.push(cause);
}

function compare(element: Element, former: Element | null, rename: (path: ElementPath) => ElementPath): Draft {
  if (!former) return { element, former, action: "create", causes: [] };
  const draft: Draft = { element, former, action: "none", causes: [] };
  if (former.type !== element.type) {
    raise(draft, "replace", { attribute: "x.type", from: former.type, to: element.type });
    return draft;
  }
  const [before, after] = [describedAttributes(former, rename), describedAttributes(element)];
  for (const attribute of new Set([...before.keys(), ...after.keys()])) {
    const [old, now] = [before.get(attribute), after.get(attribute)];
    if (sameJson(old, now)) continue;
    const action = actionOf(element, attribute, old, now);
    if (action !== "none") raise(draft, action, { attribute, from: old ?? null, to: now ?? null });
  }
  return draft;
}

function actionOf(element: Element, attribute: string, old: Json | undefined, now: Json | undefined): PlanAction {
  const effect: ChangeEffect = attributeSchema(element.type, attribute)?.effect ?? "change";
  // A volume can grow where it is; there is no way to make it smaller.
  if (attribute === "x.size" && typeof old === "number" && typeof now === "number" && now < old) return "replace";
  // Only a VM is started; what a link changes about its VM is drawn later.
  return effect === "restart" && element.type !== "VM" ? "change" : effect;
}

function drawConsequences(
  drafts: ReadonlyMap<ElementPath, Draft>,
  gone: readonly Element[],
  renamed: ReadonlyMap<ElementPath, ElementPath>,
): void {
  const inRankOrder = [...drafts.values()].sort((a, b) => ranks[a.element.type] - ranks[b.element.type]);
  // A copy of a copy may stand before its origin, so copies are gone over until nothing changes.
  for (let changed = true; changed; ) {
    changed = false;
    for (const draft of inRankOrder) {
      if (draft.action === "create" || draft.action === "replace") continue;
      for (const [attribute, path] of identityLinks(draft.element)) {
        if (drafts.get(path)?.action !== "replace") continue;
        raise(draft, "replace", { attribute, from: path, to: path });
        changed = true;
      }
    }
  }
  for (const { element, former, action, causes } of inRankOrder) {
    if (!isLink(element)) continue;
    const was = former && isLink(former) ? former : null;
    const previous = was ? (renamed.get(was.vm) ?? was.vm) : null;
    const rewired = action === "create" || action === "replace";
    if (!rewired) {
      for (const cause of causes)
        if (attributeSchema(element.type, cause.attribute)?.effect === "restart")
          restart(drafts, element.vm, { ...cause, attribute: `${element.path}/${cause.attribute}` });
      continue;
    }
    const end = target(element, new Map());
    const stays = was !== null && previous === element.vm;
    restart(drafts, element.vm, { attribute: element.path, from: stays ? target(was, renamed) : null, to: end });
    if (was && previous !== null && !stays)
      restart(drafts, previous, { attribute: element.path, from: target(was, renamed), to: null });
  }
  for (const element of gone)
    if (isLink(element))
      restart(drafts, renamed.get(element.vm) ?? element.vm, {
        attribute: element.path,
        from: target(element, renamed),
        to: null,
      });
}

function restart(drafts: ReadonlyMap<ElementPath, Draft>, vm: ElementPath, cause: Cause): void {
  const draft = drafts.get(vm);
  if (draft) raise(draft, "restart", cause);
}

type LinkElement = Extract<Element, { type: "VolumeConnection" | "VirtualInterface" }>;
const isLink = (element: Element): element is LinkElement =>
  element.type === "VolumeConnection" || element.type === "VirtualInterface";
function target(link: LinkElement, renamed: ReadonlyMap<ElementPath, ElementPath>): ElementPath {
  const path = link.type === "VolumeConnection" ? link.volume : link.subnet;
  return renamed.get(path) ?? path;
}

/** Links whose end's identity is part of the element's own: it is made anew together with that end. */
function identityLinks(element: Element): [string, ElementPath][] {
  if (element.type === "VolumeCopy") return [["x.image", element.image]];
  if (element.type === "VolumeConnection")
    return [
      ["x.vm", element.vm],
      ["x.volume", element.volume],
    ];
  if (element.type === "VirtualInterface")
    return [
      ["x.vm", element.vm],
      ["x.subnet", element.subnet],
    ];
  return [];
}

/**
 * What each element of a cell needs to be ready before it can be: a copy its origin, a link its volume or subnet, a VM the
 * volumes and subnets of its links that say `x.requires`. Ends outside the cell are left out.
 */
export function dependenciesOf(cell: Cell): ReadonlyMap<ElementPath, readonly ElementPath[]> {
  const needs = new Map<ElementPath, ElementPath[]>();
  const add = (path: ElementPath, need: ElementPath): void => {
    const list = needs.get(path);
    if (list && cell.elements.has(need) && !list.includes(need)) list.push(need);
  };
  for (const path of cell.elements.keys()) needs.set(path, []);
  for (const element of cell.elements.values()) {
    if (element.type === "VolumeCopy") add(element.path, element.image);
    else if (element.type === "VolumeGrant") add(element.path, element.volume);
    else if (isLink(element)) {
      const end = target(element, new Map());
      add(element.path, end);
      if (element.requires) add(element.vm, end);
    }
  }
  return needs;
}

/** In document order within a rank, and copies behind their origins. */
function ordered(cell: Cell, elements: Iterable<Element>): Element[] {
  const depths = new Map<ElementPath, number>();
  const depth = (element: Element): number => {
    if (element.type !== "VolumeCopy") return 0;
    const chain: Element[] = [];
    let at: Element | undefined = element;
    for (; at?.type === "VolumeCopy" && !depths.has(at.path); at = cell.elements.get(at.image)) chain.push(at);
    let below = (at && depths.get(at.path)) ?? 0;
    for (const copy of chain.reverse()) depths.set(copy.path, ++below);
    return depths.get(element.path) ?? 0;
  };
  return [...elements]
    .map((element) => ({ element, depth: depth(element) }))
    .sort((a, b) => ranks[a.element.type] - ranks[b.element.type] || a.depth - b.depth)
    .map(({ element }) => element);
}

const holdsData = (element: Element): boolean => element.type === "Volume" || element.type === "VolumeCopy";

function keptSteps(drafts: ReadonlyMap<ElementPath, Draft>, to: Cell | null): PlanStep[] {
  if (!to) return [];
  const needs = dependenciesOf(to);
  return ordered(to, to.elements.values()).flatMap((element) => {
    const draft = drafts.get(element.path);
    if (!draft) return [];
    const { action, former } = draft;
    const moved = former && former.path !== element.path ? { movedFrom: former.path } : {};
    return Object.freeze({
      ...{ path: element.path, type: element.type, action, causes: Object.freeze(draft.causes) },
      waitsFor: Object.freeze(action === "none" ? [] : (needs.get(element.path) ?? [])),
      losesData: action === "replace" && former !== null && holdsData(former),
      ...moved,
    });
  });
}

/** Reversed: what needed an element goes before it. */
function deleteSteps(gone: readonly Element[], from: Cell | null): PlanStep[] {
  if (!from) return [];
  const going = new Set(gone.map((element) => element.path));
  const neededBy = new Map<ElementPath, ElementPath[]>();
  const needs = new Map([...dependenciesOf(from)].map(([path, list]) => [path, [...list]]));
  // A link goes after its VM, which would lose a disk or a card while it runs.
  for (const element of gone) if (isLink(element)) needs.get(element.vm)?.push(element.path);
  for (const [path, list] of needs)
    if (going.has(path)) for (const need of list) neededBy.set(need, [...(neededBy.get(need) ?? []), path]);
  return ordered(from, gone)
    .reverse()
    .map((element) =>
      Object.freeze({
        ...{ path: element.path, type: element.type, action: "delete" as const, causes: Object.freeze([]) },
        waitsFor: Object.freeze(neededBy.get(element.path) ?? []),
        losesData: holdsData(element),
      }),
    );
}
