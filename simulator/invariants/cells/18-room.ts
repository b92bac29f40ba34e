import { machineShares } from "../../../core/placer/machine-memory.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/** What a machine takes beside its guest's memory; a number of its own, so that a mistake in the Placer's shows. */
const besideMiB = 128;

/**
 * Memory of a host, and machines that are to be kept apart, counted where they run. A machine that a controller without its newer
 * store does not know is kept apart from nothing: it runs on under a name that a later one may have, too.
 */
export const room: Invariant = {
  number: 18,
  title: "capacity and anti-affinity hold",
  watch: ({ kernel, truth, installation, users }, verdict) => {
    const lost = new Set<string>();
    kernel.watchers.push({
      log: (who, event) => {
        if (event === "store/taken") lost.add(who);
      },
    });
    const isKnown = (cell: string, vm: Uid): boolean =>
      !lost.has(`controller.${cell}`) || installation.controllers.get(cell)?.state?.elements.has(vm) === true;
    truth.watchers.push({
      machineStarted: (started) => {
        const here = [...truth.machines].filter(({ host }) => host === started.host);
        const takenMiB = here.reduce((sum, { memoryMiB }) => sum + memoryMiB + machineShares(memoryMiB) * besideMiB, 0);
        const mostMiB = installation.hosts.get(started.host)?.memoryMiB ?? 0;
        verdict.check(
          takenMiB <= mostMiB,
          () => `${started.host} has ${mostMiB} MiB, and machines take ${takenMiB} MiB`,
        );
        for (const [cell, { text }] of users.wishes) {
          // What its user does not ask for any more binds nobody.
          for (const { name, apart } of text?.machines ?? []) {
            if (apart === null || (name !== started.name && apart !== started.name)) continue;
            const otherName = name === started.name ? apart : name;
            const other = here.find((machine) => machine.name === otherName && isKnown(cell, machine.vm));
            verdict.check(other === undefined, () => `${name} runs beside ${apart} at ${started.host}`);
          }
        }
      },
    });
    return undefined;
  },
};
