import type { CellName, Ipv4, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { CellServices } from "../documents/cells.ts";
import type { Instances } from "./binding.ts";

/**
 * What passes between the Cell Manager's decisions (`manager.ts`) and whoever makes controllers: `runtime/cell-manager/`
 * puts them as VMs into the root cell's model; the simulator starts processes. As at the storage agent, the wanted work is
 * data, asked for as a whole and reported on; both directions are idempotent, so either side may be restarted at any time.
 */
export interface WantedController {
  /** Of the cell: its elements are `<uid>-<n>`. */
  readonly uid: Uid;
  readonly cell: CellName;
  readonly controller: PeerName;
  /** Unique in the installation, for good. */
  readonly cellNumber: number;
  /** Whom its controller is bound to, for good. */
  readonly services: CellServices;
  /**
   * "run": it is there, with its store, however often it has to be started; "end": its process, its store and its address are
   * gone for good, nothing of the cell is left anywhere.
   */
  readonly state: "run" | "end";
  /** It is in step with the Cell Manager: where it was made as a VM, this is how it is known that it has started. */
  readonly answers: boolean;
}
/** Answer to `{kind: "work", known}`: the whole wanted work, held back until its version differs from `known`. */
export interface CellWorkAnswer {
  readonly version: number;
  readonly controllers: readonly WantedController[];
}
/** A controller that there is, with what its cell was given for good. */
export type FoundController = Pick<WantedController, "uid" | "cell" | "cellNumber" | "services">;
export type CellReport =
  /** All controllers that there are, said once at each start; no cell is made before. */
  | { readonly kind: "found"; readonly controllers: readonly FoundController[] }
  | { readonly kind: "work"; readonly known: number }
  /** What makes it is on its way: what was in the way before is no more. */
  | { readonly kind: "making"; readonly uid: Uid }
  /** It can be reached by its name. `address`: where the VMs of its own cell reach it. Also after it was adopted. */
  | { readonly kind: "made"; readonly uid: Uid; readonly address: Ipv4 }
  | { readonly kind: "failed"; readonly uid: Uid; readonly reason: string }
  | { readonly kind: "ended"; readonly uid: Uid }
  /** Which services there are that a cell can be bound to. */
  | { readonly kind: "instances"; readonly instances: Instances };
