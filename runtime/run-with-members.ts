import type { PeerName } from "../model/identifiers.ts";
import type { ProcessConfiguration } from "./installation.ts";
import { listPeers } from "./peers.ts";
import { watchPeers } from "./peers-watch.ts";
import type { RunningService } from "./process.ts";
import { stopAtSignals } from "./signals.ts";

export type Members = readonly PeerName[];

/**
 * Runs a service that follows every peer under some prefixes, and starts it again, from its store and without a goodbye, when
 * the installation has gained or lost one: that is rare, and a service need not know how to change its mind about it.
 */
export const runWithMembers = async (
  configuration: ProcessConfiguration,
  prefixes: readonly string[],
  run: (members: Members) => Promise<RunningService>,
): Promise<void> => {
  const list = async (): Promise<Members> =>
    (await Promise.all(prefixes.map((prefix) => listPeers(configuration, prefix)))).flat();
  let members: Members = [];
  let running: RunningService | null = null;
  let stopped = false;
  const start = async (found: Members): Promise<void> => {
    members = found;
    running = await run(found);
  };
  const check = async (): Promise<void> => {
    // A peers file that cannot be read changes nothing.
    const found = await list().catch(() => members);
    if (stopped || found.join(" ") === members.join(" ")) return;
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
    stopped = true;
    unwatch();
    await checking;
  });
};
