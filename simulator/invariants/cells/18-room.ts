import { machineShares } from "../../../core/machine-memory.ts";
import type { Invariant } from "../invariant.ts";

/** What a machine takes beside its guest's memory; the installation promises not to give that away (PLACEMENT). */
const besideMiB = 128;

/** Memory of a host, and machines that are to be kept apart, counted where they run. */
export const room: Invariant = {
  number: 18,
  title: "capacity and anti-affinity hold",
  watch: ({ truth, installation, users }, verdict) => {
    truth.watchers.push({
      machineStarted: (started) => {
        const here = [...truth.machines].filter(({ host }) => host === started.host);
        const takenMiB = here.reduce((sum, { memoryMiB }) => sum + memoryMiB + machineShares(memoryMiB) * besideMiB, 0);
        const mostMiB = installation.hosts.get(started.host)?.memoryMiB ?? 0;
        verdict.check(
          takenMiB <= mostMiB,
          () => `${started.host} has ${mostMiB} MiB, and machines take ${takenMiB} MiB`,
        );
        for (const { text } of users.wishes.values()) {
          // What its user does not ask for any more binds nobody.
          for (const { name, apart } of text?.machines ?? []) {
            if (apart === null || (name !== started.name && apart !== started.name)) continue;
            const other = here.find((machine) => machine.name === (name === started.name ? apart : name));
            verdict.check(other === undefined, () => `${name} runs beside ${apart} at ${started.host}`);
          }
        }
      },
    });
    return undefined;
  },
};
