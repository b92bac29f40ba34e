import { instancesIn } from "../../core/cells/binding.ts";
import { createCellManager } from "../../core/cells/manager.ts";
import type { CellReport } from "../../core/cells/work.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { servePeers } from "../http/https.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { stopAtSignals } from "../life/signals.ts";
import { createObserver, type Observer, observed } from "../observation/observer.ts";
import { type RunningService, runService } from "../process/process.ts";
import { watchMembers } from "../transport/peers-watch.ts";
import { makeControllers } from "./maker.ts";
import { createComponents } from "./root-model.ts";

export interface RunningCellManager {
  stop(): Promise<void>;
}

/** The root cell's number is 1. */
const firstNumber = 2;

/**
 * Runs the Cell Manager: the service, and what puts the VMs of cells' controllers into the root cell's model. Rejects when a
 * port is taken or a file is missing.
 */
export const runCellManager = async (
  configuration: ProcessConfiguration,
  observer: Observer = createObserver(configuration.name),
): Promise<RunningCellManager> => {
  const server = await servePeers(configuration, observed(observer), undefined, { observer });
  let running: RunningService | null = null;
  let known: readonly PeerName[] = [];
  const tell = (peers: readonly PeerName[]): void => {
    known = peers;
    const report: CellReport = { kind: "instances", instances: instancesIn(peers) };
    void running?.request(report as unknown as Json).catch(() => undefined);
  };
  const watch = await watchMembers(configuration, "", tell).catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  known = watch.members;
  const instances = instancesIn(known);
  const service = createCellManager({ self: configuration.name, firstNumber, instances });
  const started = await runService({ configuration, observer, service }).catch(async (error: unknown) => {
    watch.stop();
    await server.stop();
    throw error;
  });
  running = started;
  // What has changed since it was read.
  tell(known);
  const stopping = new AbortController();
  const making = makeControllers({
    report: (report) => started.request(report as unknown as Json),
    components: createComponents(configuration, stopping.signal),
    signal: stopping.signal,
  });
  const stop = async (): Promise<void> => {
    unregister();
    stopping.abort();
    watch.stop();
    await started.stop();
    await making;
    await server.stop();
  };
  const unregister = stopAtSignals(stop);
  return { stop };
};
