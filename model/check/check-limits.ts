import { parseNetwork } from "../addresses/addresses.ts";
import type { Cell, CellControllerElement, CellLimits, Element, VolumeCopyElement } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { mostOf } from "../cell/tenants/wishes/nice.ts";
import type { Json } from "../json/json.ts";
import type { ReportFault } from "./fault.ts";

/**
 * Quotas. What a cell may have is bounded by its `x.limits.*`, and what it gives to its child cells comes out of that: a
 * child counts with its own limit where it has one, and else with what its initial model asks for. A limit that a child
 * does not have is its parent's: it may have what is left there. Everything in the model counts, also a VM that is off and
 * a volume that nobody has connected: a quota is about what may be asked for, not about what is so at the moment. What
 * child cells are given while they run is in `core/controller/model/quota.ts`, what an account may have in
 * `account-limits.ts` beside it.
 */
/** What elements take a part of; a rate is no such thing, and no quota. */
type QuantityKey = Exclude<keyof CellLimits, "vmStartsPerMinute">;
interface Quantity {
  readonly attribute: string;
  readonly key: QuantityKey;
  /** What one element takes of it. */
  readonly of: (element: Element, cell: Cell) => number;
  /** Both as in "the cell asks for 12 VMs". */
  readonly one: string;
  readonly many: string;
  readonly remedy: string;
}
const quantity = (
  attribute: string,
  key: QuantityKey,
  of: Quantity["of"],
  names: readonly [one: string, many: string, remedy: string],
): Quantity => ({ attribute: `x.limits.${attribute}`, key, of, one: names[0], many: names[1], remedy: names[2] });

const isVolume = (element: Element): boolean => element.type === "Volume" || element.type === "VolumeCopy";
const quantities: readonly Quantity[] = [
  quantity("vms", "vms", (element) => Number(element.type === "VM"), ["VM", "VMs", "leave out"]),
  quantity(
    "memory",
    "memoryMiB",
    (element) => (element.type === "VM" ? mostOf("memory", element.memoryMiB, element.placement) : 0),
    ["MiB of memory", "MiB of memory", "ask for less by"],
  ),
  quantity("cpus", "cpus", (element) => (element.type === "VM" ? mostOf("cpus", element.cpus, element.placement) : 0), [
    "processor",
    "processors",
    "ask for less by",
  ]),
  quantity("volumes", "volumes", (element) => Number(isVolume(element)), ["volume", "volumes", "leave out"]),
  quantity("storage", "storageMiB", sizeOf, ["MiB of storage", "MiB of storage", "ask for less by"]),
  quantity("subnets", "subnets", (element) => Number(element.type === "Subnet"), ["subnet", "subnets", "leave out"]),
  quantity("addresses", "addresses", addressesOf, ["address", "addresses", "ask for less by"]),
  quantity("publicAddresses", "publicAddresses", publicAddressesOf, [
    "public address",
    "public addresses",
    "ask for less by",
  ]),
];

/** A volume's size; that of a copy without an own one is its origin's. An origin in another cell is not known: 0. */
export function sizeOf(element: Element, cell: Cell): number {
  if (element.type === "Volume") return element.sizeMiB;
  return element.type === "VolumeCopy" ? copySize(element, cell) : 0;
}
const copySizes = new WeakMap<Cell, Map<ElementPath, number>>();
function copySize(copy: VolumeCopyElement, cell: Cell): number {
  const known = copySizes.get(cell) ?? new Map<ElementPath, number>();
  copySizes.set(cell, known);
  // Each copy of a chain is gone through once, however long the chain is; one that is its own origin has no size.
  const chain: ElementPath[] = [];
  let size = 0;
  for (let at: Element | undefined = copy; at !== undefined; ) {
    const found: number | undefined = known.get(at.path) ?? ("sizeMiB" in at ? at.sizeMiB : undefined);
    if (found !== undefined || at.type !== "VolumeCopy") {
      size = found ?? 0;
      break;
    }
    known.set(at.path, 0);
    chain.push(at.path);
    at = cell.elements.get(at.image);
  }
  for (const path of chain) known.set(path, size);
  return size;
}

/** A fixed range is taken as a whole, whatever is asked for of it. The underlay's addresses are not taken from anybody. */
function addressesOf(element: Element): number {
  if (element.type !== "Subnet" || element.addressRange === "management") return 0;
  const network = element.cidr === undefined ? null : parseNetwork(element.cidr);
  return network === null ? element.size : 2 ** (32 - network.prefixLength);
}

/** They are few, and one cell could have all of them. */
function publicAddressesOf(element: Element): number {
  return element.type === "Subnet" && element.addressRange === "external" ? addressesOf(element) : 0;
}

/** The limits of a cell from its attributes; null if it has none. */
export function limitsOf(read: (attribute: string) => number | undefined): CellLimits | null {
  const pairs: (readonly [keyof CellLimits, number])[] = quantities.flatMap(({ attribute, key }) => {
    const value = read(attribute);
    return value === undefined ? [] : [[key, value] as const];
  });
  const rate = read("x.limits.vmStartsPerMinute");
  if (rate !== undefined) pairs.push(["vmStartsPerMinute", rate]);
  return pairs.length === 0 ? null : Object.freeze(Object.fromEntries(pairs));
}

/** Reads the initial model of a child cell; null: it is no sound cell, and nothing can be counted. */
export type ReadChild = (json: Json) => Cell | null;

/** Child cells inside child cells; what lies deeper is looked at when it is made. */
const deepest = 16;

interface Child {
  readonly element: CellControllerElement;
  readonly cell: Cell;
  /** What the child takes of each quantity, in their order. */
  readonly takes: readonly number[];
}

/**
 * A cell that exceeds its own limits, or whose children do, is refused, with the count, the limit and what would be right.
 * The cell's own place is that of the limit (`attribute` of `cell.path`), a child's that of its `x.cell`.
 */
export function checkLimits(cell: Cell, readChild: ReadChild, fault: ReportFault): void {
  const children = childrenOf(cell, readChild, fault, 0);
  quantities.forEach((each, index) => {
    const limit = cell.limits?.[each.key];
    if (limit === undefined) return;
    const own = ownUse(cell, each);
    if (own > limit) {
      reportOver(each, own, limit, `The cell \`${cell.name}\` asks for`, cell.path, each.attribute, fault);
      return;
    }
    reportChildren(children, each, index, { limit, own, parent: cell.name }, fault);
  });
}

/**
 * What is kept of deleted volumes, under a cell's copies or since others use what it had, counts beside them, for a model that asks for more storage than the
 * one in force: that others delete what it has copied must not keep anybody from changing the rest, or from having less.
 */
export function checkKept(
  cell: Cell,
  readChild: ReadChild,
  { keptMiB = 0, present }: { readonly keptMiB?: number; readonly present?: Cell },
  fault: ReportFault,
): void {
  const limit = cell.limits?.storageMiB;
  if (limit === undefined || keptMiB === 0) return;
  const asks = storageIn(cell, readChild);
  if (asks > limit || asks + keptMiB <= limit || (present !== undefined && asks <= storageIn(present, readChild)))
    return;
  const message = `The cell \`${cell.name}\` asks for ${asks} MiB of storage, ${keptMiB} MiB of deleted volumes stay since something of it or of others rests on them, and its limit is ${limit}`;
  const hint = `Ask for ${Math.max(0, limit - keptMiB)} MiB or less, delete what rests on them, or write \`x.limits.storage ${asks + keptMiB}\` or more.`;
  fault("cell/limits", message, cell.path, { attribute: "x.limits.storage", hint });
}
function storageIn(cell: Cell, readChild: ReadChild): number {
  const below = [...cell.elements.values()].flatMap((element) =>
    element.type === "CellController" ? [initialDemand(element.cell, readChild).storageMiB] : [],
  );
  return below.reduce((sum, each) => sum + each, ownUsage(cell).storageMiB);
}

const ownUse = (cell: Cell, { of }: Quantity): number => {
  let sum = 0;
  for (const element of cell.elements.values()) sum += of(element, cell);
  return sum;
};
const count = (amount: number, { one, many }: Quantity): string => `${amount} ${amount === 1 ? one : many}`;

function reportOver(
  each: Quantity,
  has: number,
  limit: number,
  who: string,
  path: ElementPath,
  attribute: string,
  fault: ReportFault,
): void {
  fault("cell/limits", `${who} ${count(has, each)}, and its limit is ${limit}`, path, {
    attribute,
    hint: `Either ${each.remedy} ${count(has - limit, each)}, or write \`${each.attribute} ${has}\` or more.`,
  });
}

/** The children one after another: the first that goes beyond what is left is the one to be named. */
function reportChildren(
  children: readonly Child[],
  each: Quantity,
  index: number,
  { limit, own, parent }: { readonly limit: number; readonly own: number; readonly parent: string },
  fault: ReportFault,
): void {
  let left = limit - own;
  for (const { element, cell, takes } of children) {
    const amount = takes[index] ?? 0;
    if (amount > left) {
      const isLimit = cell.limits?.[each.key] !== undefined;
      const verb = isLimit ? "may have" : "asks for";
      const less = isLimit ? `Write \`${each.attribute} ${left}\` or less in it` : `Let it ask for ${left} or less`;
      const right = left > 0 ? less : "Leave it out";
      fault(
        "cell/limits",
        `The child cell \`${element.path}\` ${verb} ${count(amount, each)}, and \`${parent}\` has ${left} of ${limit} left`,
        element.path,
        {
          attribute: "x.cell",
          hint: `${right}, or raise \`${each.attribute}\` of \`${parent}\` to ${limit + amount - left}.`,
        },
      );
    }
    left = Math.max(0, left - amount);
  }
}

/** The children that can be read, what each takes, and the faults of each against its own limits. */
function childrenOf(cell: Cell, readChild: ReadChild, fault: ReportFault, depth: number): readonly Child[] {
  const children: Child[] = [];
  if (depth >= deepest) return children;
  for (const element of cell.elements.values()) {
    const child = element.type === "CellController" ? readChild(element.cell) : null;
    if (element.type !== "CellController" || child === null) continue;
    // What is wrong further below is shown where its author can see it: at the child of this cell.
    const here: ReportFault = (code, message, _path, more) =>
      fault(code, message, element.path, { ...more, attribute: "x.cell" });
    const below = childrenOf(child, readChild, here, depth + 1);
    const takes = quantities.map((each, index) => takenBy(child, below, each, index, here));
    children.push({ element, cell: child, takes });
  }
  return children;
}

/** Amounts of everything that a quota is about. */
export type Usage = Readonly<Record<QuantityKey, number>>;
export const usageKeys: readonly QuantityKey[] = quantities.map(({ key }) => key);
export const noUsage: Usage = usageFrom(() => 0);

/** An amount for each quantity. */
export function usageFrom(amount: (key: QuantityKey) => number): Usage {
  return Object.fromEntries(usageKeys.map((key) => [key, amount(key)])) as unknown as Usage;
}
export const sumOf = (all: readonly Usage[]): Usage =>
  usageFrom((key) => all.reduce((sum, each) => sum + each[key], 0));
/** What a cell's own elements take, its child cells left out. */
export const ownUsage = (cell: Cell): Usage => {
  const amounts = new Map(quantities.map((each) => [each.key, ownUse(cell, each)]));
  return usageFrom((key) => amounts.get(key) ?? 0);
};
/**
 * What a cell counts for at its parent: its limit where it has one, since what it was promised cannot be given to another,
 * and else what it and its children take. Null has nothing but its children.
 */
export function demandOf(cell: Cell | null, children: Usage): Usage {
  const own = cell === null ? noUsage : ownUsage(cell);
  return usageFrom((key) => cell?.limits?.[key] ?? own[key] + children[key]);
}
/** What a new child cell counts for, by its initial model; nothing if that is no sound cell. */
export function initialDemand(json: Json, readChild: ReadChild, depth = 0): Usage {
  const cell = depth > deepest ? null : readChild(json);
  if (cell === null) return noUsage;
  const below = [...cell.elements.values()].flatMap((element) =>
    element.type === "CellController" ? [initialDemand(element.cell, readChild, depth + 1)] : [],
  );
  return demandOf(cell, sumOf(below));
}
/** Quantities of which there is more than may be, each as a sentence's part: "12 VMs, and 10 are left". */
export function shortages(wanted: Usage, most: Partial<Usage>): readonly string[] {
  return quantities.flatMap((each) => {
    const limit = most[each.key];
    if (limit === undefined || wanted[each.key] <= limit) return [];
    return [
      `${count(wanted[each.key], each)}, and ${limit} ${limit === 1 ? "is" : "are"} allowed (\`${each.attribute}\`)`,
    ];
  });
}

/** What a child takes of its parent: its limit, or with none what it and its own children ask for. */
function takenBy(child: Cell, below: readonly Child[], each: Quantity, index: number, fault: ReportFault): number {
  const own = ownUse(child, each);
  const limit = child.limits?.[each.key];
  if (limit === undefined) return below.reduce((sum, { takes }) => sum + (takes[index] ?? 0), own);
  if (own > limit)
    reportOver(each, own, limit, `The child cell \`${child.name}\` asks for`, child.path, "x.cell", fault);
  else reportChildren(below, each, index, { limit, own, parent: child.name }, fault);
  return limit;
}
