import type { Ipv4, Mac } from "../../../model/cell/identifiers.ts";

/** An upstream router on a host's way out of the installation (`ActualHost.routers`). */
export interface ActualRouter {
  readonly address: Ipv4;
  /** Null: it has not answered yet. */
  readonly mac: Mac | null;
  /** It answered when it was asked last. */
  readonly answers: boolean;
  /** The host's own address on that network, which asks for it. Absent: it is of an earlier version. */
  readonly from?: Ipv4;
}
