import { dictionary, integer, list, optional, record, text } from "../../schema.ts";

/*
 * What the kernel and machines' own processes count, by the names of elements. It only grows, but where a machine has gone to another
 * host, or a host began anew: then it begins at nothing.
 */
export interface Counted {
  readonly packets: number;
  readonly bytes: number;
}
/** Packets that the rule let pass, at the host that they left and at the one where they arrived; twice where that is one. */
export interface RuleCounted extends Counted {
  readonly path: string;
}
/** Directions as its machine sees them; `drops` by reason, without those that are none. */
export interface InterfaceCounted {
  readonly path: string;
  readonly sent: Counted;
  readonly received: Counted;
  readonly drops: { readonly [reason: string]: number };
}
/** Octets that its disks have read and written since it was started. */
export interface MachineCounted {
  readonly path: string;
  readonly diskBytes: number;
}
type OfCell<T> = T & { readonly cell: string };
/** What one host answers. */
export interface HostCounters {
  readonly rules: readonly OfCell<RuleCounted>[];
  readonly interfaces: readonly OfCell<InterfaceCounted>[];
  readonly machines: readonly OfCell<MachineCounted>[];
}
/** `GET /cells/{cell}/counters`: the sums over all hosts. */
export interface CellCounters {
  readonly rules: readonly RuleCounted[];
  readonly interfaces: readonly InterfaceCounted[];
  readonly machines: readonly MachineCounted[];
  /** How many hosts did not say: what they count is not in the sums. */
  readonly missing: number;
  /** Which, for the operator alone. */
  readonly silent?: readonly string[];
}

const counted = { packets: integer(), bytes: integer() };
const both = record<Counted>(counted);
const rule = { path: text(), ...counted };
const ofInterface = { path: text(), sent: both, received: both, drops: dictionary(integer()) };
const machine = { path: text(), diskBytes: integer() };
const cell = text();
export const hostCounters = record<HostCounters>({
  rules: list(record<OfCell<RuleCounted>>({ cell, ...rule })),
  interfaces: list(record<OfCell<InterfaceCounted>>({ cell, ...ofInterface })),
  machines: list(record<OfCell<MachineCounted>>({ cell, ...machine })),
});
export const cellCounters = record<CellCounters>(
  {
    rules: list(record<RuleCounted>(rule)),
    interfaces: list(record<InterfaceCounted>(ofInterface)),
    machines: list(record<MachineCounted>(machine)),
    missing: integer(),
    silent: optional(list(text())),
  },
  "CellCounters",
);
