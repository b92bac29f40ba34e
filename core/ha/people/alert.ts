import type { PeerName } from "../../../model/cell/identifiers.ts";
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
  /** The HA Manager of a cell is gone, and nobody looks after its VMs. */
  "unguarded",
  /** Fewer hosts are left to the cloud's own VMs than are to be. */
  "system-hosts",
] as const;
export type AlertKind = (typeof alertKinds)[number];

/** Record `alert/<kind>/<subject>`. */
export interface Alert {
  readonly kind: AlertKind;
  /** A host, an HA Manager, or the path of a VM with its cell's whole name first; of "paused" and "system-hosts" nothing. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** What is so, and what helps. */
  readonly sentence: string;
  /** When somebody has said that he looks after it, milliseconds since 1970. Absent: nobody has. */
  readonly acknowledged?: number;
  /** The further HA Manager that has it open. Absent: this one has. */
  readonly by?: PeerName;
}
/** Record `webhook`. The secret is sealed by the edge, with a key that is not in this store. */
export interface Webhook {
  readonly url: string;
  readonly sealed: string;
}
/** Record `mail`: the server that takes mail, from whom and to whom it goes. What is sealed is the password; null: nobody logs in there. */
export interface Mail {
  /** `HOST:PORT`. At port 465 TLS is spoken from the first byte on, else after STARTTLS. */
  readonly server: string;
  readonly from: string;
  readonly to: string;
  readonly login: { readonly user: string; readonly sealed: string } | null;
  /** PEM of who has signed the server's certificate; null: who is known to the system. */
  readonly ca: string | null;
}
/** Record `notice/<number>`, of mail `mail-notice/<number>`. `test`: that receiver was registered. */
export interface Notice {
  readonly number: number;
  readonly event: "opened" | "acknowledged" | "ended" | "test";
  readonly alert: Alert | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}
/** What is told to one receiver. There are two, which know nothing of each other: a webhook, and somebody who reads mail. */
export interface Notices<Receiver = Webhook | Mail> {
  readonly channel: Channel;
  receiver: Receiver | null;
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
export const channels = {
  webhook: { name: "webhook", notice: "notice/", number: "notice-number", timer: "notice" },
  mail: { name: "mail", notice: "mail-notice/", number: "mail-number", timer: "mail-notice" },
} as const;
/** Its records: the receiver, notices by their numbers, and the last number that was used. */
export type Channel = (typeof channels)[keyof typeof channels];
export const createNotices = <Receiver>(channel: Channel): Notices<Receiver> => ({
  channel,
  receiver: null,
  queue: new Map(),
  number: 0,
  tried: 0,
  dueMs: 0,
  said: null,
  waiting: null,
});
export function restoreNotices(notices: Notices, key: string, value: Json): void {
  const { channel } = notices;
  if (key === channel.name) notices.receiver = value as unknown as Webhook | Mail;
  if (key === channel.number && isObject(value)) notices.number = Number(value.number);
  if (!key.startsWith(channel.notice)) return;
  const notice = value as unknown as Notice;
  notices.queue.set(notice.number, notice);
}
/** Records come in the order of their keys. */
export function sortNotices({ queue }: Notices): void {
  const all = [...queue.values()].sort((one, other) => one.number - other.number);
  queue.clear();
  for (const notice of all) queue.set(notice.number, notice);
}
/** A sentence names a few of them. */
export const some = (paths: readonly string[]): string => {
  const [first = "", second, ...more] = [...paths].sort();
  if (second === undefined) return first;
  return more.length === 0 ? `${first} and ${second}` : `${first}, ${second} and ${more.length} more`;
};

/** That a further HA Manager which had alerts open is gone. */
export const leftRecord = (manager: PeerName): string => `left/${manager}`;
export function restoreLeft(left: Set<PeerName>, key: string): void {
  const prefix = leftRecord("" as PeerName);
  if (key.startsWith(prefix)) left.add(key.slice(prefix.length) as PeerName);
}
