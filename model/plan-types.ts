import type { ElementType } from "./cell.ts";
import type { ElementPath } from "./identifiers.ts";
import type { Json } from "./json.ts";

export type PlanAction = "create" | "change" | "restart" | "replace" | "delete" | "none";

/** What happens to one element when a cell changes into another, and why. Plain data: it is sent, printed and executed. */
export interface PlanStep {
  readonly path: ElementPath;
  readonly type: ElementType;
  readonly action: PlanAction;
  /** The attributes that cause it, as written (`x.memory`), with both values; a null side means absent. Empty for create and delete. */
  readonly causes: readonly { readonly attribute: string; readonly from: Json; readonly to: Json }[];
  /** Elements whose readiness this step waits for (for a delete: whose deletion). */
  readonly waitsFor: readonly ElementPath[];
  /** Bytes that no other copy holds are lost. */
  readonly losesData: boolean;
  /** Where the element was before, if `x.movedFrom` renamed it. */
  readonly movedFrom?: ElementPath;
}

export interface Plan {
  /** Every element of both cells, unchanged ones included, in an order in which they can be executed one after another. */
  readonly steps: readonly PlanStep[];
}
