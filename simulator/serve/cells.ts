import type { JsonObject } from "../../model/json/json.ts";
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
