import { type HostName, hostName, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import { digestOnce } from "../distribution/views/slices.ts";
import {
  type ActualNetwork,
  type DesiredInstance,
  type DesiredSecurityGroup,
  networkViewKey,
  textOfRules,
} from "../documents/network/eucalyptus.ts";
import type { SliceDigest } from "../documents/network/policy.ts";
import type { Outbox } from "../outbox.ts";
import type { Book } from "./book.ts";
import type { Ids } from "./ids.ts";
import type { Beyond, Room } from "./too-many-rules.ts";

/** What the Network View Manager knows, and whom it has heard. */
export interface NetworkViewManagerOptions {
  readonly self: PeerName;
  /** `host.<name>` of each host that there is. */
  readonly hosts: readonly PeerName[];
  /** Where instances' questions for metadata go. */
  readonly address: string;
  /** `controller.<cell>` of each cell that there is at the start; later ones it is told (`ControllersReport`). */
  readonly controllers: readonly PeerName[];
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
  /** Of which all that is so is known. */
  readonly inStep: Set<HostName>;
  controllers: ReadonlySet<PeerName>;
  readonly complete: Set<PeerName>;
  readonly wasRestored: boolean;
  /** Of a view, by what is in it. */
  taken: Room;
  /** Of all instances in the book, and of the book's version of which that is. */
  placed: { readonly version: number; readonly room: Room } | null;
  /** Another one after each change of what groups say. */
  groupsChanged: number;
  /** Groups that are in no view with their rules, and of what that is. */
  beyond: { readonly of: string; readonly groups: Beyond };
  /** Ids may have become nobody's. */
  isIdDue: boolean;
}

export const hostOf = (peer: PeerName): HostName | null =>
  peer.startsWith("host.") ? hostName(peer.slice("host.".length)) : null;

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
