import type { RawData, WebSocket } from "ws";
import { type ClientMessage, channels, type EndCause, type SessionMessage } from "../../model/cell/session-messages.ts";

/** One client's WebSocket, with the messages of `model/cell/session-messages.ts`, bounded in what it holds. */
export interface SessionChannel {
  send(message: SessionMessage): void;
  /** Gives bytes that may be lost: what a slow client cannot take is left out, and a mark says how much. */
  offer(bytes: Buffer): void;
  /** Gives bytes that may not be lost. Resolves when the next ones may come, also when the client is gone. */
  deliver(channel: keyof typeof channels, bytes: Buffer): Promise<void>;
  /** At most one listener each. */
  onInput(listener: (bytes: Buffer) => void): void;
  onMessage(listener: (message: ClientMessage) => void): void;
  /** Says why, and closes. The first end is the one that counts. */
  end(cause: EndCause, sentence: string): void;
  /** Says that all is done, and closes. */
  finish(): void;
  /** Resolves once, when the socket is closed for whatever reason. */
  readonly closed: Promise<void>;
}

/** Unsent output of one client, in bytes; beyond it `offer` drops and `deliver` waits. */
export const unsentLimit = 256 * 1024;
/** With more than this unsent nothing more is read from the client: every message may be answered, and it reads none. */
export const unreadLimit = 4 * unsentLimit;
/** For the last message and the client's answer to it. */
const farewellMs = 2000;
/** RFC 6455, section 7.4.1: normal closure, and the IANA registry: service restart. */
const closeCodes = { normal: 1000, restart: 1012 } as const;

export const createSessionChannel = (socket: WebSocket, idleMs: number): SessionChannel => new Channel(socket, idleMs);

class Channel implements SessionChannel {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #idleMs: number;
  #idle: NodeJS.Timeout;
  #lost = 0;
  #ended = false;
  #paused = false;
  #input: (bytes: Buffer) => void = () => undefined;
  #message: (message: ClientMessage) => void = () => undefined;

  constructor(socket: WebSocket, idleMs: number) {
    this.#socket = socket;
    this.#idleMs = idleMs;
    this.#idle = this.#startIdle();
    this.closed = new Promise((resolve) =>
      socket.once("close", () => {
        this.#ended = true;
        clearTimeout(this.#idle);
        resolve();
      }),
    );
    // A close follows every error.
    socket.on("error", () => undefined);
    socket.on("message", (data, isBinary) => this.#received(data, isBinary));
  }

  onInput(listener: (bytes: Buffer) => void): void {
    this.#input = listener;
  }
  onMessage(listener: (message: ClientMessage) => void): void {
    this.#message = listener;
  }

  send(message: SessionMessage): void {
    if (!this.#ended) this.#socket.send(JSON.stringify(message), this.#sent);
  }

  offer(bytes: Buffer): void {
    if (this.#ended) return;
    if (this.#socket.bufferedAmount > unsentLimit || this.#lost > 0) {
      this.#lost += bytes.length;
      return;
    }
    this.#sendBytes("output", bytes, this.#sent);
  }

  deliver(channel: keyof typeof channels, bytes: Buffer): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      const waits = this.#socket.bufferedAmount > unsentLimit;
      this.#sendBytes(channel, bytes, (error) => {
        this.#sent(error);
        resolve();
      });
      if (!waits) resolve();
    });
  }

  end(cause: EndCause, sentence: string): void {
    if (this.#ended) return;
    this.#markLost();
    this.send({ kind: "ended", cause, sentence });
    this.#close(cause === "closing" ? closeCodes.restart : closeCodes.normal);
  }

  finish(): void {
    if (!this.#ended) this.#close(closeCodes.normal);
  }

  #sendBytes(channel: keyof typeof channels, bytes: Buffer, sent: (error?: Error) => void): void {
    this.#socket.send(Buffer.concat([Buffer.of(channels[channel]), bytes]), { binary: true }, sent);
  }

  /** Something reached the client's side of the network: it is not idle, and may have room again. */
  readonly #sent = (error?: Error): void => {
    if (error != null || this.#ended) return;
    this.#idle.refresh();
    if (this.#paused && this.#socket.bufferedAmount < unsentLimit) {
      this.#paused = false;
      this.#socket.resume();
    }
    if (this.#lost > 0 && this.#socket.bufferedAmount < unsentLimit / 2) this.#markLost();
  };

  #markLost(): void {
    if (this.#lost === 0) return;
    const bytes = this.#lost;
    this.#lost = 0;
    this.send({ kind: "lost", bytes });
  }

  #received(data: RawData, isBinary: boolean): void {
    if (this.#ended) return;
    this.#idle.refresh();
    const bytes = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    if (!isBinary) this.#told(messageIn(bytes));
    else if (bytes.length > 0) this.#input(bytes);
    if (this.#ended || this.#paused || this.#socket.bufferedAmount <= unreadLimit) return;
    this.#paused = true;
    this.#socket.pause();
  }

  #told(message: ClientMessage | null): void {
    if (message === null)
      this.end("protocol", "the client sent a message that no session has; is it of another version?");
    else this.#message(message);
  }

  #startIdle(): NodeJS.Timeout {
    return setTimeout(() => {
      const minutes = Math.max(1, Math.round(this.#idleMs / 60_000));
      this.end("idle", `nothing was typed and nothing arrived for ${minutes} ${minutes === 1 ? "minute" : "minutes"}`);
    }, this.#idleMs);
  }

  #close(code: number): void {
    this.#ended = true;
    clearTimeout(this.#idle);
    this.#socket.resume();
    this.#socket.close(code);
    setTimeout(() => this.#socket.terminate(), farewellMs).unref();
  }
}

const messageIn = (bytes: Buffer): ClientMessage | null => {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { kind, command, input, timeoutMs, signal } = value as Readonly<Record<string, unknown>>;
  switch (kind) {
    case "run": {
      const isCommand =
        Array.isArray(command) && command.length > 0 && command.every((part) => typeof part === "string");
      const isLimit = timeoutMs === null || (typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs < 2 ** 31);
      return isCommand && isLimit && typeof input === "boolean" ? { kind, command, input, timeoutMs } : null;
    }
    case "input-end":
      return { kind };
    case "signal":
      return signal === "INT" || signal === "KILL" ? { kind, signal } : null;
    default:
      return null;
  }
};
