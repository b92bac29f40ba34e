import type { ActualHost } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import { parseNetwork } from "../../model/addresses/addresses.ts";
import { whatHolds } from "../../model/addresses/pools.ts";
import { type Cidr, mac } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { InterfaceGroups, RouterFact } from "../drivers/network/driver.ts";
import type { HostRequest } from "../host-requests.ts";
import type { HostState } from "../known.ts";
import { modeAt } from "./network-view.ts";

/** Hands on what the network driver says of routers and of guests' groups, to a service that begins after the driver has. */
export const networkNews = (): {
  readonly heard: {
    readonly onRouters: (routers: readonly RouterFact[]) => void;
    readonly onGroups: (groups: readonly InterfaceGroups[]) => void;
  };
  readonly tell: (request: (request: Json) => Promise<Json>) => void;
} => {
  const known = new Map<"routers" | "groups", unknown>();
  let to: ((request: Json) => Promise<Json>) | null = null;
  const say = (kind: "routers" | "groups"): void => {
    to?.({ kind, [kind]: known.get(kind) } as unknown as Json).catch(() => undefined);
  };
  const take = (kind: "routers" | "groups", facts: unknown): void => {
    known.set(kind, facts);
    say(kind);
  };
  return {
    heard: { onRouters: (routers) => take("routers", routers), onGroups: (groups) => take("groups", groups) },
    tell: (request) => {
      to = request;
      for (const kind of known.keys()) say(kind);
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

/** @returns whether others may want to know */
export const takeNetworkNews = (
  state: HostState,
  news: Extract<HostRequest, { readonly kind: "routers" | "groups" | "network-placed" }>,
  effects: Effect[],
): boolean => {
  if (news.kind === "network-placed") {
    state.network.placed = news.placed;
    return true;
  }
  if (news.kind === "routers") return takeRouters(state, news.routers, effects);
  state.groups = new Map(news.groups.map((each) => [each.interface, each.groups]));
  return true;
};

/** What the host says of itself, with what it has found out. */
export const hostSays = ({ routers, presence, network }: HostState, host: ActualHost): ActualHost => ({
  ...host,
  ...modeAt(network),
  ...(presence.boot === null ? {} : { boot: presence.boot }),
  ...(routers.length === 0
    ? {}
    : {
        routers: routers.map(({ address, mac: at, answers, from }) => ({
          address,
          mac: at === null ? null : mac(at),
          answers,
          ...(from === undefined ? {} : { from }),
        })),
      }),
});

/** Why external addresses here do not reach outside, or might not for long; null: they do, or there is no way out. */
export const routerTrouble = (routers: readonly RouterFact[], pools: readonly Cidr[] = []): string | null => {
  if (routers.length === 0) return null;
  const known = routers.flatMap(({ address, from }) => [
    { address, is: `its upstream router ${address}` },
    ...(from === undefined ? [] : [{ address: from, is: `its own address ${from} on the way outside` }]),
  ]);
  for (const { address, is } of known) {
    const network = parseNetwork(`${address}/32`);
    const pool = network === null ? undefined : whatHolds(network, pools);
    if (pool !== undefined)
      return `${is} is in the external pool ${pool}, whose addresses VMs are given: take it out of \`x.pools.external\` of the root cell`;
  }
  const silent = routers.filter(({ answers }) => !answers).map(({ address }) => address);
  if (silent.length === 0) return null;
  const names = `${silent.length === 1 ? "its upstream router" : "its upstream routers"} ${silent.join(" and ")}`;
  const verb = silent.length === 1 ? "does" : "do";
  return silent.length < routers.length
    ? `${names} ${verb} not answer ARP; what goes outside takes another one`
    : `${names} ${verb} not answer ARP, so nothing gets outside from here: look at the router, the cable and \`host.outside\``;
};
