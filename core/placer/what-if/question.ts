import type { Json } from "../../../model/json/json.ts";
import type { Sliced } from "./sliced.ts";

/** What is asked of a Placer and not answered yet. */
export interface Questions {
  readonly waiting: Question[];
  current: (Question & { readonly work: Sliced<Json> }) | null;
}
export interface Question {
  /** Of the request. */
  readonly id: number;
  /** By which whoever asks takes it back; null: it does not. */
  readonly asked: number | null;
  readonly asks: Asks;
}
/** How an answer is worked out. */
export type Asks = () => Sliced<Json>;
