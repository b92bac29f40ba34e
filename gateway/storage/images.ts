import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import type { FastifyInstance } from "fastify";
import type { ImageAdded, ImageRemoved, ImageSummary } from "../../model/api.ts";
import { imageNameRule, isImageName, isUpload } from "../../model/cell/image-name.ts";
import { json } from "../../model/contract/schema.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { pageFor } from "../requests/paging.ts";
import { type RefusedError, refused } from "../requests/refused.ts";
import { type Asked, serveRoute, withoutBodies } from "../requests/serve.ts";
import {
  answerTimeoutMs,
  createImageServers,
  type Failure,
  failed,
  type ImageServers,
  type ServerImage,
  type Staged,
  stagedImage,
  type Told,
} from "./image-servers.ts";
import { spread } from "./spread.ts";

/**
 * The operator's images. Each storage server has its own list, and makes up its own mind about every upload; the gateway
 * sends the bytes to all of them as they come, and lets them accept the image only when every one of them took it. A
 * server that is away is left out and named: the Storage Manager places an image's volumes where the image is, and
 * adding the same file again brings it to the server that lacks it.
 */
const mostUploads = 4;

export function registerImages(app: FastifyInstance, configuration: ProcessConfiguration): void {
  const images = new Images(configuration);
  withoutBodies(app, (scope) => {
    serveRoute(scope, "listImages", async ({ query }, reply) =>
      pageFor("listImages", await images.list(), query, reply),
    );
    serveRoute(scope, "addImage", ({ parameters, query, request }) => {
      if (isUpload(parameters.name)) throw refused(400, "image/bad-name", "such a name is of what users upload");
      return images.add(nameIn(parameters.name), query, request.raw);
    });
    serveRoute(scope, "removeImage", ({ parameters }) => images.remove(nameIn(parameters.name)));
  });
}

function nameIn(name: string): string {
  if (isImageName(name)) return name;
  throw refused(400, "image/bad-name", `"${name.slice(0, 80)}" cannot name an image: use ${imageNameRule}`);
}

class Images {
  readonly #at: ImageServers;
  #uploads = 0;

  constructor(configuration: ProcessConfiguration) {
    this.#at = createImageServers(configuration);
  }

  /** By name and digest; an image that differs between servers has an entry for each. */
  async list(): Promise<readonly ImageSummary[]> {
    const found = new Map<string, ImageSummary>();
    for (const told of await this.#at.lists()) {
      if (failed(told)) continue;
      for (const { name, digest, sizeMiB, provided } of told.value) {
        const key = `${name} ${digest}`;
        const servers = [...(found.get(key)?.servers ?? []), told.server];
        found.set(key, { name, digest, sizeMiB, provided, servers });
      }
    }
    return [...found.values()].sort((one, other) => one.name.localeCompare(other.name, "en"));
  }

  async add(
    name: string,
    { format, replace = false }: Asked<"addImage">["query"],
    body: IncomingMessage,
  ): Promise<ImageAdded> {
    const length = Number(body.headers["content-length"] ?? Number.NaN);
    if (!Number.isSafeInteger(length) || length < 0)
      throw refused(411, "image/length", "an upload announces its length: Content-Length is missing");
    if (this.#uploads >= mostUploads)
      throw refused(503, "busy", `${mostUploads} images are being uploaded already; try again when one is done`);
    this.#uploads += 1;
    try {
      const lists = await this.#at.lists();
      const away = lists.filter(failed);
      const there = lists.flatMap((told) => (failed(told) ? [] : [told]));
      checkName(name, replace, there, away);
      const parameters = `format=${format}${replace ? "&replace=true" : ""}`;
      const staged = await this.#stage(
        there.map(({ server }) => server),
        `/images/${name}?${parameters}`,
        { body, length },
      );
      const accepted = await this.#accept(name, replace, staged);
      return { ...accepted, missing: [...accepted.missing, ...away.map(missing)] };
    } finally {
      this.#uploads -= 1;
    }
  }

  async remove(name: string): Promise<ImageRemoved> {
    const servers = await this.#at.names();
    const told = await Promise.all(
      servers.map((server) => this.#at.ask(server, { method: "DELETE", path: `/images/${name}` }, json)),
    );
    const gone = told.flatMap((each) => (failed(each) ? [] : [each.server]));
    const failures = told.filter(failed).filter(({ code }) => code !== "image/unknown");
    const [first] = failures.length > 0 ? failures : told.filter(failed);
    if (gone.length === 0 && first !== undefined) throw refused(first.status, first.code, first.message);
    return { name, servers: gone, missing: failures.map(missing) };
  }

  /** Sends the body to every server at once, as fast as the slowest of them takes it. All of them take it, or none. */
  async #stage(
    servers: readonly string[],
    path: string,
    { body, length }: { readonly body: IncomingMessage; readonly length: number },
  ): Promise<readonly { readonly server: string; readonly value: Staged }[]> {
    const ways = servers.map((server) => ({ server, stream: new PassThrough() }));
    // After the first failure the rest of the bytes is of no use to anybody.
    const cutOff = new Set<string>();
    const answers = ways.map(async (way) => {
      // `keep-alive`: an answer that comes before the body's end must not be lost with a connection closed behind it.
      const headers = { "content-length": length, connection: "keep-alive" };
      const told = await this.#at.ask(way.server, { method: "PUT", path, body: way.stream, headers }, stagedImage);
      // Whoever waits for it to take more goes on without it.
      way.stream.destroy();
      for (const { server, stream } of failed(told) ? ways : [])
        if (!stream.writableEnded && !stream.destroyed) {
          cutOff.add(server);
          stream.destroy();
        }
      return told;
    });
    try {
      await spread(
        body,
        ways.map(({ stream }) => stream),
      );
    } finally {
      // When the sender broke off: a server that waits for the rest learns that there is none.
      for (const { stream } of ways) if (!stream.writableEnded) stream.destroy();
    }
    const told = await Promise.all(answers);
    const staged = told.flatMap((each) => (failed(each) ? [] : [each]));
    const failures = told.filter(failed);
    if (failures.length === 0) return staged;
    const causes = failures.filter(({ server }) => !cutOff.has(server));
    await Promise.all(
      staged.map(({ server, value }) =>
        this.#at.ask(
          server,
          { method: "DELETE", path: `/images/${value.name}?staged=${value.id}`, timeoutMs: answerTimeoutMs },
          json,
        ),
      ),
    );
    throw joint(causes);
  }

  async #accept(
    name: string,
    replace: boolean,
    staged: readonly { readonly server: string; readonly value: Staged }[],
  ): Promise<ImageAdded> {
    const told = await Promise.all(
      staged.map(async ({ server, value }): Promise<Told<unknown>> => {
        if (value.id === null) return { server, value };
        const path = `/images/${name}?staged=${value.id}${replace ? "&replace=true" : ""}`;
        return this.#at.ask(server, { method: "POST", path }, json);
      }),
    );
    const failures = told.filter(failed);
    const [any] = staged;
    if (any === undefined || failures.length === told.length) throw joint(failures);
    const { digest, sizeMiB } = any.value;
    const servers = told.flatMap((each) => (failed(each) ? [] : [each.server]));
    return { name, digest, sizeMiB, servers, missing: failures.map(missing) };
  }
}

const missing = ({ server, message }: Failure) => ({ server, why: message });

/** One answer out of several failures; servers that say the same are heard once. */
function joint(failures: readonly Failure[]): RefusedError {
  const [first] = failures;
  if (first === undefined) return refused(503, "image/unreachable", "no storage server is reachable");
  const same = failures.every(({ message }) => message === first.message);
  const message = same ? first.message : failures.map(({ server, message }) => `${server}: ${message}`).join("; ");
  return refused(first.status, first.code, message);
}

/** What is known before the first byte: is the name free, and may its image be replaced everywhere? */
function checkName(
  name: string,
  replace: boolean,
  there: readonly { readonly server: string; readonly value: readonly ServerImage[] }[],
  away: readonly Failure[],
): void {
  if (there.length === 0) throw joint(away);
  const having = there.flatMap(({ value }) => value.filter((image) => image.name === name));
  if (having.some(({ provided }) => provided))
    throw refused(
      409,
      "image/provided",
      `the image "${name}" comes with the installation and cannot be replaced; choose another name`,
    );
  if (replace && away.length > 0)
    throw refused(
      503,
      "image/unreachable",
      `to replace an image, every storage server must be there, and ${away.map(({ server }) => server).join(", ")} does not answer: it would go on giving out the old one`,
    );
  if (!replace && having.length === there.length)
    throw refused(
      409,
      "image/exists",
      `there is an image "${name}" already; choose another name, or replace it (--replace)`,
    );
}
