import {
  capabilityPrefix,
  inputWindowBytes,
  type SessionGrant,
  type SessionMessage,
  type SessionVerb,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import { SendWindow } from "../../model/contract/client/send-window.ts";
import type { Ended } from "../state/screens/again.ts";
import { ask, Refused } from "./api.ts";

/** A session into a VM (`model/cell/session-messages.ts`), from a browser. */
export interface PageSession {
  /** What is sent before it is open waits for that. False: it is over, or has no room. */
  send(bytes: Uint8Array): boolean;
  close(): void;
  /** What it carries cannot be gone on with: it ends as one that broke. */
  fail(): void;
}
export interface SessionListener {
  bytes(bytes: Uint8Array<ArrayBuffer>): void;
  message(message: SessionMessage): void;
  /** Once, unless `close` was called before. */
  ended(ended: Ended): void;
}
export interface Asked {
  readonly cell: string;
  readonly vm: string;
  readonly verb: Extract<SessionVerb, "console" | "display">;
  /** Of a console: this one, which may have ended. Absent: the one that runs. */
  readonly incarnation?: number;
}

/** Asks for a capability and opens the stream. What comes of it is the listener's to know. */
export function openSession({ cell, vm, verb, incarnation }: Asked, listener: SessionListener): PageSession {
  let socket: WebSocket | null = null;
  let isOver = false;
  const window = new SendWindow(inputWindowBytes[verb]);
  const end = (ended: Ended): void => {
    if (isOver) return;
    isOver = true;
    socket?.close();
    listener.ended(ended);
  };
  /** Half of a line that was typed too early would be a line of its own. */
  let early: Uint8Array[] = [];
  const sendAll = (pieces: readonly Uint8Array[]): void => {
    if (socket?.readyState !== WebSocket.OPEN) early.push(...pieces);
    else for (const piece of pieces) socket.send(piece as Uint8Array<ArrayBuffer>);
  };
  const told = (text: string): void => {
    const message = JSON.parse(text) as SessionMessage;
    if (message.kind === "taken") sendAll(window.taken(message.bytes));
    else if (message.kind === "ended") end({ kind: "ended", cause: message.cause, sentence: message.sentence });
    else listener.message(message);
  };
  const begin = async (): Promise<void> => {
    const path = `/cells/${encodeURIComponent(cell)}/sessions`;
    const { value } = await ask("grantSession", "POST", path, { body: JSON.stringify({ vm, verb, incarnation }) });
    if (isOver) return;
    const address = new URL(path, globalThis.location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const { session } = value as SessionGrant;
    const opened = new WebSocket(address, [sessionProtocol, `${capabilityPrefix}${session}`]);
    opened.binaryType = "arraybuffer";
    socket = opened;
    opened.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (isOver) return;
      // The first octet says which stream it is of, and there is one.
      if (typeof data === "string") told(data);
      else listener.bytes(new Uint8Array(data, 1));
    };
    opened.onopen = () => {
      sendAll(early);
      early = [];
    };
    opened.onclose = () => end({ kind: "broken" });
  };
  begin().catch((error: unknown) => {
    const status = error instanceof Refused ? error.status : 0;
    end({ kind: "refused", status, sentence: (error as Error).message });
  });
  return {
    send: (bytes) => {
      if (isOver || (socket !== null && socket.readyState > WebSocket.OPEN)) return false;
      const ready = window.add(bytes);
      if (ready !== null) sendAll(ready);
      return ready !== null;
    },
    close: () => {
      isOver = true;
      socket?.close();
    },
    fail: () => end({ kind: "broken" }),
  };
}
