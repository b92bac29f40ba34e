import type { Uid } from "../../../model/cell/identifiers.ts";
import { type Usage, usageFrom } from "../../../model/check/check-limits.ts";
import type { Json } from "../../../model/json/json.ts";
import type { QuotaGrant } from "../../documents/cells.ts";
import { write } from "../../outbox.ts";
import type { ControllerState } from "../state.ts";
import { beyondUnheard, isPlausible, type Source } from "./kept-numbers.ts";

/** What children were granted (`model/quota.ts`), as it is kept, and as it goes on where the store was older. */
export function saveGrant(state: ControllerState, uid: Uid, grant: QuotaGrant | null): void {
  if (grant === null) state.grants.delete(uid);
  else state.grants.set(uid, grant);
  write(state.outbox, `grant/${uid}`, grant);
}
/** As a store has it: one of the version before does not have all amounts. */
export function grantOf(value: Json): QuotaGrant {
  const grant = value as unknown as QuotaGrant;
  return { ...grant, amount: readUsage(grant.amount) };
}
export const forgetGrant = (state: ControllerState, uid: Uid): void => saveGrant(state, uid, null);

/**
 * A cell whose store was older may have granted under later serials than it knows, and a child that has seen one takes no
 * earlier word: without this neither would hear the other again. Those that the Cell Manager keeps say how much it was.
 */
export function grantAnew(state: ControllerState): void {
  for (const [uid, grant] of [...state.grants])
    saveGrant(state, uid, { ...grant, serial: beyondUnheard(state.drawn, "grant", grant.serial) });
}
export function takeKeptGrant(state: ControllerState, source: Source, uid: Uid, kept: QuotaGrant): void {
  const now = state.grants.get(uid)?.serial;
  if (now === undefined || !isPlausible(state, source, "grant", { to: kept.serial, now, of: uid })) return;
  if (kept.serial > now) saveGrant(state, uid, { ...kept, amount: readUsage(kept.amount) });
}

/** What others say is looked at before it is counted with. */
export function readUsage(value: unknown): Usage {
  const given = value as Readonly<Record<string, unknown>> | null | undefined;
  return usageFrom((key) => {
    const amount = Number(given?.[key] ?? 0);
    return Number.isFinite(amount) && amount > 0 ? amount : 0;
  });
}
