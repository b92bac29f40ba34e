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

/** A management controller with one computer system, as much of Redfish (DSP0266 1.13) as finds, reads and resets it. */
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

const systems = "/redfish/v1/Systems";
const system = `${systems}/1`;
const reset = `${system}/Actions/ComputerSystem.Reset`;
const serviceRoot = {
  "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
  "@odata.id": "/redfish/v1/",
  Id: "RootService",
  Name: "Root Service",
  RedfishVersion: "1.13.0",
  Systems: { "@odata.id": systems },
};
const collection = {
  "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
  "@odata.id": systems,
  Name: "Computer Systems",
  "Members@odata.count": 1,
  Members: [{ "@odata.id": system }],
};
/** What is left of the power after a reset of each type. */
const resets = { On: "On", ForceOff: "Off", GracefulShutdown: "Off", ForceRestart: "On" } as const;
const refusal = (code: string, message: string): object => ({
  error: { code, message, "@Message.ExtendedInfo": [{ MessageId: code, Message: message }] },
});
const resetType = (body: string): string | undefined => {
  try {
    return (JSON.parse(body) as { ResetType?: string }).ResetType;
  } catch {
    return undefined;
  }
};

export const startRedfishSim = async (uuid = "00112233-4455-6677-8899-aabbccddeeff"): Promise<RedfishSim> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-redfish-"));
  await createAuthority(join(directory, "ca"));
  // Like a controller's own certificate: no machine here has a reason to trust it.
  const issued = await issueCertificate(join(directory, "ca"), peerName("host.bmc"), ["127.0.0.1"]);
  const [cert, key] = await Promise.all([readFile(issued.certFile), readFile(issued.keyFile)]);
  const [user, password] = ["operator", "correct-horse"];
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
    // The service root is for everybody (DSP0266, 6.1 and 13.3.6); a slash at the end says nothing.
    const path = url.replace(/\/$/, "");
    if (method === "GET" && path === "/redfish") return json(200, { v1: "/redfish/v1/" });
    if (method === "GET" && path === "/redfish/v1") return json(200, serviceRoot);
    if (headers.authorization !== `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`)
      return json(401, refusal("Base.1.8.NoValidSession", "There is no valid session."));
    if (method === "GET" && path === systems) return json(200, collection);
    if (method === "GET" && path === system)
      return json(200, {
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "@odata.id": system,
        Id: "1",
        Name: "System",
        SystemType: "Physical",
        UUID: uuid,
        PowerState: sim.power,
        Actions: {
          "#ComputerSystem.Reset": { target: reset, "ResetType@Redfish.AllowableValues": Object.keys(resets) },
        },
      });
    if (path !== reset) return json(404, refusal("Base.1.8.ResourceMissingAtURI", `There is nothing at ${path}.`));
    if (method !== "POST") return json(405, refusal("Base.1.8.OperationNotAllowed", "Actions are posted."));
    const type = resetType(body);
    if (type === undefined || !Object.hasOwn(resets, type))
      return json(400, refusal("Base.1.8.ActionParameterValueNotInList", "There is no such ResetType."));
    if (!sim.lies) sim.power = resets[type as keyof typeof resets];
    response.writeHead(204).end();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const fingerprint = createHash("sha256").update(new X509Certificate(cert).raw).digest("hex");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sim: RedfishSim = {
    controller: { kind: "redfish", address, user, password, fingerprint },
    uuid,
    power: "On",
    lies: false,
    instead: null,
    asked: [],
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return sim;
};
