import { boolean, integer, list, nullable, oneOf, optional, pattern, record, secret, text, time } from "../schema.ts";
import type { Tagged } from "./pages.ts";

/*
 * Notices to machines of users: somebody says which cells of his a URL is told of, and whatever becomes of these is posted there, signed.
 */

/** `cell`: it is ready, has failed, or is under way; `vm` and `volume`: what becomes of its VMs, and of its volumes and copies. */
export const noticeKinds = ["cell", "vm", "volume"] as const;
export type NoticeKind = (typeof noticeKinds)[number];
export const mostCellsOfSubscription = 8;
export const receiverPattern = /^https?:\/\/[^\s@/?#]{1,300}(?:[/?][^\s#]{0,1700})?$/;

export interface NewSubscription {
  /** `http` or `https`. Where it leads is public: nothing of the installation, no private network, and not the gateway's machine. */
  readonly url: string;
  /** With it each notice is signed; it is shown to nobody again. */
  readonly secret: string;
  /** Names of cells that the asker may see; may be empty with `volumes`. */
  readonly cells: readonly string[];
  /** Also of the persistent volumes that the asker may see: `volume`, in the cell `primary`. */
  readonly volumes?: boolean;
  /** Absent: all. */
  readonly events?: readonly NoticeKind[];
}
export interface SubscriptionChange {
  /** With another URL the secret is said anew. */
  readonly url?: string;
  readonly secret?: string;
  readonly cells?: readonly string[];
  readonly volumes?: boolean;
  readonly events?: readonly NoticeKind[];
}
export interface SubscriptionSummary extends Tagged {
  readonly uid: string;
  /** Who is told, as he logs in. */
  readonly user: string;
  /** Of somebody else's, without its path. */
  readonly url: string;
  readonly cells: readonly string[];
  /** Absent: nothing of persistent volumes. */
  readonly volumes?: boolean;
  readonly events: readonly NoticeKind[];
  /** ISO 8601. */
  readonly made: string;
  /** Notices that were not taken yet. */
  readonly waiting: number;
  /** Why the first of them was not, a sentence; null: nothing is wrong. */
  readonly said: string | null;
  /** Those that were given up, the last ones. */
  readonly dead: readonly DeadNotice[];
}
export interface DeadNotice {
  readonly number: number;
  /** When it was made, ISO 8601. */
  readonly at: string;
  /** A sentence. */
  readonly why: string;
}

/** The body of what is posted. `number` grows by one with each of a subscription; one may come twice. */
export interface CellNotice {
  readonly subscription: string;
  readonly number: number;
  /** ISO 8601. */
  readonly at: string;
  /**
   * `test`: the subscription was made or has another URL; `began`: from here on it is told what becomes of the cell, and what became of it
   * before is not known; `changed`; `gone`: there is no such cell any more for whoever subscribed.
   */
  readonly kind: "test" | "began" | "changed" | "gone";
  /** Null for a test. */
  readonly cell: string | null;
  readonly events: readonly CellEvent[];
  /** So many more have changed than are listed. */
  readonly more: number;
}
export interface CellEvent {
  readonly event: NoticeKind;
  /** Of the element; null: the cell. */
  readonly path: string | null;
  /** `null`: it is no more. */
  readonly phase: string | null;
  /** `null`: it is new. */
  readonly before: string | null;
  readonly reason?: string;
  /** Of a VM. */
  readonly power?: string;
  /** Of a volume. */
  readonly sizeMiB?: number;
}

const url = pattern(receiverPattern, "an http or https URL without a user and a fragment");
const key = secret(/^[^\0\n]{16,256}$/, "16 to 256 characters in one line");
const cells = list(text(253), { most: mostCellsOfSubscription });
const volumes = optional(boolean);
const kinds = list(oneOf(...noticeKinds), { least: 1, most: noticeKinds.length });

export const newSubscription = record<NewSubscription>({ url, secret: key, cells, volumes, events: optional(kinds) });
export const subscriptionChange = record<SubscriptionChange>({
  url: optional(url),
  secret: optional(key),
  cells: optional(cells),
  volumes,
  events: optional(kinds),
});
export const subscriptionSummary = record<SubscriptionSummary>(
  {
    etag: optional(text()),
    uid: text(),
    user: text(),
    url: text(),
    cells: list(text()),
    volumes,
    events: list(oneOf(...noticeKinds)),
    made: time,
    waiting: integer(0),
    said: nullable(text()),
    dead: list(record<DeadNotice>({ number: integer(0), at: time, why: text() }, "DeadNotice")),
  },
  "Subscription",
);
const cellEvent = record<CellEvent>({
  event: oneOf(...noticeKinds),
  path: nullable(text(1024)),
  phase: nullable(text(32)),
  before: nullable(text(32)),
  reason: optional(text(400)),
  power: optional(text(16)),
  sizeMiB: optional(integer(0)),
});
/** What the gateway says of a cell; whoever keeps the notice tells the rest. */
export interface CellNews {
  readonly kind: "began" | "changed" | "gone";
  readonly cell: string;
  readonly events: readonly CellEvent[];
  readonly more: number;
}
export const mostEvents = 32;
export const cellNews = record<CellNews>({
  kind: oneOf("began", "changed", "gone"),
  cell: text(253),
  events: list(cellEvent, { most: mostEvents }),
  more: integer(0),
});
