import type { ActualLife, CellServices, DesiredLife } from "../documents/cells.ts";
import { type Instances, nextGuard } from "./binding.ts";
import { type CellRecord, servicesOf } from "./record.ts";

/*
 * The HA Manager of a cell may be gone: its VM, or the VM's role, has left the root cell's model. Nobody fences for the cell then, and
 * nobody else's fence counts. Another one takes its place at its parent's word (`x.services.haManager`), and where the cell ends, which has
 * no parent's word any more, by itself. Never while the former one is there: two would act on what each knows alone.
 *
 * What the cell was made with stays as it is written in its controller's VM. The parent says its word again to a Cell Manager that has lost
 * its store, and the controller whom it has, so a former one that comes back under its number does not get the cell back by that.
 *
 * Rejected: another one by itself, as soon as the book of peers has no such HA Manager. A book that is read too early, or an old one, would
 * move cells for good.
 */

/** Whom it has now. */
export const servicesNow = (record: CellRecord): CellServices =>
  record.guard === undefined ? servicesOf(record) : { ...servicesOf(record), haManager: record.guard };

/** The first one is the root controller's part, and no installation has to have it. */
export const isUnguarded = (record: CellRecord, { haManager: there }: Instances): boolean => {
  const { haManager = 1 } = servicesNow(record);
  return haManager !== 1 && !there.includes(haManager);
};

/** The record with another HA Manager; null: it keeps the one that it has. */
export function guardAnew(
  record: CellRecord,
  asked: number | undefined,
  instances: Instances,
  others: readonly CellServices[],
): CellRecord | null {
  if (!isUnguarded(record, instances)) return null;
  if (record.stage !== "living" && record.stage !== "emptying") return null;
  const guard = record.stage === "living" ? asked : nextGuard(instances, others);
  if (guard === undefined || !instances.haManager.includes(guard)) return null;
  return { ...record, guard, guardMoves: movesOf(record) + 1 };
}
const movesOf = ({ guard, guardMoves = 1 }: Pick<CellRecord, "guard" | "guardMoves">): number =>
  guard === undefined ? 0 : guardMoves;

/**
 * The controller has one that this store does not know of: it was lost, and knows of no move, or is older, and knows of fewer. As long as the
 * controller has yet to hear of a move, it is the controller that knows of fewer.
 */
export function guardSaid(record: CellRecord, said: Pick<ActualLife, "guard" | "guardMoves"> = {}): CellRecord | null {
  const { guard, guardMoves } = said;
  if (guard === undefined) return null;
  const known = { ...record, guard, ...(guardMoves === undefined ? {} : { guardMoves }) };
  if (record.guard === undefined) return guard === servicesNow(record).haManager ? null : known;
  return guardMoves !== undefined && guardMoves > movesOf(record) ? known : null;
}

/** As its parent is told: whom its controller has said that it has. Without its word, what was made of it. */
export function guardKnown(record: CellRecord, life: Pick<ActualLife, "guard"> | undefined): CellRecord {
  if (life === undefined) return record;
  const { guard: _guard, ...made } = record;
  return life.guard === undefined ? made : { ...made, guard: life.guard };
}

/** What its controller is told of it. */
export const guardOf = (
  record: CellRecord,
  instances: Instances,
): Pick<DesiredLife, "guard" | "guardMoves" | "unguarded"> => ({
  ...(record.guard === undefined ? {} : { guard: record.guard, guardMoves: movesOf(record) }),
  ...(isUnguarded(record, instances) ? { unguarded: true as const } : {}),
});
