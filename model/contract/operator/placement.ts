import type { HostName, Uid } from "../../cell/identifiers.ts";
import {
  boolean,
  branded,
  integer,
  list,
  nullable,
  number,
  oneOf,
  optional,
  orLater,
  record,
  text,
} from "../schema.ts";

/** How many more of a VM there is room for: `GET /placement/capacity`. */
export interface Capacity {
  readonly more: number;
  /** At so many hosts. */
  readonly hosts: number;
  /** What most hosts lack in the end that would take it otherwise; "hosts": each takes one. Null: none would, whatever its room. */
  readonly runsOut: string | null;
  /** How many hosts each rule keeps away, their room apart. Hosts of others count nowhere. */
  readonly away: readonly { readonly kind: string; readonly hosts: number }[];
  /** Why no host takes it at all. */
  readonly said?: string;
  readonly failures?: Failures;
}
export interface Failures {
  /** So many are lost. */
  readonly hosts: number;
  /** So many more fit then, at the least. */
  readonly more: number;
  /** With whose loss so few are left. */
  readonly lost: readonly HostName[];
  /** VMs of theirs that would have no place themselves. */
  readonly stranded: number;
  /** Every set of so many hosts was tried; else those that lose most room. */
  readonly every: boolean;
}
/** What is asked for. */
export interface CapacityAnswer extends Capacity {
  readonly like: string | null;
  readonly memoryMiB: number;
  readonly cpus: number;
}
/** Of one like a VM that is to run, or of its room alone. */
export interface CapacityQuery {
  readonly like?: string;
  readonly memoryMiB?: number;
  readonly cpus?: number;
  readonly failures?: number;
}
export const mostFailures = 8;

export const rebalanceGoals = ["even", "pack", "empty"] as const;
export type RebalanceGoal = (typeof rebalanceGoals)[number];
/** How hosts are used. */
export interface Balance {
  readonly hostsInUse: number;
  /** Of the memory of the fullest host, how much is promised. */
  readonly fullestPercent: number;
  /** Standard deviation of that between hosts that take VMs. */
  readonly deviationPercent: number;
}
export interface Move {
  readonly uid: Uid;
  /** Its path, the cell's whole name first. */
  readonly vm: string;
  readonly from: HostName;
  readonly to: HostName;
  readonly memoryMiB: number;
}
/** A plan of moves, one after the other, and what they gain: `GET /placement/rebalance`. Nothing is moved. */
export interface Rebalance {
  readonly goal: RebalanceGoal;
  readonly host: HostName | null;
  readonly moves: readonly Move[];
  readonly before: Balance;
  readonly after: Balance;
  /** Of "empty": what stays there. */
  readonly left: readonly string[];
}
export interface RebalanceQuery {
  readonly goal: RebalanceGoal;
  readonly host?: string;
}
/** One plan by each Placer, of VMs of its own cells: each holds as long as the others' are not carried out. */
export interface RebalanceAnswer {
  readonly plans: readonly Rebalance[];
}

/** What would come of it if a VM went to one host. */
export interface Trial {
  readonly host: HostName;
  /** Why it does not take the VM now, and what would lift that; absent: it takes it. */
  readonly refusal?: { readonly kind: string; readonly why: string; readonly lifts: string };
  /** What the root administrator is told of the move, which is made all the same. */
  readonly alerts: readonly { readonly kind: string; readonly says: string }[];
}
/** Of the host that was asked about, or of each but its own: `GET /placement/try`. Nothing is moved. */
export interface TrialAnswer {
  readonly vm: string;
  /** Null: it has no place. */
  readonly from: HostName | null;
  readonly hosts: readonly Trial[];
}

const host = branded<HostName>("a host's name");
export const capacityAnswer = record<CapacityAnswer>(
  {
    like: nullable(text()),
    memoryMiB: integer(),
    cpus: integer(),
    more: integer(),
    hosts: integer(),
    runsOut: nullable(orLater("memory", "cpus", "hosts")),
    away: list(record<Capacity["away"][number]>({ kind: text(), hosts: integer() })),
    said: optional(text()),
    failures: optional(
      record<Failures>({
        hosts: integer(),
        more: integer(),
        lost: list(host),
        stranded: integer(),
        every: boolean,
      }),
    ),
  },
  "Capacity",
);

const balance = record<Balance>({ hostsInUse: integer(), fullestPercent: number, deviationPercent: number });
const move = record<Move>({
  uid: branded<Uid>("a UID"),
  vm: text(),
  from: host,
  to: host,
  memoryMiB: integer(),
});
export const rebalancePlan = record<Rebalance>(
  {
    goal: oneOf(...rebalanceGoals),
    host: nullable(host),
    moves: list(move),
    before: balance,
    after: balance,
    left: list(text()),
  },
  "RebalancePlan",
);
export const rebalanceAnswer = record<RebalanceAnswer>({ plans: list(rebalancePlan) }, "Rebalance");

const trial = record<Trial>({
  host,
  refusal: optional(record<NonNullable<Trial["refusal"]>>({ kind: text(), why: text(), lifts: text() })),
  alerts: list(record<Trial["alerts"][number]>({ kind: text(), says: text() })),
});
export const trialAnswer = record<TrialAnswer>({ vm: text(), from: nullable(host), hosts: list(trial) }, "Trial");
