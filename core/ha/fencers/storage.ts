import type { Fencer } from "./fencer.ts";

/**
 * Fences at the storage: each lease of the incarnation ends at its server, whose agent says so when the export has ended and
 * the last accepted write has landed. An incarnation that writes nowhere has nothing to fence.
 */
export const storageFencer: Fencer = {
  name: "storage",
  judge: ({ vm, incarnation, boundAt }, { fences }) => {
    const said = fences.get(vm);
    if (said === undefined || said.incarnation !== incarnation)
      return { isFenced: false, sentence: "the Storage Manager has not answered yet" };
    if (said.boundAt !== boundAt)
      return {
        isFenced: false,
        sentence:
          "the Storage Manager has yet to answer for the time since the cell came here, or is of an earlier version",
      };
    if (!said.complete) return { isFenced: false, sentence: said.reason ?? "not every lease of it has ended" };
    const { length } = said.volumes;
    const sentence =
      length === 0
        ? "it could write to no volume"
        : `its leases of ${length} ${length === 1 ? "volume" : "volumes"} have ended`;
    return { isFenced: true, sentence };
  },
};
