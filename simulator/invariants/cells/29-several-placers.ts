import type { MachineTruth } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";

/** What a machine takes beside its guest's memory, and how many virtual CPUs share a processor: own numbers, as in 18. */
const besideMiB = 128;
const perProcessor = 16;

/** Counted only where machines of several Placers are on one host: that each keeps to its own sums is 18. */
export const severalPlacers: Invariant = {
  number: 29,
  title: "several Placers together promise no more of a host than it has",
  watch: ({ truth, installation }, verdict) => {
    const placerOf = ({ vm }: MachineTruth): number => installation.boundCell(vm)?.services.placer ?? 0;
    truth.watchers.push({
      machineStarted: (started) => {
        const here = [...truth.machines].filter(({ host }) => host === started.host);
        if (new Set(here.map(placerOf)).size < 2) return;
        const host = installation.hosts.get(started.host);
        const takenMiB = here.reduce((sum, { memoryMiB }) => sum + memoryMiB + besideMiB, 0);
        const cpus = here.reduce((sum, machine) => sum + machine.cpus, 0);
        const [mostMiB, mostCpus] = [host?.memoryMiB ?? 0, (host?.cpus ?? 0) * perProcessor];
        verdict.check(
          takenMiB <= mostMiB && cpus <= mostCpus,
          () => `${started.host} has ${mostMiB} MiB and ${mostCpus} CPUs, and machines take ${takenMiB} and ${cpus}`,
        );
      },
    });
    return undefined;
  },
};
