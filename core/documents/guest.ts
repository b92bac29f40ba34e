import type { Uid } from "../../model/cell/identifiers.ts";

/** Parts of the documents about a VM that are about its guest: how it is asked whether it lives, and what its host knows of it. */
export interface DesiredLiveness {
  readonly protocol: "icmp" | "udp";
  /** `port`: of a UDP probe; null for ICMP. `interface`: that is asked; absent: the VM's first one. */
  readonly port: number | null;
  readonly interface?: Uid;
  readonly intervalMs: number;
  /** That many probes in a row without an answer make it silent. */
  readonly failures: number;
}

/** From a VM's start, or its guest's reset, to its guest's first answer. */
export const bootAllowanceMs = 300_000;

export interface GuestFacts {
  /**
   * What its liveness probes say; absent where none are sent. `starting`: has not answered yet and may still be booting;
   * `silent`: `failures` probes in a row went unanswered. Its controller then stops it and starts the next incarnation.
   */
  readonly health?: "starting" | "answering" | "silent";
  /** The probes that `health` is about; null: none are sent. Absent: a host of the previous version. */
  readonly probes?: DesiredLiveness | null;
  /** How often this incarnation's guest has reset itself. */
  readonly reboots?: number;
  /**
   * Where `ready` asks: whether the guest's agent has answered since the start, or the guest's last reset; absent where nobody
   * asks. `late`: not within `bootAllowanceMs`; it is asked on.
   */
  readonly guest?: "booting" | "up" | "late";
}
