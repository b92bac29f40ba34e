import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, STATUS_CODES } from "node:http";
import { request } from "node:https";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Refusal } from "../../model/api.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { expectCurrent } from "../transport/judge.ts";
import { readCredentials } from "../transport/mutual-tls.ts";
import { findPeer } from "../transport/peers.ts";
import { retryAfterOf } from "./http.ts";

/**
 * A WebSocket that crosses several services. Only its two ends speak it: each hop in between passes the handshake on and
 * then joins two byte streams, so that a slow end is felt at the other one and nothing piles up on the way.
 */

/** The headers of the handshake (RFC 6455, section 4). No extension passes: a hop could not look into compressed frames. */
const asked = ["sec-websocket-key", "sec-websocket-version"] as const;
const answered = ["sec-websocket-accept", "sec-websocket-protocol"] as const;

export type UpgradeAnswer =
  | {
      readonly accepted: true;
      readonly headers: IncomingHttpHeaders;
      readonly socket: Duplex;
      /** What came right behind the handshake. */
      readonly head: Buffer;
    }
  | { readonly accepted: false; readonly status: number; readonly body: string };

export interface OutgoingUpgrade {
  /** Path and query. */
  readonly path: string;
  /** Headers of the request that is passed on; of them only the handshake's own go along. */
  readonly handshake: IncomingHttpHeaders;
  /** Replaces or adds. */
  readonly headers: OutgoingHttpHeaders;
  readonly signal?: AbortSignal;
}

const handshakeMs = 15_000;
const longestRefusal = 64 * 1024;
const keepAliveMs = 30_000;
/** For a refusal to arrive. */
const farewellMs = 2_000;

/** Small messages at once, and a peer that vanished is noticed. */
const prepare = (socket: Duplex): void => {
  if (!(socket instanceof Socket)) return;
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepAliveMs);
  socket.setTimeout(0);
};

/** Passes a WebSocket handshake on to a peer, with the own certificate. Rejects when the peer does not answer it. */
export const peerUpgrade = async (
  configuration: ProcessConfiguration,
  peer: PeerName,
  { path, handshake, headers, signal }: OutgoingUpgrade,
): Promise<UpgradeAnswer> => {
  const address = await findPeer(configuration, peer);
  if (!address.ok) throw new Error(address.error);
  const { host, httpPort: port } = address.value;
  const passed: OutgoingHttpHeaders = { connection: "Upgrade", upgrade: "websocket" };
  for (const name of asked) if (handshake[name] !== undefined) passed[name] = handshake[name];
  const outgoing = request({
    ...readCredentials(configuration),
    host,
    port,
    method: "GET",
    path,
    headers: { ...passed, ...headers },
    agent: false,
    checkServerIdentity: expectCurrent(configuration, peer),
    ...(signal === undefined ? {} : { signal }),
  });
  outgoing.setTimeout(handshakeMs, () =>
    outgoing.destroy(new Error(`"${peer}" at ${host}:${port} did not answer within ${handshakeMs / 1000} s`)),
  );
  return new Promise((resolve, reject) => {
    outgoing.once("upgrade", (response, socket, head) => {
      prepare(socket);
      resolve({ accepted: true, headers: response.headers, socket, head });
    });
    outgoing.once("response", (response: IncomingMessage) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        if (body.length < longestRefusal) body += text;
      });
      response.once("end", () => resolve({ accepted: false, status: response.statusCode ?? 502, body }));
    });
    outgoing.on("error", (error) => reject(new Error(`"${peer}" at ${host}:${port}: ${error.message}`)));
    outgoing.end();
  });
};

/** Answers a handshake with an error of the contract's shape, and closes. */
export const refuseUpgrade = (socket: Duplex, status: number, code: string, message: string): void =>
  endUpgrade(socket, status, JSON.stringify({ error: { code, message } } satisfies Refusal));

const endUpgrade = (socket: Duplex, status: number, body: string): void => {
  if (socket.destroyed) return;
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`,
      "content-type: application/json",
      `content-length: ${Buffer.byteLength(body)}`,
      "connection: close",
      ...(status === 503 ? [`retry-after: ${retryAfterOf()}`] : []),
      "",
      body,
    ].join("\r\n"),
  );
  // The server has let go of the connection. Whoever stays on it anyway is told nothing more, and holds it no longer.
  socket.resume();
  const farewell = setTimeout(() => socket.destroy(), farewellMs).unref();
  socket.once("close", () => clearTimeout(farewell));
};

/** Gives a peer's answer back to who asked, and on success joins the two. Resolves when neither is open any more. */
export const passUpgradeBack = (answer: UpgradeAnswer, socket: Duplex, head: Buffer): Promise<void> => {
  if (!answer.accepted) {
    endUpgrade(socket, answer.status, answer.body);
    return Promise.resolve();
  }
  prepare(socket);
  const lines = answered.flatMap((name) => {
    const value = answer.headers[name];
    return value === undefined ? [] : [`${name}: ${value}`];
  });
  socket.write(
    ["HTTP/1.1 101 Switching Protocols", "connection: Upgrade", "upgrade: websocket", ...lines, "", ""].join("\r\n"),
  );
  if (answer.head.length > 0) socket.write(answer.head);
  if (head.length > 0) answer.socket.write(head);
  return joinStreams(socket, answer.socket);
};

/** How long what one end still sent may take to reach the other after the first is gone. */
const lastWordsMs = 10_000;

/** Passes bytes in both directions. Resolves when neither is open any more. */
export const joinStreams = (one: Duplex, other: Duplex): Promise<void> => {
  const closed = (from: Duplex, to: Duplex): Promise<void> =>
    new Promise((resolve) => {
      from.pipe(to);
      from.on("error", () => from.destroy());
      const left = (): void => {
        // Whole, if it ended in order; a broken stream is no end that the other side could be told as one.
        if (!to.writableEnded) to.destroy();
        else if (!to.destroyed) setTimeout(() => to.destroy(), lastWordsMs).unref();
        resolve();
      };
      if (from.closed) left();
      else from.once("close", left);
    });
  return Promise.all([closed(one, other), closed(other, one)]).then(() => undefined);
};
