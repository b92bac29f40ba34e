import type { Invariant } from "./invariant.ts";

/**
 * What an earlier life of a source said, and its present life does not say, is nowhere any more. The premise is a source that
 * has started again. (The retraction that follows a declared death waits for Presence.)
 */
export const deadGeneration: Invariant = {
  number: 14,
  title: "a dead generation's state vanishes everywhere and stays away",
  watch: ({ installation }, verdict) => {
    return () => {
      for (const { name, distribution } of installation.processes.values()) {
        for (const [peer, { actual }] of distribution?.targets ?? []) {
          const source = installation.processes.get(peer);
          const said = source?.distribution?.published;
          if (source === undefined || said === undefined || source.starts < 2) continue;
          for (const key of actual.keys())
            verdict.check(said.has(key), () => `${name} still has ${key} of ${peer}, which does not say so any more`);
        }
      }
    };
  },
};
