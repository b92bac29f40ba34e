import { mkdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type FastifyInstance, fastify } from "fastify";
import { createImageEdge } from "../../host/storage-agent/images/image-edge.ts";
import { type ImageLimits, ImageStore } from "../../host/storage-agent/images/image-store.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { builtInRoles } from "../../model/contract/tenancy/rules.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerUploads, type UploadLimits, type UploadMeans } from "./uploads.ts";

/** Uploads of users at the gateway before a real store of images, with its walls. Who they are, a stand-in for `tenancy` says. Needs root. */
const people: Readonly<Record<string, { readonly account: string; readonly role: string }>> = {
  ann: { account: "ROOT/acme/dev", role: "user" },
  amy: { account: "ROOT/acme/dev", role: "reader" },
  al: { account: "ROOT/acme/dev", role: "user" },
  ops: { account: "ROOT/acme/ops", role: "user" },
  bob: { account: "ROOT/bank/core", role: "user" },
};

export class UploadScene {
  /** Of the storage server. */
  directory = "";
  /** What its audit has. */
  readonly records: string[] = [];
  /** The storage server is of the version that knew no uploads that go on. */
  knowsParts = true;
  readonly installation: TestInstallation;
  readonly #apps: FastifyInstance[] = [];
  readonly #servers: PeerServer[] = [];
  #store: ImageStore | null = null;
  #configuration: ProcessConfiguration | null = null;

  private constructor(installation: TestInstallation) {
    this.installation = installation;
  }
  static async make(name: string, limits: Partial<ImageLimits>): Promise<UploadScene> {
    const scene = new UploadScene(await createTestInstallation(name));
    await scene.#serve(limits);
    return scene;
  }

  async #serve(limits: Partial<ImageLimits>): Promise<void> {
    const { installation, records } = this;
    const { configuration: ofAgent } = await installation.configure(peerName("agent.s1"), {
      change: { role: "agent" },
    });
    this.directory = ofAgent.directory;
    const imagesDirectory = join(installation.directory, "provided");
    await mkdir(imagesDirectory);
    const places = { directory: this.directory, imagesDirectory };
    const store = new ImageStore({ ...places, limits, log: () => undefined, changed: () => undefined });
    this.#store = store;
    await store.prepare();
    const edge = createImageEdge(
      places,
      store,
      async ({ who, verb, target }) => void records.push(`${who} ${verb} ${target}`),
    );
    this.#servers.push(
      await servePeers(ofAgent, async (incoming, response) => {
        if (this.knowsParts) return void (await edge(incoming, response));
        const url = incoming.url.replaceAll(/&(?:keep|from|of)=\w+/g, "");
        if (incoming.method === "GET" && url !== "/images") return void response.writeHead(405).end("{}");
        await edge({ ...incoming, url }, response);
      }),
    );
    const { configuration: ofTenancy } = await installation.configure(peerName("tenancy"));
    this.#servers.push(
      await servePeers(ofTenancy, ({ headers }, response) => {
        const name = String(headers.authorization).replace("Bearer ", "");
        const { account, role } = people[name] ?? {};
        if (account === undefined)
          return void response.writeHead(401).end('{"error":{"code":"unauthorized","message":"who?"}}');
        const { rules = [] } = builtInRoles.find((each) => each.name === role) ?? {};
        response.end(
          JSON.stringify({ user: { uid: name, name, domain: "ROOT/acme", account }, reach: "account", rules }),
        );
      }),
    );
    this.#configuration = (
      await installation.configure(peerName("gateway"), { change: { role: "gateway" } })
    ).configuration;
  }

  /** A process of the gateway. @returns its port */
  async door(limits: Partial<UploadLimits>, means: Partial<UploadMeans> = {}): Promise<number> {
    if (this.#configuration === null) throw new Error("it is not up");
    const configuration = this.#configuration;
    const made = fastify({ forceCloseConnections: true });
    made.removeAllContentTypeParsers();
    made.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    made.setErrorHandler((error, _request, reply) => {
      if (error instanceof RefusedError) reply.code(error.statusCode).send({ error: error.refusal });
      else reply.code(500).send({ error: { code: "internal", message: String(error) } });
    });
    registerUploads(made, {
      configuration,
      isOperator: (authorization) => authorization === "Bearer operator",
      receivers: async () => (address) => address === "127.0.0.2",
      limits,
      ...means,
    });
    this.#apps.push(made);
    await made.listen({ host: "127.0.0.1", port: 0 });
    return (made.server.address() as AddressInfo).port;
  }

  async end(): Promise<void> {
    await Promise.all(this.#apps.map((each) => each.close()));
    await Promise.all(this.#servers.map((server) => server.stop()));
    await this.#store?.close();
    await this.installation.remove();
  }
}
