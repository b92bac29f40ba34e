import type { ActualHost, DesiredDisk, Layer } from "../../core/documents/vocabulary.ts";
import type {
  FoundMachine,
  HypervisorDriver,
  MachineCondition,
  MachineEnd,
  MachineSpecification,
} from "../../host/drivers/hypervisor/driver.ts";
import { NotConfirmedGone } from "../../host/drivers/hypervisor/process/process.ts";
import type { StorageDriver } from "../../host/drivers/storage/driver.ts";
import { overheadMiB } from "../../host/service/planner.ts";
import { type HostName, hostName, ipv4, mac, type Uid } from "../../model/cell/identifiers.ts";
import { network } from "../../runtime/installation.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Life } from "../kernel/process.ts";
import type { Random } from "../kernel/random.ts";
import type { ServerMachine } from "./server-machine.ts";
import type { MachineTruth, Truth } from "./truth.ts";

/** From a guest's start to the first answer of its agent. */
const bootMs = 3000;
/** Between two writes of a guest to each of its disks. */
const writeEveryMs = 1000;

export interface HostMachineOptions {
  readonly host: HostName;
  readonly kernel: Kernel;
  readonly truth: Truth;
  /** Of the underlay's addresses. */
  readonly servers: ReadonlyMap<string, ServerMachine>;
}
interface Listeners {
  readonly life: Life;
  readonly end: ((end: MachineEnd) => void)[];
  readonly condition: ((condition: MachineCondition) => void)[];
}

const sleep = (life: Life, ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));

/**
 * The hardware of a host with its hypervisor: machines that outlive the Host Manager and write to their disks for as long as
 * an export takes it. The drivers are those of one life of the Host Manager.
 */
export class HostMachine {
  readonly host: HostName;
  /** What the hypervisor cannot do now, a sentence; null: all is well. */
  trouble: string | null = null;
  /** A machine's process starts, is told of as one that did not, and does not end when it is killed. */
  stuck = false;
  /** Its Host Manager has not noted yet that it started. */
  booted = true;
  readonly #kernel: Kernel;
  readonly #truth: Truth;
  readonly #servers: ReadonlyMap<string, ServerMachine>;
  readonly #random: Random;
  #listeners: Listeners | null = null;
  /** Whose start failed. */
  readonly #ending = new Set<MachineTruth>();

  constructor({ host, kernel, truth, servers }: HostMachineOptions) {
    this.host = host;
    this.#kernel = kernel;
    this.#truth = truth;
    this.#servers = servers;
    this.#random = kernel.random.fork(`host ${host}`);
  }

  get machines(): readonly MachineTruth[] {
    return [...this.#truth.machines].filter((machine) => machine.host === this.host);
  }

  hypervisor(life: Life): HypervisorDriver {
    const listeners: Listeners = { life, end: [], condition: [] };
    this.#listeners = listeners;
    const notHere = (): never => {
      throw new Error("sessions are not simulated");
    };
    return {
      accelerator: async () => "tcg",
      list: async () => {
        await sleep(life, 2 + this.#random.next() * 20);
        return this.machines.map((machine): FoundMachine => {
          const { vm, incarnation, pid } = machine;
          return this.#ending.has(machine) ? { vm, incarnation, pid, ending: true } : { vm, incarnation, pid };
        });
      },
      start: (machine) => this.#start(life, machine),
      stop: (vm, graceMs) => this.#stop(life, vm, graceMs),
      grow: () => sleep(life, 5),
      onEnd: (listener) => void listeners.end.push(listener),
      onCondition: (listener) => void listeners.condition.push(listener),
      answers: async (vm, incarnation, timeoutMs) => {
        await sleep(life, timeoutMs * this.#random.next());
        const machine = this.#truth.machineAt(this.host, vm);
        if (machine?.incarnation !== incarnation || machine.hung || machine.stalled) return false;
        return this.#kernel.clock.nowMs - machine.startedMs >= bootMs;
      },
      exec: notHere,
      console: () => null,
      kept: async () => null,
      display: () => null,
      run: notHere,
      close: async () => undefined,
    };
  }

  storage(life: Life): StorageDriver {
    return {
      compose: async (desired) => {
        await sleep(life, 1 + this.#random.next() * 5);
        const [first] = desired.attachment.layers;
        const boot = first === undefined ? undefined : this.#servers.get(first.address);
        if (boot !== undefined && !this.#reaches(boot))
          throw new Error(`storage server ${boot.server} does not answer`);
        return { desired, objects: [], blockdevs: [], node: desired.connection, boot: null, secretDirectories: [] };
      },
      node: ({ connection }) => connection,
      release: async () => {
        await sleep(life, 1);
      },
    };
  }

  /** The machine of a VM ends, as its guest or its process has it. */
  end(vm: Uid, ended: MachineEnd["ended"], detail: string): void {
    const machine = this.#truth.machineAt(this.host, vm);
    if (machine === undefined) return;
    this.#truth.machines.delete(machine);
    this.#kernel.log(`machine.${this.host}`, "ended", { vm, incarnation: machine.incarnation, ended });
    this.#truth.tell((watcher) => watcher.machineEnded?.(machine, ended));
    const { incarnation } = machine;
    this.#tell(({ end }) => {
      for (const listener of end) listener({ vm, incarnation, ended, detail });
    });
  }

  /** Power is gone: no machine, tap or rule is left, and nobody is told. */
  powerOff(): void {
    this.#listeners = null;
    this.booted = true;
    for (const machine of this.machines) this.end(machine.vm, "crashed", "power was lost");
    this.#truth.dataplanes.delete(this.host);
  }

  #tell(what: (listeners: Listeners) => void): void {
    const listeners = this.#listeners;
    listeners?.life.after(1 + this.#random.next() * 5, () => what(listeners));
  }

  async #start(life: Life, machine: MachineSpecification): Promise<null> {
    const { vm, incarnation, cell = "", name, memoryMiB, cpus } = machine;
    await sleep(life, 20 + this.#random.next() * 100);
    if (this.trouble !== null) throw new Error(this.trouble);
    if (this.#truth.machineAt(this.host, vm) !== undefined) throw new Error(`a machine of ${vm} runs here already`);
    const disks = machine.disks.map(({ desired }) => desired);
    for (const layer of disks.flatMap(({ attachment }) => attachment.layers)) this.#open(layer);
    const truth: MachineTruth = {
      vm,
      incarnation,
      cell,
      name,
      memoryMiB,
      cpus,
      host: this.host,
      disks,
      interfaces: machine.interfaces.map(({ desired }) => desired),
      startedMs: this.#kernel.clock.nowMs,
      pid: this.#truth.nextPid(),
      stalled: false,
      hung: false,
      groups: new Set(),
    };
    this.#truth.machines.add(truth);
    this.#kernel.log(`machine.${this.host}`, "started", { vm, incarnation, name });
    this.#truth.tell((watcher) => watcher.machineStarted?.(truth));
    this.#write(truth);
    if (this.stuck) {
      this.#ending.add(truth);
      throw new NotConfirmedGone(`its process ${truth.pid} does not end when killed`);
    }
    // The process runs; that it does is known a little later, and not at all where the Host Manager dies meanwhile.
    await sleep(life, 30 + this.#random.next() * 300);
    if (this.#truth.machineAt(this.host, vm) !== truth) throw new Error("its machine ended while it was being started");
    return null;
  }

  async #stop(life: Life, vm: Uid, graceMs: number): Promise<void> {
    const machine = this.#truth.machineAt(this.host, vm);
    if (machine === undefined) return;
    if (this.stuck) throw new NotConfirmedGone(`its process ${machine.pid} does not end when killed`);
    const deaf = machine.stalled || machine.hung || this.#random.chance(0.1);
    await sleep(life, 5 + this.#random.next() * (deaf ? graceMs : Math.min(graceMs, 1500)));
    const ended = this.#ending.delete(machine) ? "crashed" : "stopped";
    if (this.#truth.machineAt(this.host, vm) === machine) this.end(vm, ended, "on request");
    await sleep(life, 2);
  }

  #reaches(server: ServerMachine): boolean {
    const { network } = this.#kernel;
    return network.isOpen(this.host, server.machine) && network.isOpen(server.machine, this.host);
  }

  #open(layer: Layer): void {
    const server = this.#servers.get(layer.address);
    if (server === undefined || !this.#reaches(server))
      throw new Error(`the storage server at ${layer.address} does not answer`);
    if (server.exportNamed(layer) === null)
      throw new Error(`storage server ${server.server} has no export of this name for ${layer.volume}`);
  }

  /** A guest writes to each of its disks for as long as it lives. */
  #write(machine: MachineTruth): void {
    if (!this.#truth.machines.has(machine)) return;
    const failed = machine.disks.filter((disk) => !this.#writeTo(machine, disk));
    if (failed.length > 0 !== machine.stalled) {
      machine.stalled = failed.length > 0;
      const { vm, incarnation } = machine;
      const news: MachineCondition = machine.stalled
        ? {
            vm,
            incarnation,
            condition: "stalled",
            detail: "Input/output error",
            connections: failed.map((disk) => disk.connection),
          }
        : { vm, incarnation, condition: "running", detail: "its disks answer again" };
      this.#tell(({ condition }) => {
        for (const listener of condition) listener(news);
      });
    }
    this.#kernel.clock.after(writeEveryMs * (0.5 + this.#random.next()), () => this.#write(machine));
  }

  #writeTo(machine: MachineTruth, disk: DesiredDisk): boolean {
    const [layer] = disk.attachment.layers;
    if (layer === undefined || !layer.writable || disk.readOnly) return true;
    const server = this.#servers.get(layer.address);
    if (server === undefined || !this.#reaches(server)) return false;
    return server.accept(layer, machine);
  }
}

/** What a host says of itself. */
export const hostSaid = (number: number, memoryMiB: number, cpus: number): ActualHost => ({
  host: hostName(`h${number}`),
  state: "up",
  // A net of an installation that is tried for real has no room for a thousand.
  address: ipv4(number < 255 ? network.host(number) : `10.0.${100 + (number >> 8)}.${number & 255}`),
  mac: mac(
    `02:00:0a:00:${[1 + (number >> 8), number & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":")}`,
  ),
  memoryMiB,
  reservedMiB: 0,
  machineMiB: overheadMiB,
  cpus,
  cpuSpeedMHz: 3000,
  accelerator: "tcg",
});
