import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type RawData, WebSocket } from "ws";
import {
  type ClientMessage,
  capabilityPrefix,
  channels,
  type EndCause,
  inputWindowBytes,
  type SessionGrant,
  type SessionMessage,
  type SessionRequest,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { SendWindow } from "../../model/contract/client/send-window.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Client, Refused, refusalOf } from "../connection/client.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

/** The client's end of a session (`model/cell/session-messages.ts`). */
export interface Session {
  readonly grant: SessionGrant;
  /** Sends input; resolves when there is room for more. False: the session is over. */
  write(bytes: Buffer): Promise<boolean>;
  send(message: ClientMessage): void;
  /** Nothing more is read until `resume`: the other end feels it. */
  pause(): void;
  resume(): void;
  /** Leaves. */
  close(): void;
  /** Resolves once, after everything that came was handed over. */
  readonly ended: Promise<Ending>;
}
export type Ending =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "ended"; readonly cause: EndCause; readonly sentence: string }
  /** We closed it. */
  | { readonly kind: "left" }
  /** The connection ended without a word. */
  | { readonly kind: "broken" };

export interface SessionListener {
  output(channel: keyof typeof channels, bytes: Buffer): void;
  message(message: SessionMessage): void;
}

/** A VM that is off or starting, and services that are away or full: it may be otherwise in a moment. */
export const isPassing = (failure: CommandFailure): boolean =>
  !(failure instanceof Refused) || failure.status === 409 || failure.status === 429 || failure.status >= 500;

const chunkBytes = 16 * 1024;

/** Longer than a host waits for an agent: who is silent for so long is away. */
const longestWaitMs = 90_000;
export const inWords = (ms: number): string => (ms >= 1000 ? `${Math.round(ms / 1000)} s` : `${ms} ms`);

/** A capability, and where it is used. Rejects with `Refused`, or that nothing answers. */
export const granted = async (
  client: Client,
  cell: string,
  asked: SessionRequest,
  waitMs = longestWaitMs,
): Promise<{ readonly grant: SessionGrant; readonly url: string }> => {
  const signal = AbortSignal.timeout(waitMs);
  return client.session(cell, asked, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new CommandFailure(
      exitCodes.unreachable,
      `nobody has said within ${inWords(waitMs)} whether ${asked.vm} may be reached; \`cells status\` names services that are away`,
    );
  });
};

/**
 * Asks for a capability and opens the stream. Rejects with `Refused`, or that nothing answers.
 *
 * @param waitMs for each of the two
 */
export const openSession = async (
  client: Client,
  request: SessionRequest & { readonly cell: string },
  listener: SessionListener,
  waitMs = longestWaitMs,
): Promise<Session> => {
  const { cell, ...asked } = request;
  const { grant, url } = await granted(client, cell, asked, waitMs);
  const socket = new WebSocket(url, [sessionProtocol, `${capabilityPrefix}${grant.session}`], {
    perMessageDeflate: false,
    handshakeTimeout: waitMs,
  });
  const session = new OpenSession(socket, grant, listener, inputWindowBytes[asked.verb]);
  const answer = await new Promise<IncomingMessage | null>((resolve, reject) => {
    socket.once("open", () => resolve(null));
    socket.once("unexpected-response", (_request, response) => resolve(response));
    socket.once("error", ({ message }) =>
      reject(new CommandFailure(exitCodes.unreachable, `the session could not be opened: ${message}`)),
    );
  });
  if (answer === null) return session;
  const status = answer.statusCode ?? 502;
  const refusal = refusalOf(status, await text(answer));
  socket.terminate();
  throw refusal;
};

/** The guest's output is its own affair; what is said of it in our name is text, also where a guest's words are in it. */
const plain = (message: SessionMessage, { host }: SessionGrant): SessionMessage => {
  if ("sentence" in message) return { ...message, sentence: printable(message.sentence) };
  return message.kind === "opened" && message.host === "" ? { ...message, host: printable(host ?? "") } : message;
};
/** Who may not learn of machines is told none. */
export const onHost = (host: string): string => (host === "" ? "" : ` on host ${host}`);

class OpenSession implements Session {
  readonly grant: SessionGrant;
  readonly ended: Promise<Ending>;
  readonly #socket: WebSocket;
  readonly #listener: SessionListener;
  readonly #window: SendWindow;
  #ending: Ending = { kind: "broken" };
  #room: (() => void)[] = [];

  constructor(socket: WebSocket, grant: SessionGrant, listener: SessionListener, windowBytes: number) {
    this.#socket = socket;
    this.#window = new SendWindow(windowBytes, chunkBytes);
    this.grant = grant;
    this.#listener = listener;
    socket.on("message", (data, isBinary) => this.#received(data, isBinary));
    socket.on("error", () => undefined);
    this.ended = new Promise((resolve) =>
      socket.once("close", () => {
        this.#giveRoom();
        resolve(this.#ending);
      }),
    );
  }

  async write(bytes: Buffer): Promise<boolean> {
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      const chunk = bytes.subarray(start, start + chunkBytes);
      let ready = this.#open() ? this.#window.add(chunk) : [];
      for (; ready === null && this.#open(); ready = this.#window.add(chunk)) await this.#hasRoom();
      if (!this.#open()) return false;
      this.#sendAll(ready ?? []);
    }
    // What is said after it does not overtake it.
    while (!this.#window.isEmpty && this.#open()) await this.#hasRoom();
    return this.#open();
  }
  #hasRoom(): Promise<void> {
    return new Promise((resolve) => this.#room.push(resolve));
  }
  #sendAll(pieces: readonly Uint8Array[]): void {
    for (const piece of pieces) if (this.#open()) this.#socket.send(piece, { binary: true });
  }

  send(message: ClientMessage): void {
    if (this.#open()) this.#socket.send(JSON.stringify(message));
  }
  pause(): void {
    if (this.#open()) this.#socket.pause();
  }
  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#ending = { kind: "left" };
    this.#socket.resume();
    this.#socket.close(1000);
    // An end that does not answer is no reason to stay.
    setTimeout(() => this.#socket.terminate(), 1000).unref();
  }

  #open(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }
  #giveRoom(): void {
    for (const resolve of this.#room.splice(0)) resolve();
  }

  #received(data: RawData, isBinary: boolean): void {
    const bytes = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    if (isBinary) {
      this.#listener.output(bytes[0] === channels.error ? "error" : "output", bytes.subarray(1));
      return;
    }
    const message = plain(JSON.parse(bytes.toString("utf8")) as SessionMessage, this.grant);
    if (message.kind === "taken") {
      this.#sendAll(this.#window.taken(message.bytes));
      this.#giveRoom();
    } else if (message.kind === "exited" || message.kind === "ended") {
      if (this.#ending.kind !== "left") this.#ending = message;
    } else this.#listener.message(message);
  }
}
