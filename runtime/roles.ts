import type { PeerName } from "../model/identifiers.ts";
import { servePeers } from "./https.ts";
import { network, type ProcessConfiguration } from "./installation.ts";
import { createObserver, logFatalErrors, type Observer, observed } from "./observer.ts";
import { listPeers } from "./peers.ts";
import { type RunningService, runService } from "./process.ts";
import { stopAtSignals } from "./signals.ts";

/**
 * Which service each core role runs. A role's code is loaded only where it runs, so that a small VM carries no more than
 * it needs.
 */
const membersEveryMs = 1000;

type Members = readonly PeerName[];

/**
 * Runs a service that follows every peer under some prefixes, and starts it again, from its store and without a goodbye, when
 * the installation has gained or lost one: that is rare, and a service need not know how to change its mind about it.
 */
const runWithMembers = async (
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

const runStorageManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createStorageManager } = await import("../core/storage/manager.ts");
  await runWithMembers(configuration, ["agent."], (agents) =>
    runService({ configuration, observer, service: createStorageManager({ self: configuration.name, agents }) }),
  );
};

const runPlacer = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createPlacer } = await import("../core/placer/placer.ts");
  await runWithMembers(configuration, ["host."], (hosts) =>
    runService({ configuration, observer, service: createPlacer({ self: configuration.name, hosts }) }),
  );
};

const runPresence = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createPresence } = await import("../core/presence/group.ts");
  const self = configuration.name;
  const startWith = (all: Members, prefix: string): Members => all.filter((peer) => peer.startsWith(prefix));
  const serviceFor = (all: Members) =>
    createPresence({ self, members: startWith(all, "presence."), hosts: startWith(all, "host.") });
  await runWithMembers(configuration, ["host.", "presence."], (all) =>
    runService({ configuration, observer, service: serviceFor(all) }),
  );
};

const runAddressManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createAddressManager } = await import("../core/address/manager.ts");
  const { internalPool, externalPool, underlay } = network;
  const service = createAddressManager({
    self: configuration.name,
    internalPool,
    externalPool,
    reserved: [underlay],
  });
  await runService({ configuration, observer, service });
};

const runDnsManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createDnsManager } = await import("../core/dns/manager.ts");
  const { serveDns } = await import("./dns-server.ts");
  const service = createDnsManager({ self: configuration.name, domain: network.domain });
  const running = await runService({ configuration, observer, service });
  const server = await serveDns(configuration, running);
  stopAtSignals(() => server.stop());
};

/** These services have nobody to answer over HTTPS but whoever looks at them. */
const serveObserver = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const server = await servePeers(configuration, observed(observer));
  stopAtSignals(server.stop);
};

/** Runs until a signal ends the process. Rejects for a role that this program does not run, and where a role cannot start. */
export const runRole = async (configuration: ProcessConfiguration): Promise<void> => {
  const { role, name } = configuration;
  const observer = createObserver(name);
  logFatalErrors(observer);
  switch (role) {
    case "controller": {
      const { runController } = await import("./controller/edge.ts");
      await runController(configuration, observer);
      return;
    }
    case "storage-manager":
      await serveObserver(configuration, observer);
      return runStorageManager(configuration, observer);
    case "placer":
      await serveObserver(configuration, observer);
      return runPlacer(configuration, observer);
    case "presence":
      await serveObserver(configuration, observer);
      return runPresence(configuration, observer);
    case "address-manager":
      await serveObserver(configuration, observer);
      return runAddressManager(configuration, observer);
    case "dns-manager":
      await serveObserver(configuration, observer);
      return runDnsManager(configuration, observer);
    default:
      throw new Error(
        `"${name}" has the role "${role}", which has a program of its own; this one runs controller, storage-manager, ` +
          "address-manager, dns-manager, placer and presence",
      );
  }
};
