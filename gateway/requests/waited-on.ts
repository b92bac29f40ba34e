import { setTimeout as sleep } from "node:timers/promises";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { parseJson } from "../../runtime/http/http.ts";
import { type KeptConnection, peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { listPeers } from "../../runtime/transport/peers.ts";

/* Services that have the gateway do something outside: it asks for the next of it, and the answer waits until there is some. */
const waitMs = 40_000;
const againMs = 5_000;

export type AskWaiting = (method: "GET" | "POST", path: string, body?: object) => Promise<Json>;
/** Over a connection that is kept: a handshake for each question would be most of what an idle gateway does. @param over what ends it all */
export const askWaiting =
  (configuration: ProcessConfiguration, connection: KeptConnection, over: AbortSignal): AskWaiting =>
  async (method, path, body) => {
    const { peer } = connection;
    const answer = await peerRequest(configuration, peer, {
      method,
      path,
      connection,
      signal: AbortSignal.any([over, AbortSignal.timeout(waitMs)]),
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const read = parseJson(await answer.text());
    if (answer.status !== 200 || !read.ok) throw new Error(`"${peer}" answered with ${answer.status}`);
    return read.value;
  };

/**
 * Does `next` again and again until `over`. Where it rejects the service is away, or of an earlier version: it is asked again in a while.
 * @param noneMs where there is no such service
 */
export async function whileThere(
  configuration: ProcessConfiguration,
  peer: PeerName,
  { over, noneMs }: { readonly over: AbortSignal; readonly noneMs: number },
  next: () => Promise<void>,
): Promise<void> {
  while (!over.aborted) {
    try {
      if ((await listPeers(configuration, peer)).includes(peer)) await next();
      else await sleep(noneMs, undefined, { signal: over, ref: false });
    } catch {
      await sleep(againMs, undefined, { signal: over, ref: false }).catch(() => undefined);
    }
  }
}
