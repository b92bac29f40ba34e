import type { Cell, Element, ElementType } from "../../../../model/cell/cell.ts";
import { describedAttributes } from "../../../../model/cell/described.ts";
import type { Json } from "../../../../model/json/json.ts";
import { patchLimits } from "../../../../model/json/patch.ts";
import { readPointer } from "../../../../model/json/pointer.ts";
import type { Plan } from "../../../../model/plan/plan-types.ts";
import { isObject } from "../../../outbox.ts";

/**
 * A credential that opens one path of its cell: what stands there and below it, and nothing beside. Whoever has it can be taken
 * over, so a request is held to it three times: what it names, what would become of the cell, and what the answer says.
 */
export interface Within {
  /** Of an element, or of a group of elements, as `primary/volumes`. */
  readonly path: string;
  readonly access: "read" | "write";
}

const partsIn = (path: string): readonly string[] => path.split("/").filter((part) => part !== "");
const startsWith = (parts: readonly string[], { path }: Within): boolean =>
  partsIn(path).every((part, at) => parts[at] === part);
/** At the path or below it. */
export const isWithin = (within: Within, path: string): boolean => startsWith(partsIn(path), within);

/** Of a request that may be asked, each as `requests.ts` has it. */
interface Named {
  readonly method: string;
  readonly path?: string;
  readonly patch?: Json;
}
const reads: ReadonlySet<string> = new Set(["GET", "ELEMENTS", "WHY-ELEMENT"]);
const changes: ReadonlySet<string> = new Set(["PUT", "PATCH", "DELETE"]);

/** Why a request is none for this credential, by what it names; null: it is. The sentence names nothing beside the path. */
export function whyNotWithin(within: Within, { method, path = "", patch }: Named): string | null {
  if (method === "ELEMENTS") return null;
  const isChange = changes.has(method);
  if (!isChange && !reads.has(method)) return outside(within);
  if (isChange && within.access !== "write")
    return `this credential reads what is in ${within.path}, and changes nothing`;
  if (method !== "PATCH") return isWithin(within, path) ? null : outside(within);
  return pointersIn(patch).every((pointer) => pointer !== null && startsWith(pointer, within)) ? null : outside(within);
}
const outside = ({ path }: Within): string => `this credential is for what is in ${path} alone`;

/** All pointers of a patch; null: one that cannot be read. */
function pointersIn(patch: Json | undefined): readonly (readonly string[] | null)[] {
  if (!Array.isArray(patch)) return [null];
  return patch
    .flatMap((each: Json) => (isObject(each) ? [each.path, each.from] : [null]))
    .flatMap((text) => {
      if (text === undefined) return [];
      const read = typeof text === "string" ? readPointer(text, patchLimits.depth) : null;
      return [read?.ok === true ? read.value : null];
    });
}

/** What speaks for the installation, or for another cell, is nobody's who has but a part of this one. */
const ofAPart: ReadonlySet<ElementType> = new Set([
  ...(["VM", "Volume", "VolumeCopy", "VolumeConnection", "VolumeGrant", "Subnet", "VirtualInterface"] as const),
  "NetworkRule",
]);

/**
 * Why a change is none for this credential, by what it would make of the cell; null: it is. What is there stands on its own: it
 * names no element beside it, since a rule or a connection would reach that.
 */
export function whyPlanNotWithin(
  within: Within,
  cell: Cell | null,
  { cell: whole, steps, textOnly }: Plan,
): string | null {
  if (whole !== undefined && textOnly !== true) return outside(within);
  for (const { action, path, movedFrom } of steps) {
    if (action === "none" && movedFrom === undefined) continue;
    if (!isWithin(within, path) || !isWithin(within, movedFrom ?? path)) return outside(within);
    const element = cell?.elements.get(path);
    const why = element === undefined || action === "none" ? null : whyNotOnItsOwn(within, element);
    if (why !== null) return why;
  }
  return null;
}
const isService = (element: Element): boolean =>
  element.type === "VM" && isObject(element.data) && element.data.service !== undefined;
function whyNotOnItsOwn(within: Within, element: Element): string | null {
  if (!ofAPart.has(element.type) || isService(element))
    return `${element.path} (${element.type}) speaks for more than ${within.path}, for which this credential is`;
  const named: string[] = [];
  describedAttributes(element, (path) => {
    named.push(path);
    return path;
  });
  const other = named.find((path) => !path.startsWith("//") && !isWithin(within, path));
  return other === undefined
    ? null
    : `${element.path} names an element outside of ${within.path}, which this credential does not open`;
}

/** What an answer says of elements, without those beside. */
export const shownWithin = <T extends { readonly path: string }>(
  within: Within | undefined,
  all: readonly T[],
): readonly T[] => (within === undefined ? all : all.filter(({ path }) => isWithin(within, path)));

/**
 * An answer as this credential may hear it: what is not there is told without names that come close to it, and what is
 * explained under a path that was cut short is in the part.
 */
export function saidWithin<T extends { readonly status: number; readonly body: Json }>(
  { within, path = "" }: { readonly within?: Within; readonly path?: string },
  response: T,
): T {
  if (within === undefined) return response;
  const { status, body } = response;
  const explained = status === 200 && isObject(body) && "verdict" in body ? body.path : undefined;
  const isBeside = typeof explained === "string" && !isWithin(within, explained);
  if (status !== 404 && !isBeside) return response;
  const message = `there is nothing at ${path === "" ? within.path : path}`;
  return { ...response, status: 404, body: { error: { code: "not-found", message } } };
}
