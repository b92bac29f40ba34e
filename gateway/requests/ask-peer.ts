import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage } from "node:http";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { viaHeader, viaIn } from "../../model/contract/audit/via.ts";
import { type OutgoingPeerRequest, type PeerResponse, peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { sourceHeader } from "../../runtime/observation/asked-by.ts";
import { addressOf } from "../../runtime/transport/admission.ts";

/** Of the client whose request is under way, as services hear it. */
const client = new AsyncLocalStorage<Readonly<Record<string, string>>>();

/** Headers that say to a service who its client is. */
export const ofClient = ({
  socket,
  headers,
}: Pick<IncomingMessage, "socket" | "headers">): Readonly<Record<string, string>> => {
  const via = viaIn(headers[viaHeader]);
  return { [sourceHeader]: addressOf(socket), ...(via === undefined ? {} : { [viaHeader]: via }) };
};
/** Whatever is asked of services within `work` says for which client. */
export const forClient = <T>(incoming: Pick<IncomingMessage, "socket" | "headers">, work: () => T): T =>
  client.run(ofClient(incoming), work);

/** `peerRequest` with who the client is, for the record that the service makes of what it does. */
export const askPeer = (
  configuration: ProcessConfiguration,
  peer: PeerName,
  request: OutgoingPeerRequest,
): Promise<PeerResponse> =>
  peerRequest(configuration, peer, { ...request, headers: { ...request.headers, ...client.getStore() } });
