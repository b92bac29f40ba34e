import type { Socket } from "node:net";
import { BoundedLines, type LineLimits } from "./bounded-lines.ts";
import { type Rate, RateBound } from "./byte-rate.ts";
import { connectPlain } from "./plain-socket.ts";

/** A unix socket that carries one JSON object per line, as QMP and the guest agent do. */
export interface LineSocket {
  send(message: unknown): void;
  /** False: nothing is read until it is true again, and the other end waits. */
  listen(listens: boolean): void;
  /** Of the lines that are read from now on. */
  limit(limits: LineLimits): void;
  close(): void;
}
export interface LineHandlers {
  readonly message: (message: unknown) => void;
  /** Lines that ended, whatever was in them. */
  readonly lines?: (count: number) => void;
  /** Called exactly once, whatever the reason. */
  readonly closed: () => void;
}
export interface LineOptions {
  readonly limits: LineLimits;
  /** Absent: QEMU itself talks. */
  readonly rate?: Rate;
  /** Absent: from the beginning. */
  readonly listens?: false;
}

/** A line costs as much as so many bytes, however short it is. */
const lineCostBytes = 1024;

/** Connects, or rejects with the socket's error (`ENOENT`, `ECONNREFUSED`). */
export const connectLines = (path: string, options: LineOptions, handlers: LineHandlers): Promise<LineSocket> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connectPlain(path);
    const bound = options.rate === undefined ? null : new RateBound(socket, options.rate);
    const listen = (listens: boolean): void => {
      if (bound !== null) bound.hold(!listens);
      else if (listens) socket.resume();
      else socket.pause();
    };
    let connected = false;
    const reader = new BoundedLines(options.limits, handlers.message);
    socket.on("error", (error) => {
      if (!connected) reject(error);
    });
    socket.on("close", () => {
      bound?.stop();
      if (connected) handlers.closed();
    });
    socket.on("data", (chunk: Buffer) => {
      const lines = reader.push(chunk);
      bound?.take(chunk.length + lines * lineCostBytes);
      if (lines > 0) handlers.lines?.(lines);
    });
    if (options.listens === false) listen(false);
    socket.on("connect", () => {
      connected = true;
      resolve({
        send: (message) => {
          socket.write(`${JSON.stringify(message)}\n`);
        },
        listen,
        limit: (limits) => reader.limit(limits),
        close: () => {
          socket.destroy();
        },
      });
    });
  });

/** A record of an unknown message, or an empty one. */
export const asRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
