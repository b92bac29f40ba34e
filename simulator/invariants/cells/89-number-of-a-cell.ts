import type { Invariant } from "../invariant.ts";

/** A cell's number is a part of its network identity: no cell gets that of another one which is there, nor a second one of its own. */
export const numberOfACell: Invariant = {
  number: 89,
  title: "a cell has the number that its controller runs with, and nobody else has it",
  watch: ({ kernel, installation }, verdict) => {
    kernel.watchers.push({
      log: (_who, event, fields) => {
        if (event !== "cell/bound") return;
        for (const { state } of installation.controllers.values()) {
          if (state === null) continue;
          const { cell, cellUid, cellNumber } = state.options;
          const isIt = cellUid === fields.uid;
          verdict.check(
            isIt === (cellNumber === fields.number),
            () =>
              `${fields.cell} (${fields.uid}) gets the number ${fields.number}, and ${cell} (${cellUid}) has ${cellNumber}`,
          );
        }
      },
    });
    return undefined;
  },
};
