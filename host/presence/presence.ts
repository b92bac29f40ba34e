import { text } from "node:stream/consumers";
import { type SwimConfig, swimDefaults } from "../../core/presence/swim/configuration.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { Metric } from "../../core/telemetry/metrics.ts";
import { type HostName, hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { PeerHandler } from "../../runtime/http/peer-handler.ts";
import { type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { measureMember } from "../../runtime/presence/measure.ts";
import { createMember, type PresenceMember } from "../../runtime/presence/member.ts";
import { findPeer, listPeers } from "../../runtime/transport/peers.ts";
import { watchPeers } from "../../runtime/transport/peers-watch.ts";
import { followGossipKeys } from "./gossip-keys.ts";
import type { Hears } from "./passed-on.ts";
import { createPresencePart } from "./presence-part.ts";

/**
 * This host's part in Presence: datagrams over UDP, full views over HTTPS, what it says of itself and of others through the
 * Host Manager's service, and from there the group's declarations.
 */
export interface HostPresence extends Hears {
  readonly member: PresenceMember;
  /** Answers `POST /presence/view`, from hosts alone. */
  readonly view: PeerHandler;
  measure(): readonly Metric[];
  /** Without a goodbye: a Host Manager that restarts has not left, and its machines run on. */
  close(): Promise<void>;
}
export interface HostPresenceOptions {
  readonly configuration: ProcessConfiguration;
  readonly host: HostName;
  readonly request: (request: Json) => Promise<Json>;
  /** A generation of this host begins: what it says from now on is of that one. */
  readonly beginLife: (generation: number) => void;
  /** Another host broadcast that the Presence group had declared this life of a host over. */
  readonly declaredDead: (peer: PeerName, life: number) => void;
  readonly log: (event: EventName, fields: { readonly [key: string]: Json }) => void;
  readonly config?: SwimConfig;
}
const longestView = 8 * 1024 * 1024;
export const viewPath = "/presence/view";

/** Rejects when the port is taken or the key cannot be read. */
export const startHostPresence = async (options: HostPresenceOptions): Promise<HostPresence> => {
  const { configuration, host, log, config = swimDefaults } = options;
  const { presence } = configuration;
  if (presence === undefined) throw new Error(`the configuration of "${configuration.name}" has no part "presence"`);
  const keys = await followGossipKeys(configuration, log);
  const addresses = new Map<HostName, { readonly address: string; readonly port: number }>();
  const part = await createPresencePart<PresenceMember>({
    request: (request) => options.request(request as unknown as Json),
    beginLife: options.beginLife,
    declaredDead: options.declaredDead,
    sendView: (to, view) => {
      const body = JSON.stringify(view);
      // Who cannot be reached is asked again, or another is.
      peerRequest(configuration, peerName(`host.${to}`), { method: "POST", path: viewPath, body, idleTimeoutMs: 5000 })
        .then((response) => response.body.destroy())
        .catch(() => undefined);
    },
    participate: ({ generation, output, died }) =>
      createMember({
        self: host,
        generation,
        address: configuration.address,
        port: configuration.distributionPort ?? ports.distribution,
        seal: keys.seal,
        seed: (generation * 7919 + process.pid) % 2 ** 32,
        config,
        find: (name) => addresses.get(name) ?? null,
        output,
        died,
        // Until the first look at the installation is done nobody is known, and nobody a stranger.
        isHost: (address) => addresses.size === 0 || [...addresses.values()].some((each) => each.address === address),
        refused: (reason, count) => log("distribution/refused", { peer: "datagram", reason, count }),
      }),
  });
  const look = async (): Promise<void> => {
    const peers = await listPeers(configuration, "host.");
    const members = await listPeers(configuration, "presence.");
    for (const peer of peers) {
      const found = await findPeer(configuration, peer);
      if (!found.ok) continue;
      const { host: address, distributionPort } = found.value;
      // Datagrams have the number of the distribution's port, where several share an address too.
      addresses.set(hostName(peer.slice("host.".length)), { address, port: distributionPort });
    }
    part.found([...addresses.keys()], members);
    keys.look();
  };
  const unwatch = watchPeers(configuration.peersFile, () => look().catch(() => undefined));
  await look();
  const member = part.participant;

  return {
    member,
    declared: part.declared,
    missed: part.missed,
    view: async ({ peer, body }, response) => {
      const long = Number(response.req.headers["content-length"] ?? longestView + 1) > longestView;
      const from = peer.startsWith("host.") ? hostName(peer.slice("host.".length)) : null;
      const taken = !long && from !== null && part.view(from, parse(await text(body)));
      response.writeHead(taken ? 204 : 400).end();
    },
    measure: () => measureMember(member),
    close: async () => {
      unwatch();
      keys.close();
      await member.stop({ goodbye: false });
    },
  };
};

const parse = (body: string): Json => {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return null;
  }
};
