import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { PowerController } from "../../core/ha/power/controller.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";

/** A management controller with one computer system, as much of Redfish as reads and resets it. */
export interface RedfishSim {
  readonly controller: PowerController;
  readonly uuid: string;
  power: "On" | "Off";
  /** It answers yes, and switches nothing. */
  lies: boolean;
  /** Answers in place of its own. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  /** Method, path and whether a password came with it. */
  readonly asked: string[];
  stop(): Promise<void>;
}

export const startRedfishSim = async (uuid = "00112233-4455-6677-8899-aabbccddeeff"): Promise<RedfishSim> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-redfish-"));
  await createAuthority(join(directory, "ca"));
  // Like a controller's own certificate: no machine here has a reason to trust it.
  const issued = await issueCertificate(join(directory, "ca"), peerName("host.bmc"), ["127.0.0.1"]);
  const [cert, key] = await Promise.all([readFile(issued.certFile), readFile(issued.keyFile)]);
  const [user, password] = ["operator", "correct-horse"];
  const system = "/redfish/v1/Systems/1";
  const reset = `${system}/Actions/ComputerSystem.Reset`;
  const server = createServer({ cert, key }, (request, response) => {
    void answer(request, response);
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "", headers } = request;
    sim.asked.push(`${method} ${url}${headers.authorization === undefined ? "" : " with a password"}`);
    const body = await text(request);
    const json = (status: number, content: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(content));
    };
    if (sim.instead !== null) return sim.instead(request, response);
    if (headers.authorization !== `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`)
      return json(401, {});
    if (method === "GET" && url === "/redfish/v1/Systems") return json(200, { Members: [{ "@odata.id": system }] });
    if (method === "GET" && url === system)
      return json(200, {
        ...{ "@odata.id": system, UUID: uuid, PowerState: sim.power },
        Actions: { "#ComputerSystem.Reset": { target: reset } },
      });
    if (method !== "POST" || url !== reset) return json(404, {});
    if ((JSON.parse(body) as { ResetType?: string }).ResetType !== "ForceOff") return json(400, {});
    if (!sim.lies) sim.power = "Off";
    response.writeHead(204).end();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const fingerprint = createHash("sha256").update(new X509Certificate(cert).raw).digest("hex");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sim: RedfishSim = {
    ...{ controller: { kind: "redfish", address, user, password, fingerprint }, uuid, power: "On" },
    ...{ lies: false, instead: null, asked: [] },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return sim;
};
