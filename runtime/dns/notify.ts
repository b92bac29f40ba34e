import { createSocket } from "node:dgram";
import { encode } from "dns-packet";
import type { ZoneNumber } from "../../core/dns/manager.ts";
import type { Json } from "../../model/json/json.ts";
import { ports } from "../installation.ts";

/**
 * Tells the zone's secondaries that it is another one (NOTIFY, RFC 1996), so that they do not wait for their next look. Each is
 * told until it answers, three times at most: what is lost is found at the next look anyway.
 */
export interface NotifyOptions {
  /** The DNS Manager's own address, from which they take it. */
  readonly address: string;
  readonly request: (request: Json) => Promise<Json>;
  readonly port?: number;
  readonly everyMs?: number;
}
const attempts = 3;
/** Where no zone is declared there is seldom anything to look for. */
const seldom = 30;
const notify = 0x2000;
const authoritative = 0x0400;

export function notifySecondaries({ address, request, port = ports.dns, everyMs = 1_000 }: NotifyOptions): {
  readonly stop: () => void;
} {
  /** By secondary: the zone and number that it was told last, or has been told often enough. */
  const told = new Map<string, string>();
  const tries = new Map<string, { readonly what: string; count: number }>();
  const socket = createSocket("udp4");
  let [stopped, id] = [false, 0];
  const under = new Map<number, { readonly secondary: string; readonly what: string }>();
  socket.on("error", () => {});
  socket.on("message", (packet, { address: from }) => {
    const asked = packet.length < 4 ? undefined : under.get(packet.readUInt16BE(0));
    if (asked?.secondary === from && ((packet[2] ?? 0) & 0x80) !== 0) told.set(from, asked.what);
  });
  socket.bind(0, address);
  /** @returns whether a zone is declared */
  const look = async (): Promise<boolean> => {
    const now = (await request({ zone: "number" })) as unknown as ZoneNumber | null;
    if (now === null || stopped) return false;
    const what = `${now.zone} ${now.serial}`;
    under.clear();
    for (const secondary of now.secondaries) {
      if (told.get(secondary) === what) continue;
      const before = tries.get(secondary);
      const count = before?.what === what ? before.count + 1 : 1;
      tries.set(secondary, { what, count });
      if (count > attempts) continue;
      id = (id + 1) % 65_536;
      under.set(id, { secondary, what });
      const questions = [{ name: now.zone, type: "SOA" as const }];
      socket.send(encode({ type: "query", id, flags: notify | authoritative, questions }), port, secondary, () => {});
    }
    return true;
  };
  const looks = async (): Promise<void> => {
    const isDeclared = await look().catch(() => true);
    if (!stopped) timer = setTimeout(looks, isDeclared ? everyMs : seldom * everyMs);
  };
  let timer = setTimeout(looks, everyMs);
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      socket.close();
    },
  };
}
