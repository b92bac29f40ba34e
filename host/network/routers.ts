import type { ActualHost } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { mac } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { RouterFact } from "../drivers/network/driver.ts";
import type { HostState } from "../service/known.ts";

/** Hands on what the network driver says of routers, to a service that begins after the driver has. */
export const routerNews = (): {
  readonly take: (routers: readonly RouterFact[]) => void;
  readonly tell: (request: (request: Json) => Promise<Json>) => void;
} => {
  let known: readonly RouterFact[] = [];
  let to: ((request: Json) => Promise<Json>) | null = null;
  const say = (): void => {
    to?.({ kind: "routers", routers: known } as unknown as Json).catch(() => undefined);
  };
  return {
    take: (routers) => {
      known = routers;
      say();
    },
    tell: (request) => {
      to = request;
      say();
    },
  };
};

/** What this host knows of the upstream routers, and says of them. @returns whether others may want to know */
export const takeRouters = (state: HostState, routers: readonly RouterFact[], effects: Effect[]): boolean => {
  for (const { address, mac: at, answers } of routers) {
    const before = state.routers.find((known) => known.address === address);
    if (before?.answers === answers && before.mac === at) continue;
    effects.push({ kind: "log", event: "host/router", fields: { address, mac: at, answers } });
  }
  state.routers = routers;
  return true;
};

/** What the host says of itself, with what it has found out. */
export const hostSays = ({ routers, presence }: HostState, host: ActualHost): ActualHost => ({
  ...host,
  ...(presence.boot === null ? {} : { boot: presence.boot }),
  ...(routers.length === 0
    ? {}
    : {
        routers: routers.map(({ address, mac: at, answers }) => ({
          address,
          mac: at === null ? null : mac(at),
          answers,
        })),
      }),
});

/** Why external addresses here do not reach outside, or might not for long; null: they do, or there is no way out. */
export const routerTrouble = (routers: readonly RouterFact[]): string | null => {
  if (routers.length === 0) return null;
  const silent = routers.filter(({ answers }) => !answers).map(({ address }) => address);
  if (silent.length === 0) return null;
  const names = `${silent.length === 1 ? "its upstream router" : "its upstream routers"} ${silent.join(" and ")}`;
  const verb = silent.length === 1 ? "does" : "do";
  return silent.length < routers.length
    ? `${names} ${verb} not answer ARP; what goes outside takes another one`
    : `${names} ${verb} not answer ARP, so nothing gets outside from here: look at the router, the cable and \`host.outside\``;
};
