import { getAt, replaceAt } from "../../../model/cell/document.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { Patch } from "../../../model/json/patch.ts";
import { rootCell } from "../../documents/cells.ts";
import { isObject } from "../../outbox.ts";
import { meansOf } from "../network/entrance.ts";
import type { ControllerState } from "../state.ts";

/**
 * Some components of the root cell are not the operator's specification, but grow while the cloud runs: `cells`, where the
 * gateway puts the cells of others, `controllers`, where the Cell Manager puts the VMs of their controllers, `hosts`, where
 * every machine has an element from its joining on (`services/hosts.ts`), and `places`, `dedications`, `flavors` and `offerings`, of which commands write some.
 * Submitting the root cell's specification again, as for an upgrade, must not delete everybody's cells: what is in these stays,
 * and of what the specification names itself, as the primary cell, its word counts.
 * Elements in them are added one by one, and deleted so, by their paths. In the cell that is the way in, persistent volumes
 * grow so (decision 148).
 */
const grown = ["cells", "controllers", "hosts", "places", "dedications", "flavors", "offerings"].map(
  (name) => `${rootCell}/${name}`,
);

const grownIn = (state: ControllerState): readonly string[] => {
  if (state.options.cell === rootCell) return grown;
  return meansOf(state) === null ? [] : [volumesOf(state)];
};
/** Where the cell that is the way in has persistent volumes. */
export const volumesOf = ({ options, cell }: ControllerState): string => `${cell?.path ?? options.cell}/volumes`;

/** A document for such a cell with what its model has in those components; any other cell's as it is. */
export function withGrown(state: ControllerState, document: JsonObject): JsonObject {
  const present = state.model.document;
  if (present === null) return document;
  let whole = document;
  for (const path of grownIn(state)) {
    const [there, given] = [getAt(present, path), getAt(whole, path)];
    if (!there.ok || !isObject(there.value)) continue;
    const merged = { ...there.value, ...(given.ok && isObject(given.value) ? given.value : {}) };
    const replaced = replaceAt(whole, path, merged);
    if (replaced.ok) whole = replaced.value;
  }
  return whole;
}

/** Does a patch put something in the place of all that holds the three? */
export const replacesGrown = (patch: Patch): boolean =>
  patch.some(({ op, to }) => op !== "test" && op !== "remove" && to.length < 2);

/** The model's document with the components that what a patch adds is to stand in. */
export const withPlacesFor = (state: ControllerState, document: JsonObject, patch: Patch): JsonObject =>
  patch.reduce(
    (whole, { op, to }) => (op === "test" || op === "remove" ? whole : withPlaceFor(state, whole, to.join("/"))),
    document,
  );

/** The model's document with the components that an element at this path is to stand in. */
export function withPlaceFor(state: ControllerState, document: JsonObject, path: string): JsonObject {
  const place = grownIn(state).find((each) => path.startsWith(`${each}/`));
  if (place === undefined || getAt(document, place).ok) return document;
  const replaced = replaceAt(document, place, {});
  return replaced.ok ? replaced.value : document;
}
