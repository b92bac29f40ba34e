import { dictionary, integer, list, nullable, number, record, time } from "../../schema.ts";

/**
 * The last hour as the gateway has seen it: `GET /history`. Each series has one value for each moment, the last one of `until`; null: nothing was heard then.
 */
export interface History {
  readonly everyMs: number;
  /** Of the last moment. */
  readonly until: string;
  readonly moments: number;
  /** By host, processors that its VMs kept busy. */
  readonly load: { readonly [host: string]: Series };
  /** By host, MiB that its VMs have. */
  readonly usedMiB: { readonly [host: string]: Series };
  /** By cell, how many of its VMs ran (figure 6). */
  readonly running: { readonly [cell: string]: Series };
  /** So many more series there was no room for. */
  readonly leftOut: number;
}
export type Series = readonly (number | null)[];

const series = dictionary(list(nullable(number)));
export const history = record<History>(
  {
    everyMs: integer(),
    until: time,
    moments: integer(),
    load: series,
    usedMiB: series,
    running: series,
    leftOut: integer(),
  },
  "History",
);
