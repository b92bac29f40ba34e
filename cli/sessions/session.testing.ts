import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type WebSocket, WebSocketServer } from "ws";
import {
  type ClientMessage,
  channels,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { writeClientConfiguration } from "../connection/client-config.ts";

/** `cells exec` and `cells console` as a user runs them, against a gateway whose sessions are the test's. */
const main = fileURLToPath(new URL("../main.ts", import.meta.url));
export const grant = {
  session: "c".repeat(43),
  expires: "2030-01-01T00:00:00.000Z",
  vm: "shop/web",
  incarnation: 3,
  host: "h1",
};
export const opened = { kind: "opened", incarnation: 3, host: "h1", viewers: 1, pastBytes: 0 } as const;

export interface Guest {
  readonly socket: WebSocket;
  send(message: SessionMessage): void;
  write(channel: keyof typeof channels, text: string): void;
  raw(channel: keyof typeof channels, bytes: Buffer): void;
  onMessage(listener: (message: ClientMessage) => void): void;
  onInput(listener: (text: string) => void): void;
}
const guestAt = (socket: WebSocket): Guest => ({
  socket,
  send: (message) => socket.send(JSON.stringify(message)),
  write: (channel, text) => socket.send(Buffer.concat([Buffer.of(channels[channel]), Buffer.from(text)])),
  raw: (channel, bytes) => socket.send(Buffer.concat([Buffer.of(channels[channel]), bytes])),
  onMessage: (listener) =>
    void socket.on("message", (data, isBinary) => {
      if (!isBinary) listener(JSON.parse(String(data)) as ClientMessage);
    }),
  onInput: (listener) =>
    void socket.on("message", (data, isBinary) => {
      if (!isBinary) return;
      listener(String(data));
      socket.send(JSON.stringify({ kind: "taken", bytes: (data as Buffer).length } satisfies SessionMessage));
    }),
});

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
}
export interface Client {
  run(...args: readonly string[]): Running;
  readonly asked: readonly string[];
  /** What each session was asked for by. */
  readonly bodies: readonly string[];
}

export const withSessions = async (
  serve: (guest: Guest, count: number) => void,
  work: (client: Client) => Promise<void>,
  refuseWith?: { readonly status: number; readonly message: string },
): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-cli-"));
  const asked: string[] = [];
  let count = 0;
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => sessionProtocol });
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    bodies.push(await textOf(request));
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(grant));
  });
  server.on("upgrade", (request, socket, head) => {
    asked.push(`${request.url} ${request.headers["sec-websocket-protocol"]} ${request.headers.authorization}`);
    if (refuseWith !== undefined && count === 0) {
      count += 1;
      const body = JSON.stringify({ error: { code: "x", message: refuseWith.message } });
      socket.end(
        `HTTP/1.1 ${refuseWith.status} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      count += 1;
      serve(guestAt(webSocket), count);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const configFile = join(directory, "config.json");
  const { port } = server.address() as AddressInfo;
  writeClientConfiguration({ url: `http://127.0.0.1:${port}`, credential: "secret" }, configFile);
  const run = (...args: readonly string[]): Running => {
    const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, CELLS_CONFIG: configFile } });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output.stderr += text;
    });
    child.stdin.on("error", () => undefined);
    return { child, ended: new Promise((resolve) => child.once("close", (code) => resolve({ code, ...output }))) };
  };
  try {
    await work({ run, asked, bodies });
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
};
