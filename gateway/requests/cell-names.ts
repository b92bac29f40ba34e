import { rootCell } from "../../core/documents/cells.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { refused } from "./refused.ts";

/*
 * What a cell may be called that is made here. A name is a part of its controller's own, `controller.<cell>`, by which all
 * services know what it may do: nobody may choose one that means something else (core/documents/permissions.ts).
 */

/** As the supervisor has it: `controller.<cell>` must fit a certificate's common name. */
const longest = 53;
const pattern = /^[a-z](?:[a-z0-9-]{0,51}[a-z0-9])?$/;
/** A child cell's has those of the cells around it behind its own (decisions/0030). */
const childPattern = /^[a-z0-9](?:[a-z0-9-]{0,51}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,51}[a-z0-9])?)+$/;
/** That of a child cell, which stands in its parent's specification. */
export const isChildName = (cell: string): boolean => cell.length <= longest && childPattern.test(cell);

const taken: ReadonlyMap<string, string> = new Map([
  [rootCell, "the cell in which the cloud itself runs"],
  ["primary", "the cloud's own cell with the gateway, a child of the root cell"],
  ["controller", "the controller itself in every cell's rules"],
]);

export const isCellName = (cell: string): boolean => pattern.test(cell) || isChildName(cell);

/** Throws a refusal where no cell can have this name, whoever asks and for whatever. */
export function requireCellName(cell: string): void {
  if (isCellName(cell)) return;
  const right = "use lower-case letters, digits and `-`, at most 53, the first a letter";
  throw refused(400, "bad-request", `\`${cell}\` cannot name a cell: ${right}`);
}

/** Throws a refusal where a new cell cannot have this name. */
export function requireFreeName(cell: string): void {
  if (isChildName(cell)) {
    const right =
      "a name with dots is that of a child cell, which is made by a CellController in its parent's specification";
    throw refused(404, "not-found", `there is no cell "${cell}", and none is made here: ${right}`);
  }
  const meaning = taken.get(cell);
  if (meaning === undefined) return;
  throw refused(
    409,
    "conflict",
    `no new cell can be called "${cell}", which names ${meaning}: give the cell another name, in the specification too`,
  );
}

export const controllerOf = (cell: string): PeerName => peerName(`controller.${cell}`);
