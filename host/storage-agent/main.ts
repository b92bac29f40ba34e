import { chmod, mkdir, readFile } from "node:fs/promises";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import type { AgentReport } from "../../core/storage/agent/work.ts";
import { type HostName, ipv4, peerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry } from "../../model/contract/audit/audit.ts";
import type { Json } from "../../model/json/json.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { certify } from "../../runtime/identity/own/certify.ts";
import { followPeers } from "../../runtime/identity/own/peers-follow.ts";
import { type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { failStart } from "../../runtime/life/error-line.ts";
import { stopAtSignals } from "../../runtime/life/signals.ts";
import { createObserver, logFatalErrors, logOf, observed } from "../../runtime/observation/observer.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import { machineInstance } from "../../runtime/transport/fingerprint.ts";
import { findPeer, listPeers } from "../../runtime/transport/peers.ts";
import { watchPeers } from "../../runtime/transport/peers-watch.ts";
import { createBackupEdge } from "./backups/backup-edge.ts";
import { BackupStore } from "./backups/backup-store.ts";
import { createAdoptionEdge, createBinEdge } from "./bin/bin-edge.ts";
import { createEdge } from "./edge.ts";
import { Executor } from "./executor.ts";
import { createImageEdge } from "./images/image-edge.ts";
import { ImageStore } from "./images/image-store.ts";
import { createMachinery } from "./server-machinery.ts";
import { VolumeFiles } from "./volume-files.ts";

/**
 * `node host/storage-agent/main.ts CONFIG.json`. SIGTERM ends the agent and leaves its exports running, as machines
 * outlive their Host Manager; the next agent adopts them, and after a boot of the server starts them anew from its store.
 */
async function main(configurationFile: string | undefined): Promise<void> {
  if (configurationFile === undefined) throw new Error("usage: node host/storage-agent/main.ts CONFIG.json");
  const configuration = JSON.parse(await readFile(configurationFile, "utf8")) as ProcessConfiguration;
  const { agent } = configuration;
  if (configuration.role !== "agent" || agent === undefined)
    throw new Error(`${configurationFile} is no configuration of a storage agent: role "agent" and a part "agent"`);
  if (process.getuid?.() !== 0)
    throw new Error("the storage agent must run as root: its exports run as a user that it changes to");

  // After a boot it is the first that needs the directory, in which the Host Manager's machines have theirs, too: what is made
  // on the way to a private one would be private (mkdir with `recursive`), and closed to the users of machines.
  await mkdir(configuration.runDirectory, { recursive: true });
  await chmod(configuration.runDirectory, 0o711);

  const address = ipv4(configuration.address);
  const bin = agent.bin === undefined ? {} : { bin: agent.bin };
  const service = createAgentService({ server: agent.server, address, firstPort: ports.nbdFirst, ...bin });
  const observer = createObserver(configuration.name);
  logFatalErrors(observer);
  await certify(configuration, observer);
  if (configuration.followPeers === true) await followPeers(configuration, observer);
  const machine = { ...service, ...(await machineInstance(configuration)) };
  const running = await runService({ configuration, service: machine, observer, goodbye: false });
  const log = logOf(running.observer, "agent");
  const { directory, runDirectory, httpPort = ports.http } = configuration;
  const places = { directory, imagesDirectory: agent.imagesDirectory };
  const files = new VolumeFiles({ ...places, address, httpPort });
  const executor = new Executor({
    server: agent.server,
    machinery: createMachinery(
      { ...places, address, runDirectory, hostAddresses: (host) => addressesOf(configuration, host) },
      files,
    ),
    request: (report) => running.request(report as unknown as Json),
    log,
  });
  // Signals end the latest first: no task may lose its service half-way.
  stopAtSignals(() => executor.close());
  await executor.start();
  stopAtSignals(await tellInstallation(configuration, running));
  const images = new ImageStore({
    ...places,
    ...(agent.imageLimits === undefined ? {} : { limits: agent.imageLimits }),
    ...(agent.cgroups === undefined ? {} : { cgroups: agent.cgroups }),
    log,
    changed: () => void executor.reportImages().catch(() => undefined),
  });
  await images.prepare();
  stopAtSignals(() => images.close());
  const record = async (entry: AuditEntry): Promise<void> => {
    await running.observer.audit?.record(entry);
  };
  const parts = [
    createImageEdge(places, images, record),
    createBinEdge(files.bin, executor, record),
    createAdoptionEdge(executor, record),
    createBackupEdge(new BackupStore(directory)),
  ];
  const edge = await servePeers(
    configuration,
    observed(running.observer, createEdge(configuration, files, parts)),
    undefined,
    { observer: running.observer },
  );
  stopAtSignals(() => edge.stop());
}

/** Empty where the peers file does not say it: nobody is taken for a stranger then. */
const addressesOf = async (configuration: ProcessConfiguration, host: HostName | null): Promise<readonly string[]> => {
  const names = host === null ? await listPeers(configuration, "host.") : [peerName(`host.${host}`)];
  const places = await Promise.all(names.map((name) => findPeer(configuration, name)));
  return places.flatMap((place) => (place.ok ? [place.value.host] : []));
};

/** The agent judges by these who counts as lost; told again whenever the peers file has others. */
const tellInstallation = async (
  configuration: ProcessConfiguration,
  running: RunningService,
): Promise<() => Promise<void>> => {
  const tell = async (): Promise<void> => {
    const [hosts, members] = [await listPeers(configuration, "host."), await listPeers(configuration, "presence.")];
    const managers = await listPeers(configuration, "storage-manager");
    const report: AgentReport = { kind: "installation", hosts, members, managers };
    await running.request(report as unknown as Json);
  };
  // A file that cannot be read now is looked at again when it changes; the service may be stopping.
  const stop = watchPeers(configuration.peersFile, () => tell().catch(() => undefined));
  await tell().catch(() => undefined);
  return async () => stop();
};

main(process.argv[2]).catch((error: Error) => failStart(process.argv[2], error));
