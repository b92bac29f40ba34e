import { type AddressReport, createAddressManager } from "../../core/address/manager.ts";
import { boundPeers, type Instances, servicePeerOf } from "../../core/cells/binding.ts";
import { createCellManager } from "../../core/cells/manager.ts";
import type { CellReport, FoundController } from "../../core/cells/work.ts";
import { createCheckedController } from "../../core/controller/changes/agreement.ts";
import type { ControllerState } from "../../core/controller/state.ts";
import { createDirectory } from "../../core/directory/directory.ts";
import { createDnsManager } from "../../core/dns/manager.ts";
import { type CellServices, rootCell } from "../../core/documents/cells.ts";
import type { DesiredProbe } from "../../core/documents/ha.ts";
import type { Service } from "../../core/env.ts";
import { type ControllersReport, createNetworkViewManager } from "../../core/eucalyptus/manager.ts";
import { createHaManager } from "../../core/ha/manager.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import { createPresence } from "../../core/presence/group/group.ts";
import type { GroupState } from "../../core/presence/group/state.ts";
import type { Update } from "../../core/presence/swim/types.ts";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import type { AgentReport } from "../../core/storage/agent/work.ts";
import { createStorageManager } from "../../core/storage/manager/manager.ts";
import { createTenancy } from "../../core/tenancy/tenancy.ts";
import type { HostState } from "../../host/known.ts";
import { createGuestWatch } from "../../host/liveness/guest-watch.ts";
import { createProber } from "../../host/liveness/prober.ts";
import { type CameBack, createNeighbours, type Neighbours } from "../../host/network/neighbours.ts";
import { networkNews } from "../../host/network/routers.ts";
import { passedOn } from "../../host/presence/passed-on.ts";
import { createExecutor } from "../../host/service/executor.ts";
import { createHostManager } from "../../host/service/manager.ts";
import { Executor as AgentExecutor } from "../../host/storage-agent/executor.ts";
import {
  cellName,
  type HostName,
  hostName,
  type Ipv4,
  ipv4,
  mac,
  type PeerName,
  peerName,
  serverName,
  uid,
} from "../../model/cell/identifiers.ts";
import type { Mode } from "../../model/cell/network/modes.ts";
import type { Json } from "../../model/json/json.ts";
import { network, ports } from "../../runtime/installation.ts";
import type { Participant } from "../../runtime/presence/participant.ts";
import { Disk } from "../kernel/disk.ts";
import { Kernel, type LogFields } from "../kernel/kernel.ts";
import { type Life, SimulatedProcess } from "../kernel/process.ts";
import { beginCellMaker, type Controllers } from "./cell-maker.ts";
import { Dataplane } from "./dataplane.ts";
import { type History, modeOf } from "./history.ts";
import { HostMachine, hostSaid } from "./host-machine.ts";
import { hostOfPeer, takePart } from "./host-presence.ts";
import { meansOf } from "./hosts/own-vm.ts";
import { PowerControllers } from "./hosts/power-controllers.ts";
import { HostWatchdog } from "./hosts/watchdog.ts";
import { ModeAgent } from "./modes/agent.ts";
import { ServerMachine } from "./server-machine.ts";
import { Visitors } from "./tenants.ts";
import { Truth } from "./truth.ts";

/** What the world needs of a process, whatever it runs. */
export type AnyProcess = Pick<
  SimulatedProcess<unknown>,
  | "name"
  | "machine"
  | "disk"
  | "start"
  | "crash"
  | "pause"
  | "resume"
  | "request"
  | "tell"
  | "state"
  | "distribution"
  | "starts"
  | "isRunning"
  | "isPaused"
  | "crashPoint"
  | "lies"
  | "wallOffsetMs"
  | "latestOffsetMs"
  | "wellSinceMs"
>;
export interface Host {
  readonly name: HostName;
  readonly machine: HostMachine;
  readonly dataplane: Dataplane;
  readonly watchdog: HostWatchdog;
  readonly memoryMiB: number;
  readonly cpus: number;
}

const [cpus, firstChildNumber] = [64, 1001];
/** A supervisor starts what has ended again after this long. */
const restartMs = 1000;

/** Every service of an installation as a process of its own, over machines that are simulated. */
export class Installation {
  readonly kernel: Kernel;
  readonly truth = new Truth();
  /** Users at the cells' doors. */
  readonly visitors = new Visitors(this);
  readonly history: History;
  /** Of hosts that have one. */
  readonly powers: PowerControllers;
  readonly processes = new Map<PeerName, AnyProcess>();
  readonly controllers = new Map<string, SimulatedProcess<ControllerState>>();
  readonly managers = new Map<HostName, SimulatedProcess<HostState>>();
  readonly members = new Map<PeerName, SimulatedProcess<GroupState>>();
  /** Of the present life of each host, once it takes part. */
  readonly participants = new Map<HostName, Participant>();
  readonly hosts = new Map<HostName, Host>();
  readonly servers = new Map<string, ServerMachine>();
  readonly cells: string[];
  /** Whose stores were lost, or put back from a copy. */
  readonly losses = new Set<PeerName>();
  /** What the operator ended, since nobody wants it any more: UIDs of elements. */
  readonly endedByHand = new Set<string>();
  /** Every child cell that there ever was, by its number. */
  readonly childCells = new Map<number, string>();
  /** Children's controllers that there are, by their cells: as the root cell's model has them. */
  readonly #made = new Map<string, FoundController>();
  readonly #presence: readonly PeerName[];
  /** Of the present life of each storage agent. */
  readonly executors = new Map<PeerName, AgentExecutor>();
  /** By the UID of its cell. */
  readonly #bound = new Map<string, { readonly cell: string; readonly services: CellServices }>();
  readonly #hosts: readonly HostName[];
  /** As the book of peers has them. */
  #instances: Instances;
  /** How long a process stays away the next time it ends, where somebody said so. */
  readonly awayMs = new Map<PeerName, number>();

  constructor(history: History, keepLog: boolean) {
    this.history = history;
    this.kernel = new Kernel(history.seed, keepLog);
    this.powers = new PowerControllers(this);
    this.cells = count(history.cells).map((number) => (history.root && number === 1 ? rootCell : `c${number}`));
    const hosts = count(history.hosts).map((number) => peerName(`host.h${number}`));
    this.#hosts = hosts.map(hostOfPeer);
    // One member is no group, but has all that a tiny world needs.
    this.#presence = count(hosts.length < 3 ? 1 : 3).map((number) => peerName(`presence.${number}`));
    const agents = count(history.servers).map((number) => peerName(`agent.s${number}`));
    for (const number of count(history.servers)) this.#addServer(number);
    for (const number of count(history.hosts)) this.#addHost(number);
    for (const self of this.#presence)
      this.members.set(
        self,
        this.#add(self, () => createPresence({ self, members: this.#presence, hosts })),
      );
    const { internalPool, externalPool, underlay, domain } = network;
    const numbers = count(history.services);
    const managers = count(history.haManagers ?? 1);
    this.#instances = { placer: numbers, storageManager: numbers, haManager: managers };
    this.#add("address-manager", () =>
      createAddressManager({
        self: peerName("address-manager"),
        internalPool,
        externalPool,
        reserved: [underlay],
        controllers: this.#controllerNames(),
      }),
    );
    this.#add("directory", () => createDirectory({ self: peerName("directory"), domain }));
    this.#add("dns-manager", () => createDnsManager({ self: peerName("dns-manager"), domain }));
    if (this.#isOnModes)
      this.#add("network-view-manager", () =>
        createNetworkViewManager({
          self: peerName("network-view-manager"),
          hosts,
          address: network.networkViewManager,
          controllers: this.#controllerNames(),
          presence: this.#presence,
        }),
      );
    this.#add("tenancy", () => createTenancy({ self: peerName("tenancy") }));
    this.#add(
      "cell-manager",
      () =>
        createCellManager({
          self: peerName("cell-manager"),
          firstNumber: firstChildNumber,
          instances: this.#instances,
        }),
      "cell-manager",
      (life) => beginCellMaker(life, this.#childControllers()),
    );
    for (const number of numbers) {
      const [placer, manager] = [servicePeerOf("placer", number), servicePeerOf("storageManager", number)];
      this.#add(placer, () => createPlacer({ self: placer, hosts }));
      this.#add(manager, () => createStorageManager({ self: manager, agents }));
    }
    for (const number of history.ha ? managers : []) {
      const self = servicePeerOf("haManager", number);
      this.#add(
        self,
        () =>
          createHaManager({
            self,
            presence: this.#presence,
            hosts,
            storageManagers: numbers.map((number) => servicePeerOf("storageManager", number)),
            agents,
          }),
        self,
        (life) => (number === 1 ? this.powers.follow(life) : undefined),
      );
    }
    for (const [index, cell] of this.cells.entries()) this.#addCell(cell, index + 1);
  }

  /** One more cell, whose controller starts at once. */
  addCell(cell: string): void {
    this.cells.push(cell);
    this.#addCell(cell, this.cells.length);
    this.processes.get(peerName(`controller.${cell}`))?.start();
    this.#tellControllers();
  }
  #addCell(cell: string, number: number): void {
    const service = ((number - 1) % this.history.services) + 1;
    const haManager = ((number - 1) % (this.history.haManagers ?? 1)) + 1;
    const services = { placer: service, storageManager: service, haManager };
    this.#addController(cell, `cell${number}`, number, ipv4(network.controller(number)), services);
  }

  /** Its VM has left the root cell's model, and it the book of peers; `isLeft`: it runs on all the same, as at a host that nobody reaches. */
  vanishHaManager(number: number, isLeft: boolean): void {
    const { haManager, ...others } = this.#instances;
    this.#instances = { ...others, haManager: haManager.filter((each) => each !== number) };
    const report: CellReport = { kind: "instances", instances: this.#instances };
    void this.processes.get(peerName("cell-manager"))?.request(report as unknown as Json);
    const name = servicePeerOf("haManager", number);
    this.kernel.log(name, "vanishes", { runs: isLeft });
    if (isLeft) return;
    const process = this.processes.get(name);
    this.processes.delete(name);
    process?.crash("its VM is gone");
  }

  /** Everything comes up at once. */
  start(): void {
    for (const process of this.processes.values()) process.start();
  }

  process(name: string): AnyProcess {
    const found = this.processes.get(peerName(name));
    if (found === undefined)
      throw new Error(`"${name}" is no process here; there are ${[...this.processes.keys()].join(", ")}`);
    return found;
  }

  /** The cell and those around it, from the inside out: a child of the root cell has no dot in its name. */
  lineOf(cell: string): readonly string[] {
    const parts = cell.split(".");
    const line = parts.map((_, index) => parts.slice(index).join("."));
    return this.cells.includes(line.at(-1) ?? "") ? line : [...line, rootCell];
  }

  /** By the number of its cell; child cells have theirs from the Cell Manager. */
  cellOf(cellNumber: number): string {
    return this.cells[cellNumber - 1] ?? this.childCells.get(cellNumber) ?? "";
  }

  /** The cell that an element belongs to, and what that is bound to. */
  boundCell(element: string): { readonly cell: string; readonly services: CellServices } | undefined {
    return this.#bound.get(element.slice(0, element.lastIndexOf("-")));
  }

  #childControllers(): Controllers {
    return {
      list: () => [...this.#made.values()],
      has: ({ controller }) => this.processes.has(controller),
      add: ({ cell, uid: cellUid, cellNumber, services }, address) => {
        this.#made.set(cell, { cell, uid: cellUid, cellNumber, services });
        this.childCells.set(cellNumber, cell);
        this.#addController(cell, cellUid, cellNumber, address, services);
        this.processes.get(peerName(`controller.${cell}`))?.start();
        this.#tellControllers();
      },
      remove: ({ controller, cell }) => {
        const process = this.processes.get(controller);
        this.processes.delete(controller);
        this.controllers.delete(cell);
        this.#made.delete(cell);
        process?.crash("its cell has ended");
        this.#tellControllers();
        this.kernel.log(controller, "process/removed", {});
      },
    };
  }

  /** As a host reads them in its book. */
  #agentAddresses(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.servers].map(([address, { server }]) => [`agent.${server}`, address]));
  }

  #controllerNames(): readonly PeerName[] {
    return [...this.controllers.keys()].map((cell) => peerName(`controller.${cell}`));
  }

  get #isOnModes(): boolean {
    return this.history.edge !== undefined;
  }
  /** The last of the cells that there are at first. */
  #modeOf(number: number): { readonly networkMode?: Mode } {
    const { cells, edge = 0 } = this.history;
    return cells - edge < number && number <= cells ? { networkMode: modeOf(this.history) } : {};
  }

  /** As the IP Address Manager and the Network View Manager read it in their books. */
  #tellControllers(): void {
    const report: AddressReport & ControllersReport = { kind: "controllers", controllers: this.#controllerNames() };
    for (const name of ["address-manager", "network-view-manager"])
      void this.processes.get(peerName(name))?.request(report as unknown as Json);
  }

  /** A machine loses power with all that runs on it; `awayMs` later it boots. */
  powerOff(machine: string, awayMs: number): () => void {
    const { kernel } = this;
    if (!kernel.network.isUp(machine)) return () => undefined;
    kernel.log(machine, "power-off", { awayMs });
    kernel.network.setMachine(machine, false);
    for (const process of this.processes.values()) if (process.machine === machine) process.crash("power was lost");
    const host = this.hosts.get(hostName(machine));
    host?.machine.powerOff();
    host?.watchdog.rest();
    for (const server of this.servers.values()) if (server.machine === machine) server.powerOff();
    const boot = (): void => {
      if (kernel.network.isUp(machine)) return;
      kernel.log(machine, "power-on", {});
      kernel.network.setMachine(machine, true);
      for (const process of this.processes.values()) if (process.machine === machine) process.start();
    };
    kernel.clock.after(awayMs, boot);
    return boot;
  }

  /** Starts what does not run; for healing. */
  startAll(): void {
    this.awayMs.clear();
    for (const process of this.processes.values()) if (this.kernel.network.isUp(process.machine)) process.start();
  }

  #add<State>(
    name: string,
    service: (life: Life) => Service<State>,
    machine = name,
    begun?: (life: Life) => void,
  ): SimulatedProcess<State> {
    const { kernel } = this;
    const process = new SimulatedProcess<State>(kernel, {
      name: peerName(name),
      machine,
      disk: new Disk(kernel.random.fork(`disk ${name}`)),
      service,
      presence: this.#presence,
      ...(begun === undefined ? {} : { begun }),
      ended: () => {
        const awayMs = this.awayMs.get(peerName(name)) ?? restartMs;
        this.awayMs.delete(peerName(name));
        kernel.clock.after(awayMs, () => {
          // What was taken away for good stays away.
          if (this.processes.get(process.name) === process && kernel.network.isUp(machine)) process.start();
        });
      },
    });
    this.processes.set(process.name, process);
    return process;
  }

  #addServer(number: number): void {
    const { kernel, truth } = this;
    const address = ipv4(network.server(number));
    const name = `s${number}`;
    const server = new ServerMachine(serverName(name), address, kernel, truth);
    this.servers.set(address, server);
    const service = () => createAgentService({ server: name, address, firstPort: ports.nbdFirst });
    this.#add(`agent.${name}`, service, name, (life) => {
      const executor = new AgentExecutor({
        server: name,
        machinery: server.machinery(life),
        request: (report: AgentReport) => life.request(report as unknown as Json),
        log: (event, fields) => kernel.log(`agent.${name}`, event, fields),
        // Minutes of history are many: what happens between two marks is noticed by nobody.
        tickEveryMs: 1000,
      });
      this.executors.set(peerName(`agent.${name}`), executor);
      void executor.start();
    });
  }

  #addHost(number: number): void {
    const { kernel, truth, servers } = this;
    const name = hostName(`h${number}`);
    const machine = new HostMachine({ host: name, kernel, truth, servers });
    const dataplane = new Dataplane(name, kernel, truth);
    const watchdog = new HostWatchdog(name, kernel, (awayMs) => this.powerOff(name, awayMs));
    const host = hostSaid(number, this.history.memoryMiB, cpus);
    const { address, memoryMiB } = host;
    const trouble = () => dataplane.trouble;
    const peer = number > this.history.hosts - (this.history.carriers ?? 0) ? "network" : "node";
    const modes = this.#isOnModes ? new ModeAgent({ host: name, address, peer, kernel, truth, trouble }) : null;
    this.hosts.set(name, { name, machine, dataplane, watchdog, memoryMiB, cpus });
    const wakes = new WeakMap<Life, () => void>();
    const groups = new WeakMap<Life, ReturnType<typeof passedOn>>();
    const asking = new WeakMap<Life, Neighbours>();
    /** The kernel of a machine answers whatever runs on it, as long as both ways are open. */
    const answer = async (life: Life, { host, mac: at, machines = [] }: DesiredProbe): Promise<CameBack> => {
      await pause(life, answerMs);
      if (!kernel.network.isOpen(name, host) || !kernel.network.isOpen(host, name)) return { mac: null };
      const there = this.hosts.get(host)?.dataplane;
      const answering = machines.filter(({ address }) => there?.answersAt(address) === true);
      return { mac: at, machines: answering.map(({ vm }) => vm) };
    };
    const service = (life: Life) => {
      const neighbours = createNeighbours(
        (wanted) => answer(life, wanted),
        (ms) => pause(life, ms),
      );
      asking.set(life, neighbours);
      const group = passedOn();
      groups.set(life, group);
      return createHostManager({
        host,
        wake: () => wakes.get(life)?.(),
        booted: machine.booted,
        onProbes: neighbours.take,
        onWatchdog: watchdog.open(life),
        ...(modes === null ? {} : { network: modes.offered(life, machine.booted) }),
        ...group.heard,
      });
    };
    const begun = (life: Life): void => {
      const news = networkNews();
      const network = dataplane.driver(life, news.heard.onGroups);
      const log = (event: string, fields: LogFields): void => kernel.log(`host.${name}`, event, fields);
      const { request } = life;
      asking.get(life)?.tell(request);
      news.tell(request);
      const drivers = { hypervisor: machine.hypervisor(life), network, storage: machine.storage(life) };
      const executor = createExecutor({ ...drivers, request, log });
      const prober = createProber({ network, request, log, time: life });
      const guests = createGuestWatch({ hypervisor: drivers.hypervisor, request, after: life.after });
      if (this.history.ha) void request({ kind: "peer-addresses", addresses: this.#agentAddresses() });
      wakes.set(life, () => {
        executor.wake();
        prober.wake();
        guests.wake();
      });
      void request({ kind: "status" })
        .then(() => {
          machine.booted = false;
          modes?.begin(life);
          return executor.start();
        })
        .then(() => {
          prober.wake();
          guests.wake();
        });
      const seed = this.history.seed * 1009 + number;
      this.participants.delete(name);
      void takePart({ kernel, life, host: name, seed }).then((part) => {
        groups.get(life)?.begin(part);
        this.participants.set(name, part.participant);
        part.found(this.#hosts, this.#presence);
        // A thousand that start within a second would tell each other of everyone for a minute: they know each other.
        if (this.#hosts.length > manyHosts && part.participant.state.self.generation === 1)
          part.participant.input({ kind: "sync", from: name, updates: this.#hosts.map(firstLife), answer: true });
      });
    };
    this.managers.set(name, this.#add(`host.${name}`, service, name, begun));
  }

  #addController(cell: string, cellUid: string, number: number, address: Ipv4, services: CellServices): void {
    this.#bound.set(cellUid, { cell, services });
    this.truth.cellNumbers.set(cell, number);
    const self = peerName(`controller.${cell}`);
    const options = {
      cell: cellName(cell),
      cellUid: uid(cellUid),
      cellNumber: number,
      domain: network.domain,
      address,
      mac: mac(`02:00:0a:00:${hex(3 + (number >> 8))}:${hex(number & 255)}`),
      self,
      directory: true,
      cellManager: true,
      ...(this.cells.includes(cell) ? {} : { child: true as const }),
      presence: this.#presence,
      ...(this.history.ha ? { ha: true as const } : {}),
      ...this.#modeOf(number),
      ...meansOf(this.history, cell),
      ...(this.history.slices ? { policyEntriesInDocument: 0 } : {}),
      ...boundPeers(services),
    } as const;
    this.controllers.set(
      cell,
      this.#add(self, () => createCheckedController(options)),
    );
  }
}

const hex = (value: number): string => value.toString(16).padStart(2, "0");
const pause = (life: Life, ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));
/** From a question on the network to what came back. */
const answerMs = 1200;
/** More than these begin as a running installation would be. */
const manyHosts = 100;
const firstLife = (host: HostName): Update => ({
  status: "alive",
  host,
  generation: 1,
  incarnation: 0,
  from: null,
});
const count = (number: number): readonly number[] => Array.from({ length: number }, (_, index) => index + 1);
