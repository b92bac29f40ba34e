import { AsyncLocalStorage } from "node:async_hooks";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { type OutgoingPeerRequest, type PeerResponse, peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { sourceHeader } from "../../runtime/observation/asked-by.ts";

/** Address of the client whose request is under way. */
const client = new AsyncLocalStorage<string>();

/** Whatever is asked of services within `work` says for which client. */
export const forClient = <T>(address: string, work: () => T): T => client.run(address, work);

/** `peerRequest` with the address of the client, for the record that the service makes of what it does. */
export const askPeer = (
  configuration: ProcessConfiguration,
  peer: PeerName,
  request: OutgoingPeerRequest,
): Promise<PeerResponse> => {
  const address = client.getStore();
  const source = address === undefined ? {} : { [sourceHeader]: address };
  return peerRequest(configuration, peer, { ...request, headers: { ...request.headers, ...source } });
};
