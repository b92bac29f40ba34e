import type { ChangeEffect } from "../cell/attributes/kinds.ts";
import type { Cell, Element, ElementType } from "../cell/cell.ts";
import { describedAttributes, describedCell } from "../cell/described.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { elementPath } from "../cell/identifiers.ts";
import { attributeSchema } from "../cell/schema.ts";
import type { Json } from "../json/json.ts";
import { sameJson } from "../json/same.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import type { CellStep, DataLoss, Plan, PlanAction, PlanStep } from "./plan-types.ts";

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
  /** The attributes that the causes are of; only where there are any. */
  named?: Set<string>;
}

/** Where each type stands in an order of execution; deletes go the other way round. */
const ranks: Readonly<Record<ElementType, number>> = {
  Subnet: 0,
  Volume: 0,
  VolumeCopy: 1,
  VolumeGrant: 2,
  VolumeConnection: 3,
  VirtualInterface: 3,
  NetworkRule: 4,
  VM: 5,
  CellController: 6,
  Host: 7,
  Domain: 8,
  Account: 9,
  Role: 9,
  Zone: 7,
  Pod: 7,
  Cluster: 7,
  Dedication: 10,
  AffinityGroup: 4,
  Offering: 6,
  HostFlavor: 6,
  Pool: 0,
  PoolHost: 1,
};
const rankOrder: ReadonlySet<number> = new Set(Object.values(ranks).sort((a, b) => a - b));
const strength: readonly PlanAction[] = ["none", "change", "restart", "replace", "create"];

const none: ReadonlySet<ElementPath> = new Set();

/** Nothing is to be done: the plan of a cell into itself, or into one that only its text tells from it. */
export const isEmptyPlan = (plan: Plan): boolean =>
  plan.cell === undefined && plan.steps.every((step) => step.action === "none" && step.movedFrom === undefined);

/**
 * What happens to the cell and to every element when `from` becomes `to`; null is a cell that is not there. Pure and
 * deterministic. A change of what the cell's `x.policy` opens without a rule shows as a change of its subnets as well.
 * `unwritten` are the volumes of `from` that nobody was ever given: nothing is lost with them. Nor with `held` ones, whose
 * bytes stay wherever they go.
 */
export const planChange = (
  from: Cell | null,
  to: Cell | null,
  unwritten: ReadonlySet<ElementPath> = none,
  held: ReadonlySet<ElementPath> = none,
): Plan => inOneGo(planInSlices(from, to, unwritten, held));
export function* planInSlices(
  from: Cell | null,
  to: Cell | null,
  unwritten: ReadonlySet<ElementPath>,
  held: ReadonlySet<ElementPath>,
): InSlices<Plan> {
  const all = (from?.elements.size ?? 0) + (to?.elements.size ?? 0);
  const formers = pairs(from, to);
  const renamed = new Map<ElementPath, ElementPath>();
  for (const [path, former] of formers) renamed.set(former.path, path);
  const moved = [...renamed].some(([before, now]) => before !== now);
  const drafts = new Map<ElementPath, Draft>();
  yield all;
  for (const [path, element] of to?.elements ?? []) {
    yield 1;
    const former = formers.get(path) ?? null;
    drafts.set(
      path,
      // Most elements of a large cell stay as they are, which is seen at once where no link can have a new name.
      former && !moved && sameFields(former, element)
        ? { element, former, action: "none", causes: [] }
        : compare(element, former, (old) => renamed.get(old) ?? old),
    );
  }
  for (const cause of from && to ? policyCauses(from, to) : [])
    for (const draft of drafts.values())
      if (draft.element.type === "Subnet" && draft.former?.type === "Subnet") raise(draft, "change", cause);
  const gone = [...(from?.elements.values() ?? [])].filter((element) => !renamed.has(element.path));
  const inOrder = to ? ordered(to, to.elements.values()) : [];
  yield all;
  drawConsequences(drafts, inOrder, gone, renamed);
  yield all;
  const leaving: Leaving = { gone, from, renamed, drafts, unwritten, held };
  const steps = Object.freeze([...(yield* keptSteps(to, inOrder, leaving)), ...(yield* deleteSteps(leaving))]);
  const cell = cellStep(from, to);
  if (cell !== null) return Object.freeze({ cell, steps });
  const textOnly = from && to && isEmptyPlan({ steps }) && !sameJson(from.document, to.document);
  return Object.freeze(textOnly ? { textOnly, steps } : { steps });
}

/** Of a cell's policy, what is nothing to its subnets. */
const apart: readonly string[] = ["x.policy.deploy", "x.policy.forward", "x.policy.isolation", "x.policy.resolvers"];

/** What is open without a rule is so in each subnet. */
function policyCauses(from: Cell, to: Cell): readonly Cause[] {
  const [before, after] = [describedCell(from), describedCell(to)];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((attribute) => {
    const [old = null, now = null] = [before.get(attribute), after.get(attribute)];
    const isPolicy = attribute.startsWith("x.policy.") && !apart.includes(attribute);
    return isPolicy && old !== now ? [{ attribute, from: old, to: now }] : [];
  });
}

/** What a new cell opens without a rule, or lets its child cells open: who makes it sees that by name. */
function openingsOf(cell: Cell): readonly Cause[] {
  return [...describedCell(cell)].flatMap(([attribute, to]) => {
    const isOpening = openings.some((name) => attribute === `x.policy.${name}` || attribute === `x.defaults.${name}`);
    return isOpening && (to === true || to === "out") ? [{ attribute, from: null, to }] : [];
  });
}
const openings = ["subnetConnectivity", "internet"] as const;

/** What happens to the cell itself; null: nothing. */
function cellStep(from: Cell | null, to: Cell | null): CellStep | null {
  const path = (to ?? from)?.path;
  if (path === undefined) return null;
  if (!to) return Object.freeze({ path, action: "delete", causes: Object.freeze([]) });
  if (!from) return Object.freeze({ path, action: "create", causes: Object.freeze(openingsOf(to)) });
  const [before, after] = [describedCell(from), describedCell(to)];
  const causes = [...new Set([...before.keys(), ...after.keys()])].flatMap((attribute) => {
    const [old = null, now = null] = [before.get(attribute), after.get(attribute)];
    return old === now ? [] : [{ attribute, from: old, to: now }];
  });
  return causes.length === 0 ? null : Object.freeze({ path, action: "change", causes: Object.freeze(causes) });
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
  const formerPath = formerPaths(to);
  for (const [path, element] of to.elements) {
    if (found.has(path)) continue;
    const former = from.elements.get(formerPath(path));
    if (!former || former.type !== element.type || taken.has(former.path)) continue;
    found.set(path, former);
    taken.add(former.path);
  }
  return found;
}

/**
 * Where a new path was before: what its own `x.movedFrom` says, or that of the closest element around it. What stands
 * around many is asked once.
 */
function formerPaths(to: Cell): (path: string) => ElementPath {
  const known = new Map<string, string>();
  const former = (path: string): string => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const end = path.lastIndexOf("/");
    const moved = to.elements.get(elementPath(path))?.movedFrom;
    const before = moved ?? (end < 0 ? path : `${former(path.slice(0, end))}${path.slice(end)}`);
    known.set(path, before);
    return before;
  };
  return (path) => elementPath(former(path));
}

function raise(draft: Draft, action: PlanAction, cause: Cause): void {
  if (draft.action === "create") return;
  if (strength.indexOf(action) > strength.indexOf(draft.action)) draft.action = action;
  draft.named ??= new Set();
  if (!draft.named.has(cause.attribute)) draft.causes.push(cause);
  draft.named.add(cause.attribute);
}

/** Equal in every field but where they were written. */
function sameFields(former: Element, element: Element): boolean {
  const [old, now] = [former, element] as unknown as [Record<string, Json>, Record<string, Json>];
  const differs = (name: string): boolean =>
    name !== "position" && name !== "movedFrom" && old[name] !== now[name] && !sameJson(old[name], now[name]);
  for (const name in now) if (differs(name)) return false;
  for (const name in old) if (now[name] === undefined && differs(name)) return false;
  return true;
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
  // What a text does not say of the counter is no order.
  if (attribute === "x.restart") return Number(now ?? 0) > Number(old ?? 0) ? "restart" : "none";
  // Only a VM is started; what a link changes about its VM is drawn later.
  return effect === "restart" && element.type !== "VM" ? "change" : effect;
}

function drawConsequences(
  drafts: ReadonlyMap<ElementPath, Draft>,
  inOrder: readonly Element[],
  gone: readonly Element[],
  renamed: ReadonlyMap<ElementPath, ElementPath>,
): void {
  // What has its identity from another stands behind it in this order, copies behind their origins: once is enough.
  const inRankOrder = inOrder.flatMap(({ path }) => drafts.get(path) ?? []);
  for (const draft of inRankOrder) {
    if (draft.action === "create" || draft.action === "replace") continue;
    for (const [attribute, path] of identityLinks(draft.element))
      if (drafts.get(path)?.action === "replace") raise(draft, "replace", { attribute, from: path, to: path });
  }
  for (const { element, former, action, causes } of inRankOrder) {
    if (!isLink(element)) {
      if (former && isLink(former)) detach(former, element.path);
      continue;
    }
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
  for (const element of gone) if (isLink(element)) detach(element, element.path);

  function detach(link: LinkElement, attribute: ElementPath): void {
    restart(drafts, renamed.get(link.vm) ?? link.vm, { attribute, from: target(link, renamed), to: null });
  }
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
  const needs = new Map<ElementPath, Set<ElementPath>>();
  const add = (path: ElementPath, need: ElementPath): void => {
    const known = needs.get(path);
    if (!cell.elements.has(path) || !cell.elements.has(need)) return;
    if (known) known.add(need);
    else needs.set(path, new Set([need]));
  };
  for (const element of cell.elements.values()) {
    if (element.type === "VolumeCopy") add(element.path, element.image);
    else if (element.type === "VolumeGrant") add(element.path, element.volume);
    else if (isLink(element)) {
      const end = target(element, new Map());
      add(element.path, end);
      if (element.requires) add(element.vm, end);
    }
  }
  return new Map([...cell.elements.keys()].map((path) => [path, [...(needs.get(path) ?? none)]]));
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
  const byRank = Map.groupBy(elements, ({ type }) => ranks[type]);
  const copies = (byRank.get(ranks.VolumeCopy) ?? []).map((element) => ({ element, depth: depth(element) }));
  copies.sort((one, other) => one.depth - other.depth);
  const inDepth = copies.map(({ element }) => element);
  return [...rankOrder].flatMap((rank) => (rank === ranks.VolumeCopy ? inDepth : (byRank.get(rank) ?? [])));
}

/**
 * What goes with a volume; null: nothing of its own. Nobody can write one that is "ro"; one that nobody ever wrote has only
 * what it was made from. For a copy that is its origin, which must stay then or hold nothing itself: the copy may be
 * what somebody calls a backup.
 */
function lossesIn({ from, renamed, drafts, unwritten, held }: Leaving): (element: Element) => DataLoss | null {
  const stays = (path: ElementPath): boolean => {
    const now = renamed.get(path);
    return now !== undefined && drafts.get(now)?.action !== "replace";
  };
  const known = new Map<ElementPath, boolean>();
  const loses = (element: Element): boolean => {
    const chain: ElementPath[] = [];
    let at: Element | undefined = element;
    let answer: boolean | undefined;
    for (; answer === undefined; at = from?.elements.get(at.image)) {
      // A copy of another cell's volume: nobody here knows whether that one stays.
      if (at === undefined) answer = true;
      else if (held.has(at.path)) answer = false;
      else if (known.has(at.path) || (chain.length > 0 && stays(at.path))) answer = known.get(at.path) ?? false;
      else if (at.type !== "VolumeCopy") answer = at.type === "Volume" && at.access === "rw" && !unwritten.has(at.path);
      else if (!unwritten.has(at.path)) answer = true;
      if (answer !== undefined || at?.type !== "VolumeCopy") break;
      chain.push(at.path);
    }
    for (const path of [element.path, ...chain]) known.set(path, answer ?? true);
    return answer ?? true;
  };
  return (element) => {
    if ((element.type !== "Volume" && element.type !== "VolumeCopy") || !loses(element)) return null;
    if (element.type === "VolumeCopy") return { sizeMiB: element.sizeMiB ?? null, copyOf: element.image };
    return { sizeMiB: element.sizeMiB, ...(element.import === undefined ? {} : { image: element.import }) };
  };
}
const withLoss = (loss: DataLoss | null): Pick<PlanStep, "losesData" | "loss"> =>
  loss === null ? { losesData: false } : { losesData: true, loss: Object.freeze(loss) };

function* keptSteps(to: Cell | null, inOrder: readonly Element[], leaving: Leaving): InSlices<PlanStep[]> {
  const steps: PlanStep[] = [];
  if (!to) return steps;
  const lossOf = lossesIn(leaving);
  const needs = dependenciesOf(to);
  yield to.elements.size;
  for (const element of inOrder) {
    yield 1;
    const draft = leaving.drafts.get(element.path);
    if (!draft) continue;
    const { action, former } = draft;
    const moved = former && former.path !== element.path ? { movedFrom: former.path } : {};
    steps.push(
      Object.freeze({
        path: element.path,
        type: element.type,
        action,
        causes: Object.freeze(draft.causes),
        waitsFor: Object.freeze(action === "none" ? [] : (needs.get(element.path) ?? [])),
        ...withLoss(action === "replace" && former ? lossOf(former) : null),
        ...moved,
      }),
    );
  }
  return steps;
}

interface Leaving {
  readonly gone: readonly Element[];
  readonly from: Cell | null;
  readonly renamed: ReadonlyMap<ElementPath, ElementPath>;
  readonly drafts: ReadonlyMap<ElementPath, Draft>;
  readonly unwritten: ReadonlySet<ElementPath>;
  readonly held: ReadonlySet<ElementPath>;
}

/** Reversed: what needed an element goes, or lets go of it, before it. */
function* deleteSteps(leaving: Leaving): InSlices<PlanStep[]> {
  const { gone, from, renamed, drafts } = leaving;
  const steps: PlanStep[] = [];
  if (!from || gone.length === 0) return steps;
  const lossOf = lossesIn(leaving);
  const users = new Map<ElementPath, ElementPath[]>(gone.map(({ path }) => [path, []]));
  const uses = (user: ElementPath, used: ElementPath): void => {
    const stays = renamed.get(user);
    // What stays as it is did not use it really: an interface that only names a subnet it need not wait for.
    if (stays === undefined || drafts.get(stays)?.action !== "none") users.get(used)?.push(stays ?? user);
  };
  for (const [path, list] of dependenciesOf(from)) for (const need of list) uses(path, need);
  // A link goes after its VM, which would lose a disk or a card while it runs.
  for (const element of gone) if (isLink(element)) uses(element.vm, element.path);
  yield from.elements.size;
  for (const element of ordered(from, gone).reverse()) {
    steps.push(
      Object.freeze({
        path: element.path,
        type: element.type,
        action: "delete" as const,
        causes: Object.freeze([]),
        waitsFor: Object.freeze(users.get(element.path) ?? []),
        ...withLoss(lossOf(element)),
      }),
    );
    yield 1;
  }
  return steps;
}
