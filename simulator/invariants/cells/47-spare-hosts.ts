import { isObject } from "../../../core/outbox.ts";
import { machineShares } from "../../../core/placer/machine-memory.ts";
import type { Invariant } from "../invariant.ts";

const besideMiB = 128;

/**
 * Where room is kept for a host (`x.ha.spareHosts`), a VM is new at a host only if the others have as much free memory as what the fullest one
 * then holds: by what each Placer has written, without a look at who fits where. The premise is such a placement.
 */
export const spareRoom: Invariant = {
  number: 47,
  title: "room is kept for the VMs of a host that is lost",
  watch: ({ kernel, installation }, verdict) => {
    /** By Placer: since it was told, and what it has reserved. */
    const told = new Set<string>();
    const placed = new Map<string, Map<string, { readonly host: string; readonly memoryMiB: number }>>();
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        if (!who.startsWith("placer")) return;
        if (input.kind === "desired" && input.key === "spare") {
          if (input.value === null) told.delete(who);
          else told.add(who);
        }
        const of = placed.get(who) ?? new Map();
        placed.set(who, of);
        for (const effect of effects) {
          if (effect.kind !== "write" || !effect.key.startsWith("reservation/")) continue;
          const { key, value } = effect;
          const before = of.get(key);
          of.delete(key);
          if (!isObject(value)) continue;
          const memoryMiB = Number(value.memoryMiB);
          of.set(key, {
            host: String(value.host),
            memoryMiB: memoryMiB + machineShares(memoryMiB) * besideMiB,
          });
          const isNew = before === undefined && value.incarnation === 1 && value.cell !== "root";
          if (!isNew || !told.has(who)) continue;
          const used = new Map<string, number>();
          for (const each of of.values()) used.set(each.host, (used.get(each.host) ?? 0) + each.memoryMiB);
          const fullest = [...used].sort(([, one], [, other]) => other - one)[0] ?? ["", 0];
          const freeMiB = [...installation.hosts]
            .filter(([host]) => host !== fullest[0])
            .reduce((sum, [host, { memoryMiB: all }]) => sum + all - (used.get(host) ?? 0), 0);
          verdict.check(
            fullest[1] <= freeMiB,
            () =>
              `${value.path} is placed at ${value.host}, and the others have ${freeMiB} MiB for ${fullest[1]} MiB of ${fullest[0]}`,
          );
        }
      },
    });
    return undefined;
  },
};
