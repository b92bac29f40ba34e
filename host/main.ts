import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import type { ActualHost, DesiredVm } from "../core/documents/vocabulary.ts";
import { hostName, ipv4, mac } from "../model/cell/identifiers.ts";
import type { Allocation } from "../model/eucalyptus/allocation/allocation.ts";
import type { Json } from "../model/json/json.ts";
import { servePeers } from "../runtime/http/https.ts";
import { certify } from "../runtime/identity/own/certify.ts";
import { followPeers } from "../runtime/identity/own/peers-follow.ts";
import { followPins } from "../runtime/identity/own/pin-file.ts";
import { network as installationNetwork, type ProcessConfiguration } from "../runtime/installation.ts";
import { failStart } from "../runtime/life/error-line.ts";
import { stopAtSignals } from "../runtime/life/signals.ts";
import { createObserver, logFatalErrors, logOf, type Observer, observed } from "../runtime/observation/observer.ts";
import { type RunningService, runService } from "../runtime/process/process.ts";
import { machineInstance } from "../runtime/transport/fingerprint.ts";
import { readLives } from "../runtime/transport/peers.ts";
import { startBootstrap } from "./bootstrap/bootstrap.ts";
import { limitParents } from "./drivers/hypervisor/process/cgroup.ts";
import { createQemuDriver } from "./drivers/hypervisor/qemu.ts";
import { machineUsages } from "./drivers/hypervisor/usage.ts";
import { createDiverter } from "./drivers/network/diverter/diverter.ts";
import { findDevice } from "./drivers/network/diverter/taps/devices.ts";
import type { AsksElsewhere, Uplink } from "./drivers/network/driver.ts";
import {
  type AgentOptions,
  allocationFile,
  closedFor,
  type NetworkAgent,
  startAgent,
  viewFile,
} from "./drivers/network/eucalyptus/agent/agent.ts";
import { ViewFile } from "./drivers/network/eucalyptus/agent/view-file.ts";
import { runner } from "./drivers/network/eucalyptus/handlers/run.ts";
import { createLearner } from "./drivers/network/eucalyptus/learn/learn.ts";
import type { InstanceFacts } from "./drivers/network/eucalyptus/metadata/answers.ts";
import { startResponder } from "./drivers/network/eucalyptus/metadata/responder.ts";
import { createTags } from "./drivers/network/eucalyptus/tags/tags.ts";
import { createStorageDriver } from "./drivers/storage/driver-nbd.ts";
import { createHostEdge } from "./edge.ts";
import { openWatchdog } from "./heartbeat/watchdog-device.ts";
import { createGuestWatch, type GuestWatchOptions } from "./liveness/guest-watch.ts";
import { createProber, type Prober, type ProberOptions } from "./liveness/prober.ts";
import { howItStarts, readBootMark } from "./machine/boot.ts";
import { askMachines, askNeighbour, createNeighbours, type Neighbours } from "./network/neighbours.ts";
import { type PlacedRequest, placedOf } from "./network/network-view.ts";
import { installationNetworks, wayOutside } from "./network/outside.ts";
import { followAddresses } from "./network/peer-addresses.ts";
import { networkNews } from "./network/routers.ts";
import { createPowerHand } from "./power/power-hand.ts";
import { passedOn } from "./presence/passed-on.ts";
import { type HostPresence, startHostPresence, viewPath } from "./presence/presence.ts";
import { createExecutor, type Executor } from "./service/executor.ts";
import type { InstanceHere } from "./service/inventory.ts";
import { createHostManager } from "./service/manager.ts";
import { type AskedNetwork, bothNetworks, createHostObservation } from "./service/observation.ts";
import { overheadMiB } from "./service/planner.ts";
import { createHostSessions } from "./sessions/sessions.ts";

/** The document that this host publishes about itself. */
const describe = (
  configuration: ProcessConfiguration,
  part: NonNullable<ProcessConfiguration["host"]>,
  accelerator: ActualHost["accelerator"],
): ActualHost => ({
  host: hostName(part.host),
  state: "up",
  address: ipv4(configuration.address),
  mac: mac(part.mac),
  memoryMiB: part.memoryMiB,
  reservedMiB: part.reservedMiB,
  machineMiB: overheadMiB,
  cpus: part.cpus,
  cpuSpeedMHz: cpus()[0]?.speed ?? 0,
  accelerator,
});

const readConfiguration = async (
  file: string | undefined,
): Promise<{
  readonly configuration: ProcessConfiguration;
  readonly part: NonNullable<ProcessConfiguration["host"]>;
}> => {
  if (file === undefined) throw new Error("usage: node host/main.ts CONFIG.json");
  const configuration = JSON.parse(await readFile(file, "utf8")) as ProcessConfiguration;
  const { role, host: part } = configuration;
  if (role !== "host" || part === undefined)
    throw new Error(`${file} is no configuration of a host: role "host" and a part "host"`);
  if (process.getuid?.() !== 0)
    throw new Error("the Host Manager must run as root: it makes taps and starts QEMU as a user that it changes to");
  return { configuration, part };
};

/** The devices that the network driver uses. Throws with a sentence if the configured device cannot be used. */
const uplinkOf = (part: NonNullable<ProcessConfiguration["host"]>, host: ActualHost): Uplink => {
  const { uplink: device, bridge, outside } = part;
  const uplink = { device, address: host.address, mac: host.mac, ...(bridge === undefined ? {} : { bridge }) };
  if (outside === undefined) return { ...uplink, networks: installationNetworks(installationNetwork) };
  const name = outside.device ?? device;
  // If the uplink is a port of a bridge, the bridge has the host's address.
  const found = findDevice(name === device ? (bridge ?? device) : name);
  const way = wayOutside(outside, device, found, installationNetwork);
  if (!way.ok) throw new Error(way.error);
  return { ...uplink, outside: way.value };
};

const prepare = async (runDirectory: string): Promise<void> => {
  // When memory runs out, the kernel should kill something else. Not permitted in some containers, and then left out.
  await writeFile("/proc/self/oom_score_adj", "-500").catch(() => undefined);
  await mkdir(runDirectory, { recursive: true });
  // QEMU's users may enter this directory to reach their own machine's, and may not list it.
  await chmod(runDirectory, 0o711);
};

const neighboursOn = (device: string, network: AsksElsewhere): Neighbours => {
  const neighbours = createNeighbours(async (wanted) => {
    const asked = [askNeighbour(wanted, device).catch(() => null), askMachines(wanted, network)] as const;
    const [mac, machines] = await Promise.all(asked);
    return { mac, machines };
  });
  stopAtSignals(async () => neighbours.stop());
  return neighbours;
};

const emulates = (observer: Pick<ReturnType<typeof createObserver>, "log">) => (why: string) =>
  observer.log("host/emulates", { why });

const ownProcess = {
  ownCpuSeconds: () => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
  nowSeconds: () => performance.now() / 1000,
};

/** Whether guests live, and whether they have come up. */
const askGuests = ({ hypervisor, network, request, log }: ProberOptions & GuestWatchOptions): Wakeable => {
  const parts = [createProber({ network, request, log }), createGuestWatch({ hypervisor, request })];
  return {
    wake: () => {
      for (const part of parts) part.wake();
    },
    close: () => {
      for (const part of parts) part.close();
    },
  };
};

/** The machine has started anew: nothing of a view is in place, and what files say of one may be others' by now. Views that come as files are the site's own. */
const forgetViews = async ({ eucalyptus }: NonNullable<ProcessConfiguration["host"]>): Promise<void> => {
  if (eucalyptus?.cluster === undefined) return;
  for (const file of [viewFile, allocationFile]) await rm(join(eucalyptus.directory, file), { force: true });
};

async function readBoot(runDirectory: string, part: NonNullable<ProcessConfiguration["host"]>) {
  const boot = await readBootMark(runDirectory);
  if (boot.booted) await forgetViews(part);
  return boot;
}

/** The networking mode that this host offers beside Diverter, if there is one. @returns what both are asked by */
const otherNetworks = async (
  { eucalyptus }: NonNullable<ProcessConfiguration["host"]>,
  { network, address, views, log, request }: OtherNetworks,
): Promise<AskedNetwork> => {
  if (eucalyptus === undefined) return network;
  const { directory, peer, cluster } = eucalyptus;
  const told = (allocation: Allocation): void => {
    const placed: PlacedRequest = { kind: "network-placed", placed: placedOf(allocation) };
    void request(placed as unknown as Json).catch(({ message }: Error) => log("report-failed", { why: message }));
  };
  const back = { ...(cluster === undefined ? {} : { told }), ...closedFor(cluster, installationNetwork.underlay) };
  const programs = {
    tags: createTags(join(directory, "bpf-tags")),
    learner: createLearner(join(directory, "bpf-learn")),
  };
  const self = { address, peer };
  const { lease } = views;
  const of = { directory, self, run: runner(), signals: process, log, programs, lease };
  const agent = await startAgent({ ...of, ...back });
  stopAtSignals(() => agent.stop());
  views.follow(agent);
  if (cluster !== undefined && peer === "node") await answerForMetadata({ agent, cluster, log, request });
  return bothNetworks(network, agent, request);
};
/** For instances of this machine, by what its own service knows of them. */
const answerForMetadata = async ({
  agent,
  cluster,
  log,
  request,
}: Pick<OtherNetworks, "log" | "request"> & {
  readonly agent: Pick<NetworkAgent, "publicAddressOf">;
  readonly cluster: string;
}): Promise<void> => {
  const factsOf = async (address: string): Promise<InstanceFacts | null> => {
    const here = (await request({ kind: "instance", address })) as unknown as InstanceHere | null;
    if (here === null) return null;
    const publicAddress = agent.publicAddressOf(here.instance);
    return { ...here, cluster, ...(publicAddress === null ? {} : { publicAddress }) };
  };
  const responder = await startResponder({ factsOf, log });
  if (responder !== null) stopAtSignals(responder.close);
};
interface OtherNetworks {
  readonly network: AskedNetwork;
  readonly address: string;
  readonly views: ViewFile;
  readonly log: AgentOptions["log"];
  readonly request: RunningService["request"];
}
const viewFileOf = ({ eucalyptus }: NonNullable<ProcessConfiguration["host"]>, { log }: Observer): ViewFile =>
  new ViewFile(eucalyptus?.directory ?? null, (why) => log("host/network-view-not-written", { why }));
const offeredNetwork = ({ eucalyptus }: NonNullable<ProcessConfiguration["host"]>, views: ViewFile) =>
  eucalyptus?.cluster === undefined
    ? {}
    : { network: { cluster: eucalyptus.cluster, peer: eucalyptus.peer, onView: views.put, onLease: views.hold } };
type Wakeable = Pick<Prober, "wake" | "close">;

/**
 * `node host/main.ts CONFIG.json`: the Host Manager, in the network and mount namespace of its host. SIGTERM ends it and
 * leaves its machines, taps and rules as they are; the next one takes them over.
 */
async function main(configurationFile: string | undefined): Promise<void> {
  const { configuration, part } = await readConfiguration(configurationFile);
  const { runDirectory, directory, pinsFile } = configuration;
  await prepare(runDirectory);
  const observer = createObserver(configuration.name);
  logFatalErrors(observer);
  const watchdog = part.watchdog === undefined ? null : await openWatchdog(part.watchdog, observer.log);
  await certify(configuration, observer);
  if (configuration.followPeers === true) await followPeers(configuration, observer);
  const hypervisor = createQemuDriver({ runDirectory, cgroups: part.cgroups, onDoubt: emulates(observer) });
  const storage = createStorageDriver({ configuration });
  const news = networkNews();
  const network = createDiverter({ directory, runDirectory, ...news.heard });
  const host = describe(configuration, part, await hypervisor.accelerator());
  await network.init(uplinkOf(part, host));
  await limitParents(part.cgroups, part.memoryMiB - part.reservedMiB);

  let executor: Executor | null = null;
  let asking: Wakeable | null = null;
  const wake = (): void => {
    executor?.wake();
    asking?.wake();
  };
  let presence: HostPresence | null = null;
  const [neighbours, group] = [neighboursOn(part.bridge ?? part.uplink, network), passedOn()];
  const boot = await readBoot(runDirectory, part);
  const views = viewFileOf(part, observer);
  const starts = { ...(await howItStarts(directory, boot)), onProbes: neighbours.take, ...offeredNetwork(part, views) };
  const service = createHostManager({
    host,
    wake,
    ...(watchdog === null ? {} : { onWatchdog: watchdog.tell }),
    ...starts,
    ...group.heard,
    ...(pinsFile === undefined ? {} : { onPin: followPins(pinsFile) }),
    ...(configuration.followPeers === true ? { hasAuthority: true as const } : {}),
  });
  const machine = { ...service, ...(await machineInstance(configuration)) };
  const running = await runService({ configuration, service: machine, observer, goodbye: false });
  await boot.remember(running.request);
  const { request, beginLife, declaredDead } = running;
  stopAtSignals(followAddresses(configuration, request));
  const log = logOf(running.observer, "host");
  for (const each of [news, neighbours]) each.tell(request);
  const bootstrap = await startBootstrap({ configuration, log: observer.log });
  if (bootstrap !== null) stopAtSignals(() => bootstrap.close());
  const filesFor = (desired: DesiredVm) => bootstrap?.birth(desired) ?? null;
  executor = createExecutor({ hypervisor, network, storage, request, log, filesFor });
  // Stop functions run in reverse order: the executor ends its actions before what they use is stopped.
  stopAtSignals(executor.close);
  await executor.start();
  asking = askGuests({ hypervisor, network, request, log });
  stopAtSignals(async () => asking?.close());
  asking.wake();
  const asked = await otherNetworks(part, { network, address: configuration.address, views, log, request });
  const sessions = createHostSessions({ hypervisor, request, log, lives: () => readLives(configuration) });
  const usages = () => machineUsages(runDirectory);
  const seen = createHostObservation({ network: asked, request, usages, hypervisor, ...ownProcess });
  running.observer.measures(seen.metrics);
  if (configuration.presence !== undefined) {
    presence = await startHostPresence({ configuration, host: host.host, request, beginLife, declaredDead, log });
    group.begin(presence);
    running.observer.measures(presence.measure);
    stopAtSignals(presence.close);
  }
  const answer = createHostEdge({ ...seen, hypervisor, network: asked, request, power: createPowerHand(directory) });
  const edge = await servePeers(
    configuration,
    observed(running.observer, (asked, response) =>
      asked.url === viewPath && presence !== null ? presence.view(asked, response) : answer(asked, response),
    ),
    sessions.upgrade,
    { observer },
  );
  stopAtSignals(async () => {
    await sessions.close();
    await edge.stop();
  });
  // The last one is the first to be stopped: the others may take longer than the machine would be left alone.
  stopAtSignals(async () => watchdog?.close());
}

main(process.argv[2]).catch((error: Error) => failStart(process.argv[2], error));
