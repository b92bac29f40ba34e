import type { InvestigatorName } from "../../../model/cell/attributes/ha-settings.ts";
import type { HostName, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { ActualHeartbeat, ActualMachines } from "../../documents/ha.ts";
import type { Deaths } from "../../presence/group/deaths.ts";
import type { PowerState } from "../power/power-state.ts";

/**
 * Whether an incarnation of a VM runs, by one kind of evidence. An investigator says *Running* or *Stopped* only where it is
 * sure, and what it does not know is *Unknown*: nothing is ever concluded from silence.
 */
export interface Investigator {
  readonly name: InvestigatorName;
  ask(subject: Subject, known: Known): Answer;
}
export type State = "Running" | "Stopped" | "Unknown";
export interface Answer {
  readonly state: State;
  /** Why, for people. */
  readonly sentence: string;
  /** When what it rests on was heard, monotonic ms. Absent: it is renewed all the time, or it is not known. */
  readonly heardMs?: number;
}
/** One incarnation, where it was placed. */
export interface Subject {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly host: HostName;
  readonly boot?: number;
  /** As in `DesiredProtected`. */
  readonly boundAt?: number;
  /** When it was heard of first at that host, for that boot, monotonic ms. Absent: not known. */
  readonly sinceMs?: number;
}
/** What a neighbour of a host has got back from it. */
export interface Probed {
  readonly asked: number;
  readonly answered: number;
  /** When it said last that there was one more answer, monotonic ms; null: never. */
  readonly answeredMs: number | null;
  /** The same of each machine that it asks there. */
  readonly machines: ReadonlyMap<Uid, Pick<Probed, "answered" | "answeredMs">>;
  /** Those that it named in its last word: it asks them in turns. */
  readonly listed: ReadonlySet<Uid>;
}
/** What a storage server has seen of one incarnation's exports. */
export interface Served {
  readonly looked: number;
  readonly served: number;
  /** When it said last that they had served something more, monotonic ms; null: never. */
  readonly servedMs: number | null;
}
/** What the HA Manager was told. */
export interface Known {
  readonly deaths: Deaths;
  /** By host, what it says of its machines. */
  readonly machines: ReadonlyMap<HostName, ActualMachines>;
  /** When that was said. */
  readonly machinesMs: ReadonlyMap<HostName, number>;
  /** By host, what each storage server says that hears it, or heard it. */
  readonly heartbeats: ReadonlyMap<HostName, ReadonlyMap<PeerName, ActualHeartbeat>>;
  /** Peers in step, or not any more. Absent: not heard since the start. */
  readonly reachable: ReadonlyMap<PeerName, boolean>;
  /** By host, what each neighbour that asks it has got back. */
  readonly probes: ReadonlyMap<HostName, ReadonlyMap<PeerName, Probed>>;
  /** By host, what each storage server sees of the exports of its machines, by `<vm> <incarnation>`. */
  readonly requests: ReadonlyMap<HostName, ReadonlyMap<PeerName, ReadonlyMap<string, Served>>>;
  /** Management controllers of hosts, and what was read there. */
  readonly power: PowerState;
  readonly nowMs: number;
}

export const ofTime = (heardMs: number | null | undefined): { readonly heardMs?: number } =>
  heardMs === undefined || heardMs === null ? {} : { heardMs };
/** For so long an answer counts of whoever sees a host or its machines from elsewhere. */
export const freshMs = 9_000;
export const unknown = (sentence: string): Answer => ({ state: "Unknown", sentence });

/** One *Running* vetoes, unless a *Stopped* was seen after what it rests on; without any, one *Stopped* is enough. */
export function merge(answers: readonly Answer[]): State {
  const stopped = answers.filter(({ state }) => state === "Stopped");
  const seenMs = Math.max(...stopped.map(({ heardMs = Number.NEGATIVE_INFINITY }) => heardMs));
  const vetoes = ({ state, heardMs = Number.POSITIVE_INFINITY }: Answer): boolean =>
    state === "Running" && heardMs >= seenMs;
  if (answers.some(vetoes)) return "Running";
  return stopped.length > 0 ? "Stopped" : "Unknown";
}
