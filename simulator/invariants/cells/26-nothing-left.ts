import { peerName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * Of a child cell whose controller was taken away, nothing is left at rest: no document that it desired anywhere, no rule, no
 * address, no machine. Its origins that others have copied are the provider's by then, and no document of the cell's. And a
 * controller is never taken away while a cell below its own has one.
 */
export const nothingLeft: Invariant = {
  number: 26,
  title: "nothing of a deleted cell remains, and children go first",
  watch: ({ kernel, truth, installation }, verdict) => {
    kernel.watchers.push({
      log: (who, event) => {
        if (event !== "process/removed") return;
        const below = [...installation.processes.keys()].filter((name) =>
          name.endsWith(`.${who.slice("controller.".length)}`),
        );
        // A store that was lost knows of no children; they end with the documents of the cell that was theirs.
        const isExcused = installation.losses.has(peerName(who));
        verdict.check(
          below.length === 0 || isExcused,
          () => `${who} was taken away while ${below.join(", ")} is there`,
        );
      },
    });
    return () => {
      for (const [cellNumber, cell] of installation.childCells) {
        const name = `controller.${cell}`;
        if (installation.processes.has(peerName(name))) continue;
        for (const process of installation.processes.values()) {
          for (const [client, { documents }] of process.distribution?.clients ?? []) {
            if (client !== name) continue;
            verdict.check(
              documents.size === 0,
              () => `${process.name} holds ${[...documents.keys()].join(", ")} of ${cell}`,
            );
          }
          const targets = [...(process.distribution?.targets ?? [])].filter(([peer]) => peer === name);
          for (const [, { documents }] of targets)
            verdict.check(documents.size === 0, () => `${process.name} still has something to tell ${name}`);
        }
        for (const [host, { policies, endpoints }] of truth.dataplanes) {
          const rules = [...policies.values()].some((policy) => policy.cellNumber === cellNumber);
          const ends = [...endpoints.values()].some((endpoint) => endpoint.cellNumber === cellNumber);
          verdict.check(!rules && !ends, () => `${host} has rules or addresses of ${cell}`);
        }
      }
    };
  },
};
