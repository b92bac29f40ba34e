import type { Cell, Element, PortRange, RuleEnd } from "../cell/cell.ts";
import { type ElementPath, elementPath } from "../cell/identifiers.ts";
import { attributeSchema } from "../cell/schema.ts";
import type { Json } from "../json/json.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import type { Plan, PlanAction, PlanStep } from "./plan-types.ts";

/*
 * Is a plan right? Asked before it is executed, because a wrong one destroys disks. The planner works forward, from
 * differences to consequences; this looks at a finished plan from the other side and asks of each step whether it is what
 * the two cells call for, given the other steps. The two share the schema's table and no code: a mistake would have to be
 * made twice. What is checked: every element has one step; identities go on exactly where path or `x.movedFrom` says so;
 * each cause is true, none is left out, and the action is the strongest of them; so is what it says of the cell itself; who rests on something with a new
 * identity follows; data is said to be lost exactly where it is; everything waits for what it rests on, and for nothing
 * that comes later.
 */

interface Reason {
  readonly from: Json;
  readonly to: Json;
  readonly action: PlanAction;
  /** The step must name it; others may be left out if one that is as strong is named. */
  readonly needed: boolean;
}
type Reasons = Map<string, Reason>;
type Uses = Map<ElementPath, Set<ElementPath>>;

type Wrong = (path: string, what: string) => void;

interface Question {
  readonly from: Cell | null;
  readonly to: Cell | null;
  readonly unwritten: ReadonlySet<ElementPath>;
  readonly held: ReadonlySet<ElementPath>;
  /** Where each element was that goes on, and where it is now. */
  readonly was: ReadonlyMap<ElementPath, ElementPath>;
  readonly is: ReadonlyMap<ElementPath, ElementPath>;
  readonly steps: ReadonlyMap<ElementPath, PlanStep>;
  /** Volumes that were found to hold data of their own, or not to. */
  /** Some element has another path than before. */
  readonly moves: boolean;
  readonly holders: Map<ElementPath, boolean>;
  readonly position: ReadonlyMap<ElementPath, number>;
  readonly wrong: Wrong;
}

const weights: Readonly<Record<PlanAction, number>> = {
  none: 0,
  change: 1,
  restart: 2,
  replace: 3,
  create: -1,
  delete: -1,
};
const enough = 20;

/**
 * What is wrong with a plan from one cell to another, a sentence each, the first few; empty if nothing is. `unwritten` and
 * `held` as for the planner: volumes of `from` that nobody was ever given, and those whose bytes stay.
 */
export const planFaults = (
  from: Cell | null,
  to: Cell | null,
  plan: Plan,
  unwritten: ReadonlySet<ElementPath> = new Set(),
  held: ReadonlySet<ElementPath> = new Set(),
): readonly string[] => inOneGo(planFaultsInSlices(from, to, plan, unwritten, held));
export function* planFaultsInSlices(
  from: Cell | null,
  to: Cell | null,
  plan: Plan,
  unwritten: ReadonlySet<ElementPath>,
  held: ReadonlySet<ElementPath>,
): InSlices<readonly string[]> {
  const all = (from?.elements.size ?? 0) + (to?.elements.size ?? 0);
  const faults: string[] = [];
  const wrong: Wrong = (path, what) => {
    if (faults.length < enough) faults.push(`${path}: ${what}`);
  };
  const was = continuations(from, to);
  const is = new Map([...was].map(([now, before]) => [before, now]));
  const moves = [...was].some(([now, before]) => now !== before);
  const steps = new Map<ElementPath, PlanStep>();
  const position = new Map<ElementPath, number>();
  for (const [index, step] of plan.steps.entries()) {
    if (steps.has(step.path)) wrong(step.path, "has more than one step");
    steps.set(step.path, step);
    position.set(step.path, index);
    if (to?.elements.has(step.path) !== true && from?.elements.has(step.path) !== true)
      wrong(step.path, "is an element of neither cell");
  }
  yield all;
  const question: Question = { from, to, unwritten, held, was, is, steps, holders: new Map(), moves, position, wrong };
  const consequences = vmConsequences(question);
  yield all;
  const [needs, needed] = [usesIn(to), usesIn(from)];
  yield all;
  for (const element of to?.elements.values() ?? []) {
    checkKept(question, element, consequences, needs);
    yield 1;
  }
  const users = usersOf(question, needed);
  yield all;
  for (const element of from?.elements.values() ?? []) {
    if (!is.has(element.path)) checkGone(question, element, users);
    yield 1;
  }
  checkCellStep(from, to, plan, wrong);
  return faults;
}

/** What the plan says of the cell itself. */
function checkCellStep(from: Cell | null, to: Cell | null, { cell, steps, textOnly }: Plan, wrong: Wrong): void {
  const path = to?.path ?? from?.path ?? "the cell";
  const [before, after] = [from && settings(from), to && settings(to)];
  const changed = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])].filter(
    (name) => before?.get(name) !== after?.get(name),
  );
  const due = before && after ? (changed.length > 0 ? "change" : null) : after ? "create" : before ? "delete" : null;
  if ((cell?.action ?? null) !== due)
    wrong(path, `the cell itself: ${cell?.action ?? "nothing"} is not what is called for`);
  if (cell !== undefined && cell.path !== path) wrong(cell.path, "is not the cell");
  const named = new Set<string>();
  for (const { attribute, from: old, to: now } of cell?.causes ?? []) {
    if (named.has(attribute)) wrong(path, `names ${attribute} twice`);
    named.add(attribute);
    if (!(due === "change" || (due === "create" && opens(attribute, now))) || !changed.includes(attribute))
      wrong(path, `${attribute} of the cell is no cause of anything`);
    else if ((before?.get(attribute) ?? null) !== old || (after?.get(attribute) ?? null) !== now)
      wrong(path, `${attribute} of the cell changes otherwise than the plan says`);
  }
  if (due === "change")
    for (const name of changed) if (!named.has(name)) wrong(path, `does not name ${name} of the cell as a cause`);
  for (const [name, value] of due === "create" && after ? after : [])
    if (opens(name, value) && !named.has(name))
      wrong(path, `does not name ${name}, which opens something without a rule`);
  const idle = due === null && steps.every(({ action, movedFrom }) => action === "none" && movedFrom === undefined);
  const otherText = idle && from !== null && to !== null && !sameData(from.document, to.document);
  if ((textOnly ?? false) !== otherText)
    wrong(path, otherText ? "its text is another one" : "more than its text changes, or nothing does");
}

const opens = (name: string, value: Json): boolean =>
  (/^x\.(policy|defaults)\.subnetConnectivity$/.test(name) && value === true) ||
  (/^x\.(policy|defaults)\.internet$/.test(name) && value === "out");

/** The cell's own attributes as they are written, from its fields. */
function settings(cell: Cell): Map<string, Json> {
  const found = new Map<string, Json>([["x.name", cell.name]]);
  found.set("x.policy.deploy", cell.deploy);
  if (cell.forward === true) found.set("x.policy.forward", true);
  if (cell.isolation !== undefined) found.set("x.policy.isolation", cell.isolation);
  for (const [group, said] of [
    ["x.policy", cell.policy],
    ["x.defaults", cell.defaults ?? {}],
  ] as const)
    for (const [name, value] of Object.entries(said))
      found.set(`${group}.${name}`, Array.isArray(value) ? value.join(" ") : value);
  for (const [name, most] of Object.entries(cell.limits ?? {})) {
    if (most !== undefined) found.set(`x.limits.${name.replace(/MiB$/, "")}`, most);
  }
  for (const [name, value] of Object.entries(cell.backup ?? {}))
    found.set(`x.backup.${name.replace(/Minutes$/, "")}`, value);
  for (const [name, value] of Object.entries(cell.zone ?? {}))
    found.set(`x.zone.${name}`, Array.isArray(value) ? value.join(" ") : value);
  if (cell.externalPools) found.set("x.pools.external", cell.externalPools.join(" "));
  for (const [name, value] of Object.entries(cell.ha ?? {}))
    found.set(`x.ha.${name}`, Array.isArray(value) ? value.join(" ") : value);
  return found;
}

/** As data: of an object's names the order means nothing. */
function sameData(one: Json, other: Json): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  if (one === other) return true;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [left, right] = [one, other] as [Record<string, Json>, Record<string, Json>];
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  for (const name of names) {
    const [a, b] = [left[name], right[name]];
    if (a === undefined || b === undefined || !Object.hasOwn(right, name) || !sameData(a, b)) return false;
  }
  return true;
}

/** The path in `from` of each element of `to` that has one: its own, or an unclaimed one of its type that it says it had. */
function continuations(from: Cell | null, to: Cell | null): Map<ElementPath, ElementPath> {
  const was = new Map<ElementPath, ElementPath>();
  if (!from || !to) return was;
  const claimed = new Set<string>();
  const sayings = new Map<string, string | null>();
  for (const { path, type } of to.elements.values()) {
    const said = from.elements.has(path) ? path : saidFormer(to, path, sayings);
    const former = said === null ? undefined : from.elements.get(elementPath(said));
    if (!former || (former.path !== path && (former.type !== type || to.elements.has(former.path)))) continue;
    if (claimed.has(former.path)) continue;
    claimed.add(former.path);
    was.set(path, former.path);
  }
  return was;
}

/** `sayings` of the paths around it, which are around others as well. */
function saidFormer(to: Cell, path: string, sayings: Map<string, string | null>): string | null {
  const own = to.elements.get(elementPath(path))?.movedFrom;
  const end = path.lastIndexOf("/");
  if (own !== undefined || end <= 0) return own ?? null;
  const around = path.slice(0, end);
  const known = sayings.get(around);
  const outer = known === undefined ? saidFormer(to, around, sayings) : known;
  sayings.set(around, outer);
  return outer === null ? null : outer + path.slice(end);
}

function checkKept(question: Question, element: Element, consequences: Map<ElementPath, Reasons>, needs: Uses): void {
  const { was, steps, from, wrong } = question;
  const { path } = element;
  const step = steps.get(path);
  if (!step) {
    wrong(path, "has no step");
    return;
  }
  const before = was.get(path);
  if (step.type !== element.type) wrong(path, `is no ${step.type}`);
  if (step.movedFrom !== (before === path ? undefined : before))
    wrong(path, `goes on from ${before ?? "nothing"}, and the plan says from ${step.movedFrom ?? "its own path"}`);
  const former = before === undefined ? undefined : from?.elements.get(before);
  if (!former) {
    if (step.action !== "create") wrong(path, `is new, and the plan says ${step.action}`);
    if (step.causes.length > 0) wrong(path, "is new, which has no other cause");
  } else {
    const reasons = reasonsOf(question, former, element);
    for (const [name, reason] of consequences.get(path) ?? []) reasons.set(name, reason);
    checkAction(question, step, reasons);
  }
  checkLoss(question, step, step.action === "replace" && former ? lossOf(question, former) : null);
  checkWaits(question, step, step.action === "none" ? new Set() : (needs.get(path) ?? new Set()));
}

function checkGone(question: Question, { path, type }: Element, users: Uses): void {
  const { steps, wrong, from } = question;
  const step = steps.get(path);
  if (!step) {
    wrong(path, "has no step");
    return;
  }
  if (step.action !== "delete") wrong(path, `is not in the new cell, and the plan says ${step.action}`);
  if (step.type !== type) wrong(path, `is no ${step.type}`);
  if (step.causes.length > 0 || step.movedFrom !== undefined) wrong(path, "is deleted, which has no other cause");
  const former = from?.elements.get(path);
  checkLoss(question, step, former ? lossOf(question, former) : null);
  checkWaits(question, step, users.get(path) ?? new Set());
}

/** Causes are true and complete, and the action is the strongest of them. */
function checkAction({ wrong }: Question, { path, action, causes }: PlanStep, reasons: Reasons): void {
  const named = new Set<string>();
  let strongest = 0;
  for (const { attribute, from, to } of causes) {
    const reason = reasons.get(attribute);
    if (named.has(attribute)) wrong(path, `names ${attribute} twice`);
    named.add(attribute);
    if (!reason) wrong(path, `${attribute} is no cause of anything`);
    else if (text(reason.from) !== text(from) || text(reason.to) !== text(to))
      wrong(path, `${attribute} changes from ${text(reason.from)} to ${text(reason.to)}, which the plan does not say`);
    else strongest = Math.max(strongest, weights[reason.action]);
  }
  let due = 0;
  for (const [attribute, reason] of reasons) {
    due = Math.max(due, weights[reason.action]);
    if (reason.needed && !named.has(attribute)) wrong(path, `does not name ${attribute} as a cause`);
  }
  if (weights[action] !== due) wrong(path, `${action} is not what the change calls for`);
  else if (strongest !== due) wrong(path, `nothing that it names causes ${action}`);
}

/** What about an element itself, or about what its identity rests on, makes it change. */
function reasonsOf({ is, steps, from, to, moves }: Question, former: Element, element: Element): Reasons {
  const reasons: Reasons = new Map();
  if (former.type !== element.type) {
    reasons.set("x.type", { from: former.type, to: element.type, action: "replace", needed: true });
    return reasons;
  }
  if (moves || fieldsDiffer(former, element)) addDifferences(reasons, former, element, is);
  if (element.type === "Subnet" && from && to)
    for (const name of ["subnetConnectivity", "internet", "broadcast"] as const) {
      const { [name]: old = null } = from.policy;
      const { [name]: now = null } = to.policy;
      if (old !== now) reasons.set(`x.policy.${name}`, { from: old, to: now, action: "change", needed: true });
    }
  for (const [name, path] of restsOn(element))
    if (steps.get(path)?.action === "replace" && !reasons.has(name))
      reasons.set(name, { from: path, to: path, action: "replace", needed: false });
  return reasons;
}

function addDifferences(reasons: Reasons, former: Element, element: Element, is: Question["is"]): void {
  const [before, after] = [written(former, (path) => is.get(path) ?? path), written(element, (path) => path)];
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [old = null, now = null] = [before.get(name), after.get(name)];
    if (text(old) === text(now)) continue;
    const effect = attributeSchema(element.type, name)?.effect ?? "change";
    const smaller = name === "x.size" && typeof old === "number" && typeof now === "number" && now < old;
    const own = effect === "restart" && element.type !== "VM" ? "change" : effect;
    const counted = name === "x.restart" && !(typeof now === "number" && now > (typeof old === "number" ? old : 0));
    const action = smaller ? "replace" : counted ? "none" : own;
    if (action !== "none") reasons.set(name, { from: old, to: now, action, needed: true });
  }
}

/** What its own identity includes: with a new one there, it is a new one itself. */
function restsOn(element: Element): readonly (readonly [string, ElementPath])[] {
  if (element.type === "VolumeCopy") return [["x.image", element.image]];
  const link = linkOf(element);
  return link === null
    ? []
    : [
        ["x.vm", link.vm],
        [element.type === "VolumeConnection" ? "x.volume" : "x.subnet", link.end],
      ];
}

interface Link {
  readonly vm: ElementPath;
  readonly end: ElementPath;
  readonly requires: boolean;
}
function linkOf(element: Element | undefined): Link | null {
  if (element?.type === "VolumeConnection") return { vm: element.vm, end: element.volume, requires: element.requires };
  if (element?.type === "VirtualInterface") return { vm: element.vm, end: element.subnet, requires: element.requires };
  return null;
}

/** A VM starts anew with other disks and interfaces: what it had and what it gets, by the link that says so. */
function vmConsequences(question: Question): Map<ElementPath, Reasons> {
  const { from, to, is, was, steps } = question;
  const found = new Map<ElementPath, Reasons>();
  const now = (path: ElementPath): ElementPath => is.get(path) ?? path;
  const add = (vm: ElementPath, name: string, change: { readonly from?: Json; readonly to?: Json }): void => {
    const reasons = found.get(vm) ?? new Map<string, Reason>();
    found.set(vm, reasons);
    const { from: old = null, to: next = null } = change;
    reasons.set(name, { from: reasons.get(name)?.from ?? old, to: next, action: "restart", needed: true });
  };
  const anew = (path: ElementPath | undefined): boolean =>
    path === undefined || steps.get(path)?.action === "replace" || steps.get(path)?.action === "create";
  for (const element of from?.elements.values() ?? []) {
    const link = linkOf(element);
    if (link === null || !anew(is.get(element.path))) continue;
    add(now(link.vm), now(element.path), { from: now(link.end) });
  }
  for (const element of to?.elements.values() ?? []) {
    const link = linkOf(element);
    if (link === null) continue;
    if (anew(element.path)) {
      add(link.vm, element.path, { to: link.end });
      continue;
    }
    const before = was.get(element.path);
    const former = before === undefined ? undefined : from?.elements.get(before);
    for (const [name, { from: old, to: next }] of former ? reasonsOf(question, former, element) : [])
      if (attributeSchema(element.type, name)?.effect === "restart")
        add(link.vm, `${element.path}/${name}`, { from: old, to: next });
  }
  return found;
}

const elsewhere: ReadonlySet<string> = new Set(["path", "type", "position", "movedFrom"]);

/** A quick look, for the many that stay as they are: true for whatever is not plainly equal. */
function fieldsDiffer(former: Element, element: Element): boolean {
  const [old, now] = [former, element] as unknown as [Record<string, Json>, Record<string, Json>];
  return [...Object.keys(old), ...Object.keys(now)].some(
    (name) =>
      !elsewhere.has(name) && old[name] !== now[name] && JSON.stringify(old[name]) !== JSON.stringify(now[name]),
  );
}

/** The element's attributes as they are written, from its fields. */
function written(element: Element, moved: (path: ElementPath) => ElementPath): Map<string, Json> {
  const found = new Map<string, Json>();
  const { path: _path, type: _type, position: _position, movedFrom: _movedFrom, ...fields } = element;
  for (const [field, value] of Object.entries(fields) as [string, unknown][]) {
    if (value === undefined) continue;
    const name = `x.${field.replace(/M(iB|Hz)$/, "")}`;
    if (["liveness", "placement", "services", "ha"].includes(field)) {
      for (const [inner, each] of Object.entries(value as object))
        found.set(`${name}.${inner}`, `${field}.${inner}` === "liveness.interface" ? moved(each) : (each as Json));
    } else if (field === "limits") {
      for (const [inner, each] of Object.entries(value as object))
        found.set(`${name}.${inner.replace(/MiB$/, "")}`, each as Json);
    } else if (field === "rules") {
      const rules = value as readonly { readonly effect: string; readonly verb: string }[];
      found.set(
        name,
        rules.map(({ effect, verb }) => `${effect} ${verb}`),
      );
    } else if (field === "to") {
      const to = value as { kind: string; vm: ElementPath; domain: string; path: string };
      if (to.kind === "vm") found.set("x.vm", moved(to.vm));
      else if (to.kind === "cell") found.set("x.cell", to.domain);
      else found.set(to.kind === "account" ? "x.account" : "x.domain", to.path);
    } else if (field === "port1" || field === "port2") {
      const { from, to } = value as PortRange;
      found.set(name, from === to ? from : `${from}-${to}`);
    } else if (field === "address1" || field === "address2") found.set(name, endOf(value as RuleEnd, moved));
    else if (["vm", "volume", "subnet", "image", "router"].includes(field))
      found.set(name, moved(value as ElementPath));
    else found.set(name, value as Json);
  }
  return found;
}

function endOf(end: RuleEnd, moved: (path: ElementPath) => ElementPath): string {
  switch (end.kind) {
    case "element":
      return moved(end.path);
    case "cidr":
      return end.cidr;
    case "foreign":
      return `//${end.domain}/${end.path}`;
    default:
      return end.kind;
  }
}

/** Who rests on what: a copy on its origin, a grant and a link on its end, a VM on the ends that it requires. */
function usesIn(cell: Cell | null): Uses {
  const uses: Uses = new Map();
  const add = (user: ElementPath, used: ElementPath): void => {
    if (cell?.elements.has(used)) uses.set(user, (uses.get(user) ?? new Set()).add(used));
  };
  for (const element of cell?.elements.values() ?? []) {
    if (element.type === "VolumeCopy") add(element.path, element.image);
    if (element.type === "VolumeGrant") add(element.path, element.volume);
    const link = linkOf(element);
    if (link === null) continue;
    add(element.path, link.end);
    if (link.requires) add(link.vm, link.end);
  }
  return uses;
}

/** Who must have let go of each element that goes: those that rested on it, and the VM of a link. */
function usersOf({ from, is, steps }: Question, needed: Uses): Uses {
  const users: Uses = new Map();
  const add = (user: ElementPath, used: ElementPath): void => {
    const now = is.get(user);
    if (is.has(used) || (now !== undefined && steps.get(now)?.action === "none")) return;
    users.set(used, (users.get(used) ?? new Set()).add(now ?? user));
  };
  for (const [user, all] of needed) for (const used of all) add(user, used);
  for (const element of from?.elements.values() ?? []) {
    const link = linkOf(element);
    if (link !== null) add(link.vm, element.path);
  }
  return users;
}

function checkWaits({ position, wrong }: Question, { path, waitsFor }: PlanStep, due: ReadonlySet<ElementPath>): void {
  const at = position.get(path) ?? 0;
  for (const other of waitsFor) {
    if (!due.has(other)) wrong(path, `need not wait for ${other}`);
    // What comes earlier can wait for nothing that comes later, so nothing ever waits for itself.
    if ((position.get(other) ?? at) >= at) wrong(path, `waits for ${other}, which does not come before it`);
  }
  const waits = new Set(waitsFor);
  if (waits.size !== waitsFor.length) wrong(path, "waits for something twice");
  for (const other of due) if (!waits.has(other)) wrong(path, `does not wait for ${other}`);
}

/** What cannot be written, or never was, holds nothing of its own; a copy then rests on its origin for what it holds. */
function lossOf(question: Question, element: Element): Json {
  if (element.type === "VolumeCopy")
    return holdsOwn(question, element) ? { sizeMiB: element.sizeMiB ?? null, copyOf: element.image } : null;
  if (element.type !== "Volume" || !holdsOwn(question, element)) return null;
  return { sizeMiB: element.sizeMiB, ...(element.import === undefined ? {} : { image: element.import }) };
}

function holdsOwn({ from, is, steps, unwritten, held, holders }: Question, element: Element): boolean {
  const passed: ElementPath[] = [];
  let holds: boolean | null = null;
  for (let at: Element = element; holds === null; ) {
    passed.push(at.path);
    const before = holders.get(at.path);
    if (before !== undefined) holds = before;
    else if (held.has(at.path)) holds = false;
    else if (!unwritten.has(at.path)) holds = at.type === "VolumeCopy" || (at.type === "Volume" && at.access === "rw");
    else if (at.type !== "VolumeCopy") holds = false;
    else {
      const origin = from?.elements.get(at.image);
      const goesOn = origin && is.get(origin.path);
      if (!origin) holds = true;
      else if (goesOn !== undefined && steps.get(goesOn)?.action !== "replace") holds = false;
      else at = origin;
    }
  }
  for (const path of passed) holders.set(path, holds);
  return holds;
}

function checkLoss({ wrong }: Question, { path, losesData, loss }: PlanStep, due: Json): void {
  if (losesData !== (due !== null)) wrong(path, losesData ? "loses no data" : "loses data");
  if (text((loss as Json | undefined) ?? null) !== text(due)) wrong(path, `what is lost is ${text(due)}`);
}

/** The same text for the same data: the order of an object's names means nothing. */
function text(json: Json): string {
  if (typeof json !== "object" || json === null) return JSON.stringify(json);
  if (Array.isArray(json)) return `[${json.map(text).join(",")}]`;
  const parts = Object.entries(json).map(([name, value]) => `${JSON.stringify(name)}:${text(value)}`);
  return `{${parts.sort().join(",")}}`;
}
