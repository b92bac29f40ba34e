import {
  createServer,
  type IncomingMessage,
  request as plainRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import { request as tlsRequest } from "node:https";
import { pipeline } from "node:stream/promises";

/**
 * The gateway's page on this machine alone. Browsers do not know the installation's authority; this process does, and checks the gateway by it.
 * To a browser `http://127.0.0.1` is as good as TLS. It passes on what its own page asks, as the gateway's own page, and nothing of what any other
 * page has the browser ask: it would lend that page its name.
 */
export interface Loopback {
  readonly url: string;
  stop(): Promise<void>;
}
const address = "127.0.0.1";
/** Of a request: the rest is of this connection, or says where it comes from. */
const dropped = new Set([
  "host",
  "origin",
  "referer",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "authorization",
]);
const droppedBack = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** @param gateway its URL @param port 0: any that is free. Rejects when it cannot listen. */
export async function serveLoopback(gateway: string, port: number): Promise<Loopback> {
  const server = createServer((incoming, response) => void pass(server, gateway, incoming, response));
  // A stream lasts for as long as somebody looks.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, resolve);
  });
  return {
    url: `http://${address}:${portOf(server)}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
const portOf = (server: Server): number => (server.address() as { readonly port: number }).port;

/** Why the request is none of the page here; null: it is. */
export function foreign(host: string | undefined, origin: string | undefined, port: number): string | null {
  const own = [`${address}:${port}`, `localhost:${port}`];
  if (host === undefined || !own.includes(host))
    return `the page is at http://${own[0]}, and not at "${(host ?? "").slice(0, 100)}"`;
  return origin === undefined || origin === `http://${host}`
    ? null
    : `this is asked by a page of ${origin.slice(0, 100)}`;
}

async function pass(
  server: Server,
  gateway: string,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "GET", url = "/", headers } = incoming;
  const refuse = (status: number, code: string, message: string): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { code, message } }));
  };
  const fault = foreign(headers.host, headers.origin, portOf(server));
  if (fault !== null || !url.startsWith("/")) {
    refuse(403, "page-foreign", fault ?? "a request names a path");
    return;
  }
  const to = new URL(gateway);
  const sent = Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
  const outgoing = (to.protocol === "https:" ? tlsRequest : plainRequest)({
    ...{ protocol: to.protocol, hostname: to.hostname.replace(/^\[|\]$/g, ""), port: to.port, method, path: url },
    headers: { ...sent, host: to.host, ...(headers.origin === undefined ? {} : { origin: to.origin }) },
  });
  outgoing.once("error", (error) => {
    if (response.headersSent) response.destroy();
    else refuse(502, "unreachable", `the gateway at ${gateway} does not answer: ${error.message}`);
  });
  outgoing.once("response", (answer) => {
    const back = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !droppedBack.has(name)));
    response.writeHead(answer.statusCode ?? 502, back);
    response.flushHeaders();
    pipeline(answer, response).catch(() => undefined);
  });
  response.once("close", () => outgoing.destroy());
  await pipeline(incoming, outgoing).catch(() => undefined);
}
