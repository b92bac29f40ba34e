import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AddressReport } from "../core/address/manager.ts";
import { isPersonality, serviceRoles } from "../core/documents/service-roles.ts";
import type { ControllersReport } from "../core/eucalyptus/manager.ts";
import { toJson } from "../core/outbox.ts";
import { parseNetwork } from "../model/addresses/addresses.ts";
import type { Pool } from "../model/eucalyptus/configuration/check.ts";
import { unconfirmedFile } from "./backup/put-back.ts";
import { servePeers } from "./http/https.ts";
import { certify } from "./identity/own/certify.ts";
import { followPeers } from "./identity/own/peers-follow.ts";
import { network, type ProcessConfiguration, ports } from "./installation.ts";
import { stopAtSignals } from "./life/signals.ts";
import { createObserver, logFatalErrors, type Observer, observed } from "./observation/observer.ts";
import {
  capacityQuestion,
  type Further,
  haQuestion,
  hostsQuestion,
  offersQuestion,
  rebalanceQuestion,
  roomsQuestion,
  runAsked,
  serveQuestions,
  trialQuestion,
} from "./process/asked.ts";
import { runService } from "./process/process.ts";
import { type Members, runWithMembers } from "./process/run-with-members.ts";
import { watchMembers } from "./transport/peers-watch.ts";

/**
 * Which service each core role runs. A role's code is loaded only where it runs, so that a small VM carries no more than
 * it needs. Which roles there are: `core/documents/service-roles.ts`.
 */
const runStorageManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createStorageManager } = await import("../core/storage/manager/manager.ts");
  const asked = await serveQuestions(configuration, observer, "storage-manager", [offersQuestion]);
  await runWithMembers(configuration, ["agent."], (agents) =>
    runAsked(asked, { configuration, observer, service: createStorageManager({ self: configuration.name, agents }) }),
  );
};

const runPlacer = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createPlacer } = await import("../core/placer/placer.ts");
  const asked = await serveQuestions(configuration, observer, "placer", [
    offersQuestion,
    roomsQuestion,
    capacityQuestion,
    rebalanceQuestion,
    trialQuestion,
  ]);
  const self = configuration.name;
  const serviceFor = (all: Members) =>
    createPlacer({ self, hosts: startWith(all, "host."), presence: startWith(all, "presence.") });
  await runWithMembers(
    configuration,
    ["host.", "presence."],
    (all) => runAsked(asked, { configuration, observer, service: serviceFor(all) }),
    { takesMembers: true },
  );
};

const startWith = (all: Members, prefix: string): Members => all.filter((peer) => peer.startsWith(prefix));

const runPresence = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createPresence } = await import("../core/presence/group/group.ts");
  const { hostEnds } = await import("./presence/host-end.ts");
  const asked = await serveQuestions(configuration, observer, "presence", [hostsQuestion], hostEnds);
  const self = configuration.name;
  const serviceFor = (all: Members) =>
    createPresence({ self, members: startWith(all, "presence."), hosts: startWith(all, "host.") });
  await runWithMembers(
    configuration,
    ["host.", "presence."],
    (all) => runAsked(asked, { configuration, observer, service: serviceFor(all) }),
    { takesMembers: true },
  );
};

const runHaManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createHaManager } = await import("../core/ha/manager.ts");
  const { haReleases } = await import("./ha/release.ts");
  const { followOrders, openPowerSeal, powerRegistrations } = await import("./ha/power.ts");
  const seal = await openPowerSeal(configuration.directory);
  const { alertNotices, openWebhookSeal } = await import("./ha/notices.ts");
  const { mailNotices, openMailSeal } = await import("./ha/mail.ts");
  const notices = alertNotices(await openWebhookSeal(configuration.directory));
  const mail = mailNotices(await openMailSeal(configuration.directory));
  const all: readonly Further[] = [haReleases, notices, mail, powerRegistrations(configuration, seal)];
  const further: Further = {
    answers: (url) => all.some((each) => each.answers(url)),
    handler: (at) => {
      const handlers = all.map((each) => [each, each.handler(at)] as const);
      return (incoming, response) => handlers.find(([each]) => each.answers(incoming.url))?.[1](incoming, response);
    },
  };
  const asked = await serveQuestions(configuration, observer, "ha-manager", [haQuestion], further);
  const endOrders = followOrders(configuration, asked, seal);
  stopAtSignals(async () => endOrders());
  const self = configuration.name;
  const serviceFor = (all: Members) =>
    createHaManager({
      self,
      presence: startWith(all, "presence."),
      storageManagers: startWith(all, "storage-manager"),
      hosts: startWith(all, "host."),
      agents: startWith(all, "agent."),
      haManagers: startWith(all, "ha-manager"),
    });
  await runWithMembers(
    configuration,
    ["host.", "presence.", "storage-manager", "agent.", "ha-manager"],
    (all) => runAsked(asked, { configuration, observer, service: serviceFor(all) }),
    { takesMembers: true },
  );
};

const runAddressManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createAddressManager } = await import("../core/address/manager.ts");
  const { internalPool, externalPool, underlay } = network;
  const asked = await serveQuestions(configuration, observer, "address-manager", [offersQuestion]);
  let controllers: Members = [];
  const tell = (found: Members): void => {
    controllers = found;
    const report: AddressReport = { kind: "controllers", controllers };
    void asked.service?.request(toJson(report)).catch(() => undefined);
  };
  const watch = await watchMembers(configuration, "controller.", tell);
  stopAtSignals(async () => watch.stop());
  controllers = watch.members;
  const service = createAddressManager({
    self: configuration.name,
    internalPool,
    externalPool,
    reserved: [underlay],
    controllers,
  });
  await runAsked(asked, { configuration, observer, service });
  // What has changed since it was read.
  tell(controllers);
};

/** What a network configuration of Eucalyptus must leave alone. */
const installationPools = (): readonly Pool[] =>
  (
    [
      ["hosts and services", network.underlay],
      ["subnets of cells", network.internalPool],
      ["external subnets of cells", network.externalPool],
    ] as const
  ).flatMap(([name, cidr]) => {
    const range = parseNetwork(cidr);
    return range === null ? [] : [{ name, range: { first: range.first, last: range.last } }];
  });

const runNetworkViewManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createNetworkViewManager } = await import("../core/eucalyptus/manager.ts");
  const { networkConfigurations } = await import("./controller/services/network-configurations.ts");
  const asked = await serveQuestions(configuration, observer, "network-view-manager", [], networkConfigurations);
  let controllers: Members = [];
  const tell = (found: Members): void => {
    controllers = found;
    const report: ControllersReport = { kind: "controllers", controllers };
    void asked.service?.request(toJson(report)).catch(() => undefined);
  };
  const watch = await watchMembers(configuration, "controller.", tell);
  stopAtSignals(async () => watch.stop());
  controllers = watch.members;
  const { name: self, address } = configuration;
  const pools = installationPools();
  const serviceFor = (all: Members) => {
    const [hosts, presence] = [startWith(all, "host."), startWith(all, "presence.")];
    return createNetworkViewManager({ self, hosts, address, controllers, pools, presence });
  };
  await runWithMembers(
    configuration,
    ["host.", "presence."],
    (all) => runAsked(asked, { configuration, observer, service: serviceFor(all) }),
    { takesMembers: true },
  );
  tell(controllers);
};

const runDnsManager = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createDnsManager } = await import("../core/dns/manager.ts");
  const { followCells, serveDns } = await import("./dns/dns-server.ts");
  const { notifySecondaries } = await import("./dns/notify.ts");
  const { openZoneSeal, zoneKeysOf, zoneQuestions } = await import("./dns/zone-keys.ts");
  const service = createDnsManager({
    self: configuration.name,
    domain: network.domain,
    externalPools: [network.externalPool],
  });
  const seal = await openZoneSeal(configuration.directory);
  const asked = await serveQuestions(configuration, observer, "dns-manager", [], zoneQuestions(seal));
  const running = await runAsked(asked, { configuration, observer, service });
  const zoneKeys = zoneKeysOf(running.request, seal);
  const cells = await followCells(configuration);
  const server = await serveDns(configuration, running, ports.dns, cells.cellAt, zoneKeys);
  const notify = notifySecondaries({ address: configuration.address, request: running.request, zoneKeys });
  stopAtSignals(async () => {
    cells.stop();
    notify.stop();
    await server.stop();
  });
};

const runDirectory = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const { createDirectory } = await import("../core/directory/directory.ts");
  await runService({
    configuration,
    observer,
    service: createDirectory({ self: configuration.name, domain: network.domain }),
  });
};

/** These services have nobody to answer over HTTPS but whoever looks at them. */
const serveObserver = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const server = await servePeers(configuration, observed(observer), undefined, { observer });
  stopAtSignals(server.stop);
};

/** Loaded for a service that begins, or that has not confirmed what it began with, and for no other. */
const takePart = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  const has = (file: string): boolean => existsSync(join(configuration.directory, file));
  if (configuration.enrolment === undefined || (has("state.sqlite") && !has(unconfirmedFile))) return;
  const { takeKeptPart } = await import("./backup/kept-parts.ts");
  await takeKeptPart(configuration, observer.log);
};

/** Runs until a signal ends the process. Rejects for a role that this program does not run, and where a role cannot start. */
export const runRole = async (configuration: ProcessConfiguration): Promise<void> => {
  const { role, name } = configuration;
  const observer = createObserver(name);
  logFatalErrors(observer);
  await certify(configuration, observer);
  if (configuration.followPeers === true) await followPeers(configuration, observer);
  await takePart(configuration, observer);
  switch (role) {
    case "controller": {
      const { runController } = await import("./controller/edge.ts");
      await runController(configuration, observer);
      return;
    }
    case "storage-manager":
      return runStorageManager(configuration, observer);
    case "placer":
      return runPlacer(configuration, observer);
    case "presence":
      return runPresence(configuration, observer);
    case "directory":
      await serveObserver(configuration, observer);
      return runDirectory(configuration, observer);
    case "cell-manager": {
      const { runCellManager } = await import("./cell-manager/edge.ts");
      await runCellManager(configuration, observer);
      return;
    }
    case "address-manager":
      return runAddressManager(configuration, observer);
    case "dns-manager":
      return runDnsManager(configuration, observer);
    case "network-view-manager":
      return runNetworkViewManager(configuration, observer);
    case "ha-manager":
      return runHaManager(configuration, observer);
    case "authority": {
      const { runAuthority } = await import("./identity/authority/authority.ts");
      await runAuthority(configuration, observer);
      return;
    }
    case "tenancy": {
      const { runTenancy } = await import("./tenancy/edge.ts");
      await runTenancy(configuration, observer);
      return;
    }
    case "gateway":
    case "personality.caas":
    case "host":
    case "agent":
      throw notRunHere(name, role);
    default: {
      const unknown: never = role;
      throw notRunHere(name, unknown);
    }
  }
};

const notRunHere = (name: string, role: string): Error => {
  const run = Object.keys(serviceRoles).filter((one) => one !== "gateway" && !isPersonality(one));
  return new Error(
    `"${name}" has the role "${role}", which has a program of its own or is unknown; this one runs ${run.join(", ")}`,
  );
};
