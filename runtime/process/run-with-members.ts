import { setTimeout as sleep } from "node:timers/promises";
import { toJson } from "../../core/outbox.ts";
import type { MembersReport } from "../../core/presence/group/deaths.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { stopAtSignals } from "../life/signals.ts";
import { listPeers } from "../transport/peers.ts";
import { watchPeers } from "../transport/peers-watch.ts";
import type { RunningService } from "./process.ts";

export type Members = readonly PeerName[];
/** Services of an installation that starts come one after the other; each new life makes every connection anew. */
const settleMs = 2000;

/** Members of Presence, whom a service takes over as it runs. At a birth they come while everything waits for this one. */
const told = "presence.";

interface Manner {
  readonly restMs?: number;
  /** The service knows the report of members of Presence that came. */
  readonly takesMembers?: true;
}

/**
 * Runs a service that follows every peer under some prefixes, and starts it again, from its store and without a goodbye, when
 * the installation has gained or lost one: that is rare, and a service need not know how to change its mind about it.
 * What changes within `restMs` of a first change is one change. A service that takes members of Presence as it runs is told of those that
 * come, at once, and keeps its life and its connections.
 */
export const runWithMembers = async (
  configuration: ProcessConfiguration,
  prefixes: readonly string[],
  run: (members: Members) => Promise<RunningService>,
  { restMs = settleMs, takesMembers }: Manner = {},
): Promise<void> => {
  const list = async (): Promise<Members> =>
    (await Promise.all(prefixes.map((prefix) => listPeers(configuration, prefix)))).flat();
  let members: Members = [];
  let running: RunningService | null = null;
  const stopped = new AbortController();
  const start = async (found: Members): Promise<void> => {
    members = found;
    running = await run(found);
  };
  // A peers file that cannot be read changes nothing.
  const changed = async (): Promise<Members | null> => {
    const found = await list().catch(() => members);
    return stopped.signal.aborted || found.join(" ") === members.join(" ") ? null : found;
  };
  /** Whether this is all that has changed, and the service has taken it. */
  const isTaken = async (found: Members): Promise<boolean> => {
    const came = found.filter((peer) => !members.includes(peer));
    const isMore = members.every((peer) => found.includes(peer)) && came.every((peer) => peer.startsWith(told));
    if (takesMembers !== true || !isMore || running === null) return false;
    const report: MembersReport = { kind: "members", members: found.filter((peer) => peer.startsWith(told)) };
    try {
      await running.request(toJson(report));
    } catch {
      return false;
    }
    members = found;
    return true;
  };
  const check = async (): Promise<void> => {
    const first = await changed();
    if (first === null || (await isTaken(first))) return;
    await sleep(restMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    const found = await changed();
    if (found === null || (await isTaken(found))) return;
    await running?.stop({ goodbye: false });
    await start(found);
  };
  let checking: Promise<void> = Promise.resolve();
  const unwatch = watchPeers(configuration.peersFile, () => {
    checking = checking.then(check);
    return checking;
  });
  checking = list().then(start);
  await checking;
  stopAtSignals(async () => {
    stopped.abort();
    unwatch();
    await checking;
  });
};
