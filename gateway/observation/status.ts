import { readFile } from "node:fs/promises";
import type { HostPresence } from "../../core/presence/group/group.ts";
import type { InstallationStatus } from "../../model/api.ts";
import { type HostName, peerName } from "../../model/cell/identifiers.ts";
import { leftoversOf } from "../../model/contract/operator/storage.ts";
import {
  branded,
  exactly,
  integer,
  list,
  nullable,
  number,
  type Of,
  oneOf,
  optional,
  record,
  type Schema,
  text,
} from "../../model/contract/schema.ts";
import { hostStatus, leavingVm, serverStatus, spareRoom, systemHosts } from "../../model/contract/values.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { leftoversPath } from "../../runtime/observation/leftovers.ts";
import { roomsQuestion } from "../../runtime/process/asked.ts";
import { askSupervisor } from "../cells/supervisor.ts";
import { isBeside } from "../requests/beside.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { type Connections, timeoutWithVmsMs } from "./connections.ts";
import { mergePresence } from "./presence.ts";
import {
  fewestLeft,
  type HostLoss,
  type HostRooms,
  isPlacer,
  leastSpare,
  mergeRooms,
  type SpareRoom,
  worstLoss,
} from "./rooms.ts";

type Host = InstallationStatus["hosts"][number];
type Known = Omit<Host, "host" | "address">;
type Server = InstallationStatus["servers"][number];
interface PresenceAnswer {
  readonly hosts: readonly HostPresence[];
}
/** The last time that a date can be. */
const latestMs = 8.64e15;
const sinceMs: Schema<number> = { ...number, minimum: 0, maximum: latestMs };
const presenceAnswer = record<PresenceAnswer>({
  hosts: list(
    record<HostPresence>({
      host: branded<HostName>("a host's name"),
      generation: integer(),
      incarnation: integer(),
      reports: integer(),
      state: oneOf("alive", "reported", "dead", "gone"),
      sinceMs,
      powerIsOff: optional(exactly(true)),
    }),
  ),
});
interface RoomsAnswer {
  readonly hosts: readonly HostRooms[];
  readonly loss?: HostLoss | null;
  readonly spare?: SpareRoom;
  readonly systemHosts?: NonNullable<InstallationStatus["systemHosts"]>;
}
const roomsAnswer = record<RoomsAnswer>({
  spare: optional(spareRoom),
  systemHosts: optional(systemHosts),
  loss: optional(
    nullable(
      record<HostLoss>({
        host: branded<HostName>("a host's name"),
        vms: integer(),
        stranded: list(record<HostLoss["stranded"][number]>({ cell: text(), path: text() })),
      }),
    ),
  ),
  hosts: list(
    record<HostRooms>({
      host: branded<HostName>("a host's name"),
      closed: optional(oneOf("disabled", "maintenance", "reserved")),
      leaving: list(leavingVm),
    }),
  ),
});
const processTimeoutMs = 5_000;

/**
 * Answers with the state of the whole installation: services from the supervisor, or where there is none from themselves,
 * hosts and storage servers from themselves, who is alive from Presence. One that does not answer in time is listed as what it
 * is.
 */
export const createStatus =
  (
    configuration: ProcessConfiguration,
    supervisorSocket: string | null,
    connections: Connections,
    ofGateway: () => readonly string[] = () => [],
  ) =>
  async (): Promise<InstallationStatus> => {
    const status = await installationStatus(configuration, supervisorSocket, connections);
    const warnings = ofGateway();
    return warnings.length === 0 ? status : { ...status, warnings };
  };

/** A door tells nothing of itself, and refuses whoever shows nothing: then it runs, and so does the way behind it. */
async function turnsAway(configuration: ProcessConfiguration, door: string, timeoutMs: number): Promise<boolean> {
  try {
    const asked = { method: "GET", path: "/whoami", signal: AbortSignal.timeout(timeoutMs) };
    const { status, body } = await peerRequest(configuration, peerName(door), asked);
    body.destroy();
    return status === 401;
  } catch {
    return false;
  }
}
async function installationStatus(
  configuration: ProcessConfiguration,
  supervisorSocket: string | null,
  connections: Connections,
): Promise<InstallationStatus> {
  const timeoutMs = supervisorSocket === null ? timeoutWithVmsMs : processTimeoutMs;
  const { peers } = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
  const all = Object.keys(peers).sort(byNumber);
  const addressOf = (peer: string) => peers[peer]?.split(":")[0] ?? "";
  /** Null: there was no answer, or a refusal, or nothing that can be read. */
  const answerOf = async <T>(peer: string, path: string, read: (text: string) => T): Promise<T | null> => {
    try {
      const [name, signal] = [peerName(peer), AbortSignal.timeout(timeoutMs)];
      const asked = { method: "GET", path, signal, connection: connections.to(name) };
      const answer = await peerRequest(configuration, name, asked);
      const text = await answer.text();
      return answer.status === 200 ? read(text) : null;
    } catch {
      return null;
    }
  };
  const says = async (peer: string): Promise<boolean> => (await answerOf(peer, "/metrics", () => true)) !== null;
  const ask = <T>(peer: string, schema: Schema<T>, path = "/status"): Promise<T | null> =>
    answerOf(peer, path, (text) => answerAs(schema, text, peer));
  const presence = Promise.all(
    all.filter((peer) => peer.startsWith("presence.")).map((peer) => ask(peer, presenceAnswer, "/hosts")),
  ).then((answers) => mergePresence(answers.flatMap((answer) => (answer === null ? [] : [answer.hosts]))));
  const roomsSaid = Promise.all(all.filter(isPlacer).map((peer) => ask(peer, roomsAnswer, roomsQuestion.path)));
  const rooms = roomsSaid.then((answers) => mergeRooms(answers.flatMap((answer) => answer?.hosts ?? [])));
  const hosts = all
    .filter((peer) => peer.startsWith("host."))
    .map(async (peer): Promise<Host> => {
      const [host, address] = [peer.slice("host.".length), addressOf(peer)];
      const unknown = { memoryMiB: 0, usedMiB: 0, cpus: 0, accelerator: "unknown", vms: 0 };
      const answer = (await ask(peer, hostStatus)) ?? { state: "unreachable", ...unknown };
      // What the operator says of it, nobody else does.
      const { administration: _administration, leaving: _leaving, ...said }: Partial<Host> & Known = answer;
      const status = { ...said, host, address };
      const seen = (await presence).get(host);
      return { ...status, ...(seen === undefined ? {} : { presence: seen }), ...(await rooms).get(host) };
    });
  const servers = all
    .filter((peer) => peer.startsWith("agent."))
    .map(async (peer): Promise<Server> => {
      const [server, address] = [peer.slice("agent.".length), addressOf(peer)];
      const answer = await ask(peer, serverStatus);
      if (answer !== null) return { ...answer, server, address, state: "up" };
      return { server, address, totalMiB: 0, freeMiB: 0, volumes: 0, state: "unreachable" };
    });
  // Where services are VMs, whether one runs is whether it answers; its VM's state is in the root cell.
  const services = async (): Promise<InstallationStatus["services"]> => {
    if (supervisorSocket !== null)
      return ((await askSupervisor(supervisorSocket, "GET", "/status")) as Pick<InstallationStatus, "services">)
        .services;
    const names = all.filter((peer) => !peer.startsWith("host.") && !peer.startsWith("agent."));
    return Promise.all(
      names.map(async (name) => {
        const running =
          name === configuration.name ||
          (await (isBeside(name) ? turnsAway(configuration, name, timeoutMs) : says(name)));
        const state = running ? "running" : "stopped";
        return { name, peer: name, address: addressOf(name), running, pid: null, restarts: 0, state } as const;
      }),
    );
  };
  const said = all
    .filter((peer) => peer !== configuration.name && !isBeside(peer))
    .map(async (peer) => [peer, await ask(peer, leftoversOf, leftoversPath)] as const);
  // All are waited for at once: where the supervisor goes meanwhile, whoever asked hears of it, and the process goes on.
  const [running, theHosts, theServers, allSaid] = await Promise.all([
    services(),
    Promise.all(hosts),
    Promise.all(servers),
    Promise.all(said),
  ]);
  const leftovers = leftoversIn(allSaid);
  const loss = worstLoss((await roomsSaid).flatMap((answer) => answer?.loss ?? []));
  const spare = leastSpare((await roomsSaid).flatMap((answer) => answer?.spare ?? []));
  const short = fewestLeft((await roomsSaid).flatMap((answer) => answer?.systemHosts ?? []));
  const left = short === null ? {} : { systemHosts: short };
  const installation = { services: running, hosts: theHosts, servers: theServers };
  const room = { ...(loss === null ? {} : { loss }), ...(spare === null ? {} : { spare }), ...left };
  return { ...installation, ...room, ...leftovers };
}

const leftoversIn = (
  said: readonly (readonly [string, Of<typeof leftoversOf> | null])[],
): Pick<InstallationStatus, "leftovers"> => {
  const forked = new Set<string>();
  const keepers = new Set<string>();
  for (const [service, found] of said) {
    for (const each of found?.clients ?? []) {
      if (each.forked) forked.add(each.client);
      if (each.orphans > 0) keepers.add(service);
    }
    for (const { receiver, forked: own, itForked } of found?.receivers ?? []) {
      if (own) forked.add(service);
      if (itForked) forked.add(receiver);
    }
  }
  if (forked.size + keepers.size === 0) return {};
  return { leftovers: { forked: [...forked].sort(byNumber), keepers: [...keepers].sort(byNumber) } };
};

const byNumber = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });
