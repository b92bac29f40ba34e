import type { DesiredLiveness } from "../core/documents/guest.ts";
import type { ActualVm, DesiredVm } from "../core/documents/vocabulary.ts";
import type { PeerName, Uid } from "../model/cell/identifiers.ts";
import type { ProbeTarget } from "./liveness/liveness.ts";

/** A new boot disk on trial (`host/root-vm/boot-trial.ts`). */
export interface TrialRecord {
  /** Of the disk on trial. */
  readonly connection: Uid;
  readonly starts: number;
  /** Why its host has gone back, a sentence; null: it has not. */
  readonly refused: string | null;
}

/** What of a VM is asked whether it lives: answers of one thing say nothing of another. */
export type AskedWhat = Pick<ProbeTarget, "interface"> & Pick<DesiredLiveness, "protocol" | "port">;

/** Durable knowledge about the newest incarnation of a VM that this host took on. Written before anything is started. */
export interface VmRecord {
  readonly client: PeerName;
  /** As it was started. */
  readonly vm: DesiredVm;
  /** `starting`: may run or not; `ended`: confirmed that nothing of it runs. */
  readonly stage: "starting" | "running" | "ended";
  /** How it ended; null while it has not, and when it never started. */
  readonly ended: ActualVm["ended"];
  readonly reason: string | null;
  /** Its disks' credentials are gone. */
  readonly released: boolean;
  /** With stage `starting`: its start failed and its process was killed, but is not confirmed gone. It is stopped until it is. */
  readonly ending?: true;
  /** What its liveness probes said last; absent: no answer yet. */
  readonly health?: ActualVm["health"];
  /** What `health` is about; absent: of an earlier version, and of whatever it is asked. */
  readonly asked?: AskedWhat;
  /** Why it is silent, a sentence. */
  readonly silence?: string;
  /** Sizes in MiB that its disks were made to grow to, by connection. */
  readonly grown?: Readonly<Record<string, number>>;
  /** Whether its guest has come up since its start or last reset; absent: not yet, or nobody asked. */
  readonly guest?: "up" | "late";
  /** Resets of this incarnation's guest. */
  readonly reboots?: number;
  /** It was never tried here, and its controller was told that it never will be. */
  readonly refused?: true;
  /** Of a VM that its host starts again by itself: the new boot disk that it is or was tried with. */
  readonly trial?: TrialRecord;
}
