import { rootCell } from "../../core/documents/cells.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { createRandom } from "../kernel/random.ts";
import { documentOf, parseCell } from "../world/cell-text.ts";

/** Cells that a served simulation begins with: names as people give them, at most so many machines each. */
const names = ["shop", "bank", "atlas", "radio", "mill", "harbour", "library", "orchard", "foundry", "museum"] as const;
const roles = ["web", "app", "db", "queue", "cache"] as const;
const mostMachines = 100;
const sizesMiB = [256, 512, 1024] as const;

export function modelsOf(
  machines: number,
  seed: number,
): readonly { readonly cell: string; readonly model: JsonObject }[] {
  const random = createRandom(seed).fork("served cells");
  const cells = Math.max(1, Math.ceil(machines / mostMachines), Math.min(3, machines));
  return Array.from({ length: cells }, (_, index) => {
    const round = Math.floor(index / names.length);
    const cell = `${names[index % names.length]}${round === 0 ? "" : round + 1}`;
    const share = Math.floor(machines / cells) + (index < machines % cells ? 1 : 0);
    const vms = Array.from({ length: share }, (_, at) => {
      const size = random.pick(sizesMiB);
      return `vm:${roles[at % roles.length]}${Math.floor(at / roles.length) + 1}:${size}`;
    });
    const rule = share > 1 ? ["rule:web1>app1:8080"] : [];
    return { cell, model: documentOf(cell, parseCell([...vms, ...rule])) };
  });
}

/** Five hosts stand together in a cluster, two clusters in a pod. With hosts enough the last two are to be had whole, for pools. */
const perCluster = 5;
const enoughToGiveWhole = 6;

/** The root cell: where hosts stand, and which of them accounts can have whole; one after another, since a host becomes such a one disabled. */
export function rootModelsOf(hosts: number): readonly JsonObject[] {
  const clusters = Array.from({ length: Math.ceil(hosts / perCluster) }, (_, index) => ({
    zone: index % 2 === 0 ? "north" : "south",
    pod: `hall${1 + Math.floor(index / 4)}`,
    cluster: `row${1 + Math.floor((index % 4) / 2)}`,
  }));
  const places: Record<string, Record<string, Json>> = {};
  for (const { zone, pod, cluster } of clusters) {
    const inZone = places[zone] ?? { "x.type": "Zone" };
    places[zone] = inZone;
    inZone[pod] = { "x.type": "Pod", ...(inZone[pod] as JsonObject | undefined), [cluster]: { "x.type": "Cluster" } };
  }
  const flavors = { large: { "x.type": "HostFlavor", "x.description": "64 processors, 64 GiB", "x.units": 1 } };
  const modelWith = (whole: JsonObject): JsonObject => {
    const elements = Array.from({ length: hosts }, (_, index) => {
      const at = clusters[Math.floor(index / perCluster)];
      const isWhole = hosts >= enoughToGiveWhole && index >= hosts - 2;
      const element = { "x.type": "Host", "x.cluster": `${at?.zone}/${at?.pod}/${at?.cluster}` };
      return [`h${index + 1}`, { ...element, ...(isWhole ? whole : {}) }] as const;
    });
    return { [rootCell]: { "x.type": "Cell", places, flavors, hosts: Object.fromEntries(elements) } };
  };
  const whole = { "x.flavor": "large" };
  if (hosts < enoughToGiveWhole) return [modelWith({})];
  return [{ "x.state": "disabled" }, { ...whole, "x.state": "disabled" }, whole].map(modelWith);
}
