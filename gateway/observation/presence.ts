import type { HostPresence } from "../../core/presence/group/group.ts";
import type { InstallationStatus } from "../../model/api.ts";

export type PresenceStatus = NonNullable<InstallationStatus["hosts"][number]["presence"]>;

/**
 * What the members of the Presence group together say of each host. A death is the word of a majority and durable, so one
 * member that knows of it is enough; of the rest the worst counts, since a suspicion reaches one member before another.
 * @param said the answers of those members that gave one
 */
export function mergePresence(said: readonly (readonly HostPresence[])[]): ReadonlyMap<string, PresenceStatus> {
  const byHost = new Map<string, HostPresence[]>();
  for (const each of said.flat()) byHost.set(each.host, [...(byHost.get(each.host) ?? []), each]);
  return new Map([...byHost].map(([host, views]) => [host, merged(views)]));
}

const names = { dead: "dead", reported: "suspected", alive: "up", gone: "unknown" } as const;

function merged(views: readonly HostPresence[]): PresenceStatus {
  const generation = Math.max(...views.map((view) => view.generation));
  // Who has not heard yet that it is back speaks of an earlier life.
  const present = views.filter((view) => view.generation === generation);
  for (const state of ["dead", "reported", "alive", "gone"] as const) {
    const since = present.filter((view) => view.state === state && view.sinceMs > 0).map(({ sinceMs }) => sinceMs);
    if (!present.some((view) => view.state === state)) continue;
    const isOff = state === "dead" && present.some((view) => view.powerIsOff === true);
    return {
      state: names[state],
      since: since.length === 0 ? null : new Date(Math.min(...since)).toISOString(),
      ...(isOff ? { powerIsOff: true as const } : {}),
    };
  }
  return { state: "unknown", since: null };
}
