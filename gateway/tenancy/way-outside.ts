import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { peerName } from "../../model/cell/identifiers.ts";
import { parseJson } from "../../runtime/http/http.ts";
import { joinStreams, peerUpgrade } from "../../runtime/http/websocket-hop.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { tunnelPath } from "../../runtime/tenancy/source.ts";
import { firstLine } from "../../runtime/tenancy/tunnels.ts";

/*
 * The service `tenancy` has no way outside: where a request needs one, this makes it. A tunnel waits there unused; as soon as `tenancy` says where it
 * is to lead, the next one waits. What passes is TLS between the two ends.
 */
const mostConnections = 12;
const reachMs = 5000;
/** Longer than a request. */
const unusedMs = 60_000;
const tenancy = peerName("tenancy");

/** @param work is given the id of the request's tunnels, which are there as long as it goes on */
export async function withWayOutside<T>(
  configuration: ProcessConfiguration,
  work: (id: string) => Promise<T>,
): Promise<T> {
  const id = randomBytes(16).toString("hex");
  const open = new Set<Duplex>();
  const over = new AbortController();
  const keep = (socket: Duplex): void => {
    open.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => open.delete(socket));
    if (over.signal.aborted) socket.destroy();
  };
  let made = 0;
  const spare = async (): Promise<void> => {
    if (over.signal.aborted || made >= mostConnections) return;
    made += 1;
    const answer = await peerUpgrade(configuration, tenancy, {
      path: tunnelPath(id),
      handshake: {},
      headers: { upgrade: "tunnel" },
      signal: over.signal,
    });
    if (!answer.accepted) return;
    keep(answer.socket);
    if (answer.head.length > 0) answer.socket.unshift(answer.head);
    void lead(answer.socket).catch(() => answer.socket.destroy());
  };
  const lead = async (tunnel: Duplex): Promise<void> => {
    const { line, rest } = await firstLine(tunnel, unusedMs);
    void spare().catch(() => undefined);
    const read = parseJson(line);
    const { host, port } = ((read.ok ? read.value : null) ?? {}) as {
      readonly host?: unknown;
      readonly port?: unknown;
    };
    if (typeof host !== "string" || typeof port !== "number") throw new Error("no place was said");
    let outside: Socket;
    try {
      outside = await reach(host, port);
    } catch (error) {
      tunnel.end(`${JSON.stringify({ error: (error as Error).message })}\n`);
      return;
    }
    keep(outside);
    if (rest.length > 0) outside.write(rest);
    tunnel.write("{}\n");
    await joinStreams(tunnel, outside);
  };
  try {
    await spare().catch(() => undefined);
    return await work(id);
  } finally {
    over.abort();
    for (const socket of open) socket.destroy();
  }
}

const reach = (host: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.setTimeout(reachMs, () => socket.destroy(new Error(`no answer within ${reachMs / 1000} s`)));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", reject);
      resolve(socket);
    });
  });
