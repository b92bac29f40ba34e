import type { Invariant } from "../invariant.ts";

/** Whom a key names, and what hosts say to those whose business it is. */
const isFor = (name: string, key: string): boolean =>
  key.startsWith(`${name}/`) ||
  (key === "presence/self" && name.startsWith("presence.")) ||
  (key.startsWith("taken/") && isPlacer(name)) ||
  (key === "host" && (isPlacer(name) || name.startsWith("controller.")));
const isPlacer = (name: string): boolean => /^placer(\.|$)/.test(name);

/** What a living source says to a subscriber by name is there at rest, whatever happened to their connection. */
export const liveSource: Invariant = {
  number: 15,
  title: "a live source's state is never withdrawn for good",
  watch: ({ installation }, verdict) => {
    return () => {
      for (const { name, distribution } of installation.processes.values()) {
        for (const [peer, { actual, subscriptions }] of distribution?.targets ?? []) {
          const said = installation.processes.get(peer)?.distribution?.published ?? new Map();
          const prefixes = [...subscriptions.keys()];
          for (const key of said.keys()) {
            if (!isFor(name, key) || !prefixes.some((prefix) => key.startsWith(prefix))) continue;
            verdict.check(
              actual.has(key),
              () => `${name} follows ${key} of ${peer}, which says it, and does not have it`,
            );
          }
        }
      }
    };
  },
};
