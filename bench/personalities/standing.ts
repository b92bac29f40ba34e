import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { FastifyInstance } from "fastify";
import { World } from "../../core/controller/world.testing.ts";
import { createGateway } from "../../gateway/gateway.ts";
import { cellName, peerName } from "../../model/cell/identifiers.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { openEvents } from "../../runtime/controller/events.ts";
import { createRoutes } from "../../runtime/controller/routes.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { heapOptionsOf } from "../../runtime/life/heap.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { readCredentials } from "../../runtime/transport/mutual-tls.ts";

/* A gateway before the controllers of 25 cells, and CaaS before it, for measuring what somebody has at their doors. */
const vm = { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" };
const main = join(import.meta.dirname, "../../gateway/main.ts");

export interface Cells {
  readonly installation: TestInstallation;
  /** Of the gateway's configuration: which cells there are, and who the operator is. */
  readonly gateway: NonNullable<ProcessConfiguration["gateway"]>;
  /** Of a cell's people. */
  readonly credentialOf: (cell: string) => string;
}
/** Within `work`: the controllers of 25 cells with so many VMs, all in this process. */
async function withCells<T>(count: number, work: (cells: Cells) => Promise<T>): Promise<T> {
  const installation = await createTestInstallation("bench-personalities");
  const ends: (() => unknown)[] = [];
  try {
    const credentialHashes = [hashCredential("operator")];
    const cells = Array.from({ length: 25 }, (_, at) => `c${at}`);
    const credentials = new Map(cells.map((cell) => [cell, newCredential(cell).credential]));
    const credentialOf = (cell: string): string => credentials.get(cell) ?? "";
    for (const [at, cell] of cells.entries()) {
      const world = new World({ cell: cellName(cell) });
      const vms = Object.fromEntries(Array.from({ length: count / 25 }, (_, each) => [`vm${each}`, vm]));
      world.ask({ method: "PUT", path: "", json: { [cell]: { "x.type": "Cell", ...vms } } });
      const { configuration } = await installation.configure(peerName(`controller.${cell}`));
      const events = openEvents(configuration.directory, cell);
      const names = { cell, cellUid: cell, cellNumber: at + 1, domain: "cells.internal", mac: "02:00:00:00:00:01" };
      const request = async (asked: Json): Promise<Json> => world.ask(asked as JsonObject) as unknown as Json;
      const hashes = [...credentialHashes, hashCredential(credentialOf(cell))];
      const controller = { ...names, credentialHashes: hashes };
      const server = await servePeers(configuration, createRoutes({ configuration, controller, events, request }));
      ends.push(
        () => server.stop(),
        () => events.close(),
      );
    }
    const supervisorSocket = join(installation.directory, "supervisor.sock");
    const supervisor = createServer((_request, response) => response.end(JSON.stringify(cells)));
    supervisor.listen(supervisorSocket);
    await once(supervisor, "listening");
    ends.push(() => supervisor.close());
    return await work({ installation, gateway: { supervisorSocket, credentialHashes }, credentialOf });
  } finally {
    for (const end of ends.reverse()) await end();
    await installation.remove();
  }
}
/** With a gateway before them, in this process as well, which listens nowhere. */
export const withGateway = <T>(count: number, work: (app: FastifyInstance) => Promise<T>): Promise<T> =>
  withCells(count, async ({ installation, gateway }) => {
    const change = { role: "gateway", gateway: { ...gateway, listenFd: -1 } } as const;
    const { configuration } = await installation.configure(peerName("gateway"), { change });
    const app = createGateway(configuration);
    try {
      return await work(app);
    } finally {
      await app.close();
    }
  });

/** Of VMs: how many are on the page behind a place, "" for the first, and which place is next. */
export type Page = (after: string) => Promise<readonly [found: number, next: string]>;
export const pageAfter = (after: string): string =>
  `/elements?type=VM&limit=1000${after === "" ? "" : `&after=${after}`}`;
export interface Doors {
  readonly caas: { readonly pid: number; readonly port: number };
  readonly gateway: { readonly pid: number; readonly port: number };
  readonly credentialOf: Cells["credentialOf"];
  /** Of CaaS, for the operator. */
  readonly page: Page;
}
const started = (role: string, file: string, ends: (() => Promise<unknown>)[]): number => {
  const child = spawn(process.execPath, [...heapOptionsOf(role), main, file], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exited = once(child, "exit");
  ends.push(() => {
    child.kill();
    return exited;
  });
  return child.pid ?? 0;
};
/** Gateway and CaaS as processes of their own, as in an installation, once they answer. */
export const withDoors = <T>(count: number, work: (doors: Doors) => Promise<T>): Promise<T> =>
  withCells(count, async ({ installation, gateway, credentialOf }) => {
    const address = "127.0.0.1";
    const [port, own] = [await freePort(), await freePort()];
    const made = await installation.configure(peerName("gateway"), {
      change: { role: "gateway", gateway: { ...gateway, listen: { address, port } } },
    });
    const personality = { listen: { address, port: own }, gateway: { address, port } };
    const { file } = await installation.configure(peerName("personality.caas"), {
      change: { role: "personality.caas", personality },
    });
    const ends: (() => Promise<unknown>)[] = [];
    const { ca } = readCredentials(made.configuration);
    const page: Page = (after) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: "Bearer operator" };
        const checkServerIdentity = () => undefined;
        request({ host: address, port: own, path: pageAfter(after), ca, checkServerIdentity, headers }, (answer) => {
          text(answer).then((said) => {
            if (answer.statusCode !== 200) reject(new Error(`${answer.statusCode}: ${said.slice(0, 300)}`));
            else resolve([(JSON.parse(said) as readonly Json[]).length, String(answer.headers[nextHeader] ?? "")]);
          }, reject);
        })
          .once("error", reject)
          .end();
      });
    try {
      const [gatewayPid, caasPid] = [started("gateway", made.file, ends), started("personality.caas", file, ends)];
      await eventually("CaaS answers", () =>
        page("")
          .then(() => true)
          .catch(() => false),
      );
      return await work({
        caas: { pid: caasPid, port: own },
        gateway: { pid: gatewayPid, port },
        credentialOf,
        page,
      });
    } finally {
      for (const end of ends) await end();
    }
  });
