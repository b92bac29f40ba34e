import type { ElementType } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import type { Json } from "../json/json.ts";

export type PlanAction = "create" | "change" | "restart" | "replace" | "delete" | "none";

/** What goes with a volume: everything that was written since it was made. */
export interface DataLoss {
  /** Of the volume; null: it was as large as its origin. */
  readonly sizeMiB: number | null;
  /** What it was made from, and what can be made from that again; both absent: it began empty. */
  readonly image?: string;
  readonly copyOf?: ElementPath;
}

/**
 * When a volume gets a larger `x.size`: `now`, since nobody has it open; while `vm` is `running`; at the `next-start` of `vm`,
 * since the file that it runs with has no room, or its bus no word for that.
 */
export interface VolumeGrowth {
  readonly when: "now" | "running" | "next-start";
  /** Absent with `now`. */
  readonly vm?: ElementPath;
}

/** What happens to one element when a cell changes into another, and why. Plain data: it is sent, printed and executed. */
export interface PlanStep {
  readonly path: ElementPath;
  readonly type: ElementType;
  readonly action: PlanAction;
  /** The attributes that cause it, as written (`x.memory`), with both values; a null side means absent. Empty for create and delete. */
  readonly causes: readonly { readonly attribute: string; readonly from: Json; readonly to: Json }[];
  /** Elements whose readiness this step waits for; for a delete: those that used it, until they are gone or have let go of it. */
  readonly waitsFor: readonly ElementPath[];
  /** Bytes that no other copy holds are lost; `loss` says which, and is there exactly then. */
  readonly losesData: boolean;
  readonly loss?: DataLoss;
  /** Of a volume whose `x.size` was raised. Absent where the controller has not said: the planner does not know. */
  readonly grows?: VolumeGrowth;
  /** Of a copy whose `x.size` was left out: what it has, and keeps. Absent as above. */
  readonly keepsMiB?: number;
  /** Where the element was before, if `x.movedFrom` renamed it. */
  readonly movedFrom?: ElementPath;
}

/** What happens to the cell itself: its name, limits and policies, which are no element's. */
export interface CellStep {
  readonly path: ElementPath;
  readonly action: "create" | "change" | "delete";
  /** As in a step; empty for create and delete. Elements that change with it name the attribute as well. */
  readonly causes: PlanStep["causes"];
}

export interface Plan {
  /** Absent where the cell itself stays as it is. */
  readonly cell?: CellStep;
  /** The document is another one, and nothing else is: only parameters, templates or groups of its author changed. */
  readonly textOnly?: true;
  /** Every element of both cells, unchanged ones included, in an order in which they can be executed one after another. */
  readonly steps: readonly PlanStep[];
}
