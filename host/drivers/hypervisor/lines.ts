import type { Socket } from "node:net";
import { connectPlain } from "./plain-socket.ts";

/** A unix socket that carries one JSON text per line, as QMP and the guest agent do. Bytes below 0x20 and 0xff around a line are ignored. */
export interface LineSocket {
  send(message: unknown): void;
  close(): void;
}
export interface LineHandlers {
  readonly message: (message: unknown) => void;
  /** Called exactly once, whatever the reason. */
  readonly closed: () => void;
}

const maximumLine = 32 * 1024 * 1024;

/** Connects, or rejects with the socket's error (`ENOENT`, `ECONNREFUSED`). */
export const connectLines = (path: string, handlers: LineHandlers): Promise<LineSocket> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connectPlain(path);
    let connected = false;
    let pending: Buffer[] = [];
    let pendingBytes = 0;
    socket.on("error", (error) => {
      if (!connected) reject(error);
    });
    socket.on("close", () => {
      if (connected) handlers.closed();
    });
    socket.on("data", (chunk) => {
      let rest = chunk;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        const line = Buffer.concat([...pending, rest.subarray(0, end)]);
        pending = [];
        pendingBytes = 0;
        rest = rest.subarray(end + 1);
        const message = parseLine(line);
        if (message !== undefined) handlers.message(message);
      }
      if (rest.length > 0) pending.push(rest);
      pendingBytes += rest.length;
      if (pendingBytes > maximumLine) socket.destroy();
    });
    socket.on("connect", () => {
      connected = true;
      resolve({
        send: (message) => {
          socket.write(`${JSON.stringify(message)}\n`);
        },
        close: () => {
          socket.destroy();
        },
      });
    });
  });

/** The guest writes the agent's side: what is no JSON is dropped, the sync that precedes every command finds the next line. */
const parseLine = (line: Buffer): unknown => {
  let start = 0;
  while (start < line.length && (line[start] === 0xff || (line[start] ?? 0x20) < 0x20)) start += 1;
  const text = line.subarray(start).toString("utf8").trim();
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** A record of an unknown message, or an empty one. */
export const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
