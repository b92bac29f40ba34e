import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect, Input } from "../../env.ts";
import { isObject } from "../../outbox.ts";
import { createNetworkViewManager } from "../manager.ts";

/* The Network View Manager with two nodes of a cluster and two cells, whose views are in place when a test says so. */

const self = peerName("network-view-manager");
export const [h1, h2] = [peerName("host.h1"), peerName("host.h2")];
export const [shop, bank] = [peerName("controller.shop"), peerName("controller.bank")];
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.2"],
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.15"] }],
};
const addresses = new Map([
  [h1, "10.0.0.1"],
  [h2, "10.0.0.2"],
]);

/** The manager with two nodes, which put views in place when they are told to. */
export function world(records = new Map<string, Json>(), more: object = {}, presence: readonly PeerName[] = []) {
  const controllers = [shop, bank];
  const service = createNetworkViewManager({ self, hosts: [h1, h2], address: "10.0.0.19", controllers, presence });
  /** Which each host says to be in. */
  const boots = new Map<PeerName, number | undefined>();
  let state = service.restore({ records: new Map(records), desiredAt: new Map() });
  let ms = 0;
  const timers = new Map<string, number>();
  const events: string[] = [];
  const published = new Map<string, Json>();
  const told = new Map<PeerName, Map<string, Json>>([h1, h2].map((host) => [host, new Map<string, Json>()]));
  const send = (input: Input): readonly Effect[] => {
    const { state: next, effects } = service.step(state, input, { ms, wallMs: 0 });
    state = next;
    for (const effect of effects)
      if (effect.kind === "publish") published.set(effect.key, effect.value);
      else if (effect.kind === "desire") told.get(effect.to)?.set(effect.key, effect.value);
      else if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "timer" && effect.afterMs === null) timers.delete(effect.name);
      else if (effect.kind === "timer") timers.set(effect.name, ms + (effect.afterMs ?? 0));
      else if (effect.kind === "log" && effect.event.startsWith("instance/"))
        events.push(JSON.stringify({ event: effect.event, ...effect.fields }));
    return effects;
  };
  const instancesAt = (host: PeerName) =>
    [...(told.get(host) ?? [])]
      .flatMap(([key, value]) =>
        key.startsWith("network-slice/") && isObject(value)
          ? (value.items as string[]).map((item) => JSON.parse(item))
          : [],
      )
      .filter((item) => item.instance !== undefined && item.node === addresses.get(host));
  const dotted = (address: number): string => [24, 16, 8, 0].map((at) => (address >>> at) & 255).join(".");
  /** So much time passes, and what was to be looked at meanwhile is. */
  const pass = (passedMs: number): void => {
    const until = ms + passedMs;
    for (;;) {
      const [next] = [...timers].sort(([, one], [, other]) => one - other);
      if (next === undefined || next[1] > until) break;
      timers.delete(next[0]);
      ms = Math.max(ms, next[1]);
      send({ kind: "timer", name: next[0] });
    }
    ms = until;
  };
  const reach = (peer: PeerName, reachable: boolean): void => void send({ kind: "reachable", peer, reachable });
  const isPlaced = (address: number | undefined, state: "assigned" | "failed") =>
    address === undefined ? undefined : { address: dotted(address), state };
  const versionAt = (host: PeerName): number =>
    (told.get(host)?.get("network-view") as { readonly version?: number } | undefined)?.version ?? 0;
  /** A host says that it has the last view in place; or, with `failed`, that it does not get its elastic addresses into place. */
  const apply = (host: PeerName, publicState: "assigned" | "failed" = "assigned"): void => {
    const version = versionAt(host);
    const instances = instancesAt(host).map(({ instance: { id, privateIp, publicIp } }) => {
      const outside = isPlaced(publicIp, publicState);
      return { id, private: isPlaced(privateIp, "assigned"), ...(outside === undefined ? {} : { public: outside }) };
    });
    hear(host, version, instances as unknown as Json);
  };
  const bootSaid = (host: PeerName) => (boots.get(host) === undefined ? {} : { boot: boots.get(host) ?? 0 });
  /** Of the last view that a host was told. */
  const bootAt = (host: PeerName): unknown =>
    (told.get(host)?.get("network-view") as { readonly boot?: number } | undefined)?.boot;
  const hear = (host: PeerName, version: number, instances: Json): void => {
    const network = {
      address: addresses.get(host) ?? "",
      cluster: "one",
      peer: "node",
      version,
      instances,
      ...bootSaid(host),
    };
    send({ kind: "actual", from: host, key: "network", value: network });
  };
  const configure = (other: object = more): string =>
    JSON.stringify(
      send({
        kind: "request",
        id: 1,
        request: {
          kind: "configure",
          // What is not said in JSON is not there.
          document: JSON.parse(JSON.stringify({ ...configuration, ...other })) as Json,
        },
      }).find(({ kind }) => kind === "reply") ?? null,
    );
  const start = (): void => {
    send({ kind: "start" });
    configure();
    for (const host of [h1, h2]) hear(host, 0, []);
  };
  const group = (cell: PeerName, uid: string): void =>
    void send({
      kind: "desired",
      from: cell,
      key: `security-group/${uid}`,
      value: { uid, cell: cell.slice("controller.".length), ingress: [], egress: [] },
    });
  const want = (cell: PeerName, uid: string, more: object | null = {}): void => {
    const name = cell.slice("controller.".length);
    const document = { uid, cell: name, path: `${name}/${uid}`, host: "h1", groups: [`${name}-net`], elastic: true };
    const value = more === null ? null : ({ ...document, ...more } as unknown as Json);
    send({ kind: "desired", from: cell, key: `instance/${uid}`, value });
  };
  const said = (client: PeerName, uid: string) =>
    (published.get(`${client}/instance/${uid}`) ?? {}) as {
      readonly id?: string;
      readonly phase?: string;
      readonly reason?: string | null;
      readonly address?: string | null;
      readonly learnt?: true;
      readonly elastic?: { readonly address: string | null; readonly reason: string | null };
    };
  return {
    records,
    events,
    boots,
    bootAt,
    versionAt,
    pass,
    reach,
    send,
    start,
    configure,
    hear,
    apply,
    group,
    want,
    said,
    instancesAt,
  };
}
export const started = (more: object = {}) => {
  const all = world(new Map(), more);
  all.start();
  for (const cell of [shop, bank]) all.group(cell, `${cell.slice("controller.".length)}-net`);
  return all;
};
