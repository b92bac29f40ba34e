import { createSocket } from "node:dgram";
import { setTimeout as sleep } from "node:timers/promises";
import { encode } from "dns-packet";
import type { ZoneNumber } from "../../core/dns/zone.ts";
import type { Json } from "../../model/json/json.ts";
import { ports } from "../installation.ts";
import { signed } from "./tsig.ts";
import type { ZoneKeys } from "./zone-keys.ts";

/**
 * Tells the zone's secondaries that it is another one (NOTIFY, RFC 1996), so that they do not wait for their next look. Each is
 * told until it answers, three times at most: what is lost is found at the next look anyway. The service says when there is
 * something to tell.
 */
export interface NotifyOptions {
  /** The DNS Manager's own address, from which they take it. */
  readonly address: string;
  readonly request: (request: Json) => Promise<Json>;
  readonly port?: number;
  /** By which it is signed, if the zone has a key; while the secret is missing nobody is told, since nobody could fetch it. */
  readonly zoneKeys?: ZoneKeys;
  /** Until who has not answered is told again. */
  readonly againMs?: number;
}
const attempts = 3;
const notify = 0x2000;
const authoritative = 0x0400;
const nowS = (): number => Math.floor(Date.now() / 1_000);

export function notifySecondaries(options: NotifyOptions): { readonly stop: () => void } {
  const { address, request, port = ports.dns, againMs = 1_000, zoneKeys } = options;
  /** By secondary and zone: the number of which it has answered. */
  const told = new Map<string, number>();
  const under = new Map<number, { readonly secondary: string; readonly to: string; readonly serial: number }>();
  const socket = createSocket("udp4");
  let [stopped, id, rounds] = [false, 0, 0];
  let timer: NodeJS.Timeout | undefined;
  socket.on("error", () => {});
  socket.on("message", (packet, { address: from }) => {
    const asked = packet.length < 4 ? undefined : under.get(packet.readUInt16BE(0));
    if (asked?.secondary === from && ((packet[2] ?? 0) & 0x80) !== 0) told.set(asked.to, asked.serial);
  });
  socket.bind(0, address);
  const tell = async (number: ZoneNumber, attempt: number, round: number): Promise<void> => {
    const key = (await zoneKeys?.current()) ?? null;
    if (stopped || round !== rounds || key === "missing") return;
    const { zones, serial, secondaries } = number;
    const untold = secondaries
      .flatMap((secondary) => zones.map((zone) => ({ secondary, zone, to: `${secondary} ${zone}` })))
      .filter(({ to }) => told.get(to) !== serial);
    for (const { secondary, zone, to } of untold) {
      id = (id + 1) % 65_536;
      under.set(id, { secondary, to, serial });
      const questions = [{ name: zone, type: "SOA" as const }];
      const message = encode({ type: "query", id, flags: notify | authoritative, questions });
      for (const packet of key === null ? [message] : signed(key, null, [message], nowS()))
        socket.send(packet, port, secondary, () => {});
    }
    if (untold.length > 0 && attempt < attempts)
      timer = setTimeout(() => void tell(number, attempt + 1, round).catch(() => {}), againMs);
  };
  const follow = async (): Promise<void> => {
    let known: ZoneNumber | null = null;
    while (!stopped) {
      try {
        known = (await request({ zone: "news", known: known as Json })) as unknown as ZoneNumber | null;
      } catch {
        await sleep(againMs, undefined, { ref: false });
        continue;
      }
      clearTimeout(timer);
      under.clear();
      rounds += 1;
      if (known !== null && !stopped) await tell(known, 1, rounds).catch(() => {});
    }
  };
  void follow();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      socket.close();
    },
  };
}
