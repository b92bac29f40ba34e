import { type Rate, RateBound } from "../process/byte-rate.ts";
import { connectPlain } from "../process/plain-socket.ts";

/**
 * The serial port at which a guest waits to be told who it is: lines of text. The guest agent could do the same, but every
 * command of it costs an emulated processor some 60 ms, and its end has to be asked for again and again.
 */
export interface IdentityPort {
  send(line: string): void;
  /** The guest's next line. Rejects with a sentence after that time, or when the port ends. */
  next(timeoutMs: number): Promise<string>;
  close(): void;
}

/** A guest's line is a few words. */
const longestLine = 4096;
const mostLines = 16;
const rate: Rate = { bytesPerSecond: 64 * 1024, burstBytes: 256 * 1024 };

export const openIdentityPort = (path: string): Promise<IdentityPort> =>
  new Promise((resolve, reject) => {
    const socket = connectPlain(path);
    const bound = new RateBound(socket, rate);
    const lines: string[] = [];
    let pending = "";
    let closed = false;
    let told: (() => void) | null = null;
    const ended = (): void => {
      bound.stop();
      closed = true;
      told?.();
    };
    socket.setEncoding("latin1");
    socket.once("error", reject);
    socket.on("close", ended);
    socket.on("data", (text: string) => {
      bound.take(text.length);
      const parts = `${pending}${text}`.split("\n");
      pending = (parts.pop() ?? "").slice(0, longestLine);
      // A guest that says much says nothing.
      const wanted = parts.slice(0, Math.max(0, mostLines - lines.length));
      lines.push(...wanted.map((part) => part.slice(0, longestLine).replace(/[^ -~]/g, "")));
      told?.();
    });
    socket.once("connect", () =>
      resolve({
        send: (line) => {
          socket.write(`${line}\n`);
        },
        next: (timeoutMs) =>
          new Promise((take, refuse) => {
            const timer = setTimeout(() => {
              told = null;
              refuse(new Error(`its guest did not answer within ${timeoutMs / 1000} s`));
            }, timeoutMs);
            told = () => {
              const line = lines.shift();
              if (line === undefined && !closed) return;
              clearTimeout(timer);
              told = null;
              if (line === undefined) refuse(new Error("its QEMU process ended"));
              else take(line);
            };
            told();
          }),
        close: () => socket.destroy(),
      }),
    );
  });
