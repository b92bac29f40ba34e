import { savedFor } from "../../core/documents/saved-state.ts";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Json } from "../../model/json/json.ts";
import { wakeable } from "../../runtime/process/wakeable.ts";
import type { HypervisorDriver } from "../drivers/hypervisor/driver.ts";
import { NotConfirmedGone } from "../drivers/hypervisor/process/process.ts";
import { diverterMode } from "../drivers/network/diverter/diverter-mode.ts";
import type { GlobalNetwork, NetworkAllocation, NetworkDriver } from "../drivers/network/driver.ts";
import { NetworkService } from "../drivers/network/service/network-service.ts";
import type { ComposedDisk, StorageDriver } from "../drivers/storage/driver.ts";
import type { HostRequest, Outcome } from "../host-requests.ts";
import type { Action } from "./planner.ts";

/** At most this many VMs are worked on at once; the network has a place of its own. */
const parallel = 4;

export interface ExecutorOptions {
  readonly hypervisor: HypervisorDriver;
  readonly network: NetworkDriver;
  readonly storage: StorageDriver;
  readonly request: (request: Json) => Promise<Json>;
  readonly log: (event: string, fields: { readonly [key: string]: Json }) => void;
  /** What a machine finds on its seed volume beside its data; null: nothing. */
  readonly filesFor?: (desired: DesiredVm) => Promise<Readonly<Record<string, Buffer>> | null> | null;
}
export interface Executor {
  /** Lists the machines that run, then works. The network driver has been initialised. */
  start(): Promise<void>;
  /** Something may be to do. */
  wake(): void;
  /** Begins nothing more and waits for what is under way. Machines keep running. */
  close(): Promise<void>;
}

/** Carries out the planner's actions over the drivers and reports how each went. It decides nothing. */
export const createExecutor = (options: ExecutorOptions): Executor => {
  const { hypervisor } = options;
  const implementNetwork = networkUnderLoop(options.network);
  const ask = (request: HostRequest): Promise<Json> => options.request(request as unknown as Json);
  const underWay = new Set<Promise<void>>();
  const waiting: Action[] = [];
  let running = 0;
  let closed = false;
  let listed = false;

  const begin = (action: Action, done: () => void): void => {
    const task = execute(options, action)
      .then((outcome) => ask({ kind: "done", outcome }))
      .catch((error: Error) => options.log("report-failed", { why: error.message }))
      .then(() => {
        underWay.delete(task);
        done();
      });
    underWay.add(task);
  };
  const fill = (): void => {
    while (!closed && running < parallel) {
      const action = waiting.shift();
      if (action === undefined) return;
      running += 1;
      begin(action, () => {
        running -= 1;
        fill();
      });
    }
  };
  const look = wakeable(
    async () => {
      for (const action of (await ask({ kind: "next" })) as unknown as readonly Action[]) {
        if (action.kind === "implement-network") begin(action, () => undefined);
        else waiting.push(action);
      }
      fill();
    },
    () => closed,
    (error) => {
      if (!closed) options.log("executor-stopped", { why: error.message });
    },
  );
  const wake = async (): Promise<void> => {
    if (listed) await look();
  };

  const endedEarly = new Set<string>();
  const ends = new Set<Promise<unknown>>();
  hypervisor.onEnd((end) => {
    if (!listed) endedEarly.add(`${end.vm} ${end.incarnation}`);
    const said = ask({ kind: "machine-ended", end }).catch(() => undefined);
    ends.add(said);
    said.finally(() => ends.delete(said));
  });
  hypervisor.onCondition((condition) => {
    ask({ kind: "machine-condition", condition }).catch(() => undefined);
  });
  return {
    start: async () => {
      const machines = await hypervisor.list();
      const alive = machines.filter(({ vm, incarnation }) => !endedEarly.has(`${vm} ${incarnation}`));
      await ask({ kind: "found", machines: alive });
      listed = true;
      await wake();
    },
    wake: () => {
      wake();
    },
    close: async () => {
      closed = true;
      await Promise.all(underWay);
      await hypervisor.close();
      await Promise.all(ends);
    },
  };

  async function execute(drivers: ExecutorOptions, action: Action): Promise<Outcome> {
    if (action.kind === "implement-network") {
      const { global, revision } = action;
      try {
        return { kind: action.kind, revision, allocation: await implementNetwork(global), error: null };
      } catch (error) {
        return {
          kind: action.kind,
          revision,
          allocation: { interfaces: [], policies: [] },
          error: (error as Error).message,
          tried: global.interfaces.map(({ desired }) => desired.uid),
        };
      }
    }
    if (action.kind === "withdraw-state" || action.kind === "refuse-machine")
      throw new Error(`the service itself carries out ${action.kind}`);
    try {
      const remark = await executeVm(drivers, action);
      const grown =
        action.kind === "grow-disk" ? { grown: { connection: action.disk.connection, sizeMiB: action.sizeMiB } } : {};
      return { kind: action.kind, vm: action.vm, error: null, remark, ...grown };
    } catch (error) {
      const unconfirmed = error instanceof NotConfirmedGone ? { unconfirmed: true as const } : {};
      return { kind: action.kind, vm: action.vm, error: (error as Error).message, remark: null, ...unconfirmed };
    }
  }
};

/** By the loop that drives every networking mode; what it could not do it does again when it is next asked. */
const networkUnderLoop = (network: NetworkDriver): ((global: GlobalNetwork) => Promise<NetworkAllocation>) => {
  const { driver, allocation } = diverterMode(network);
  const mode = "DIVERTER";
  const service = new NetworkService({ drivers: new Map([[mode, driver]]), configuration: async () => ({}) });
  return async (global) => {
    await service.offer({ mode, global });
    const [why] = Object.values(service.state.failed);
    if (why !== undefined) throw new Error(why);
    return allocation();
  };
};

/** A machine whose guest never writes to its disk goes on from the state of its image at every start, unasked. */
const startOf = (desired: DesiredVm): "boot" | "resume" => {
  // No saved state has a screen.
  if (desired.display !== undefined) return "boot";
  const states = desired.disks.map(({ attachment: { boot } }) => (boot === null ? undefined : savedFor(boot, desired)));
  return states.some((state) => state?.readsOnly === true) ? "resume" : (desired.start ?? "boot");
};

/** Resolves with what should be known of a VM although it was done, or null. */
const executeVm = async (
  { hypervisor, storage, filesFor }: ExecutorOptions,
  action: Exclude<Action, { readonly kind: "implement-network" | "withdraw-state" | "refuse-machine" }>,
): Promise<string | null> => {
  switch (action.kind) {
    case "start-machine": {
      const { desired, interfaces } = action;
      const disks: ComposedDisk[] = [];
      const start = startOf(desired);
      for (const disk of desired.disks)
        disks.push(await storage.compose(disk, start === "resume" ? desired : undefined));
      const { uid: vm, incarnation, cell, name, memoryMiB, cpus, data, display, nice } = desired;
      const files = (await filesFor?.(desired)) ?? null;
      return hypervisor.start({
        vm,
        incarnation,
        cell,
        name,
        memoryMiB,
        cpus,
        disks,
        interfaces,
        data,
        start,
        ...(files === null ? {} : { files }),
        ...(display === undefined ? {} : { display }),
        ...(nice === undefined ? {} : { nice }),
      });
    }
    case "stop-machine":
      await hypervisor.stop(action.vm, action.graceMs);
      return null;
    case "grow-disk":
      await hypervisor.grow(action.vm, storage.node(action.disk), action.sizeMiB);
      return null;
    case "release-disks":
      // Nothing of it runs any more; this clears away what a crashed machine left for a look.
      await hypervisor.stop(action.vm, 0);
      for (const disk of action.disks) await storage.release(disk);
      return null;
  }
};
