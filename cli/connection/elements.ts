import type { ElementState } from "../../model/api.ts";
import { isObject, type Json } from "../../model/json/json.ts";

/** One element of a cell with its actual state, as `GET …?state=true` tells it. */
export interface ElementWithState {
  readonly path: string;
  readonly type: string;
  readonly state: ElementState;
}

/** Elements in document order. `path` is where `document` stands, "" for a whole one. */
export const elementsOf = (document: Json, path: string): readonly ElementWithState[] => {
  if (!isObject(document)) return [];
  const { "x.type": type, $state: state } = document;
  const own =
    typeof type === "string" && isObject(state) && path !== ""
      ? [{ path, type, state: state as unknown as ElementState }]
      : [];
  const below = Object.entries(document).flatMap(([name, value]) =>
    name === "$state" || name.startsWith("x.") ? [] : elementsOf(value, path === "" ? name : `${path}/${name}`),
  );
  return [...own.filter((element) => element.type !== "Cell"), ...below];
};

/** What a person wants to know of an element that is as declared. */
const facts = ({ state }: ElementWithState): readonly string[] => [
  ...(state.power === undefined ? [] : [`power ${state.power}`]),
  ...(state.host == null ? [] : [`on ${state.host}`]),
  ...(state.incarnation === undefined || state.incarnation === 0 ? [] : [`incarnation ${state.incarnation}`]),
  ...(state.address == null ? [] : [state.address]),
  ...(state.name == null ? [] : [state.name]),
  ...(state.cidr == null ? [] : [state.cidr]),
  ...(state.server == null ? [] : [`at ${state.server}`]),
  ...(state.sizeMiB == null ? [] : [`${state.sizeMiB} MiB`]),
];

/** The reason if there is one, else the facts. */
export const describe = (element: ElementWithState): string => element.state.reason ?? facts(element).join(", ");

export const isReady = ({ state }: ElementWithState): boolean => state.phase === "ready";

/** Nothing more comes of it by itself. */
export const isSettled = ({ state }: ElementWithState): boolean =>
  state.phase === "ready" || state.phase === "failed" || state.stuck === true;

/** Number of elements per phase. */
export const countPhases = (elements: readonly ElementWithState[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const { state } of elements) counts.set(state.phase, (counts.get(state.phase) ?? 0) + 1);
  return counts;
};
