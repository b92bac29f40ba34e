import { choose } from "../../core/placer/index/choose.ts";
import { askerOf } from "../../core/placer/owners.ts";
import { place } from "../../core/placer/place.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import type { PlacerState } from "../../core/placer/state.ts";
import { hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { ownerOf } from "./mix.ts";

/* A Placer as a function, with so many hosts that are up, and as many cells `k0`, `k1` … as there are accounts, each of one. */
interface HostSize {
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
}
/** What each host keeps, and what a machine takes besides its own memory. */
export const [reservedMiB, machineMiB] = [4096, 60];
export const root = peerName("controller.root");
export const clock = { ms: 0, wallMs: 0 };

export function placerOf(hostCount: number, accounts: number, sizeOf: (at: number) => HostSize) {
  const peers = Array.from({ length: hostCount }, (_, at) => peerName(`host.h${String(at).padStart(5, "0")}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state: PlacerState = service.restore({ records: new Map(), desiredAt: new Map() });
  for (const [at, peer] of peers.entries()) {
    const host = hostName(peer.slice("host.".length));
    const about = { state: "up", address: "10.0.0.1", mac: "02:00:00:00:00:01", accelerator: "kvm", boot: 1 } as const;
    const actual = { ...about, host, reservedMiB, machineMiB, ...sizeOf(at) };
    state.hosts.set(peer, { host, reachable: true, actual: actual as never });
  }
  state.silent.clear();
  service.step(state, { kind: "start" }, clock);
  const desire = (from: PeerName, key: string, value: Json) =>
    service.step(state, { kind: "desired", from, key, value }, clock).effects;
  for (let at = 0; at < accounts; at += 1) desire(root, `owner/k${at}`, ownerOf(at));
  return { peers, service, state, desire };
}

/** Whether the index chooses what a scan of all hosts does, and how long that took. */
export function scanned(state: PlacerState, client: PeerName, asked: JsonObject) {
  const [document, asker] = [asked as never, askerOf(state, client)];
  const began = performance.now();
  const scan = place([...state.hosts.values()], state.usage, document, state.ratios, asker);
  const tookMs = performance.now() - began;
  return { tookMs, isSame: ("host" in scan ? scan.host : null) === (choose(state, document, asker)?.host ?? null) };
}
