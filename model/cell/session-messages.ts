/**
 * The contract of sessions: streams for a person into a running VM. A session never changes desired state.
 *
 * POST /cells/<cell>/sessions  body: SessionRequest → 201 SessionGrant
 * GET  /cells/<cell>/sessions  Upgrade: websocket; Sec-WebSocket-Protocol: `cells.session.v1, cells.capability.<session>`
 *
 * The grant's `session` is a capability: whoever has it may open this one stream, once, until it expires. It stands in a
 * subprotocol because that is the only header a web page can set on a WebSocket, and because addresses are logged and
 * this header is not. The answer names `cells.session.v1` alone.
 *
 * A `forward` is one connection to a TCP port of the VM: what is sent is its input, up to `input-end`, and what comes is its output. It has ended with
 * `exited`: 0, or, where nobody listens, another number.
 *
 * A `display` is one viewer's connection to the screen and the keyboard of a VM that has `x.display`: the Remote Framebuffer Protocol (RFC 6143) without
 * authentication, since the capability was one. Several viewers may be at one display.
 *
 * From the client: binary messages are input, as bytes; text messages are `ClientMessage`s. To the client: the first byte
 * of a binary message says which stream the rest belongs to (`channels`); text messages are `SessionMessage`s.
 */
export const sessionProtocol = "cells.session.v1";
export const capabilityPrefix = "cells.capability.";

export const sessionVerbs = ["console", "exec", "forward", "display"] as const;
export type SessionVerb = (typeof sessionVerbs)[number];

export interface SessionRequest {
  /** Path of the VM. */
  readonly vm: string;
  readonly verb: SessionVerb;
  /** Of `forward` alone: the TCP port of the VM, from 1 to 65535. Each session is one connection to it. */
  readonly port?: number;
  /**
   * Of `console` alone: this one, which may have ended. Then what it said last is given and the session ends with `machine-ended`; a host keeps the last
   * three of a VM for a day. Absent: the one that runs.
   */
  readonly incarnation?: number;
}
export interface SessionGrant {
  /** A secret until it is used. */
  readonly session: string;
  /** ISO 8601. Only the opening must come before it. */
  readonly expires: string;
  readonly vm: string;
  readonly incarnation: number;
  /** To the operator; null or absent: it is not told. */
  readonly host?: string | null;
}

/** First byte of a binary message to the client. A console has only `output`. */
export const channels = { output: 1, error: 2 } as const;

/** Of one screen. QEMU keeps a copy of it for each, and what one asks for and does not take: 42 MiB were measured at 2560×1600, within what a machine may take (`host/drivers/hypervisor/process/cgroup.ts`). */
export const mostViewers = 2;
/** A client keeps at most this much input that was not yet acknowledged by `taken`; who sends more is ended. In bytes. */
export const inputWindowBytes: Readonly<Record<SessionVerb, number>> = {
  console: 64 * 1024,
  exec: 512 * 1024,
  forward: 512 * 1024,
  display: 64 * 1024,
};
/** Of one message, in bytes. */
export const longestMessageBytes = 96 * 1024;

export type ClientMessage =
  /** The first message of an exec session. With `input`, binary messages up to `input-end` become its standard input, as they come. */
  | {
      readonly kind: "run";
      readonly command: readonly string[];
      readonly input: boolean;
      /** Null: as long as it wants. */
      readonly timeoutMs: number | null;
    }
  | { readonly kind: "input-end" }
  /** To the command and what it has started. */
  | { readonly kind: "signal"; readonly signal: "INT" | "KILL" };

export type SessionMessage =
  /** First. `pastBytes` of what follows were recorded before. */
  | {
      readonly kind: "opened";
      readonly incarnation: number;
      /** Of a host of a version before; empty: the grant says it to whom it may be told. */
      readonly host: string;
      readonly viewers: number;
      readonly pastBytes: number;
    }
  /** So many are at this console now. */
  | { readonly kind: "viewers"; readonly count: number }
  /** Here, so many bytes of output are missing: the client took them too slowly. */
  | { readonly kind: "lost"; readonly bytes: number }
  | { readonly kind: "taken"; readonly bytes: number }
  | { readonly kind: "notice"; readonly sentence: string }
  /** The command has ended; 128 + signal when a signal ended it. */
  | { readonly kind: "exited"; readonly exitCode: number }
  /** Last: why there is no more. The connection is closed behind it. */
  | { readonly kind: "ended"; readonly cause: EndCause; readonly sentence: string };

/**
 * `machine-ended`: this incarnation runs no longer; `closing`: the host's service restarts, the machine goes on;
 * `failed`: the command gave no result; `timeout`: it took too long and was killed; `protocol`: the client broke the rules.
 */
export type EndCause = "machine-ended" | "closing" | "idle" | "failed" | "timeout" | "protocol";
