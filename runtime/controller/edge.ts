import { boundPeers, servicePeerOf } from "../../core/cells/binding.ts";
import { createController } from "../../core/controller/controller.ts";
import { rootCell } from "../../core/documents/cells.ts";
import { cellName, ipv4, mac, type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { placeReturned } from "../backup/returned-store.ts";
import { servePeers } from "../http/https.ts";
import { network, type ProcessConfiguration, ports } from "../installation.ts";
import { restartSelf, stopAtSignals } from "../life/signals.ts";
import { createObserver, type Observer, observed } from "../observation/observer.ts";
import { type RunningService, runService } from "../process/process.ts";
import { findPeer, listPeers } from "../transport/peers.ts";
import { watchMembers, watchPeers } from "../transport/peers-watch.ts";
import { openEvents } from "./events.ts";
import { serveNames } from "./names/name-server.ts";
import { asked, namesOutside } from "./names/names-outside.ts";
import { createRoutes, createUpgrades } from "./routes.ts";
import { haEnrolment } from "./services/ha-companion.ts";
import { serviceOptions } from "./services/root-secret.ts";
import { type ControllerSessions, createSessions } from "./sessions.ts";
import { TenantAnswers, TicketHolds } from "./tenants/tenants.ts";

const answerMs = 100;

export interface RunningController {
  readonly distributionPort: number;
  readonly httpPort: number;
  stop(): Promise<void>;
}

/**
 * Runs a Cell Controller: the service, its REST edge for the gateway, and the name server of the cell's VMs.
 * Rejects when a port is taken, a file is missing or `configuration.controller` is absent.
 */
export async function runController(
  configuration: ProcessConfiguration,
  observer: Observer = createObserver(configuration.name),
): Promise<RunningController> {
  const { controller, address, name } = configuration;
  if (controller === undefined) throw new Error(`the configuration of "${name}" has no part "controller"`);
  await placeReturned(configuration.directory);
  const services = await serviceOptions(configuration);
  const guard = servicePeerOf("haManager", controller.haManager ?? 1);
  const service = createController({
    cell: cellName(controller.cell),
    cellUid: uid(controller.cellUid),
    cellNumber: controller.cellNumber,
    domain: controller.domain,
    address: ipv4(address),
    mac: mac(controller.mac),
    self: name,
    ...(controller.directory === true ? { directory: true } : {}),
    ...(controller.cellManager === true ? { cellManager: true } : {}),
    ...boundPeers(controller),
    ...(controller.networkMode === undefined ? {} : { networkMode: controller.networkMode }),
    ...(services === null
      ? {}
      : controller.root === undefined
        ? { services }
        : { root: { ...services, ha: await haEnrolment(configuration.directory) } }),
    ...(controller.resolvers === undefined ? {} : { resolvers: controller.resolvers.map(ipv4) }),
    ...(controller.startsPerMinute === undefined ? {} : { startsPerMinute: controller.startsPerMinute }),
    // Where there is a Cell Manager, it has made every cell but the one that it runs in.
    ...(controller.cellManager === true && controller.cell !== rootCell ? { child: true } : {}),
    presence: await listPeers(configuration, "presence."),
    ...((await listPeers(configuration, guard)).includes(guard) ? { ha: true as const } : {}),
  });
  const events = openEvents(configuration.directory, controller.cell);
  // What its cell went through is durable; the time line gets it back from there.
  observer.events.seed(events.lines());
  const running = await runService({ configuration, observer, service, onLog: events.record });
  const closers: (() => Promise<void>)[] = [running.stop];
  const stop = async (): Promise<void> => {
    unregister();
    for (const close of closers.splice(0).reverse()) await close();
    events.close();
  };
  const unregister = stopAtSignals(stop);
  try {
    const tell = (members: readonly PeerName[]): void =>
      void running.request({ method: "PRESENCE", members }).catch(() => undefined);
    const presence = await watchMembers(configuration, "presence.", tell);
    closers.push(async () => presence.stop());
    tell(presence.members);
    const tellOfHa = (found: readonly PeerName[]): void => {
      if (found.includes(guard)) void running.request({ method: "HA" }).catch(() => undefined);
    };
    const ha = await watchMembers(configuration, guard, tellOfHa);
    closers.push(async () => ha.stop());
    tellOfHa(ha.members);
    const manager = await followAddress(configuration, peerName("dns-manager"), network.dnsManager);
    closers.push(manager.stop);
    const outside = namesOutside({
      from: address,
      ...asked(controller.domain, () => running.request({ method: "RESOLVERS" })),
    });
    closers.push(async () => outside.close());
    const forget = observer.measures(outside.metrics);
    closers.push(async () => forget());
    const names = await serveNames({
      listen: { address, port: ports.dns },
      outside,
      upstream: () => ({ address: manager.address(), port: ports.dns }),
    });
    closers.push(names.close);
    const returning = {
      isForked: async () => (await observer.leftovers?.list())?.receivers.some(({ forked }) => forked) === true,
      // Its answer is on its way first.
      restart: () => void setTimeout(restartSelf, answerMs),
    };
    const context = { configuration, controller, events, request: running.request, audit: running.audit, returning };
    const holds = new TicketHolds(running.request);
    const sessions = createSessions({ configuration, cell: controller.cell, request: running.request, holds });
    const answers = new TenantAnswers(holds);
    closers.push(endWithTickets(running, sessions, answers));
    const routes = observed(observer, createRoutes(context, sessions, answers));
    const server = await servePeers(configuration, routes, createUpgrades(controller.cell, sessions), {
      // The root cell is reached from nowhere; every other one by its own VMs, where its rules open this.
      users: controller.cell !== rootCell,
      observer,
    });
    closers.push(server.stop);
    if (controller.root !== undefined) {
      const { orderOf, startBackups } = await import("./backups/schedule.ts");
      const model = async () => ((await running.request({ method: "GET", path: "" })) as { body?: Json }).body ?? null;
      const order = (recipient: string) => orderOf(configuration, recipient);
      const backups = startBackups({ configuration, model, order, log: observer.log, nowMs: Date.now });
      closers.push(async () => backups.stop());
    }
    return { distributionPort: running.distributionPort, httpPort: server.port, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What was opened with a user's ticket ends when that is worth less than it was. */
const endWithTickets = (
  { subscribeLog }: Pick<RunningService, "subscribeLog">,
  sessions: ControllerSessions,
  answers: TenantAnswers,
): (() => Promise<void>) => {
  const forget = subscribeLog(({ event, fields }) => {
    if (event !== "ticket/ended") return;
    // A service that is stopping ends them all.
    void sessions.revoked().catch(() => undefined);
    void answers.ended(String(fields.ticket)).catch(() => undefined);
  });
  return async () => forget();
};

/** Where a peer is by the peers file, now and after it moved; `otherwise` as long as the file does not name it. */
const followAddress = async (
  configuration: ProcessConfiguration,
  peer: PeerName,
  otherwise: string,
): Promise<{ readonly address: () => string; readonly stop: () => Promise<void> }> => {
  let address = otherwise;
  const look = async (): Promise<void> => {
    const found = await findPeer(configuration, peer);
    if (found.ok) address = found.value.host;
  };
  const unwatch = watchPeers(configuration.peersFile, look);
  await look();
  return { address: () => address, stop: async () => unwatch() };
};
