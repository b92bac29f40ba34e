import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { PeerName } from "../../model/cell/identifiers.ts";

/**
 * HTTPS between services, for what is asked by a person or is a stream: a controller's REST, a session, boot files. The
 * same certificates as state distribution, on both sides.
 */
export interface PeerRequest {
  /** Common name of the client's certificate; `user` where it has none and need not have one. */
  readonly peer: PeerName;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
  /** The same request for a framework that wants Node's own. */
  readonly raw: IncomingMessage;
}

export type PeerHandler = (request: PeerRequest, response: ServerResponse) => void | Promise<void>;
