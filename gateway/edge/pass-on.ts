import { connect, createServer, type Socket } from "node:net";
import { type Admits, createHandshakes } from "../shared/handshakes.ts";

/**
 * A door in a VM of its own is reached through the gateway's (decision 212): connections to its port go on as they are, and the
 * gateway holds no key with which it could read them. So does what such a VM asks of the authority, which it knows by its key.
 *
 * Places are bounded: what passes costs two sockets each, of which the gateway needs the rest itself. So is how often one source may begin,
 * as at the gateway's own door: whoever is behind it hears all of them from one address.
 */
export interface Pass {
  /** `ADDRESS:PORT` to listen at. */
  readonly at: string;
  readonly to: string;
  /** Fewer connections than usual at a time, where whoever is behind it counts those of one address. */
  readonly places?: number;
}
export interface PassLimits {
  readonly inAll: number;
  readonly ofOneSource: number;
  readonly connectMs: number;
  readonly againMs: number;
  readonly begins?: Admits;
}
const usual: PassLimits = { inAll: 2048, ofOneSource: 512, connectMs: 10_000, againMs: 10_000 };
/** A side that is gone without a word is noticed by that. */
const aliveEveryMs = 60_000;

const placeIn = (text: string): { readonly host: string; readonly port: number } => {
  const [host = "", port = ""] = text.split(":");
  return { host, port: Number(port) };
};

/**
 * @param failed is told why it does not listen, each time that it tried; it goes on trying, since the gateway itself is of use
 *   without its doors
 */
export function passOn(
  { at, to, places = Number.POSITIVE_INFINITY }: Pass,
  failed: (why: string) => void,
  limits: PassLimits = usual,
): { readonly close: () => void; readonly port: () => number | null } {
  const open = new Set<Socket>();
  const bySource = new Map<string, number>();
  const begins = limits.begins ?? createHandshakes(() => performance.now());
  const leave = (source: string): void => {
    const left = (bySource.get(source) ?? 1) - 1;
    if (left === 0) bySource.delete(source);
    else bySource.set(source, left);
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const source = client.remoteAddress ?? "";
    const taken = bySource.get(source) ?? 0;
    const hasPlace = open.size < Math.min(limits.inAll, places) && taken < limits.ofOneSource;
    if (!hasPlace || !begins(source)) {
      client.destroy();
      return;
    }
    open.add(client);
    bySource.set(source, taken + 1);
    const onward = connect({ ...placeIn(to), allowHalfOpen: true, timeout: limits.connectMs });
    onward.once("connect", () => onward.setTimeout(0));
    onward.once("timeout", () => onward.destroy());
    for (const [one, other] of [
      [client, onward],
      [onward, client],
    ] as const) {
      one.setKeepAlive(true, aliveEveryMs);
      one.on("error", () => undefined);
      one.once("close", () => other.destroy());
      one.pipe(other);
    }
    client.once("close", () => {
      open.delete(client);
      leave(source);
    });
  });
  let again: NodeJS.Timeout | undefined;
  const listen = (): void => void server.listen(placeIn(at));
  server.on("error", (error) => {
    failed(error.message);
    // A connection that could not be taken: it listens all the same, and to listen twice would end this process.
    if (server.listening) return;
    again = setTimeout(listen, limits.againMs);
  });
  listen();
  return {
    close: () => {
      clearTimeout(again);
      server.close();
      for (const client of open) client.destroy();
    },
    port: () => {
      const place = server.address();
      return place !== null && typeof place === "object" ? place.port : null;
    },
  };
}
