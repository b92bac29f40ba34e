import type { PageSession } from "../../data/session.ts";

/** What noVNC takes in the place of a WebSocket: a session's bytes, without what else a session says. */
export class RfbChannel {
  readonly #session: () => PageSession | null;
  binaryType = "arraybuffer";
  readonly protocol = "";
  readyState: "connecting" | "open" | "closed" = "connecting";
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: ArrayBuffer }) => void) | null = null;
  onerror: (() => void) | null = null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null = null;

  constructor(session: () => PageSession | null) {
    this.#session = session;
  }
  send(bytes: Uint8Array): void {
    // A copy: noVNC writes its next message into the same buffer.
    if (this.readyState === "open") this.#session()?.send(bytes.slice());
  }
  /** By noVNC, also where it does not understand what it is sent. */
  close(): void {
    if (this.readyState === "closed") return;
    this.left();
    this.#session()?.fail();
  }

  opened(): void {
    this.readyState = "open";
    this.onopen?.();
  }
  give(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.readyState === "open") this.onmessage?.({ data: bytes.slice().buffer });
  }
  left(): void {
    if (this.readyState === "closed") return;
    this.readyState = "closed";
    this.onclose?.({ code: 1000, reason: "" });
  }
}
