import type { ExportTruth } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";

/** At most one writer per volume and epoch: by the bytes that land, and by the exports that would take some. */
export const oneWriter: Invariant = {
  number: 1,
  title: "at most one writer per volume and epoch",
  watch: ({ truth }, verdict) => {
    const writers = new Map<string, string>();
    const open = new Map<string, ExportTruth>();
    truth.watchers.push({
      landed: ({ volume, epoch, vm, incarnation, host }) => {
        const key = `${volume} in epoch ${epoch}`;
        const writer = `${vm}.${incarnation} at ${host}`;
        const before = writers.get(key) ?? writer;
        writers.set(key, before);
        verdict.check(before === writer, () => `${key} was written by ${before} and by ${writer}`);
      },
      exportStarted: (started) => {
        if (!started.writable) return;
        const other = open.get(started.volume);
        verdict.check(
          other === undefined,
          () => `${started.volume} has a writable export of epoch ${started.epoch} beside that of ${other?.epoch}`,
        );
        open.set(started.volume, started);
      },
      exportEnded: (ended) => {
        if (open.get(ended.volume) === ended) open.delete(ended.volume);
      },
    });
    return undefined;
  },
};
