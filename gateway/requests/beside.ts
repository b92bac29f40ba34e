import { kindOf } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { findPeer } from "../../runtime/transport/peers.ts";

/** A door beside this one (decision 147), which has nothing to tell of itself: it would pass on what it is asked. */
export const isBeside = (peer: string): boolean => kindOf(peer as PeerName) === "personality";

/** Who keeps persistent volumes. */
export const caas = peerName("personality.caas");
/** Whether there are any at all, as far as is known here. */
export const hasVolumes = async (configuration: ProcessConfiguration): Promise<boolean> =>
  (await findPeer(configuration, caas)).ok;
