import { exactly, integer, list, nullable, oneOf, optional, record, text, time } from "./schema.ts";

/** What the HA Manager works on, and what it has done lately (`core/ha/`). */
export interface HaReport {
  /** Incarnations of VMs that it looks after. */
  readonly protected: number;
  /**
   * Many hosts were lost at once: tenants' machines wait until a person has looked. `asked`: the operator has said beforehand that hosts
   * will be switched off, and all machines wait. Null: neither. ISO 8601.
   */
  readonly storm: { readonly since: string; readonly hosts: readonly string[]; readonly asked?: true } | null;
  /** What waits for a person, the first one first. Absent: a HA Manager of the previous version. */
  readonly alerts?: readonly HaAlert[];
  /** Those that are being worked on first, then those that have ended, the last one first. */
  readonly items: readonly HaItem[];
}
export interface HaAlert {
  /** `paused`: many hosts were lost at once; `held`: a VM was started again too often, or its hosts were lost soon after it came; `isolated`: a host that is declared dead may run on; `unfenced`: a fence takes too long. */
  readonly kind: "paused" | "held" | "isolated" | "unfenced";
  /** A host, or a VM as `cell:path`; of `paused` nothing. */
  readonly subject: string;
  /** ISO 8601. */
  readonly since: string;
  /** What is so, and what helps. */
  readonly sentence: string;
}
export interface HaItem {
  readonly type: "HA" | "Stop";
  readonly step: "Scheduled" | "Investigating" | "Fencing" | "Restarting" | "Done" | "Cancelled";
  readonly vm: string;
  readonly cell: string;
  readonly path: string;
  readonly incarnation: number;
  readonly host: string;
  /** Why it was scheduled, and why it ended as it did (null: it has not): sentences. */
  readonly reason: string;
  readonly outcome: string | null;
  /** Why it waits for a person, a sentence; null: it does not. */
  readonly held: string | null;
  /** What made sure that nothing of it can write; null: nothing has. */
  readonly fencedBy: "storage" | "stopped" | null;
  /** ISO 8601: when it was scheduled, and since when it is at its step. */
  readonly scheduled: string;
  readonly since: string;
  /** What each said when it was last asked. */
  readonly investigators: readonly HaAnswer[];
  readonly fencers: readonly HaAnswer[];
}
export interface HaAnswer {
  readonly by: string;
  /** Of a fencer, "Stopped": it is fenced. */
  readonly says: "Running" | "Stopped" | "Unknown";
  readonly sentence: string;
  /** Since when it says that, ISO 8601. */
  readonly since: string;
}

const haAnswer = record<HaAnswer>(
  { by: text(), says: oneOf("Running", "Stopped", "Unknown"), sentence: text(), since: time },
  "HaAnswer",
);
const haItem = record<HaItem>(
  {
    type: oneOf("HA", "Stop"),
    step: oneOf("Scheduled", "Investigating", "Fencing", "Restarting", "Done", "Cancelled"),
    ...{ vm: text(), cell: text(), path: text(), incarnation: integer(), host: text() },
    ...{
      reason: text(),
      outcome: nullable(text()),
      held: nullable(text()),
      fencedBy: nullable(oneOf("storage", "stopped")),
    },
    ...{ scheduled: time, since: time, investigators: list(haAnswer), fencers: list(haAnswer) },
  },
  "HaItem",
);
const haAlert = record<HaAlert>(
  {
    kind: oneOf("paused", "held", "isolated", "unfenced"),
    ...{ subject: text(), since: time, sentence: text() },
  },
  "HaAlert",
);
export const haReport = record<HaReport>(
  {
    protected: integer(),
    storm: nullable(
      record<NonNullable<HaReport["storm"]>>({ since: time, hosts: list(text()), asked: optional(exactly(true)) }),
    ),
    alerts: optional(list(haAlert)),
    items: list(haItem),
  },
  "HaReport",
);
