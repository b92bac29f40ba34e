import type { Invariant } from "../invariant.ts";

/** What counts the time goes on at rest, and its next word may be on its way: a storage server's minutes, a host's beats. */
const counts = (key: string): boolean =>
  ["server", "beat", "network-beat"].includes(key) || ["/beat", "/network-lease"].some((end) => key.endsWith(end));

/**
 * At rest, what one side desires or says is what the other side has of it, to the letter; and every host holds each host that
 * runs for alive, in the life that it lives.
 */
export const viewsAgree: Invariant = {
  number: 16,
  title: "after healing all views agree within the bound",
  watch: ({ installation }, verdict) => {
    return () => {
      for (const [viewer, { state }] of installation.participants)
        for (const [host, manager] of installation.managers) {
          const seen = state.members.get(host);
          const life = manager.distribution?.life;
          if (life === undefined) continue;
          verdict.check(
            seen?.status === "alive" && seen.generation === life,
            () => `${viewer} holds ${host} for ${seen?.status} in ${seen?.generation}; it lives in ${life}`,
          );
        }
      for (const { name, distribution } of installation.processes.values()) {
        for (const [peer, { documents, actual }] of distribution?.targets ?? []) {
          const other = installation.processes.get(peer)?.distribution ?? null;
          if (other === null) continue;
          const client = other.clients.get(name);
          const held = client?.documents ?? new Map();
          // After a store was lost they may differ in what the receiver names, until somebody looks.
          const differs = installation.losses.size > 0 && client?.mark?.keptUpTo !== undefined;
          const isNamed = (key: string): boolean =>
            installation.losses.size > 0 && (differs || client?.orphans.has(key) === true);
          for (const [key, { text }] of documents)
            verdict.check(
              held.get(key)?.text === text || differs || (counts(key) && held.has(key)),
              () => `${name} desires ${key} at ${peer}, which holds another`,
            );
          for (const key of held.keys())
            verdict.check(
              documents.has(key) || isNamed(key),
              () => `${peer} holds ${key}, which ${name} does not desire any more`,
            );
          for (const [key, { text }] of actual) {
            const said = other.published.get(key);
            if (said !== undefined && !counts(key))
              verdict.check(said.text === text, () => `${name} has an old ${key} of ${peer}`);
          }
        }
      }
    };
  },
};
