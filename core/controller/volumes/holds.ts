import type { Cause } from "../../../model/cause/cause.ts";
import type { Cell, VolumeGrantElement } from "../../../model/cell/cell.ts";
import type { ElementPath } from "../../../model/cell/identifiers.ts";
import { actualGrant, actualVolume } from "../../documents/readers/storage.ts";
import type { DesiredGrant } from "../../documents/vocabulary.ts";
import { type HeldFor, mostHeldFor } from "../../documents/volumes.ts";
import { target } from "../changes/standing.ts";
import type { ElementRecord } from "../records.ts";
import { actualOf, type ControllerState, recordAt, saveElement, storageManagerOf } from "../state.ts";
import { grantDocument } from "./grants.ts";

/*
 * Volumes that are held for a copy in another cell (`x.hold`): whoever harvests a volume has a copy of it made there, says so
 * in a grant, and may delete the cell at once. The copy may be made much later: its cell's controller was away, or a VM here
 * still writes.
 *
 * So a volume that is held stays desired when it has left the model, and with it the grant, which is kept in its record: both
 * may leave in one change, and a crash forgets neither. It is let go once the Storage Manager has said that the copy at
 * that path is made; an origin with a copy stays by itself then (decision 30). That it was made is remembered: what becomes
 * of the copy later holds nothing up here.
 *
 * Whoever makes the copy finds its origin by its path, through the directory. So what is held is shown there, as with `x.public`,
 * for as long as it is held, to those copies alone: another volume may have that path by then.
 *
 * Rejected: a flag. Any copy that the other cell ever made would do then, and the one that is waited for would find its
 * origin gone.
 */

const holdsByCell = new WeakMap<Cell, ReadonlyMap<ElementPath, readonly VolumeGrantElement[]>>();

/** Grants that hold something, by their volumes. Indexed once per model. */
export function holdsIn(cell: Cell | null): ReadonlyMap<ElementPath, readonly VolumeGrantElement[]> {
  if (cell === null) return new Map();
  const known = holdsByCell.get(cell);
  if (known !== undefined) return known;
  const grants = [...cell.elements.values()].flatMap((element) =>
    element.type === "VolumeGrant" && element.hold !== undefined ? [element] : [],
  );
  const index = Map.groupBy(grants, ({ volume }) => volume);
  holdsByCell.set(cell, index);
  return index;
}

export const isOver = (state: ControllerState, { path, hold }: VolumeGrantElement): boolean =>
  recordAt(state, path)?.copied === hold;

/** Does the Storage Manager say so of exactly this? */
function isCopied(state: ControllerState, { uid, volume, hold }: DesiredGrant): boolean {
  const said = actualOf(actualGrant, state, storageManagerOf(state), `grant/${uid}`);
  return said?.copied === true && said.grants?.volume === volume && said.grants.hold === hold;
}

/** For which copies a volume of the present model stays when it leaves that. */
export const holdsOf = (state: ControllerState, { path }: ElementRecord): readonly DesiredGrant[] =>
  (holdsIn(state.cell).get(path) ?? []).flatMap((grant) => {
    const record = recordAt(state, grant.path);
    if (record === undefined || isOver(state, grant)) return [];
    return grantDocument(state, record.uid, grant) ?? [];
  });

/** The same, as the Storage Manager keeps it with the volume: whoever takes that back meanwhile does not know of holds. */
export const heldForOf = (holds: readonly DesiredGrant[]): readonly HeldFor[] =>
  holds.flatMap(({ to, hold }) => ("domain" in to && hold !== undefined ? [{ domain: to.domain, path: hold }] : []));

/** Copies for which it stays: those are shown it, and so find it by its path (`rules/directory-desires.ts`). */
export const shownFor = (state: ControllerState, record: ElementRecord): readonly HeldFor[] =>
  (record.deleting ? waitedFor(state, record) : heldForOf(holdsOf(state, record))).slice(0, mostHeldFor);

const saidOf = (state: ControllerState, { uid }: ElementRecord) =>
  actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`);
/** Does the Storage Manager keep a volume that was taken back for a copy? */
export const isKept = (state: ControllerState, record: ElementRecord): boolean => saidOf(state, record)?.held === true;

/** For which copies one stays that has left the model. */
function waitedFor(state: ControllerState, record: ElementRecord): readonly HeldFor[] {
  const { held } = record;
  return held?.length === 0 ? (saidOf(state, record)?.heldFor ?? []) : heldForOf(held ?? []);
}

/**
 * A controller that does not know of holds had it leave the model, and noted none. The Storage Manager has kept it, and says what for:
 * so it is held as before, until that is over there or somebody gives it up. That nothing is noted is nobody's order.
 */
export function noteKept(state: ControllerState, record: ElementRecord): void {
  if (record.letGo !== true && record.held === undefined && isKept(state, record))
    saveElement(state, { ...record, held: [] });
}

/** Volumes of the present model of which nothing is lost when they leave it: they stay for a copy, or it is there. */
export const heldIn = (state: ControllerState): ReadonlySet<ElementPath> =>
  new Set(
    [...holdsIn(state.cell)].flatMap(([path, grants]) => {
      const safe = grants.some((grant) => {
        const uid = recordAt(state, grant.path)?.uid;
        const document = uid === undefined ? null : grantDocument(state, uid, grant);
        return document !== null && (!isOver(state, grant) || isCopied(state, document));
      });
      return safe ? [path] : [];
    }),
  );

/** Remembers of a grant of the model that its copy was made. */
export function noteCopied(state: ControllerState, record: ElementRecord, document: DesiredGrant): void {
  const { hold } = document;
  if (hold === undefined || record.copied === hold || !isCopied(state, document)) return;
  saveElement(state, { ...record, copied: hold });
}

/** What a volume that has left the model still stays for; that a copy was made is remembered. */
export function stillHeld(state: ControllerState, record: ElementRecord): readonly DesiredGrant[] {
  const { held, ...rest } = record;
  if (held === undefined) return [];
  const left = held.filter((document) => !isCopied(state, document));
  if (left.length < held.length)
    saveElement(state, left.length === 0 ? { ...rest, letGo: true } : { ...rest, held: left });
  return left;
}

/** For whoever waits for the end of the volume. */
export const whyHeldForCopy = (state: ControllerState, record: ElementRecord): readonly Cause[] =>
  waitedFor(state, record).map((copy) => ({ kind: "held-for-copy", ...copy, target: target(state, record.path) }));
