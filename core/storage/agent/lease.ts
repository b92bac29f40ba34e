import type { Ipv4, Uid } from "../../../model/cell/identifiers.ts";
import type { AgentLease, Layer, LeaseHolder } from "../../documents/vocabulary.ts";
import type { AgentReport, ExportAccess, LeaseRecord, OriginRecord } from "./work.ts";

/**
 * The truth about who may write a volume: (epoch, holder), one VM's incarnation at a time, changed by compare-and-set
 * alone and never ended by time. Two orders make it safe. An epoch is granted only when nothing of the one before can
 * write any more, which only the executor can know; and a fence, once begun, is never taken back, since an export may
 * already be half gone. Who asks for the next epoch: `core/storage/manager/leases.ts`.
 */
export const noLease: LeaseRecord = { epoch: 0, holder: null, access: null, confirmed: false, fencing: false };
export const newOrigin: OriginRecord = { access: null, confirmed: false, fencing: false };

/** What the volume itself allows at this moment. */
export interface LeaseCircumstances {
  /** The volume is wanted here and its file exists. */
  readonly usable: boolean;
  readonly isOrigin: boolean;
}

/** What is to come; `upon`: whoever counts as lost, so that a host gets it. */
export type NextLease = AgentLease & { readonly upon?: LeaseHolder };

/**
 * One step towards the desired lease; null: nothing to change. `desired` null is a tombstone: fence, keep the epoch.
 * Never returns a record with a lower epoch, nor another holder for an epoch that was granted.
 */
export function advanceLease(
  lease: LeaseRecord,
  desired: NextLease | null,
  circumstances: LeaseCircumstances,
): LeaseRecord | null {
  if (lease.fencing) return null;
  if (desired === null) return lease.holder === null ? null : { ...lease, fencing: true };
  if (desired.epoch !== lease.epoch + 1) return null;
  if (desired.holder !== null && refusal(lease, desired, circumstances) !== null) return null;
  const lost = desired.upon === undefined ? {} : { lost: desired.upon };
  if (lease.holder !== null) return { ...lease, ...lost, fencing: true };
  const granted = { ...noLease, ...lost, epoch: desired.epoch, holder: desired.holder };
  return lease.last === undefined || desired.holder !== null ? granted : { ...granted, last: lease.last };
}

/** The executor confirmed that nothing of `epoch` is left; null: that was not asked for. */
export function confirmFence(lease: LeaseRecord, epoch: number): LeaseRecord | null {
  if (!lease.fencing || lease.epoch !== epoch) return null;
  const { holder, lost } = lease;
  const last = holder === null ? {} : { last: holder };
  const adopted = lease.adopted === true ? { adopted: true as const } : {};
  return { ...noLease, epoch: lease.epoch, ...last, ...adopted, ...(sameHolder(holder, lost) ? { lost } : {}) };
}

/** Whether it is the same incarnation of the same VM at the same host. */
export const sameHolder = (one: LeaseHolder | null | undefined, other: LeaseHolder | null | undefined): boolean =>
  one != null && one.vm === other?.vm && one.incarnation === other.incarnation && one.host === other.host;

/** Why the desired lease is not, or not yet, what holds; null: it holds, or is on its way. */
export function refusal(lease: LeaseRecord, desired: AgentLease, circumstances: LeaseCircumstances): string | null {
  if (desired.epoch <= lease.epoch) return null;
  if (desired.epoch > lease.epoch + 1)
    return `epoch ${desired.epoch} was asked for, but the current one is ${lease.epoch}: only ${lease.epoch + 1} can follow`;
  if (desired.holder === null) return null;
  if (circumstances.isOrigin) return "the volume is an immutable origin: it can be copied, never written again";
  if (!circumstances.usable) return "the volume's file is not there, or not yet";
  return null;
}

type Exported = { readonly access: ExportAccess | null; readonly confirmed: boolean; readonly fencing: boolean };

/** Secrets drawn for an export: kept before anything listens with them. Null: not wanted, or already there. */
export function prepared<R extends Exported>(
  record: R,
  report: AgentReport & { kind: "prepared" },
  port: number,
): R | null {
  if (record.fencing || record.access !== null) return null;
  const { exportName, pskIdentity, pskHex } = report;
  return { ...record, access: { exportName, pskIdentity, pskHex, port } };
}

/** The export listens. Null: it is another one, or was confirmed before. */
export function confirmed<R extends Exported>(record: R, exportName: string): R | null {
  if (record.access?.exportName !== exportName || record.confirmed) return null;
  return { ...record, confirmed: true };
}

/** Another port for an export that nobody was told of yet. */
export function moved<R extends Exported>(record: R, port: number): R | null {
  if (record.access === null || record.confirmed || record.fencing) return null;
  return { ...record, access: { ...record.access, port } };
}

/** What a host reaches an export by. */
export const layerOf = (
  { address }: { readonly address: Ipv4 },
  volume: Uid,
  access: ExportAccess,
  writable: boolean,
): Layer => ({ volume, address, ...access, writable });
