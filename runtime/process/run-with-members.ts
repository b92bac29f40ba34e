import { setTimeout as sleep } from "node:timers/promises";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { stopAtSignals } from "../life/signals.ts";
import { listPeers } from "../transport/peers.ts";
import { watchPeers } from "../transport/peers-watch.ts";
import type { RunningService } from "./process.ts";

export type Members = readonly PeerName[];
/** Services of an installation that starts come one after the other; each new life makes every connection anew. */
const settleMs = 2000;

/**
 * Runs a service that follows every peer under some prefixes, and starts it again, from its store and without a goodbye, when
 * the installation has gained or lost one: that is rare, and a service need not know how to change its mind about it.
 * What changes within `restMs` of a first change is one change.
 */
export const runWithMembers = async (
  configuration: ProcessConfiguration,
  prefixes: readonly string[],
  run: (members: Members) => Promise<RunningService>,
  restMs: number = settleMs,
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
  const check = async (): Promise<void> => {
    if ((await changed()) === null) return;
    await sleep(restMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    const found = await changed();
    if (found === null) return;
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
