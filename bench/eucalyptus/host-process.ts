import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { closedFor, machineFile, startAgent } from "../../host/drivers/network/eucalyptus/agent/agent.ts";
import { ViewFile } from "../../host/drivers/network/eucalyptus/agent/view-file.ts";
import { runner } from "../../host/drivers/network/eucalyptus/handlers/run.ts";
import { placedOf } from "../../host/network/network-view.ts";
import { createHostManager } from "../../host/service/manager.ts";
import { hostName, ipv4, mac } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { runService } from "../../runtime/process/process.ts";

/*
 * A host as far as its network goes: the Host Manager, which hears views and says what became of them, and the agent that puts them in place
 * by the system's tools in a network namespace. SIGHUP has the agent look. It ends with its standard input. Its argument is a `HostArguments` as JSON.
 */

export interface HostArguments {
  /** File of the process's configuration. */
  readonly configuration: string;
  readonly name: string;
  /** By which the view names it. */
  readonly address: string;
  readonly peer: "node" | "network";
  readonly cluster: string;
  /** Of the agent's files. */
  readonly directory: string;
  /** Its machine's own file. */
  readonly machine: string;
  /** Of a process in the namespace. */
  readonly pid: number;
}

async function main(given: HostArguments): Promise<void> {
  const { name, peer, cluster, directory } = given;
  const configuration = JSON.parse(readFileSync(given.configuration, "utf8")) as ProcessConfiguration;
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}/${machineFile}`, given.machine);
  const failed = (what: string): void => void process.stderr.write(`${name}: ${what}\n`);
  const views = new ViewFile(directory, failed);
  const host = {
    host: hostName(name),
    state: "up",
    address: ipv4(given.address),
    mac: mac("02:00:00:00:01:01"),
    memoryMiB: 1000,
    reservedMiB: 200,
    cpus: 2,
    cpuSpeedMHz: 0,
    accelerator: "tcg",
  } as const;
  const network = { cluster, peer, onView: views.put, onLease: views.hold };
  const runs = await runService({
    configuration,
    observer: createObserver(configuration.name, () => undefined),
    service: createHostManager({ host, wake: () => undefined, network }),
  });
  const agent = await startAgent({
    directory,
    self: { address: given.address, peer },
    run: runner(["nsenter", "-t", String(given.pid), "-n", "-m", "--"]),
    signals: process,
    log: (event, { why }) => {
      if (why !== undefined) failed(`${event} ${why}`);
    },
    told: (allocation) =>
      void runs.request({ kind: "network-placed", placed: placedOf(allocation) } as unknown as Json).catch(() => null),
    lease: views.lease,
    ...closedFor(cluster, "10.111.0.0/16"),
  });
  views.follow(agent);
  process.stdin.on("end", () => process.exit(0)).resume();
  process.stdout.write("runs\n");
}
await main(JSON.parse(process.argv[2] ?? "") as HostArguments);
