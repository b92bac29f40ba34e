import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { rootCell } from "../../core/documents/cells.ts";
import { primaryCell } from "../../gateway/caas/volumes/layout.ts";
import { createGateway } from "../../gateway/gateway.ts";
import { listenInside } from "../../gateway/shared/listen.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { sendJson, sendRefusal } from "../../runtime/http/http.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { epochMs } from "../kernel/process.ts";
import { type AnyProcess, Installation } from "../world/installation.ts";
import { Steps } from "../world/steps.ts";
import { beginTraffic } from "../world/traffic.ts";
import { modelsOf, rootModelsOf } from "./cells.ts";
import { type Edge, edgeOf } from "./edges.ts";
import type { Screens } from "./guests.ts";
import { givePart, serveVolumesOf } from "./volumes.ts";

/**
 * A simulated installation behind the real gateway: every service as the simulator runs it, over virtual hosts, disks and network, in real
 * time, for whoever looks at the page or asks by the command line. Nothing of it is outside of this process, and it needs no root.
 */
export interface ServedOptions {
  readonly hosts: number;
  readonly machines: number;
  readonly seed: number;
  /** Of the gateway; 0: any that is free. */
  readonly port: number;
  /** Files of the page; absent: there is none. */
  readonly page?: string;
  /** CaaS is beside the gateway, with persistent volumes in a cell `primary`. */
  readonly volumes?: boolean;
  /** A connection to the screen of the VM with that name, in RFB; absent: no VM has one. */
  readonly screens?: Screens;
}
export interface Served {
  readonly url: string;
  /** The operator's credential. */
  readonly credential: string;
  /** A one-time code that signs a browser in. */
  code(): Promise<string>;
  /** One step of a history, as `power-off h3 for 30000`: throws a sentence where it is none. */
  perform(step: string): void;
  /** Hosts that run machines now, the fullest first. */
  busyHosts(): readonly string[];
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
}
/** Virtual time follows real time in such steps. */
const stepMs = 10;
const host = "127.0.0.1";
const memoryMiB = 64 * 1024;

export async function serveSimulation(options: ServedOptions): Promise<Served> {
  const { hosts, machines, seed, port, page, volumes = false, screens = () => null } = options;
  const directory = await mkdtemp(join(tmpdir(), "cells-simulate-"));
  const models = modelsOf(machines, seed);
  const servers = Math.max(1, Math.ceil(hosts / 5));
  const size = { hosts, servers, cells: 1, root: true as const, services: 1, seed, memoryMiB };
  const installation = new Installation(
    { ...size, operator: false, ha: true, slices: false, untilMs: 0, steps: [] },
    false,
  );
  const steps = new Steps(installation);
  const { kernel } = installation;
  const credential = randomBytes(32).toString("base64url");
  const credentialHashes = [hashCredential(credential)];
  const place = new Place(directory, installation, credentialHashes, screens);
  await place.open();
  const clock = new RealTime(installation);
  const closers: (() => Promise<void>)[] = [() => place.close()];
  const stop = async (): Promise<void> => {
    await clock.stop();
    for (const close of closers.splice(0).reverse()) await close();
    await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  };
  try {
    for (const process of installation.processes.values()) await place.serve(process);
    kernel.watchers.push({ log: (who, event, fields) => place.edges.get(who)?.record(event, fields) });
    clock.start();
    installation.start();
    const looking = setInterval(() => void place.serveNew().catch(() => undefined), serveNewEveryMs);
    closers.push(async () => clearInterval(looking));
    beginTraffic(installation);
    const supervisorSocket = join(directory, "supervisor");
    const supervisor = await serveSupervisor(supervisorSocket, place);
    closers.push(async () => void supervisor.close());
    const gateway = {
      listenFd: -1,
      supervisorSocket,
      credentialHashes,
      ...(page === undefined ? {} : { page }),
    };
    const configuration: ProcessConfiguration = {
      ...(await place.configure(peerName("gateway"), "gateway")),
      gateway,
      httpPort: await freePort(),
    };
    await place.tell("gateway", configuration.httpPort ?? 0);
    const app = createGateway(
      configuration,
      createObserver("gateway", () => undefined),
    );
    closers.push(() => app.close());
    const url = await app.listen({ host, port });
    const put = (cell: string, model: JsonObject): Promise<Json> => {
      const request = { method: "PUT", path: "", json: model } as unknown as Json;
      return installation.controllers.get(cell)?.request(request) ?? Promise.reject(new Error(`${cell} does not run`));
    };
    void (async () => {
      for (const model of rootModelsOf(hosts))
        while (!clock.isOver && ((await put(rootCell, model).catch(() => null)) as Answer | null)?.status !== 200)
          await sleep(serveNewEveryMs);
    })();
    for (const { cell, model } of models) {
      await place.addCell(cell);
      void put(cell, model);
    }
    if (volumes) await openVolumes({ place, configuration, app, put, url, credential }, closers);
    return {
      url,
      credential,
      stop,
      code: () => signInCode(url, credential),
      perform: (step) => steps.perform(step.split(" ")),
      busyHosts: () => busyHosts(installation),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface ToOpen {
  readonly place: Place;
  readonly configuration: ProcessConfiguration;
  readonly app: FastifyInstance;
  readonly put: (cell: string, model: JsonObject) => Promise<Json>;
  readonly url: string;
  readonly credential: string;
}
async function openVolumes(
  { place, configuration, app, put, url, credential }: ToOpen,
  closers: (() => Promise<void>)[],
): Promise<void> {
  const inside = { address: host, port: await freePort() };
  const end = await listenInside(app, configuration, inside);
  closers.push(async () => end());
  const own = await place.configure(peerName("personality.caas"), "personality.caas");
  const served = await serveVolumesOf(own, inside, await freePort());
  closers.push(() => served.close());
  await place.addCell(primaryCell);
  const model = { [primaryCell]: { "x.type": "Cell", "x.name": primaryCell, volumes: {} } };
  while (((await put(primaryCell, model).catch(() => null)) as Answer | null)?.status !== 200)
    await sleep(serveNewEveryMs);
  await givePart(own, url, credential);
  await place.tell(own.name, served.port);
}

function busyHosts({ truth }: Installation): readonly string[] {
  const count = new Map<string, number>();
  for (const { host } of truth.machines) count.set(host, (count.get(host) ?? 0) + 1);
  return [...count].sort(([, one], [, other]) => other - one).map(([name]) => name);
}

async function signInCode(url: string, credential: string): Promise<string> {
  const headers = { authorization: `Bearer ${credential}` };
  const answer = await fetch(`${url}/login/codes`, { method: "POST", headers });
  return ((await answer.json()) as { readonly code: string }).code;
}

/** Lets virtual time go by as real time does. */
class RealTime {
  readonly #installation: Installation;
  isOver = false;
  #lateMs = 0;
  #going: Promise<void> = Promise.resolve();
  constructor(installation: Installation) {
    this.#installation = installation;
  }
  start(): void {
    this.#going = this.#go();
  }
  async #go(): Promise<void> {
    const { kernel, processes } = this.#installation;
    const startedMs = performance.now();
    const wallOffsetMs = Date.now() - epochMs;
    while (!this.isOver) {
      for (const process of processes.values()) if (process.wallOffsetMs === 0) process.wallOffsetMs = wallOffsetMs;
      // Where a step takes longer than its time, time goes on more slowly, rather than in leaps.
      await kernel.runUntil(Math.min(performance.now() - startedMs - this.#lateMs, kernel.clock.nowMs + longestStepMs));
      this.#lateMs = performance.now() - startedMs - kernel.clock.nowMs;
      if (this.#lateMs < 2 * stepMs) this.#lateMs = 0;
      await sleep(stepMs);
    }
  }
  /** Nothing happens any more once it resolves. */
  stop(): Promise<void> {
    this.isOver = true;
    return this.#going;
  }
}
const longestStepMs = 250;
const serveNewEveryMs = 200;

/** Files, certificates and listeners of the processes. */
class Place {
  readonly edges = new Map<string, Edge>();
  readonly installation: Installation;
  readonly #directory: string;
  readonly #hashes: readonly string[];
  readonly #screens: Screens;
  readonly #peers: Record<string, string> = {};
  readonly #servers: PeerServer[] = [];
  readonly #serving = new Map<PeerName, Promise<void>>();

  constructor(directory: string, installation: Installation, credentialHashes: readonly string[], screens: Screens) {
    this.#screens = screens;
    this.#directory = directory;
    this.installation = installation;
    this.#hashes = credentialHashes;
  }
  get #authority(): string {
    return join(this.#directory, "authority");
  }
  get #peersFile(): string {
    return join(this.#directory, "peers.json");
  }

  async open(): Promise<void> {
    await createAuthority(this.#authority);
    await writeFile(this.#peersFile, JSON.stringify({ peers: {} }));
  }

  async configure(name: PeerName, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
    const own = join(this.#directory, name);
    await mkdir(own, { recursive: true });
    return {
      name,
      role,
      address: host,
      directory: own,
      runDirectory: own,
      peersFile: this.#peersFile,
      httpPort: 0,
      certificate: await issueCertificate(this.#authority, name, [host]),
    };
  }

  /** A process of the simulation is asked over HTTPS from now on. */
  serve(process: AnyProcess): Promise<void> {
    const known = this.#serving.get(process.name);
    const serving = known ?? this.#serveOnce(process);
    this.#serving.set(process.name, serving);
    return serving;
  }
  async #serveOnce(process: AnyProcess): Promise<void> {
    const cell = /^controller\.(.+)$/.exec(process.name)?.[1];
    const plain = await this.configure(process.name, cell === undefined ? "placer" : "controller");
    const controller = cell === undefined ? {} : { controller: this.#controllerOf(cell) };
    const tenancy = process.name === "tenancy" ? { tenancy: { credentialHashes: this.#hashes } } : {};
    const configuration = { ...plain, ...controller, ...tenancy };
    const edge = edgeOf(this.installation, process, configuration, this.#screens);
    this.edges.set(process.name, edge);
    const server = await servePeers(configuration, edge.handler, edge.upgrade);
    this.#servers.push(server);
    await this.tell(process.name, server.port);
  }
  #controllerOf(cell: string): NonNullable<ProcessConfiguration["controller"]> {
    const { cells, childCells } = this.installation;
    const child = [...childCells].find(([, name]) => name === cell)?.[0];
    const cellNumber = child ?? cells.indexOf(cell) + 1;
    const own = { cell, cellUid: `cell${cellNumber}`, cellNumber, domain: "cells.internal" };
    return { ...own, mac: "02:00:0a:00:03:01", credentialHashes: this.#hashes };
  }

  /** Controllers of child cells, which the Cell Manager has made since. */
  async serveNew(): Promise<void> {
    for (const process of [...this.installation.processes.values()])
      if (!this.#serving.has(process.name)) await this.serve(process);
  }
  get cells(): readonly string[] {
    return [...this.installation.controllers.keys()];
  }

  async addCell(cell: string): Promise<void> {
    if (this.cells.includes(cell)) return;
    this.installation.addCell(cell);
    const process = this.installation.processes.get(peerName(`controller.${cell}`));
    if (process !== undefined) await this.serve(process);
  }

  async tell(name: string, port: number): Promise<void> {
    this.#peers[name] = `${host}:1:${port}`;
    await replaceFile(this.#peersFile, JSON.stringify({ peers: this.#peers }));
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => server.stop()));
    for (const edge of this.edges.values()) await edge.close();
  }
}

/** In place of the testbed's supervisor: which services there are, and who makes the controller of a cell. */
async function serveSupervisor(socket: string, place: Place): Promise<Server> {
  const { installation } = place;
  const isService = (name: string): boolean => !/^(host|agent)\./.test(name);
  const server = createServer(async ({ method, url = "" }, response) => {
    const cell = /^\/cells\/([^/?]+)$/.exec(url)?.[1];
    if (method === "GET" && url === "/status") {
      const services = [...installation.processes.values()]
        .filter(({ name }) => isService(name))
        .map(({ name, starts, isRunning }) => ({
          name,
          peer: name,
          address: host,
          running: isRunning,
          pid: null,
          restarts: Math.max(0, starts - 1),
          state: isRunning ? "running" : "resting",
          since: null,
        }));
      sendJson(response, 200, { services });
    } else if (method === "GET" && url === "/cells") sendJson(response, 200, place.cells);
    else if (method === "POST" && cell !== undefined) {
      await place.addCell(cell);
      sendJson(response, 200, {});
    } else if (method === "DELETE" && cell !== undefined)
      sendRefusal(response, 409, "conflict", "the simulation keeps the controller of a cell that was deleted");
    else sendRefusal(response, 404, "not-found", `there is no ${method} of ${url} here`);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return server;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
