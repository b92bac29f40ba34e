import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { IdentityGrant } from "../../documents/identity.ts";
import type { CurrentKey } from "../current-keys.ts";
import type { Ring } from "../gossip-ring.ts";
import type { PeerCells, PeerEntries } from "../peer-book.ts";

/**
 * Requests of the edge. Who shows a token has proved that it holds `key`, by its signature on the request; who renews has
 * also been authenticated as `name` with that key.
 */
export type AuthorityRequest =
  | { readonly kind: "enrol"; readonly hash: string; readonly key: string }
  /** `beganMs`: of the certificate that it showed, which is valid; null: a pin let it in. */
  | { readonly kind: "renew"; readonly name: PeerName; readonly key: string; readonly beganMs?: number | null }
  /** Those of the operator: hosts that are to join, and the root cell's controller. null takes it back. */
  | { readonly kind: "enrolment"; readonly id: string; readonly enrolment: Json }
  /** The authority's own key, and the `CurrentKeys` of its peers file, at every start of its edge. */
  | { readonly kind: "self"; readonly key: string; readonly told: Readonly<Record<string, CurrentKey>> }
  | { readonly kind: "pins" }
  /** What is to lie beside the key. */
  | { readonly kind: "beside" }
  /** Of which cell is the controller that has this name, over this key? */
  | { readonly kind: "cell-uid"; readonly name: PeerName; readonly key: string }
  /** A host says which epochs it has, or the edge asks. */
  | { readonly kind: "gossip"; readonly host: PeerName | null; readonly has: Json }
  /** Hosts in `gone` are not waited for: they were silent for a long time. */
  | { readonly kind: "gossip-turn"; readonly gone: readonly PeerName[] }
  /** Where everybody is: held back until the book's version differs from `known`. */
  | { readonly kind: "peers"; readonly known: number };
export type AuthorityAnswer =
  | { readonly kind: "issue"; readonly certificates: readonly Issue[] }
  | { readonly kind: "refused"; readonly because: AuthorityRefusal; readonly why: string }
  | { readonly kind: "taken" }
  | { readonly kind: "pins"; readonly pins: Readonly<Record<string, string>> }
  /** Null: nobody said so when it was enrolled, or the name has another key. */
  | { readonly kind: "cell-uid"; readonly cellUid: Uid | null }
  /** Never less than the whole. */
  | {
      readonly kind: "peers";
      readonly version: number;
      readonly peers: PeerEntries;
      readonly cells: PeerCells;
      /** `CurrentKeys`. */
      readonly keys: Readonly<Record<string, CurrentKey>>;
      readonly gossip: Ring;
    }
  | { readonly kind: "beside"; readonly beside: Beside }
  | { readonly kind: "gossip"; readonly gossip: Ring };
/** What lies beside the authority's key (`beside.ts`): some of its records, and where everybody was when they were written. */
export interface Beside {
  readonly records: { readonly [key: string]: Json };
  readonly peers: PeerEntries;
}
/** What to sign, over the key that asked. Whole seconds: certificates know no finer time. */
export interface Issue extends IdentityGrant {
  readonly cell: string;
  readonly validFromMs: number;
  readonly validToMs: number;
}
export const authorityRefusals = [
  "malformed",
  "unknown",
  "expired",
  "spent",
  "superseded",
  "not-granted",
  "no-identity",
  "another-key",
] as const;
export type AuthorityRefusal = (typeof authorityRefusals)[number];
