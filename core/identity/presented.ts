import type { PeerName } from "../../model/cell/identifiers.ts";

/** What was read from the certificate at the other end of a connection (`may-connect.ts`). */
export interface Presented {
  /** The certificate's common name; null when it has none, or several. */
  readonly name: PeerName | null;
  /** Signed by the installation's authority, for both ends of a connection and not for signing; dates left out of it. */
  readonly signed: boolean;
  /** Fingerprint of its key: SHA-256 (hexadecimal) of the SubjectPublicKeyInfo (RFC 7469, section 2.4). */
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** Whose keys hosts pin, and the root controller does. */
export const isPinnable = (name: PeerName): boolean => isMachine(name) || rootController.has(name);

/** A storage agent belongs to its machine: the disks of the root controller's VM are exported before anybody can renew. */
export const isMachine = (name: PeerName): boolean => isHost(name) || /^agent\.[a-z0-9-]+$/.test(name);

export const isHost = (name: PeerName): boolean => /^host\.[a-z0-9-]+$/.test(name);

/** The root controller's two names: of the root cell's controller and of the authority beside it. */
export const rootController: ReadonlySet<string> = new Set(["controller.root", "authority"]);
