import { createCellManager } from "../../core/cells/manager.ts";
import type { Json } from "../../model/json.ts";
import { servePeers } from "../https.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { createObserver, type Observer, observed } from "../observer.ts";
import { runService } from "../process.ts";
import { stopAtSignals } from "../signals.ts";
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
  const server = await servePeers(configuration, observed(observer));
  const service = createCellManager({ self: configuration.name, firstNumber });
  const running = await runService({ configuration, observer, service }).catch(async (error: unknown) => {
    await server.stop();
    throw error;
  });
  const stopping = new AbortController();
  const making = makeControllers({
    report: (report) => running.request(report as unknown as Json),
    components: createComponents(configuration, stopping.signal),
    signal: stopping.signal,
  });
  const stop = async (): Promise<void> => {
    unregister();
    stopping.abort();
    await running.stop();
    await making;
    await server.stop();
  };
  const unregister = stopAtSignals(stop);
  return { stop };
};
