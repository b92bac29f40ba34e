import type { NamesAsked } from "../../../core/controller/network/resolvers.ts";
import { type Found, type Guarded, isUnderstood } from "../../../core/dns/outside/answers.ts";
import { isAskable } from "../../../core/dns/outside/askable.ts";
import { NameCache } from "../../../core/dns/outside/cache.ts";
import { answerTo, parseQuery, type Query, rcodes } from "../../../core/dns/outside/message.ts";
import { counter, type Metric, sample } from "../../../core/telemetry/metrics.ts";
import type { Json } from "../../../model/json/json.ts";
import { network, ports } from "../../installation.ts";
import { resolverSockets } from "./ask-resolver.ts";

/**
 * Names outside of the installation, for the VMs of one cell: its name server asks the resolvers that the installation declares.
 * They are on the management network, the only one that a controller is on, and no packet of it goes further; what they ask
 * the world is their own. Whoever asks the same meanwhile waits for the question that is under way.
 */
export interface NamesOutsideOptions {
  /** The controller's own address. */
  readonly from: string;
  /** Resolvers that the cell may ask now; none: the names are asked nobody. */
  readonly resolvers: () => Promise<readonly string[]>;
  readonly guarded: Guarded;
  readonly port?: number;
  readonly attemptMs?: number;
}
export interface NamesOutside {
  /**
   * @param largest bytes that the asker takes, if he asks by TCP; by UDP the question says it
   * @returns null: not a question of this kind, or this cell asks nobody outside. `nothing`: too many are under way.
   */
  answer(packet: Uint8Array, asker: string, largest?: number): Promise<Uint8Array | "nothing" | null>;
  readonly metrics: () => readonly Metric[];
  close(): void;
}

/** What a controller says of whom to ask, and what is the installation's own: external pools are others as the root cell declares them. */
export function asked(domain: string, ask: () => Promise<Json>): Pick<NamesOutsideOptions, "resolvers" | "guarded"> {
  let external: readonly string[] = [network.externalPool];
  const closed = [network.underlay, network.internalPool];
  return {
    resolvers: async () => {
      const said = (await ask()) as unknown as NamesAsked;
      external = said.external ?? external;
      return said.resolvers;
    },
    guarded: {
      domain,
      closed,
      get networks() {
        return [...closed, ...external];
      },
    },
  };
}

const attempts = 3;
const mostUnderWay = 64;
const mostOfOneAsker = 16;
/** That nobody could answer is not asked again before that. */
const failureSeconds = 1;

export function namesOutside(options: NamesOutsideOptions): NamesOutside {
  const { from, resolvers, guarded, port = ports.dns, attemptMs = 1_200 } = options;
  const cache = new NameCache();
  const underWay = new Map<string, Promise<Found>>();
  const ofAsker = new Map<string, number>();
  const sockets = resolverSockets({ from, port, attemptMs }, guarded);
  const counts = { cached: 0, asked: 0, failed: 0, inside: 0, refused: 0 };
  let preferred = "";

  const find = async (query: Query, allowed: readonly string[]): Promise<Found> => {
    const order = [...allowed].sort((one, other) => Number(other === preferred) - Number(one === preferred));
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const resolver = order[attempt % order.length] ?? "";
      const heard = await sockets.ask(resolver, query);
      if (heard.kind === "answer") {
        preferred = resolver;
        return heard.found;
      }
      if (heard.kind === "inside") {
        counts.inside += 1;
        return { rcode: rcodes.REFUSED, records: [], ttl: failureSeconds };
      }
    }
    counts.failed += 1;
    return { rcode: rcodes.SERVFAIL, records: [], ttl: failureSeconds };
  };
  const look = async (query: Query, asker: string, allowed: readonly string[]): Promise<Found | null> => {
    const key = `${query.type} ${query.name}`;
    const known = cache.get(key, performance.now());
    if (known !== null) {
      counts.cached += 1;
      return known;
    }
    const running = underWay.get(key);
    if (running !== undefined) return running;
    const own = ofAsker.get(asker) ?? 0;
    if (underWay.size >= mostUnderWay || own >= mostOfOneAsker) {
      counts.refused += 1;
      return null;
    }
    ofAsker.set(asker, own + 1);
    counts.asked += 1;
    const finding = find(query, allowed);
    underWay.set(key, finding);
    try {
      const found = await finding;
      cache.put(key, found, performance.now());
      return found;
    } finally {
      underWay.delete(key);
      const left = (ofAsker.get(asker) ?? 1) - 1;
      if (left === 0) ofAsker.delete(asker);
      else ofAsker.set(asker, left);
    }
  };
  return {
    answer: async (packet, asker, largest) => {
      const parsed = parseQuery(packet);
      if (parsed === null || !isAskable(parsed.name, guarded)) return null;
      const query = { ...parsed, largest: largest ?? parsed.largest };
      const allowed = await resolvers();
      if (allowed.length === 0) return null;
      if (!isUnderstood(query.type)) return answerTo(query, rcodes.NOTIMP, []);
      const found = await look(query, asker, allowed);
      return found === null ? "nothing" : answerTo(query, found.rcode, found.records);
    },
    metrics: () => [
      counter(
        "cells_names_outside_total",
        "Questions of VMs for names outside: answered from the cache, asked, answered by nobody, answered with what is inside, dropped as too many.",
        Object.entries(counts).map(([outcome, count]) => sample(count, { outcome })),
      ),
    ],
    close: sockets.close,
  };
}
