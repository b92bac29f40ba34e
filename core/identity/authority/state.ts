import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Entrance } from "../../documents/cells.ts";
import type { DesiredEnrolment, IdentityGrant } from "../../documents/identity.ts";
import type { Outbox } from "../../outbox.ts";
import type { CurrentKeys } from "../current-keys.ts";
import type { Ring } from "../gossip-ring.ts";
import type { PeerCells, PeerEntries } from "../peer-book.ts";
import type { ParentOf } from "./grants.ts";
import type { KeyRecord } from "./key-records.ts";
import type { AuthorityRefusal, Beside } from "./requests.ts";

export interface AuthorityState {
  readonly options: AuthorityOptions;
  readonly outbox: Outbox;
  started: boolean;
  /** By desire, `<client>/enrolment/<id>`, as `spent` is. */
  readonly enrolments: Map<string, Enrolment>;
  readonly spent: Map<string, Spent>;
  /** Stored desires that cannot be read. While there is one, no identity ends: it may be the one that grants it. */
  readonly unread: Set<string>;
  /** By cell: children of the root cell that may have the operator's gateway, and where. */
  readonly entrances: Map<string, Entrance>;
  readonly identities: Map<PeerName, Identity>;
  /** From when on which key is whose, of every name that there is or was. */
  readonly keys: Map<PeerName, KeyRecord>;
  /** Records that were found beside a store that was lost, until the start has taken them (`beside.ts`). */
  readonly found: Map<string, Json>;
  /** Where everybody was when the store was lost, until an operator has looked; null: it was not. */
  lost: PeerEntries | null;
  /** What everybody had been told of keys at the start; the store may be older. */
  told: CurrentKeys;
  readonly gossip: GossipEpochs;
  /** Where everybody is; null: something that it follows from has changed. */
  book: Book | null;
  /** Questions for the book that wait for news: id and the version that is known. The edge has one at a time. */
  readonly waiting: Map<number, number>;
  readonly refused: Map<AuthorityRefusal, number>;
  /** `Instant.ms` of the last line of log about a reason. */
  readonly refusedLogged: Map<AuthorityRefusal, number>;
}

export interface Enrolment {
  readonly client: PeerName;
  readonly document: DesiredEnrolment;
  /** As it came: what is allowed may change. */
  readonly asked: Json;
  /** Why it grants nothing. */
  readonly fault: string | null;
  /** Why its token was refused last, since it was taken last. */
  readonly refused?: string;
}

export interface Spent {
  readonly hash: string;
  readonly key: string;
}

export interface Identity extends IdentityGrant {
  readonly cell: string;
  /** Fingerprint of its key. */
  readonly key: string;
}

/** What the authority is told at its start. */
export interface AuthorityOptions {
  readonly self: PeerName;
  /** Of a certificate; default 24 h. */
  readonly lifetimeMs?: number;
  /**
   * Which cell is whose child; default: no cell has one, so that the root controller alone has services enrolled. Asked
   * from `restore` on, so it answers from what is durable: an enrolment that it does not allow then ends what it granted.
   */
  readonly parentOf?: ParentOf;
  /** Where peers are that nobody enrols, as in the peers file; an enrolment of the same name counts more. */
  readonly fixedPeers?: PeerEntries;
  /** What lies beside the key of an authority that has run; absent: this is its first start, or an earlier version was the last. */
  readonly beside?: Beside;
}

/** What the authority tells everybody (`book.ts`). */
export interface Book {
  readonly version: number;
  readonly peers: PeerEntries;
  readonly cells: PeerCells;
  readonly keys: CurrentKeys;
  readonly ring: Ring;
}

/** Epochs of the key under which datagrams are sealed (`gossip-epochs.ts`). */
export interface GossipEpochs {
  ring: Ring;
  /** Another host left meanwhile, which has seen the newest. */
  again: boolean;
  /** What hosts said that they have, since this start; the edge has seen that they have the keys. */
  readonly had: Map<PeerName, Ring>;
  /** As it was last logged. */
  waits: string;
}
