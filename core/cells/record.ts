import { type CellName, type Ipv4, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import type { CellServices } from "../documents/cells.ts";
import { firstServices } from "./binding.ts";

/** Record `cell/<uid>` of the Cell Manager, or `found/<uid>` while it is unclaimed. */
export interface CellRecord {
  readonly uid: Uid;
  readonly client: PeerName;
  readonly cell: CellName;
  readonly number: number;
  readonly stage: "living" | "emptying" | "releasing" | "ending";
  /** Null: its controller is being made. */
  readonly address: Ipv4 | null;
  /** As it was made. Absent in the records of an earlier version: the first of each. */
  readonly services?: CellServices;
  /** The HA Manager that it has since, in place of one that is gone (guard.ts). Absent: as it was made. */
  readonly guard?: number;
  /** How often it was moved. Absent: by an earlier version, or never. */
  readonly guardMoves?: number;
  /** It was found (found.ts), and its parent has not said yet what it wants. Absent: it has. */
  readonly unclaimed?: true;
  /** An operator has given it to its parent, which desires a child of that name under another UID (unclaimed.ts). */
  readonly given?: true;
}

/**
 * The previous version skips `found/<uid>`. Under `cell/<uid>` it would take an unclaimed cell for one that its parent no longer
 * desires, and end it with all that it has. Where it has made a record of its own meanwhile there are both: the last counts.
 */
export const recordKinds = ["found", "cell"] as const;
export const recordKey = ({ uid, unclaimed }: CellRecord): string => `${unclaimed === true ? "found" : "cell"}/${uid}`;
export const controllerOf = ({ cell }: Pick<CellRecord, "cell">): PeerName => peerName(`controller.${cell}`);
export const servicesOf = ({ services }: CellRecord): CellServices => services ?? firstServices;
