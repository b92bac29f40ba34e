import type { LineLimits } from "./process/bounded-lines.ts";
import type { Rate } from "./process/byte-rate.ts";
import { asRecord, connectLines } from "./process/lines.ts";

export interface QmpEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}
/** QEMU's machine protocol on a unix socket, after the capabilities were negotiated. */
export interface Qmp {
  /** Rejects with QEMU's own sentence, or when the connection ends first. */
  execute(command: string, parameters?: Readonly<Record<string, unknown>>): Promise<unknown>;
  close(): void;
}

/** QEMU answers at once, except to a second client: it lets that one wait until the first is gone. */
const greetingMs = 5000;
/** QEMU's own answers are far below. One that a guest has taken over may say anything. */
const limits: LineLimits = {
  depth: 32,
  values: 65_536,
  stringBytes: 1024 * 1024,
  lineBytes: 4 * 1024 * 1024,
  lines: Number.POSITIVE_INFINITY,
};
const rate: Rate = { bytesPerSecond: 8 * 1024 * 1024, burstBytes: 8 * 1024 * 1024 };

/** Connects and negotiates. `onClosed` is called once, when QEMU goes away or `close` was called. */
export const connectQmp = async (
  path: string,
  onEvent: (event: QmpEvent) => void,
  onClosed: () => void,
): Promise<Qmp> => {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let next = 1;
  let open = true;
  const socket = await connectLines(
    path,
    { limits, rate },
    {
      message: (message) => {
        const fields = asRecord(message);
        if (typeof fields.event === "string") {
          onEvent({ event: fields.event, data: asRecord(fields.data) });
          return;
        }
        const call = typeof fields.id === "number" ? waiting.get(fields.id) : undefined;
        if (call === undefined) return;
        waiting.delete(fields.id as number);
        const error = asRecord(fields.error);
        if (typeof error.desc === "string") call.reject(new Error(error.desc));
        else call.resolve(fields.return);
      },
      closed: () => {
        open = false;
        for (const call of waiting.values()) call.reject(new Error("QEMU closed its control socket"));
        waiting.clear();
        onClosed();
      },
    },
  );
  const qmp: Qmp = {
    execute: (command, parameters) =>
      new Promise((resolve, reject) => {
        if (!open) {
          reject(new Error("QEMU closed its control socket"));
          return;
        }
        const id = next++;
        waiting.set(id, { resolve, reject });
        socket.send(
          parameters === undefined ? { execute: command, id } : { execute: command, arguments: parameters, id },
        );
      }),
    close: () => socket.close(),
  };
  const timer = setTimeout(() => socket.close(), greetingMs);
  await qmp.execute("qmp_capabilities").finally(() => clearTimeout(timer));
  return qmp;
};

/** Rejects with a sentence if QEMU has not answered by then. What was asked for may be done later. */
export const inTime = async <T>(answer: Promise<T>, ms: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`QEMU has not answered within ${ms} ms`)), ms);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
};
