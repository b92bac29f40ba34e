import { randomBytes } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  request as plainRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import { request as tlsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CookiesHere } from "./cookies-here.ts";

/**
 * The gateway's page on this machine alone. Browsers do not know the installation's authority; this process does, and checks the gateway by it.
 * To a browser `http://….localhost` is as good as TLS. It passes on what its own page asks, as the gateway's own page, and nothing of what any other
 * page has the browser ask: it would lend that page its name.
 *
 * A browser sends a cookie to every port of an address, so what else listens on this machine (a tunnel to a guest, another cloud's page) would get one of
 * 127.0.0.1. So the page is under a name that nobody else knows, the gateway's cookie never leaves this process, and the browser has one of
 * another name and value in its place, which opens nothing anywhere else.
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
  "cookie",
]);
const droppedBack = new Set(["connection", "keep-alive", "transfer-encoding", "set-cookie"]);

/** @param gateway its URL @param port 0: any that is free. Rejects when it cannot listen. */
export async function serveLoopback(gateway: string, port: number): Promise<Loopback> {
  const name = `${randomBytes(16).toString("hex")}.localhost`;
  const cookies = new CookiesHere();
  const server = createServer((incoming, response) => {
    const own = { gateway, cookies, host: `${name}:${portOf(server)}` };
    void pass(own, incoming, response);
  });
  const joined = new Set<Duplex>();
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    joined.add(socket);
    socket.once("close", () => joined.delete(socket));
    passSession({ gateway, host: `${name}:${portOf(server)}` }, incoming, socket, head);
  });
  // A stream lasts for as long as somebody looks.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, resolve);
  });
  return {
    url: `http://${name}:${portOf(server)}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of joined) socket.destroy();
      }),
  };
}
const portOf = (server: Server): number => (server.address() as { readonly port: number }).port;

/** Why the request is none of the page here; null: it is. @param own name and port under which the page is */
export function foreign(host: string | undefined, origin: string | undefined, own: string): string | null {
  // The name is a secret: it is not told to whoever does not know it.
  if (host !== own) return `there is no page at "${(host ?? "").slice(0, 100)}"`;
  return origin === undefined || origin === `http://${own}`
    ? null
    : `this is asked by a page of ${origin.slice(0, 100)}`;
}

interface Own {
  readonly gateway: string;
  readonly host: string;
  readonly cookies: CookiesHere;
}
async function pass(
  { gateway, host, cookies }: Own,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "GET", url = "/", headers } = incoming;
  const refuse = (status: number, code: string, message: string): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { code, message } }));
  };
  const fault = foreign(headers.host, headers.origin, host);
  if (fault !== null || !url.startsWith("/")) {
    refuse(403, "page-foreign", fault ?? "a request names a path");
    return;
  }
  const to = new URL(gateway);
  const sent = Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
  const cookie = cookies.behind(headers.cookie);
  if (cookie !== null) sent.cookie = cookie;
  const outgoing = (to.protocol === "https:" ? tlsRequest : plainRequest)({
    protocol: to.protocol,
    hostname: to.hostname.replace(/^\[|\]$/g, ""),
    port: to.port,
    method,
    path: url,
    headers: { ...sent, host: to.host, ...(headers.origin === undefined ? {} : { origin: to.origin }) },
  });
  outgoing.once("error", (error) => {
    if (response.headersSent) response.destroy();
    else refuse(502, "unreachable", `the gateway at ${gateway} does not answer: ${error.message}`);
  });
  outgoing.once("response", (answer) => {
    const back = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !droppedBack.has(name)));
    const given = cookies.inPlaceOf(answer.headers["set-cookie"] ?? [], headers.cookie);
    response.writeHead(answer.statusCode ?? 502, {
      ...back,
      "referrer-policy": "no-referrer",
      ...(given.length === 0 ? {} : { "set-cookie": [...given] }),
    });
    response.flushHeaders();
    pipeline(answer, response).catch(() => undefined);
  });
  response.once("close", () => outgoing.destroy());
  await pipeline(incoming, outgoing).catch(() => undefined);
}

/** Consoles and displays of the page: a WebSocket carries its own capability, so nothing that names a browser goes with it. */
function passSession(
  { gateway, host }: Pick<Own, "gateway" | "host">,
  { url = "", headers }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  socket.on("error", () => socket.destroy());
  const answer = (status: string, more: readonly string[] = [], body: Buffer | string = ""): void => {
    const lines = [`HTTP/1.1 ${status}`, ...more, `content-length: ${body.length}`, "connection: close"];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    socket.end(body);
  };
  // A browser says of each WebSocket which page opens it.
  if (foreign(headers.host, headers.origin ?? "none", host) !== null || !/^\/cells\/[^/?]+\/sessions$/.test(url)) {
    answer("403 Forbidden");
    return;
  }
  const to = new URL(gateway);
  const own = Object.entries(headers).filter(([name]) => name.startsWith("sec-websocket-"));
  const outgoing = (to.protocol === "https:" ? tlsRequest : plainRequest)({
    protocol: to.protocol,
    hostname: to.hostname.replace(/^\[|\]$/g, ""),
    port: to.port,
    path: url,
    headers: { ...Object.fromEntries(own), host: to.host, connection: "Upgrade", upgrade: "websocket" },
  });
  socket.once("close", () => outgoing.destroy());
  outgoing.once("error", () => answer("502 Bad Gateway"));
  outgoing.once("response", (refused) => {
    refused.resume();
    answer(`${refused.statusCode ?? 502} Refused`);
  });
  outgoing.once("upgrade", (accepted, there, first) => {
    const given = Object.entries(accepted.headers).filter(([name]) => name.startsWith("sec-websocket-"));
    const lines = given.map(([name, value]) => `${name}: ${value}`);
    socket.write(
      ["HTTP/1.1 101 Switching Protocols", "connection: Upgrade", "upgrade: websocket", ...lines, "", ""].join("\r\n"),
    );
    there.on("error", () => there.destroy());
    if (head.length > 0) there.write(head);
    if (first.length > 0) socket.write(first);
    pipeline(there, socket).catch(() => undefined);
    pipeline(socket, there).catch(() => undefined);
  });
  outgoing.end();
}
