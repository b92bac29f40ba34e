import { AsyncLocalStorage } from "node:async_hooks";
import type { TLSSocket } from "node:tls";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import { createPulse, type PulseLimits } from "../pulse.ts";
import { type Served, servesOf } from "./control.ts";
import { createLink, type Link, type LinkFault, type Opening } from "./link.ts";

/**
 * The links of one process, by where they lead, and which of its services others may find on them. One timer gives and
 * looks for the signs of life of all.
 */
export interface Links {
  /** A service begins to listen. Returns how to take it back; its channels are its own to end. */
  register(service: LocalService): () => void;
  /** A link to that address, at whose other end that service says it is; null: there is none. */
  to(host: string, peer: PeerName, port: number): Link | null;
  /** Another link than this one that this process has made, and that leads to that service too; null: there is none. */
  beside(made: Link, peer: PeerName, port: number): Link | null;
  /** Somebody begins to reach that address; the others wait with `reached`, as the link may lead to theirs too. */
  reach(host: string): Reaching;
  /** Resolves when whoever reaches that address has a link or has failed; null: nobody does. */
  reached(host: string): Promise<void> | null;
  /** How many there are that more than one pair of services may use. */
  count(): number;
  /** A connection of this service, whose other end is authenticated, becomes a link. */
  adopt(socket: TLSSocket, ends: Ends): Link;
}
export interface LocalService extends Served {
  /** A channel is asked for; it takes or refuses it. */
  opening(opening: Opening): void;
  /** The other end of a link has said which services are there. */
  found(link: Link): void;
  /** A link was ended for what its other end did or did not do. */
  refused(peer: PeerName, reason: LinkFault, why: string): void;
}
/** The two services that made a link. */
export interface Ends {
  readonly self: PeerName;
  readonly peer: PeerName;
  /** This end made the connection. */
  readonly dialled: boolean;
}
export interface Reaching {
  /** It has led to a link. */
  linked(link: Link): void;
  failed(): void;
}

/** Whoever offers it by ALPN (RFC 7301) and has it chosen speaks as `link.ts` does; nothing chosen: one channel, as before. */
export const linkProtocol = "cells-link/1";

interface LinkLimits extends PulseLimits {
  readonly handshakeMs: number;
}
export const createLinks = (limits: LinkLimits): Links => {
  const pulse = createPulse(limits);
  const services = new Map<PeerName, LocalService>();
  const links = new Set<Link>();
  const reaching = new Map<string, Promise<void>>();
  const introduce = (link: Link): void => link.say(servesOf(services.values()));
  const changed = (): void => {
    for (const link of links) introduce(link);
  };
  const opening = (asked: Opening): void => {
    const service = services.get(asked.to);
    if (service === undefined) asked.refuse(`"${asked.to}" is not here`);
    else service.opening(asked);
  };
  return {
    register: (service) => {
      services.set(service.name, service);
      changed();
      return () => {
        if (services.get(service.name) !== service) return;
        services.delete(service.name);
        changed();
      };
    },
    to: (host, peer, port) => {
      for (const link of links) if (link.host === host && link.serves(peer, port)) return link;
      return null;
    },
    beside: (made, peer, port) => {
      for (const link of links)
        if (link !== made && link.dialled && link.host === made.host && link.serves(peer, port)) return link;
      return null;
    },
    reach: (host) => {
      const over = Promise.withResolvers<void>();
      reaching.set(host, over.promise);
      const end = (): void => {
        if (reaching.get(host) === over.promise) reaching.delete(host);
        over.resolve();
      };
      const linked = ({ introduced }: Link): void => {
        void introduced.then(end);
        setTimeout(end, limits.silenceMs).unref();
      };
      return { linked, failed: end };
    },
    count: () => links.size,
    reached: (host) => reaching.get(host) ?? null,
    adopt: (socket, { self, peer, dialled }) => {
      const shared = socket.alpnProtocol === linkProtocol;
      const { handshakeMs } = limits;
      // Who made it may have ended, and the link goes on for others.
      const refuse = (reason: LinkFault, why: string): void =>
        (services.get(self) ?? [...services.values()][0])?.refused(peer, reason, why);
      const link: Link = createLink(socket, {
        shared,
        dialled,
        ends: [self, peer],
        handshakeMs,
        pulse,
        opening,
        refuse,
        served: () => {
          for (const service of [...services.values()]) service.found(link);
        },
        ended: () => void links.delete(link),
      });
      if (!shared) return link;
      links.add(link);
      introduce(link);
      return link;
    },
  };
};

const ofProcess = new AsyncLocalStorage<Links>();
/** What `run` opens shares these links. */
export const shareLinks = <T>(links: Links, run: () => T): T => ofProcess.run(links, run);
/** Those of the process; null: every service has its own. */
export const sharedLinks = (): Links | null => ofProcess.getStore() ?? null;
