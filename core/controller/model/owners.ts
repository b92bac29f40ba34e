import type { Cell, CellControllerElement } from "../../../model/cell/cell.ts";
import { childOfElement } from "../../../model/cell/child-document.ts";
import { cellName, type ElementPath, type PeerName } from "../../../model/cell/identifiers.ts";
import { isTenant } from "../../../model/check/root-cell/check-tenants.ts";
import { pathPattern, pathRule, rootDomain } from "../../../model/contract/tenancy/tenancy.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { rolesOf } from "../../bootstrap/bootstrap-model.ts";
import { type InUse, rootCell } from "../../documents/cells.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { desiredCellOwner, desiredOwner } from "../../documents/readers/tenancy.ts";
import { cellOwnerKey, type DesiredCellOwner, type DesiredOwner, tenancy } from "../../documents/tenancy.ts";
import type { Desires } from "../changes/desires.ts";
import type { ElementRecord } from "../records.ts";
import { placersOf, storageManagersOf } from "../services/hosts.ts";
import { unitsByChild } from "../services/pools/given.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  cellManager,
  childRecords,
  desiredNow,
  elementOf,
} from "../state.ts";

/*
 * Whose a cell is: `x.account` of its CellController in the root cell's model is the one place that says it. The root controller says it on to
 * the service `tenancy`, which gives tickets for a cell to whom its account is within reach; what a gateway says of it counts nowhere.
 */
const isRoot = ({ options }: ControllerState): boolean => options.cell === rootCell;
const ownerKey = (uid: string): string => `owner/${uid}`;

const followed = new WeakMap<Cell, boolean>();
/** Is there a service `tenancy` to be told? The root cell's model has it, or names accounts. */
function isFollowed(cell: Cell): boolean {
  const known = followed.get(cell);
  if (known !== undefined) return known;
  const found = [...cell.elements.values()].some((element) =>
    element.type === "VM"
      ? rolesOf(element).tenancy !== undefined
      : isTenant(element) || (element.type === "CellController" && element.account !== undefined),
  );
  followed.set(cell, found);
  return found;
}

/** As long as a cell has not ended its name is whose it was. */
export function desireOwners(state: ControllerState, desires: Desires): void {
  if (!isRoot(state) || state.cell === null) return;
  const isTold = isFollowed(state.cell);
  const unitsOf = unitsByChild(state);
  for (const record of childRecords(state)) {
    const said = ownerOf(state, record);
    if (said === null || (!isTold && desiredNow(state, tenancy, ownerKey(record.uid)) === undefined)) continue;
    const { has: _has, uses: _uses, ...owner } = said;
    const grant = state.grants.get(record.uid);
    const [uses, units] = [usesOf(state, record), unitsOf.get(record.uid) ?? 0];
    addDesire(desires, tenancy, ownerKey(record.uid), {
      ...owner,
      ...(grant === undefined ? {} : { has: { ...grant.amount, ...(units > 0 ? { units } : {}) } }),
      ...(uses === undefined ? {} : { uses }),
    });
  }
}
/** While it is not heard, or does not know, it uses what it used. */
function usesOf(state: ControllerState, { uid }: ElementRecord): InUse | undefined {
  const said = actualOf(actualCell, state, cellManager, `cell/${uid}`);
  if (said?.quota != null && said.quota.uses !== null) return said.quota.uses;
  return desiredOwner.of(desiredNow(state, tenancy, ownerKey(uid)), uid)?.uses;
}
function ownerOf(state: ControllerState, record: ElementRecord): DesiredOwner | null {
  const element = elementOf(state, record);
  if (element?.type === "CellController") {
    const label = labelOf(element);
    return label === null
      ? null
      : ({ uid: record.uid, cell: cellName(label), account: accountIn(element.account) } satisfies DesiredOwner);
  }
  const last = desiredOwner.of(desiredNow(state, tenancy, ownerKey(record.uid)), record.uid);
  return last === null ? null : { ...last, ending: true };
}
const labelOf = (element: CellControllerElement): string | null => childOfElement(element)?.label ?? null;
const accountIn = (text: string | undefined): string | null => (text !== undefined && isAccount(text) ? text : null);
const isAccount = (text: string): boolean => pathPattern.test(text) && text !== rootDomain;

/**
 * Placers and Storage Managers hear whose cells are whose account the model names, until nothing is left of them: what is an
 * account's may stand at its hosts, and uses volumes that are granted to it.
 */
export function desireCellOwners(state: ControllerState, desires: Desires): void {
  if (!isRoot(state) || state.cell === null) return;
  const services = [...placersOf(state.cell), ...storageManagersOf(state.cell)];
  for (const record of childRecords(state)) {
    const { cell, account = null } = ownerOf(state, record) ?? {};
    if (cell === undefined || account === null) continue;
    for (const peer of services) {
      const uids = state.accountUids.byPath.get(account) ?? uidsSaid(state, peer, { cell, account });
      addDesire(desires, peer, cellOwnerKey(cell), {
        cell,
        account,
        ...(uids === undefined ? {} : { uids }),
      } satisfies DesiredCellOwner);
    }
  }
}
/** That nothing is said any more of an account that has cells is no word: what is granted to it stays so. */
function uidsSaid(
  state: ControllerState,
  peer: PeerName,
  { cell, account }: DesiredCellOwner,
): DesiredCellOwner["uids"] {
  const last = desiredCellOwner.of(desiredNow(state, peer, cellOwnerKey(cell)), cell);
  return last?.account === account ? last.uids : undefined;
}

/** Each child of the root cell, with its account. */
export function* cellOwners(state: ControllerState): Generator<readonly [cell: string, account: string | null]> {
  for (const record of childRecords(state)) {
    const owner = ownerOf(state, record);
    if (owner !== null) yield [owner.cell, owner.account];
  }
}

/** Path of the account that a child of the root cell belongs to, also while it is ending; null: the operator's. */
export function accountOf(state: ControllerState, record: ElementRecord): string | null {
  return isRoot(state) ? (ownerOf(state, record)?.account ?? null) : null;
}

/** Of a child of the root cell. */
export interface ChildOfRoot {
  readonly path: ElementPath;
  readonly account: string | null;
  readonly ending: boolean;
}
/** Every one that has this name, those included that have yet to end. */
export const childrenNamed = (state: ControllerState, name: string): readonly ChildOfRoot[] =>
  childRecords(state).flatMap((record) => {
    const element = elementOf(state, record);
    const label =
      element?.type === "CellController"
        ? labelOf(element)
        : (desiredOwner.of(desiredNow(state, tenancy, ownerKey(record.uid)), record.uid)?.cell ??
          record.path.split("/").at(-1));
    return label === name
      ? [{ path: record.path, account: accountOf(state, record), ending: element === undefined }]
      : [];
  });

/** Why a model must not give its child cells to those to whom it gives them; empty if it may. */
export function accountRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  return [...cell.elements.values()].flatMap((element): readonly Diagnostic[] => {
    if (element.type !== "CellController" || element.account === undefined) return [];
    const { path, account } = element;
    const code = "cell/account";
    if (!isRoot(state)) {
      const message = `\`${path}\` has \`x.account\`, which only the root cell says of its child cells`;
      return [{ code, message, hint: "Leave it out: a child cell goes with the cell around it.", path }];
    }
    if (element.gateway !== undefined) {
      const message = `\`${path}\` is the way into the cloud (\`x.gateway\`), and has \`x.account\``;
      return [{ code, message, hint: "Leave one of the two out: the way in is the operator's.", path }];
    }
    if (isAccount(account)) return [];
    const message = `\`${path}\` is given to ${JSON.stringify(account.slice(0, 200))}, which is no path of an account`;
    return [{ code, message, hint: `Write ${pathRule}; \`cells account list\` shows them.`, path }];
  });
}
