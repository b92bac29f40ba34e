import { type HostName, hostName, type PeerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type ActualRequests, enoughLooks, type MachineRequests, requestsKey } from "../../documents/ha.ts";
import { desiredRequests } from "../../documents/readers/ha.ts";
import { actualKey, type LeaseHolder } from "../../documents/vocabulary.ts";
import type { Effect, Input } from "../../env.ts";

/**
 * Whether machines of a host that is looked into make requests at their exports here. The executor looks at what each daemon has moved, and
 * says whether that has grown since its look before. What grows is evidence that somebody with the export's key runs there; that nothing
 * grows is none that nobody does. Nothing is durable: what was seen before a start says nothing of now.
 */
export interface Requests {
  /** Hosts that are looked into, and for whom. */
  readonly wanted: Map<HostName, Set<PeerName>>;
  /** By `<volume>@<epoch>`. */
  readonly seen: Map<string, Seen>;
  /** Keys under which something is said. */
  readonly said: Set<string>;
}
interface Seen {
  readonly looked: number;
  readonly served: number;
}
export const createRequests = (): Requests => ({ wanted: new Map(), seen: new Map(), said: new Set() });

/** What the executor saw of one export. */
export interface Looked {
  readonly volume: Uid;
  readonly epoch: number;
  /** It has moved data since the look before. */
  readonly served: boolean;
}
/** As much as is of interest of a lease. */
type Leases = ReadonlyMap<Uid, { readonly epoch: number; readonly holder: LeaseHolder | null }>;
const nothing: Seen = { looked: 0, served: 0 };
const nameOf = (volume: Uid, epoch: number): string => `${volume}@${epoch}`;

const prefix = requestsKey("" as HostName);
export const isRequestsKey = (key: string): boolean => key.startsWith(prefix);

/** @returns whether it was a desire of that kind */
export function takeRequestsDesire({ wanted }: Requests, input: Input, effects: Effect[]): boolean {
  if (input.kind !== "desired" || !isRequestsKey(input.key)) return false;
  const { from, key, value } = input;
  const host = hostName(key.slice(prefix.length));
  const who = wanted.get(host) ?? new Set();
  if (value === null) who.delete(from);
  else if (desiredRequests.of(value, host) !== null) who.add(from);
  else {
    const why = "it is malformed, or about another host than its key";
    effects.push({ kind: "log", event: "document/refused", fields: { key, from, why } });
  }
  if (who.size === 0) wanted.delete(host);
  else wanted.set(host, who);
  return true;
}

/** What was seen of an export that another lease has replaced says nothing of this one; it is kept no longer than until something is said. */
export function takeLooked({ seen }: Requests, looks: readonly Looked[]): void {
  for (const { volume, epoch, served } of looks) {
    const before = seen.get(nameOf(volume, epoch)) ?? nothing;
    const looked = Math.min(before.looked + 1, enoughLooks);
    seen.set(nameOf(volume, epoch), { looked, served: before.served + (served ? 1 : 0) });
  }
}

/** Exports of that host are to be looked at. */
export const isCounted = ({ wanted }: Requests, { host }: LeaseHolder): boolean => wanted.has(host);

/** What is to be said now, null: nothing any more. Of hosts that nobody asks about nothing is kept. */
export function requestsSaid({ wanted, seen, said: before }: Requests, leases: Leases): ReadonlyMap<string, Json> {
  const said = new Map<string, Json>([...before].map((key) => [key, null]));
  const kept = new Set<string>();
  for (const [host, who] of wanted) {
    const machines = new Map<string, MachineRequests>();
    for (const [volume, { epoch, holder }] of leases) {
      if (holder?.host !== host) continue;
      const { vm, incarnation } = holder;
      const { looked, served } = seen.get(nameOf(volume, epoch)) ?? nothing;
      kept.add(nameOf(volume, epoch));
      const other = machines.get(`${vm} ${incarnation}`);
      machines.set(`${vm} ${incarnation}`, {
        vm,
        incarnation,
        looked: Math.min(looked, other?.looked ?? looked),
        served: served + (other?.served ?? 0),
      });
    }
    const value: ActualRequests = { host, machines: [...machines.values()].sort(byVm) };
    for (const peer of who) said.set(actualKey(peer, requestsKey(host)), { ...value } as unknown as Json);
  }
  before.clear();
  for (const [key, value] of said) if (value !== null) before.add(key);
  for (const name of [...seen.keys()]) if (!kept.has(name)) seen.delete(name);
  return said;
}
const byVm = (one: MachineRequests, other: MachineRequests): number =>
  one.vm === other.vm ? one.incarnation - other.incarnation : one.vm < other.vm ? -1 : 1;
