import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { Announced, GlobalNetwork, Outside, RouterFact } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { mostRouters, octets, router, word } from "../program/layout.ts";
import { detachAll, ensureAttached, indexOf, openPacketSocket, sendFrame } from "../program/libbpf.ts";
import type { Generations } from "../rules/generations.ts";
import { announcedNow } from "./announced.ts";
import { announcement, macText, question } from "./arp.ts";
import { putHostRoutes, watchHostRoutes } from "./host-routes.ts";
import { closeOutside, putRouters } from "./in-force.ts";
import type { OwnNetworks } from "./own-networks.ts";
import { answers, askedMac, hear, nextQuestionMs, preferred, type Router, strange } from "./router-watch.ts";

/**
 * The way out of the installation on this host: its maps, the questions after the upstream routers, and the announcements of
 * external addresses that have come here. What is in force stays so while this process is away.
 */
export interface WayOut {
  /** External addresses among the interfaces that are in place here; new ones are announced. */
  tell(global: GlobalNetwork): void;
  /** What is announced by BGP; null: nothing is meant to be. */
  announced(): Announced | null;
  close(): void;
}
/** An announcement may be lost (RFC 5227, 2.3); after so many milliseconds it is repeated. */
const repeatedMs = [1000, 2000] as const;
/** All that somebody takes out in so long is put back together. */
const putBackMs = 500;
const key = (value: number): Buffer => word.encode({ value });

/** Routers in the order of the configuration, with the MACs at which an earlier process has found them. */
function adopt({ maps }: Dataplane, addresses: readonly Ipv4[]): readonly Router[] {
  const known = new Map<Ipv4, bigint>();
  for (let at = 0; at < mostRouters; at++) {
    const found = maps.routers.get(key(at));
    if (found !== null) known.set(router.decode(found).address, router.decode(found).mac);
  }
  return addresses.map((address) => strange(address, known.get(address) ?? 0n));
}

/** @param uplink the device on the underlay, which may be the way out as well */
export function openOutside(
  dataplane: Dataplane,
  uplink: string,
  way: Outside,
  generations: Generations,
  own: OwnNetworks,
  onRouters: (routers: readonly RouterFact[]) => void,
): WayOut {
  const { maps, programs } = dataplane;
  const device = indexOf(way.device);
  if (device === 0) throw new Error(`there is no device "${way.device}" to lead out of the installation`);
  const isOwn = way.device !== uplink;
  const socket = openPacketSocket();
  const timers = new Set<NodeJS.Timeout>();
  let routers = adopt(dataplane, way.routers);
  let inForce = 0n;
  let said = "";
  let announced: ReadonlySet<Ipv4> = new Set();
  /** Since when each is in the kernel's table, null: since before this process. Null: what is there is not known. */
  let routed: ReadonlyMap<Ipv4, number | null> | null = null;

  const later = (ms: number, work: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ms);
    timers.add(timer);
  };
  const putInForce = (): void => {
    inForce = preferred(routers, inForce);
    putRouters(dataplane, generations, { device, mac: way.mac, isOwn }, routers, inForce);
  };
  const tellRouters = (): void => {
    const facts = routers.map((each) => ({
      address: each.address,
      mac: each.mac === 0n ? null : macText(each.mac),
      answers: answers(each),
      isUsed: each.mac !== 0n && each.mac === inForce,
      from: way.address,
    }));
    const text = JSON.stringify(facts);
    if (text === said) return;
    said = text;
    onRouters(facts);
  };
  const ask = (): void => {
    putInForce();
    tellRouters();
    const speaker = { address: way.address, mac: way.mac };
    for (const each of routers) sendFrame(socket, device, question(askedMac(each), speaker, each.address));
    later(nextQuestionMs(routers), listen);
  };
  const listen = (): void => {
    routers = routers.map((known, at) => {
      const found = maps.routers.get(key(at));
      return hear(known, found === null ? 0n : router.decode(found).heard);
    });
    ask();
  };
  const announce = (addresses: readonly Ipv4[]): void => {
    for (const address of addresses)
      if (announced.has(address)) sendFrame(socket, device, announcement(way.mac, address));
  };

  /** @param anew also where the table has them as far as is known */
  const announceByBgp = (here: readonly Ipv4[], anew = false): void => {
    const addresses = new Set(way.table === undefined ? [] : here);
    if (!anew && routed?.size === addresses.size && [...addresses].every((each) => routed?.has(each))) return;
    const before = routed;
    routed = null;
    const known = putHostRoutes(way.table ?? null, addresses);
    const sinceOf = (address: Ipv4): number | null =>
      known.has(address) ? (before?.get(address) ?? null) : Date.now();
    routed = new Map([...addresses].map((address) => [address, sinceOf(address)]));
  };

  let putsBack = false;
  const stopWatching =
    way.table === undefined
      ? () => undefined
      : watchHostRoutes((address) => {
          if (putsBack || routed?.has(address as Ipv4) !== true) return;
          putsBack = true;
          later(putBackMs, () => {
            putsBack = false;
            try {
              announceByBgp([...announced], true);
            } catch {
              // What is there is not known then, and is looked at with the next change.
            }
          });
        });

  if (isOwn) ensureAttached(device, programs.from_outside);
  ask();
  return {
    tell: ({ interfaces }) => {
      const addresses = interfaces
        .filter(({ desired }) => desired.management !== true && own.isExternal(desired.address))
        .filter(({ desired }) => maps.endpoints.get(Buffer.from(octets(desired.address))) !== null)
        .map(({ desired }) => desired.address);
      const fresh = addresses.filter((address) => !announced.has(address));
      announced = new Set(addresses);
      announceByBgp(addresses);
      if (fresh.length === 0) return;
      announce(fresh);
      for (const ms of repeatedMs) later(ms, () => announce(fresh));
    },
    announced: () => (way.table === undefined ? null : announcedNow(way.table, routed ?? new Map())),
    close: () => {
      stopWatching();
      // What was said before, and is heard after this, puts nothing back.
      routed = null;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      socket.close();
    },
  };
}
/** There is no way out any more. */
export const withdrawOutside = (dataplane: Dataplane): void => {
  closeOutside(dataplane);
  putHostRoutes(null, new Set());
};
/** Takes the program from a device of its own, and what is announced back; what leads out is closed before. */
export const detachOutside = (way: Outside, uplink: string): void => {
  putHostRoutes(null, new Set());
  if (way.device !== uplink && indexOf(way.device) !== 0) detachAll(indexOf(way.device));
};
