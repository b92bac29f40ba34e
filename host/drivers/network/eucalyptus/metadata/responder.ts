import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { metadataPort, metadataText } from "../plan/metadata.ts";
import { type InstanceFacts, metadataAt } from "./answers.ts";

/*
 * Answers a machine's own instances for metadata. Who asks is known by the address of the connection: the guard at the bridge lets no instance speak
 * under another one's, and nobody else has an instance's address here. What a request says of itself counts for nothing.
 *
 * A program in a guest may be made to ask by others (a proxy, a page with a name that leads here). So nothing is told that came through a proxy, nor
 * by another name than the address itself, and nothing but GET and HEAD is taken.
 */

export interface ResponderOptions {
  /** Of the instance here that has an address; null: none has. */
  readonly factsOf: (address: string) => Promise<InstanceFacts | null>;
  readonly log: (event: string, fields: Readonly<Record<string, string>>) => void;
  readonly port?: number;
}
export interface Responder {
  readonly port: number;
  close(): Promise<void>;
}
const limits = { connections: 256, ofOne: 8, headersMs: 5000, requestMs: 10_000, headerBytes: 4096 } as const;
const passedOn = ["x-forwarded-for", "forwarded", "via"] as const;

/** Nothing is fatal here: a machine whose responder cannot listen goes on without one. */
export async function startResponder({
  factsOf,
  log,
  port = metadataPort,
}: ResponderOptions): Promise<Responder | null> {
  const connections = new Map<string, number>();
  const server = createServer({ maxHeaderSize: limits.headerBytes }, (request, response) => {
    void answer(request, factsOf).then(
      (said) => send(request, response, said),
      () => send(request, response, { status: 503, text: "the machine does not answer; ask again\n" }),
    );
  });
  server.maxConnections = limits.connections;
  server.headersTimeout = limits.headersMs;
  server.requestTimeout = limits.requestMs;
  server.keepAliveTimeout = limits.headersMs;
  server.on("connection", (socket: Socket) => {
    const from = socket.remoteAddress ?? "";
    const count = (connections.get(from) ?? 0) + 1;
    connections.set(from, count);
    socket.once("close", () => {
      const left = (connections.get(from) ?? 1) - 1;
      if (left === 0) connections.delete(from);
      else connections.set(from, left);
    });
    // One instance keeps no other one from being answered.
    if (count > limits.ofOne) socket.destroy();
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  const isListening = await new Promise<boolean>((resolve) => {
    // Also of one that cannot be accepted later, when there are no descriptors for a while.
    server.on("error", (error) => {
      log("metadata-not-answered", { why: error.message });
      resolve(false);
    });
    server.listen(port, "0.0.0.0", () => resolve(true));
  });
  if (!isListening) return null;
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Said {
  readonly status: number;
  readonly text: string;
}
async function answer(request: IncomingMessage, factsOf: ResponderOptions["factsOf"]): Promise<Said> {
  const { method, headers, socket, url = "/" } = request;
  if (method !== "GET" && method !== "HEAD") return { status: 405, text: "only GET is answered\n" };
  if (passedOn.some((name) => headers[name] !== undefined))
    return { status: 403, text: "what comes through a proxy is not answered\n" };
  if (headers.host !== undefined && headers.host.replace(/:\d+$/, "") !== metadataText)
    return { status: 403, text: `only ${metadataText} is answered by that name\n` };
  const facts = await factsOf(socket.remoteAddress ?? "");
  if (facts === null) return { status: 404, text: "no instance here has this address\n" };
  const text = metadataAt(facts, url);
  return text === null ? { status: 404, text: "there is no such metadata\n" } : { status: 200, text };
}
function send({ method }: IncomingMessage, response: ServerResponse, { status, text }: Said): void {
  response.writeHead(status, {
    "content-type": "text/plain",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(method === "HEAD" ? undefined : text);
}
