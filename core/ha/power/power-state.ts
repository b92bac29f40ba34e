import type { HostName, PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredPower } from "../../documents/ha.ts";
import { isBoot } from "../../documents/life-numbers.ts";
import { isObject, type Outbox, write } from "../../outbox.ts";
import type { PowerAction, RegisteredController } from "./controller.ts";

/** Record `power/<host>`. The password is sealed by the edge, with a key that is not in this store. */
export interface Registered extends RegisteredController {
  readonly host: HostName;
  readonly uuid: string;
}
/** Record `order/<host>`: the last one. */
export interface Order {
  readonly host: HostName;
  readonly nonce: number;
  readonly action: PowerAction;
  /** The last boot of the host in which something was placed. */
  readonly boot: number;
  /** Milliseconds since 1970; `offAt`: when the power was last ordered to be cut in that boot. */
  readonly at: number;
  readonly offAt?: number;
}
/** Record `off/<host>`: the power was read as off when this boot had begun. */
export interface PowerOff {
  readonly host: HostName;
  readonly boot: number;
  readonly at: number;
  /** The Presence group has taken it, or the host has shown by a later boot that this one is over. Absent: not yet. */
  readonly told?: true;
}
/** What a controller said last, for people. */
export interface SaidPower {
  readonly sentence: string;
}
/** Who has carried out orders about a host. Not durable: after a start it is found out anew. */
export interface Executors {
  /** Who was named for the last order. */
  readonly named: readonly PeerName[];
  /** Who answered last, and who did not; null: nobody has. */
  readonly answered: PeerName | null;
  readonly silent: ReadonlySet<PeerName>;
}
export interface PowerState {
  readonly registered: Map<HostName, Registered>;
  readonly orders: Map<HostName, Order>;
  /** Orders of this process that nobody has answered yet, and when the last one of a host was given, monotonic ms. */
  readonly open: Map<HostName, number>;
  readonly openedMs: Map<HostName, number>;
  readonly executors: Map<HostName, Executors>;
  readonly offs: Map<HostName, PowerOff>;
  /** By host, the boot that it said last that it is in. Records `boot/<host>`. */
  readonly boots: Map<HostName, number>;
  /** Hosts of which the order to cut was handed to somebody who has said nothing since. Not durable: after a start nobody knows. */
  readonly unanswered: Set<HostName>;
  /** When this process heard of the last of them, monotonic ms. */
  readonly readOffMs: Map<HostName, number>;
  /** When the order was given to which that is the answer. */
  readonly offAskedMs: Map<HostName, number>;
  readonly said: Map<HostName, SaidPower>;
  /** By host, what further HA Managers want to know of its power. Not durable: it is desired here. */
  readonly asked: Map<HostName, Map<PeerName, DesiredPower>>;
  /** Controllers are another HA Manager's. */
  readonly isElsewhere: boolean;
  /** The edge's request to be told when something may be due; null: it has not asked. */
  waiting: number | null;
}
export const createPower = (isElsewhere = false): PowerState => ({
  waiting: null,
  isElsewhere,
  asked: new Map(),
  registered: new Map(),
  orders: new Map(),
  open: new Map(),
  openedMs: new Map(),
  executors: new Map(),
  offs: new Map(),
  said: new Map(),
  boots: new Map(),
  unanswered: new Set(),
  readOffMs: new Map(),
  offAskedMs: new Map(),
});

/**
 * Up to which boot of a host something that was placed there may be asked after: no further than the host itself has said, for a word about
 * the end of one is a word about all before it, and a controller may have said any number. Null: there is none.
 */
export function begunBoot({ boots }: PowerState, host: HostName, placedFor: readonly number[]): number | null {
  const begun = boots.get(host);
  return begun === undefined || placedFor.length === 0 ? null : Math.min(begun, Math.max(...placedFor));
}
/**
 * The host had no power when that boot had begun: nothing of it, or of an earlier one, runs any more.
 *
 * Of a boot that was never heard of here, as where the host was lost soon after it had started, nothing is said to others, since a controller may
 * have said any number. But what was placed for it before the power was asked for ran, if anywhere, before that: its boot had begun, and is over
 * as well. A controller that says another one harms its own VM alone.
 *
 * @param sinceMs when that incarnation was heard of as it is, by this process, monotonic ms. Absent: that is not known
 */
export function isReadOff(power: PowerState, host: HostName, boot: number | undefined, sinceMs?: number): boolean {
  const off = power.offs.get(host);
  if (boot === undefined || off === undefined) return false;
  const begun = power.boots.get(host) ?? off.boot;
  if (off.boot > begun) return false;
  if (off.boot >= boot) return true;
  const askedMs = power.offAskedMs.get(host);
  if (off.boot !== begun || sinceMs === undefined || askedMs === undefined) return false;
  return showsLater(power, host) && sinceMs < askedMs;
}
/** What an agent reads counts for the boot in which it was asked to cut the power, and for no other. */
export const showsLater = ({ registered }: Pick<PowerState, "registered">, host: HostName): boolean =>
  registered.get(host)?.kind !== "agent";
/** What a host says of itself: kept for when it says nothing any more. */
export function noteBoot({ boots }: PowerState, outbox: Outbox, host: HostName, boot: number | undefined): void {
  if (!isBoot(boot) || boots.get(host) === boot) return;
  write(outbox, `boot/${host}`, { boot });
  boots.set(host, boot);
}
export function restorePower(power: PowerState, key: string, value: Json): void {
  const [kind, host] = key.split("/", 2) as [string, HostName];
  if (kind === "power") power.registered.set(host, value as unknown as Registered);
  if (kind === "order") power.orders.set(host, value as unknown as Order);
  if (kind === "boot" && isObject(value) && isBoot(value.boot)) power.boots.set(host, value.boot);
  if (kind === "off") power.offs.set(host, value as unknown as PowerOff);
}
