import { type HostName, hostName, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Pool } from "../../model/eucalyptus/configuration/check.ts";
import { digestOnce } from "../distribution/views/slices.ts";
import {
  type ActualNetwork,
  type DesiredInstance,
  type DesiredSecurityGroup,
  networkViewKey,
  textOfRules,
} from "../documents/network/eucalyptus.ts";
import type { SliceDigest } from "../documents/network/policy.ts";
import { type Outbox, write } from "../outbox.ts";
import type { Deaths } from "../presence/group/deaths.ts";
import type { Book } from "./book.ts";
import type { Ids } from "./ids.ts";
import type { Leases } from "./network-hosts/lease-state.ts";
import type { Answer, Request } from "./request.ts";
import { step } from "./step.ts";
import type { Beyond, Room } from "./too-many-rules.ts";

/** What the Network View Manager knows, and whom it has heard. */
export interface NetworkViewManagerOptions {
  readonly self: PeerName;
  /** `host.<name>` of each host that there is. */
  readonly hosts: readonly PeerName[];
  /** Where instances' questions for metadata go. */
  readonly address: string;
  /** What else of the installation hands out addresses, or is its own network: no configuration overlaps it. Absent: nothing is known. */
  readonly pools?: readonly Pool[];
  /** `controller.<cell>` of each cell that there is at the start; later ones it is told (`ControllersReport`). */
  readonly controllers: readonly PeerName[];
  /** Members of the Presence group at the start, who know whose power was off. Absent: nobody is asked. */
  readonly presence?: readonly PeerName[];
}

export interface Wanted<Document> {
  readonly client: PeerName;
  readonly document: Document;
}
export interface NetworkViewState {
  readonly outbox: Outbox;
  readonly ids: Ids;
  readonly book: Book;
  started: boolean;
  readonly wanted: Map<Uid, Wanted<DesiredInstance>>;
  readonly groups: Map<Uid, Wanted<DesiredSecurityGroup>>;
  /** Stored desires that cannot be read, with whose they are: what they have stays theirs. */
  readonly unread: Map<Uid, PeerName>;
  /** By group, what it says, and the view in which that was first. */
  readonly groupSince: Map<Uid, { readonly rules: SliceDigest; readonly version: number }>;
  /** By host, what it said last. */
  readonly said: Map<HostName, ActualNetwork>;
  /** By host, the word that the book has taken. */
  readonly heard: Map<HostName, ActualNetwork>;
  /** Of which all that is so is known. */
  readonly inStep: Set<HostName>;
  controllers: ReadonlySet<PeerName>;
  readonly complete: Set<PeerName>;
  readonly wasRestored: boolean;
  /** Hosts of which nothing is heard, since when. */
  readonly silentSince: Map<HostName, number>;
  /** Of machines that are in no view since their host is silent for too long, and of those that are back. */
  readonly vanished: Map<Uid, { readonly host: HostName; readonly address: number; readonly minutes: number }>;
  readonly returning: Map<Uid, number>;
  /** When silence is looked at next; null: it is not. */
  silenceDueMs: number | null;
  readonly leases: Leases;
  readonly deaths: Deaths;
  /** Of a view, by what is in it. */
  taken: Room;
  /** Of all instances in the book, and of the book's version of which that is. */
  placed: { readonly version: number; readonly room: Room } | null;
  /** Another one after each change of what groups say. */
  groupsChanged: number;
  /** Another one after each change of which hosts there are, and where. */
  placesChanged: number;
  /** Of what the view that hosts were told last is; empty: of nothing that is known. */
  toldOf: string;
  /** Groups that are in no view with their rules, and of what that is. */
  beyond: { readonly of: string; readonly groups: Beyond };
  /** Somebody has seen a later store of this service than this one. */
  isOlder: boolean;
  /** Ids may have become nobody's. */
  isIdDue: boolean;
}

/** Of the book's records in its store. */
export const bookPrefix = "book/";
/** What a step writes is in the same transaction as whatever is said because of it. */
export function ask({ book, outbox }: NetworkViewState, request: Request): Answer {
  const { answer, writes } = step(book, request);
  for (const { key, value } of writes) write(outbox, `${bookPrefix}${key}`, value === null ? null : recordOf(value));
  return answer;
}
/** A record is an object; `restoreBook` is given what it was. */
const recordOf = (value: unknown): object => value as object;

export const hostOf = (peer: PeerName): HostName | null =>
  peer.startsWith("host.") ? hostName(peer.slice("host.".length)) : null;

export const hostsOf = ({ hosts }: NetworkViewManagerOptions): readonly HostName[] =>
  hosts.flatMap((peer) => hostOf(peer) ?? []);

export const rulesDigest = digestOnce(textOfRules);

/** Who was told a view before a start, and has not been heard since, has that one in place. */
export const unheardOf = (
  { outbox, said, inStep }: NetworkViewState,
  { hosts }: NetworkViewManagerOptions,
): readonly HostName[] =>
  hosts.flatMap((peer) => {
    const host = outbox.desired.get(peer)?.has(networkViewKey) === true ? hostOf(peer) : null;
    return host === null || said.has(host) || inStep.has(host) ? [] : [host];
  });
