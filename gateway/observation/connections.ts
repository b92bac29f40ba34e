import type { PeerName } from "../../model/cell/identifiers.ts";
import { type KeptConnection, keepConnection } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";

/** Where all are emulated VMs: the first handshakes with each of them, all at once, take the gateway many seconds. */
export const timeoutWithVmsMs = 20_000;

/** The gateway's connections to those that it asks about themselves: whoever was asked is asked over the same one the next time. */
export interface Connections {
  to(peer: PeerName): KeptConnection;
  close(): void;
}

export const createConnections = (configuration: ProcessConfiguration): Connections => {
  const kept = new Map<PeerName, KeptConnection>();
  return {
    to: (peer) => {
      const connection = kept.get(peer) ?? keepConnection(configuration, peer);
      kept.set(peer, connection);
      return connection;
    },
    close: () => {
      for (const { agent } of kept.values()) agent.destroy();
    },
  };
};
