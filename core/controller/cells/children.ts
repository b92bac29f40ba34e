import { said } from "../../../model/cause/cause.ts";
import type { CellControllerElement } from "../../../model/cell/cell.ts";
import { childOfElement, isLabel, type NamedChild } from "../../../model/cell/child-document.ts";
import { cellName, type ElementPath, type Uid, uid } from "../../../model/cell/identifiers.ts";
import { diverter } from "../../../model/cell/network/network-mode.ts";
import { noUsage } from "../../../model/check/check-limits.ts";
import { boundOfChildren } from "../../../model/check/openness.ts";
import {
  type ActualCell,
  childName,
  type DesiredCell,
  type Entrance,
  entranceKey,
  rootCell,
} from "../../documents/cells.ts";
import { actualCell, desiredCell } from "../../documents/readers/cells.ts";
import { servicePeer } from "../../documents/service-roles.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { cellOfController, tooLong } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import { asSaid, standing, unanswered } from "../changes/standing.ts";
import { holdersOfForgotten } from "../histories/forgotten.ts";
import { isAccountOff, poolAccounts } from "../model/account-limits.ts";
import type { ElementRecord, Standing } from "../records.ts";
import { givenTo } from "../services/pools/given.ts";
import {
  actualOf,
  addDesire,
  authority,
  boundOf,
  type ControllerState,
  cellManager,
  childRecords,
  desiredNow,
  elementOf,
  isOff,
} from "../state.ts";
import { defaultStartsPerMinute, startsOfChildren } from "../vm/start-limit.ts";

/** A child of the root cell would be taken for the root cell itself. */
const isRootsName = (state: ControllerState, { label }: NamedChild): boolean =>
  childName(state.options.cell, label) === rootCell;

/** Child cells at the Cell Manager. What leaves the model is taken back, and stays "deleting" until it is gone. */
export function desireChildren(state: ControllerState, desires: Desires): void {
  if (state.options.cellManager !== true) return;
  desireEnds(state, desires);
  desireForgottenEnds(state, desires);
  const starts = startsOfChildren(state);
  const zone = state.cell?.zone?.name;
  const bound = boundOfChildren(state.cell?.defaults ?? {}, boundOf(state));
  for (const record of childRecords(state)) {
    const element = elementOf(state, record);
    const grant = state.grants.get(record.uid);
    if (element?.type !== "CellController" || grant === undefined) continue;
    const child = childOfElement(element);
    if (child === null || isRootsName(state, child)) continue;
    addDesire(desires, cellManager, `cell/${record.uid}`, {
      uid: record.uid,
      cell: childName(state.options.cell, child.label),
      model: child.document,
      grant,
      startsPerMinute: starts.get(record.uid) ?? defaultStartsPerMinute,
      ...(Object.keys(bound).length === 0 ? {} : { bound }),
      ...(isOff(state) || isAccountOff(state, record) ? { off: true as const } : {}),
      ...given(state, record.uid),
      ...boundFor(element),
      ...(element.gateway === undefined || state.options.root === undefined ? {} : { gateway: element.gateway }),
    } satisfies DesiredCell);
    // Nobody's word counts for it at the authority and at hosts but the root controller's own.
    if (element.gateway !== undefined && state.options.root !== undefined)
      addDesire(desires, authority, entranceKey(child.label), {
        address: element.gateway,
        ...(zone === undefined ? {} : { zone }),
      } satisfies Entrance);
  }
}

const boundFor = ({ services, networkMode }: CellControllerElement): Pick<DesiredCell, "services"> =>
  services === undefined && networkMode === undefined
    ? {}
    : { services: { ...services, ...(networkMode === undefined ? {} : { networkMode }) } };

function given(state: ControllerState, child: Uid): Pick<DesiredCell, "pools"> {
  const pools = givenTo(state, child, poolAccounts);
  return pools.length === 0 ? {} : { pools };
}

/**
 * A child that left the model is said to be ending until the Cell Manager says that it has. That one may have lost its store,
 * before or after it had taken a tombstone: it would know nothing of the child, and its silence would be taken for the end.
 */
function desireEnds(state: ControllerState, desires: Desires): void {
  for (const { uid, deleting, path } of childRecords(state)) {
    const key = `cell/${uid}`;
    if (!deleting || mayTakeBack(state, key)) continue;
    const last = desiredCell.of(desiredNow(state, cellManager, key), uid) ?? lastOfNone(state, uid, path);
    if (last === null) continue;
    // Which hosts its pools have yet is said until the last is given back: it waits for that.
    const { pools: _before, ...rest } = last;
    addDesire(desires, cellManager, key, { ...rest, ...given(state, uid), ending: true } satisfies DesiredCell);
  }
}

/**
 * Its tombstone was taken by a Cell Manager that has lost its store since. That one's silence proves nothing, however long it is there, before it has
 * heard which controllers there are; so it is asked about the end, and says it when it knows. The child is known by its UID.
 */
function lastOfNone(state: ControllerState, child: Uid, path: ElementPath): DesiredCell | null {
  if (!state.olderPeers.has(cellManager)) return null;
  const name = path.split("/").at(-1) ?? "";
  const cell = childName(state.options.cell, isLabel(name) ? name : "child");
  return { uid: child, cell, model: {}, grant: noGrant };
}
const noGrant = { amount: noUsage, serial: 0, answered: 0, refusal: null };

/**
 * Of some children that are to end the Cell Manager has no document that could be taken back, since it has lost its store: those of
 * a cell that ends and has forgotten what it has (forgotten.ts), and those that were taken back before. It says that they are there.
 */
function desireForgottenEnds(state: ControllerState, desires: Desires): void {
  if (state.reachable.get(cellManager) !== true) return;
  const prefix = actualKey(state.options.self, "cell/");
  const all = holdersOfForgotten(state) !== null;
  for (const [key, value] of state.actual.get(cellManager) ?? []) {
    if (!key.startsWith(prefix)) continue;
    const child = uid(key.slice(prefix.length));
    const said = all || state.elements.get(child)?.deleting === true ? actualCell.of(value) : null;
    const cell = said === null ? null : cellOfController(said.controller);
    if (said?.ended !== false || cell === null || isTold(state, desires, `cell/${child}`)) continue;
    const document = {
      uid: child,
      cell: cellName(cell),
      model: {},
      grant: noGrant,
      ending: true,
    } satisfies DesiredCell;
    addDesire(desires, cellManager, `cell/${child}`, document);
  }
}
/** A document of it is there, or a tombstone is on its way. */
const isTold = (state: ControllerState, desires: Desires, key: string): boolean =>
  desires.get(cellManager, key) !== undefined ||
  state.forgotten.get(cellManager)?.has(key) === true ||
  state.outbox.releasing.get(cellManager)?.has(key) === true;

/** It has ended; or was never known there; or the Cell Manager is of the previous version, which a tombstone is enough for. */
function mayTakeBack(state: ControllerState, key: string): boolean {
  const said = actualOf(actualCell, state, cellManager, key);
  if (said !== undefined) return said.ended !== false;
  return state.reachable.get(cellManager) === true && !state.olderPeers.has(cellManager);
}

export function childState(state: ControllerState, record: ElementRecord, element: CellControllerElement): Standing {
  if (state.options.cellManager !== true) return standing("failed", { kind: "no-cell-manager" });
  const child = childOfElement(element);
  if (child === null) return standing("failed", { kind: "child-malformed" });
  if (isRootsName(state, child)) return standing("failed", { kind: "child-named-root", name: rootCell });
  const untold = tooLong(state.outbox, cellManager, `cell/${record.uid}`);
  if (untold !== null) return standing("failed", untold);
  const actual = actualOf(actualCell, state, cellManager, `cell/${record.uid}`);
  if (actual === undefined) return unanswered(state, cellManager);
  const otherwise = whyOfAnotherMode(element, actual);
  if (otherwise !== null) return standing("failed", ...said(cellManager, otherwise));
  const number = actual.unguarded === true ? actual.services?.haManager : undefined;
  const { phase, causes } = asSaid(cellManager, actual);
  if (number === undefined) return standing(phase, ...causes);
  const service = servicePeer("ha-manager", number);
  return standing(
    phase,
    { kind: "unguarded", service, number, cell: childName(state.options.cell, child.label) },
    ...causes,
  );
}

/** A Cell Manager of an earlier version knows no modes, and makes the cell without a word on Diverter, where its rules mean something else. */
function whyOfAnotherMode({ networkMode }: CellControllerElement, { services }: ActualCell): string | null {
  return services === undefined || services.networkMode === networkMode
    ? null
    : `it has made the cell with the networks of ${services.networkMode ?? diverter} in place of ${networkMode ?? diverter}, as a Cell Manager of an earlier version does: upgrade it, take the cell out of the model, and declare it again`;
}
