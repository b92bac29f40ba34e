import type { Json } from "../../../model/json/json.ts";
import { isObject } from "../../outbox.ts";

/* Alerts, and what is told of them outside: the records. */

export const alertKinds = [
  /** Many hosts were lost at once. */
  "paused",
  /** A guard holds a VM that was started again too often, or whose hosts were lost soon after it came. */
  "held",
  /** A host is declared dead, and something says that what it runs goes on. */
  "isolated",
  /** A fence takes longer than any that works. */
  "unfenced",
  /** A host that is heard goes on saying otherwise than what it was asked for. */
  "stuck",
] as const;
export type AlertKind = (typeof alertKinds)[number];

/** Record `alert/<kind>/<subject>`. */
export interface Alert {
  readonly kind: AlertKind;
  /** A host, or the path of a VM with its cell's whole name first; of "paused" nothing. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** What is so, and what helps. */
  readonly sentence: string;
  /** When somebody has said that he looks after it, milliseconds since 1970. Absent: nobody has. */
  readonly acknowledged?: number;
}
/** Record `webhook`. The secret is sealed by the edge, with a key that is not in this store. */
export interface Webhook {
  readonly url: string;
  readonly sealed: string;
}
/** Record `notice/<number>`. `test`: the webhook was registered. */
export interface Notice {
  readonly number: number;
  readonly event: "opened" | "acknowledged" | "ended" | "test";
  readonly alert: Alert | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}
export interface Notices {
  webhook: Webhook | null;
  /** Those that nobody has taken yet, the first one first. */
  readonly queue: Map<number, Notice>;
  /** The last number that was used; record `notice-number`. */
  number: number;
  /** Of the first of them: how often it was tried, and when it is due again, monotonic ms. */
  tried: number;
  dueMs: number;
  /** What came of the last attempt, a sentence; null: nothing was tried since the start. */
  said: string | null;
  /** The edge's request to be given the next one; null: it has not asked. */
  waiting: number | null;
}
export const createNotices = (): Notices => ({
  ...{ webhook: null, queue: new Map(), number: 0, tried: 0, dueMs: 0, said: null, waiting: null },
});
export function restoreNotices(notices: Notices, key: string, value: Json): void {
  if (key === "webhook") notices.webhook = value as unknown as Webhook;
  if (key === "notice-number" && isObject(value)) notices.number = Number(value.number);
  if (!key.startsWith("notice/")) return;
  const notice = value as unknown as Notice;
  notices.queue.set(notice.number, notice);
}
/** Records come in the order of their keys. */
export function sortNotices({ queue }: Notices): void {
  const all = [...queue.values()].sort((one, other) => one.number - other.number);
  queue.clear();
  for (const notice of all) queue.set(notice.number, notice);
}
