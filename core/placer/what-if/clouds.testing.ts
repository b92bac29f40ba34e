import { hostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { below } from "../../random.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";

/** Small clouds by chance, with all that keeps VMs from hosts, and what may be asked of them. */
export type Chance = Parameters<typeof below>[0];
export const pickOf =
  (chance: Chance) =>
  <T>(from: readonly T[]): T =>
    from[below(chance, from.length)] as T;

export const [root, shop, bank] = [
  peerName("controller.root"),
  peerName("controller.shop"),
  peerName("controller.bank"),
] as const;
export const requestOf = (vm: string, cell: string, more: Partial<DesiredPlacement>): DesiredPlacement => ({
  vm: vm as Uid,
  path: `${cell}/${vm}` as never,
  cell: cell as never,
  incarnation: 1,
  memoryMiB: 100,
  cpus: 1,
  cpuSpeedMHz: 0,
  placement: {},
  ...more,
});

/** What a VM may ask for there. */
export function wishesOf(chance: Chance): JsonObject {
  const [pick, is] = [pickOf(chance), (of: number): boolean => below(chance, of) === 0];
  return {
    ...(is(8) ? { host: pick(["h1", "h2"]) } : {}),
    ...(is(6) ? { tags: ["ssd"] } : {}),
    ...(is(5) ? { dedication: pick(["strict", "preferred"]) } : {}),
    ...(is(3) ? { groups: [pick(["apart", "together", "soft", "DedicatedGrp-a1"])] } : {}),
    ...(is(6) ? { apartFrom: [pick(["v0", "v1", "v2"])] } : {}),
  };
}

export function cloudOf(chance: Chance, hostCount: number, vms: number, ofWishes = 2): PlacerState {
  const [pick, is] = [pickOf(chance), (of: number): boolean => below(chance, of) === 0];
  const names = Array.from({ length: hostCount }, (_, at) => `h${at + 1}`);
  const hosts = names.map((name) => peerName(`host.${name}`));
  const service = createPlacer({ self: peerName("placer"), hosts });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const desire = (from: PeerName, key: string, value: Json): void => {
    state = service.step(state, { kind: "desired", from, key, value }, { ms: 0, wallMs: 0 }).state;
  };
  for (const name of names) {
    const peer = peerName(`host.${name}`);
    const actual = {
      host: hostName(name),
      state: "up" as const,
      address: "10.0.1.1" as never,
      mac: "" as never,
      memoryMiB: pick([1300, 1500, 1700, 2000]),
      reservedMiB: 1000,
      cpus: pick([1, 1, 2]),
      cpuSpeedMHz: 1000,
      accelerator: "tcg" as const,
      machineMiB: pick([0, 40]),
    };
    state.hosts.set(peer, { host: hostName(name), reachable: !is(9), actual });
    if (is(8)) desire(root, `host/${name}`, { host: name, state: pick(["disabled", "reserved"]) });
    const to = { kind: "account", path: "ROOT/d1/a1" };
    if (is(6)) desire(root, `dedicated/${name}`, { host: name, of: name, level: "host", to });
    if (is(2)) desire(root, `marks/${name}`, { host: name, tags: ["ssd"] });
  }
  state.silent.clear();
  state = service.step(state, { kind: "start" }, { ms: 0, wallMs: 0 }).state;
  desire(root, "owner/shop", { cell: "shop", account: "ROOT/d1/a1" });
  desire(root, "owner/bank", { cell: "bank", account: "ROOT/a2" });
  const kinds = { apart: "host anti-affinity", together: "host affinity", soft: "non-strict host anti-affinity" };
  for (const [cell, client] of [
    ["shop", shop],
    ["bank", bank],
  ] as const)
    for (const [name, kind] of Object.entries(kinds)) {
      const uid = `${cell}-${name}`;
      desire(client, `group/${uid}`, { uid, path: `${cell}/${name}`, name, kind });
    }
  for (let at = 0; at < vms; at += 1) {
    const cell = pick(["shop", "bank"]);
    const placement = below(chance, 4) < ofWishes ? wishesOf(chance) : {};
    const asks = requestOf(`v${at}`, cell, { memoryMiB: pick([60, 100, 150, 260]), cpus: pick([1, 2, 6]), placement });
    desire(peerName(`controller.${cell}`), `placement/v${at}`, { ...asks });
  }
  return state;
}
