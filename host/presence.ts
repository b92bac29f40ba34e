import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { Metric } from "../core/metrics.ts";
import { ownLife, reportOf } from "../core/presence/host-publications.ts";
import { type SwimConfig, type SwimOutput, swimDefaults } from "../core/presence/swim-types.ts";
import { viewFromJson, viewToJson } from "../core/presence/view.ts";
import { type HostName, hostName, peerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import { type PeerHandler, peerRequest } from "../runtime/https.ts";
import { type ProcessConfiguration, ports } from "../runtime/installation.ts";
import { findPeer, listPeers } from "../runtime/peers.ts";
import { measureMember } from "../runtime/presence/measure.ts";
import { createMember, type PresenceMember } from "../runtime/presence/member.ts";
import { createSeal } from "../runtime/presence/seal.ts";
import type { PresenceRequest } from "./presence-state.ts";

/**
 * This host's part in Presence: datagrams over UDP, full views over HTTPS, what it says of itself and of others through the
 * Host Manager's service, and from there the group's declarations.
 */
export interface HostPresence {
  readonly member: PresenceMember;
  /** The group declared it. */
  declared(host: HostName, generation: number): void;
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
  readonly log: (event: "distribution/refused", fields: { readonly [key: string]: string | number }) => void;
  readonly config?: SwimConfig;
}
const membersEveryMs = 1000;
const longestView = 8 * 1024 * 1024;
export const viewPath = "/presence/view";

/** Rejects when the port is taken or the key cannot be read. */
export const startHostPresence = async (options: HostPresenceOptions): Promise<HostPresence> => {
  const { configuration, host, log, config = swimDefaults } = options;
  const part = configuration.presence;
  if (part === undefined) throw new Error(`the configuration of "${configuration.name}" has no part "presence"`);
  const seal = createSeal(await readFile(part.gossipKeyFile));
  const ask = (request: PresenceRequest): Promise<Json> => options.request(request as unknown as Json);
  const addresses = new Map<HostName, { readonly address: string; readonly port: number }>();
  let names = "";
  // A service that is stopping answers nobody; then this host is silent soon anyway.
  const tell = (request: PresenceRequest): void => void ask(request).catch(() => undefined);

  const send = (to: HostName, view: Json): void => {
    const body = JSON.stringify(view);
    // Who cannot be reached is asked again, or another is.
    peerRequest(configuration, peerName(`host.${to}`), { method: "POST", path: viewPath, body, idleTimeoutMs: 5000 })
      .then((response) => response.body.destroy())
      .catch(() => undefined);
  };
  const carryOut = ({ verdicts, syncs, above, incarnated }: SwimOutput): void => {
    const publications = verdicts.map(reportOf);
    if (incarnated) publications.push(ownLife(member.state));
    if (publications.length > 0) tell({ kind: "presence-said", publications });
    for (const { to, updates, answer } of syncs) send(to, viewToJson({ updates, answer }));
    if (above !== null) void enter(above);
  };
  const enter = async (above: number): Promise<void> => {
    const generation = await ask({ kind: "presence-enter", above }).catch(() => null);
    if (typeof generation !== "number") return;
    member.input({ kind: "enter", generation });
    options.beginLife(generation);
  };
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
    const found = [...peers, ...members].join(" ");
    if (found === names) return;
    names = found;
    member.input({ kind: "peers", hosts: [...addresses.keys()] });
    tell({ kind: "presence-follow", members });
  };

  const generation = Number(await ask({ kind: "presence-enter", above: 0 }));
  options.beginLife(generation);
  const member = await createMember({
    self: host,
    generation,
    address: configuration.address,
    port: configuration.distributionPort ?? ports.distribution,
    seal,
    seed: (generation * 7919 + process.pid) % 2 ** 32,
    config,
    find: (name) => addresses.get(name) ?? null,
    output: carryOut,
    // Until the first look at the installation is done nobody is known, and nobody a stranger.
    isHost: (address) => addresses.size === 0 || [...addresses.values()].some((each) => each.address === address),
    refused: (reason, count) => log("distribution/refused", { peer: "datagram", reason, count }),
  });
  tell({ kind: "presence-said", publications: [ownLife(member.state)] });
  await look();
  const timer = setInterval(() => void look().catch(() => undefined), membersEveryMs);

  return {
    member,
    declared: (dead, of) => member.input({ kind: "declared", host: dead, generation: of }),
    view: async ({ peer, body }, response) => {
      const long = Number(response.req.headers["content-length"] ?? longestView + 1) > longestView;
      const from = peer.startsWith("host.") ? hostName(peer.slice("host.".length)) : null;
      const view = long || from === null ? null : viewFromJson(parse(await text(body)));
      if (view !== null && from !== null) member.input({ kind: "sync", from, ...view });
      response.writeHead(view === null ? 400 : 204).end();
    },
    measure: () => measureMember(member),
    close: async () => {
      clearInterval(timer);
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
