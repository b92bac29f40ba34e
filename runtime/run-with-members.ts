import type { PeerName } from "../model/identifiers.ts";
import type { ProcessConfiguration } from "./installation.ts";
import { listPeers } from "./peers.ts";
import type { RunningService } from "./process.ts";
import { stopAtSignals } from "./signals.ts";

const membersEveryMs = 1000;

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
  let members = await list();
  let running = await run(members);
  let stopped = false;
  let checking: Promise<void> = Promise.resolve();
  const check = async (): Promise<void> => {
    // A peers file that cannot be read changes nothing.
    const found = await list().catch(() => members);
    if (stopped || found.join(" ") === members.join(" ")) return;
    members = found;
    await running.stop({ goodbye: false });
    running = await run(members);
  };
  const timer = setInterval(() => {
    checking = checking.then(check);
  }, membersEveryMs);
  stopAtSignals(async () => {
    stopped = true;
    clearInterval(timer);
    await checking;
  });
};
