import type { CellControllerElement } from "../../../model/cell/cell.ts";
import { type NamedChild, namedChild } from "../../../model/cell/child-document.ts";
import { childName, type DesiredCell, type Entrance, entranceKey, rootCell } from "../../documents/cells.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import type { Progress } from "../../documents/vocabulary.ts";
import { progress, tooLong } from "../../outbox.ts";
import {
  actualOf,
  authority,
  type ControllerState,
  cellManager,
  type ElementRecord,
  elementOf,
  type Wishes,
  wish,
} from "../state.ts";
import { defaultStartsPerMinute, startsOfChildren } from "../vm/start-limit.ts";

const childOf = (element: CellControllerElement) =>
  namedChild(element.cell, element.name, element.path.split("/").at(-1) ?? element.path);

/** A child of the root cell would be taken for the root cell itself. */
const isRootsName = (state: ControllerState, { label }: NamedChild): boolean =>
  childName(state.options.cell, label) === rootCell;

/** Child cells at the Cell Manager. What leaves the model is taken back, and stays "deleting" until it is gone. */
export function wishForChildren(state: ControllerState, wishes: Wishes): void {
  if (state.options.cellManager !== true) return;
  const starts = startsOfChildren(state);
  for (const record of state.elements.values()) {
    const element = elementOf(state, record);
    const grant = state.grants.get(record.uid);
    if (element?.type !== "CellController" || grant === undefined) continue;
    const child = childOf(element);
    if (child === null || isRootsName(state, child)) continue;
    wish(wishes, cellManager, `cell/${record.uid}`, {
      uid: record.uid,
      cell: childName(state.options.cell, child.label),
      model: child.document,
      grant,
      startsPerMinute: starts.get(record.uid) ?? defaultStartsPerMinute,
      ...(element.services === undefined ? {} : { services: element.services }),
      ...(element.gateway === undefined || state.options.root === undefined ? {} : { gateway: element.gateway }),
    } satisfies DesiredCell);
    // Nobody's word counts for it at the authority and at hosts but the root controller's own.
    if (element.gateway !== undefined && state.options.root !== undefined)
      wish(wishes, authority, entranceKey(child.label), { address: element.gateway } satisfies Entrance);
  }
}

export function childState(state: ControllerState, record: ElementRecord, element: CellControllerElement): Progress {
  if (state.options.cellManager !== true) {
    const how =
      "submit the child as a cell of its own, or run the cloud in its own VMs (`cells up` with another profile)";
    return progress(
      "failed",
      `this installation runs as processes and has no Cell Manager to make child cells: ${how}`,
    );
  }
  const child = childOf(element);
  if (child === null) {
    const form = "a component of type Cell, or a document with one, with a DNS label as its name";
    return progress("failed", `its x.cell is no cell: write ${form}`);
  }
  if (isRootsName(state, child))
    return progress("failed", `no child cell is named ${rootCell}: give it another x.name`);
  const untold = tooLong(state.outbox, cellManager, `cell/${record.uid}`);
  if (untold !== null) return progress("failed", `the Cell Manager cannot be told of it: ${untold}`);
  const actual = actualOf(actualCell, state, cellManager, `cell/${record.uid}`);
  if (actual !== undefined) return { phase: actual.phase, reason: actual.reason };
  const isLost = state.reachable.get(cellManager) === false;
  return progress("waiting", isLost ? "the Cell Manager is not reachable" : "waits for the Cell Manager");
}
