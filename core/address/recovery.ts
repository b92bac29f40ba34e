import type { PeerName } from "../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { Progress } from "../documents/vocabulary.ts";
import type { Restored } from "../env.ts";
import { isObject, log, type Outbox, progress, toJson, write } from "../outbox.ts";

/**
 * An IP Address Manager whose store is blank or older. Controllers say with each desire which range a subnet has had, so all
 * that was forgotten comes back with what they say at their next connection. Before that nobody knows which ranges are free:
 * whoever asked first would be given one that machines of another cell use. So nothing new is given until each controller
 * that could have a range has said all that it desires. What a desire says it has is given at once.
 *
 * A blank store shows itself, and one that was put back from a copy says so. That one is older of which nobody said it, shows
 * when a controller has a range here which the store does not know. A controller shows that while it says, for the first time
 * since this start, all that it desires. Later it has only what was given here since, so whoever makes up a range then holds
 * up nobody. One that goes on making them up, or does not come back, is for an operator: `cells orphans release` drops it.
 */
export interface Recovery {
  /** `controller.<cell>` of each cell that there is. */
  controllers: ReadonlySet<PeerName>;
  /** Those that have said all that they desire, since this start, or of which an operator says that it is all. */
  readonly spoke: Set<PeerName>;
  /** Those that have not, since ranges were forgotten. Durable; null: this store never had such a record. */
  waitsFor: readonly PeerName[] | null;
  /** The store was put back from a copy since the last start. */
  readonly wasPutBack: boolean;
}

export const recoveryRecord = "recovery";

export function restoreRecovery({ records, wasRestored }: Restored, controllers: readonly PeerName[]): Recovery {
  const stored = records.get(recoveryRecord);
  return {
    controllers: new Set(controllers),
    spoke: new Set(),
    waitsFor: isObject(stored) ? (stored.waitsFor as unknown as readonly PeerName[]) : null,
    wasPutBack: wasRestored === true,
  };
}

/** At a start. @param isBlank no subnet has a range or desires one, by this store */
export function beginRecovery(recovery: Recovery, outbox: Outbox, isBlank: boolean): void {
  const { controllers, waitsFor, wasPutBack } = recovery;
  const all = [...controllers].sort();
  waitFor(recovery, outbox, wasPutBack ? all : (waitsFor ?? (isBlank ? all : [])));
}

/**
 * A client has a range that this store does not know. Where it has not said all that it desires since this start, the store has
 * forgotten that: whoever is silent may have others.
 */
export function showsRange(recovery: Recovery, outbox: Outbox, client: PeerName): void {
  const { controllers, spoke, waitsFor } = recovery;
  if (spoke.has(client)) return;
  const silent = [...controllers].filter((controller) => !spoke.has(controller));
  waitFor(recovery, outbox, [...new Set([...(waitsFor ?? []), ...silent])].sort());
}

/** A client has said all that it desires, or an operator says that nobody is to wait for it. @returns whether new ranges may be given from now on */
export function spoke(recovery: Recovery, outbox: Outbox, client: PeerName): boolean {
  recovery.spoke.add(client);
  return drop(recovery, outbox, (controller) => controller === client);
}

/** Which cells there are. @returns whether new ranges may be given from now on */
export function takeControllers(recovery: Recovery, outbox: Outbox, controllers: readonly PeerName[]): boolean {
  recovery.controllers = new Set(controllers);
  return drop(recovery, outbox, (controller) => !recovery.controllers.has(controller));
}

function drop(recovery: Recovery, outbox: Outbox, isDone: (controller: PeerName) => boolean): boolean {
  const { waitsFor } = recovery;
  if (waitsFor === null || !waitsFor.some(isDone)) return false;
  const left = waitsFor.filter((controller) => !isDone(controller));
  waitFor(recovery, outbox, left);
  return left.length === 0;
}

function waitFor(recovery: Recovery, outbox: Outbox, controllers: readonly PeerName[]): void {
  const waitsFor = controllers.filter((controller) => recovery.controllers.has(controller));
  const before = recovery.waitsFor ?? [];
  if (waitsFor.length > before.length) log(outbox, "recovery/waits", { controllers: waitsFor });
  else if (waitsFor.length === 0 && before.length > 0) log(outbox, "recovery/complete", {});
  recovery.waitsFor = waitsFor;
  // A version that knows no such record reads a subnet of nobody, and frees its range.
  const asSubnet = { client: "address-manager", path: recoveryRecord, cidr: "0.0.0.0/29" };
  write(outbox, recoveryRecord, { ...asSubnet, waitsFor: toJson(waitsFor) });
}

/** Whether a range may be given that nobody says to have had. Whose silence it is, is no other cell's business. */
export const mayGiveNew = ({ waitsFor }: Recovery): Result<null, Progress> =>
  waitsFor === null || waitsFor.length === 0
    ? ok(null)
    : fail(
        progress(
          "waiting",
          "the IP Address Manager has lost what it knew and has yet to hear which ranges all cells have",
        ),
      );
