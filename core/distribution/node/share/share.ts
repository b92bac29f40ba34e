import type { PeerName } from "../../../../model/cell/identifiers.ts";
import type { Refusal } from "../frames.ts";
import type { StoredDocument } from "../stored.ts";
import type { Client } from "../types.ts";

/**
 * How much one client may desire at one receiver, so that none fills the store and the memory that it shares with others. A
 * cell of 5,000 VMs desires some 30,000 documents of 400 characters at its Storage Manager.
 */
export interface Share {
  readonly documents: number;
  /** Of all values as JSON text. */
  readonly characters: number;
}
const ofController: Share = { documents: 200_000, characters: 128 * 1024 * 1024 };
/** Of what serves many cells: a Storage Manager at its agents. */
const ofService: Share = { documents: 2_000_000, characters: 1024 * 1024 * 1024 };

export const shareOf = (peer: PeerName): Share => (peer.startsWith("controller.") ? ofController : ofService);

/** Why a client cannot have this document as well, or so large; null: it can. One that grows no more is always taken. */
export const beyond = (
  { peer, documents, characters }: Client,
  before: StoredDocument | undefined,
  text: string,
): Extract<Refusal, "too many documents" | "too much in documents"> | null => {
  const share = shareOf(peer);
  if (before === undefined && documents.size >= share.documents) return "too many documents";
  const growth = text.length - (before?.text.length ?? 0);
  return growth > 0 && characters + growth > share.characters ? "too much in documents" : null;
};
