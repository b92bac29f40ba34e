import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { withoutCarrier } from "../../../../../core/eucalyptus/network-hosts/held.ts";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { modes } from "../../../../../model/cell/network/modes.ts";
import {
  type Allocation,
  type InstanceAllocation,
  readAllocation,
  writeAllocation,
} from "../../../../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { sharedReading } from "../../../../../runtime/observation/shared-reading.ts";
import { realFiles, renameDurably } from "../../../../../runtime/process/durable-files.ts";
import { wakeable } from "../../../../../runtime/process/wakeable.ts";
import type { InterfaceCounters, PacketCheck, PacketQuestion } from "../../driver.ts";
import { NetworkService, type NetworkServiceState } from "../../service/network-service.ts";
import {
  createPlanDriver,
  type DriverConfiguration,
  type LocalNetwork,
  type PlanDriver,
  type PlanDriverOptions,
} from "../driver.ts";
import { examineInstance, instanceAt } from "../examine/examine.ts";
import { pass } from "../examine/knowledge.ts";
import { endOf, instanceOf, isBetween, unknownBetween } from "../examine/network-host.ts";
import { macOf, prolong } from "../handlers/devices.ts";
import type { Run } from "../handlers/run.ts";
import type { LocalPlan, Self } from "../plan/plan.ts";
import { planFor } from "../planners.ts";
import {
  allocationOf,
  learntOf,
  namesOf,
  reasonOf,
  reasonsOf,
  warningsOf,
  withLeft,
  withNames,
} from "./allocations.ts";
import { type MachineConfiguration, machineDefaults, readMachineFile } from "./machine-file.ts";
import { Steady } from "./steady.ts";

/*
 * The paper's daemon on one machine: a view and a local configuration come as files, what became of addresses goes back as one. It plans,
 * and the service's loop puts in place. SIGUSR1 asks for a flush, SIGHUP says that the configuration is another one; each file is also
 * looked at before every pass, so a word that is lost costs 5 seconds.
 */

export const viewFile = "global_network_info.xml";
export const allocationFile = "network_resource_allocation.xml";
export const machineFile = "eucalyptus.conf";

export interface AgentOptions {
  /** Of its files, which are the only things that it knows of others. */
  readonly directory: string;
  readonly self: Self;
  readonly run: Run;
  /** From which signals come: `process`. */
  readonly signals: Pick<NodeJS.EventEmitter, "on" | "off">;
  /** Told when something changed of what was told last. */
  readonly log: (event: string, fields: Readonly<Record<string, string>>) => void;
  /** Told what became of addresses whenever that is another thing, as soon as it is in the file. */
  readonly told?: (allocation: Allocation) => void;
  readonly periodMs?: number;
  /** So long `stop` waits for what runs; absent: 10 s. */
  readonly longestStopMs?: number;
  /** Monotonic ms; absent: this process's. */
  readonly now?: () => number;
  /** Programs in this process's own network; absent: none, so no VLANs where the kernel has no devices for them, and no address is learnt. */
  readonly programs?: Pick<PlanDriverOptions, "tags" | "learner">;
  /** What instances send needs a rule, where the machine's file says nothing of it. Absent: it does not, as in the original. */
  readonly outgoingClosed?: true;
  /** See `LocalConfiguration`. Absent: none. */
  readonly underlay?: readonly string[];
  /** Of a network host: until when it carries its cluster, by `performance.now()`; null: for as long as its view says so. Absent: that. */
  readonly lease?: { readonly untilMs: number | null };
  /** This machine answers its own instances for metadata. Absent: it does not, as in the original. */
  readonly metadataHere?: true;
}
export interface NetworkAgent {
  readonly state: NetworkServiceState;
  /** Looks at the files and at what is in place; done when that is as they say, or has failed. */
  look(): Promise<void>;
  /** The lease is another one: addresses that are in place end with it, whatever becomes of this process. */
  prolong(): Promise<void>;
  /** Ends; all stays in place. */
  stop(): Promise<void>;
  /** The machine leaves: what was put in place goes. */
  leave(): Promise<void>;
  /** Reads what is in force, for `why`; null: the question is about no instance here. */
  examine(question: PacketQuestion): Promise<readonly PacketCheck[] | null>;
  /** The elastic address of an instance by the view in force; null: it has none. */
  publicAddressOf(instance: string): string | null;
  /** What passed, by the id of an instance. */
  counters(): Promise<ReadonlyMap<string, Pick<InterfaceCounters, "sent" | "received">>>;
}
const periodMs = 5000;
const longestStopMs = 10_000;
const mostText = 32 * 1024 * 1024;

export async function startAgent(options: AgentOptions): Promise<NetworkAgent> {
  const agent = new Agent(options);
  await agent.look();
  agent.start();
  return agent;
}

class Agent implements NetworkAgent {
  readonly #options: AgentOptions;
  readonly #service: NetworkService<LocalPlan, LocalNetwork, DriverConfiguration>;
  readonly #drivers: ReadonlyMap<string, PlanDriver>;
  /** What is in force, by mode, for questions: five tools print all that there is. */
  readonly #inForce: ReadonlyMap<string, () => Promise<LocalNetwork>>;
  /** What the service was told to put in place last. */
  #plan: LocalPlan | null = null;
  /** As they were read last. */
  #texts: readonly [view: string | null, machine: string] = [null, ""];
  #view: NetworkView | null = null;
  #configuration: MachineConfiguration | null = null;
  #bridgeMac = "";
  /** The service has made a pass with it: what its state says is about this one, or about none yet. */
  #offered: NetworkView | null = null;
  /** Version of the view that is in place whole. */
  #applied: string | undefined;
  #told = "";
  /** What may be in place of views before the last one that is in place whole. Null: not read yet. */
  #before: readonly InstanceAllocation[] | null = null;
  #left = "";
  #warned = "";
  readonly #steady = new Steady();
  #unsteady = "";
  /** Programs that run, each with how often. */
  readonly #runs = new Map<string, number>();
  /** Why the last look came to no end. */
  #trouble = "";
  /** The plan is one of a machine that may carry its cluster. */
  #isCarrying = true;
  /** Addresses that are in place have an end. */
  #isBounded = false;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;
  #isLate = false;
  readonly #flush = (): void => void this.#service.flush().then(() => this.#tell());
  readonly #reconfigure = (): void => void this.look();

  constructor(options: AgentOptions) {
    const run = this.#watched(options.run);
    this.#options = { ...options, run };
    const { directory, self } = options;
    const configuration = async (): Promise<MachineConfiguration> => {
      if (this.#configuration === null) throw new Error("the local configuration has faults");
      return this.#configuration;
    };
    const driver = (mode: (typeof modes)[number]) =>
      createPlanDriver({
        run,
        dhcpDirectory: join(directory, "dhcp"),
        ...options.programs,
        machine: { mode, peer: self.peer },
        left: this.#leftOfLease,
      });
    this.#drivers = new Map(modes.map((mode) => [mode, driver(mode)]));
    this.#inForce = new Map([...this.#drivers].map(([mode, { read }]) => [mode, sharedReading(read)]));
    this.#service = new NetworkService({ drivers: this.#drivers, configuration });
  }
  get state(): NetworkServiceState {
    return this.#service.state;
  }
  start(): void {
    const { signals, periodMs: period = periodMs } = this.#options;
    signals.on("SIGUSR1", this.#flush);
    signals.on("SIGHUP", this.#reconfigure);
    this.#timer = setInterval(() => void this.look(), period);
  }
  get #untilMs(): number | null {
    return this.#options.lease?.untilMs ?? null;
  }
  readonly #leftOfLease = (): number | null =>
    this.#untilMs === null ? null : Math.floor((this.#untilMs - performance.now()) / 1000);
  /** One at a time: of two the later one might say less. */
  readonly prolong = wakeable(
    async () => {
      const seconds = this.#leftOfLease();
      // Its last look was without one.
      if (!this.#isCarrying && (seconds === null || seconds >= 1)) void this.look();
      if (this.#plan === null || (seconds === null && !this.#isBounded) || (seconds !== null && seconds < 1)) return;
      this.#isBounded = seconds !== null;
      try {
        await prolong(this.#options.run, () => this.#plan?.addresses ?? [], this.#leftOfLease);
      } catch (error) {
        this.#options.log("network-lease-not-in-place", { why: (error as Error).message });
      }
    },
    () => this.#isStopped,
  );
  async stop(): Promise<void> {
    const { signals } = this.#options;
    signals.off("SIGUSR1", this.#flush);
    signals.off("SIGHUP", this.#reconfigure);
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#isStopped = true;
    const why = await this.#late(this.look().then(() => this.#service.stop()));
    this.#isLate = why !== null;
    if (why !== null) this.#options.log("network-stops-late", { why });
  }
  async leave(): Promise<void> {
    await this.stop();
    // What still runs would put in place again what is taken away.
    if (this.#isLate)
      throw new Error("what was put in place stays: the last pass of the network agent has come to no end");
    await this.#service.leave();
  }
  /** Who ends this process does not wait for a program that hangs: all stays in place, and the next process reads it. @returns why it is not over; null: it is */
  async #late(over: Promise<void>): Promise<string | null> {
    const { longestStopMs: mostMs = longestStopMs } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => {
        const runs = [...this.#runs.keys()];
        const what = runs.length === 0 ? "and none of its programs runs" : `and waits for ${runs.join(", ")}`;
        resolve(`the last pass was not over after ${mostMs / 1000} s, ${what}: it is not waited for`);
      }, mostMs);
    });
    try {
      return await Promise.race([over.then(() => null), late]);
    } finally {
      clearTimeout(timer);
    }
  }
  #watched(run: Run): Run {
    return async (program, args, input) => {
      const name = program === "sh" ? (args[2] ?? program) : program;
      this.#runs.set(name, (this.#runs.get(name) ?? 0) + 1);
      try {
        return await run(program, args, input);
      } finally {
        const left = (this.#runs.get(name) ?? 1) - 1;
        if (left > 0) this.#runs.set(name, left);
        else this.#runs.delete(name);
      }
    };
  }
  async examine(question: PacketQuestion): Promise<readonly PacketCheck[] | null> {
    const [view, plan, self] = [this.#offered, this.#plan, this.#options.self];
    const [driver, read] = [this.#drivers.get(view?.mode ?? ""), this.#inForce.get(view?.mode ?? "")];
    const address = question[endOf(question)];
    const asked =
      view === null ? null : isBetween(question) ? instanceOf(view, address) : instanceAt(view, self, address);
    if (view === null || plan === null || driver === undefined || read === undefined || asked === null)
      return isBetween(question) ? unknownBetween : null;
    const found = await read();
    const deviations = driver.deviations(plan, found);
    const { state } = this.#service;
    const why = reasonsOf(state)(asked);
    // Whoever asks should not have to wait for what is wrong.
    if (deviations.length > 0) void this.look();
    const checks = examineInstance({ view, self, plan, found, deviations }, question);
    return [
      // What tools say of it may name whatever is on this machine.
      ...(why === null ? [] : [pass("view", "the last view is not in place whole", why)]),
      ...warningsOf(state, asked).map((warning) => pass("view", `of the view in force: ${warning}`)),
      ...checks,
    ];
  }
  publicAddressOf(instance: string): string | null {
    const found = this.#offered?.instances.find(({ id }) => id === instance);
    return found?.publicIp === undefined || found.publicIp === found.privateIp ? null : formatIpv4(found.publicIp);
  }
  async counters(): Promise<ReadonlyMap<string, Pick<InterfaceCounters, "sent" | "received">>> {
    const view = this.#offered;
    const driver = view === null ? undefined : this.#drivers.get(view.mode);
    if (view === null || driver === undefined) return new Map();
    const { sent, received } = await driver.counted();
    return new Map(
      view.instances.flatMap(({ id, privateIp }) => {
        const network = `${formatIpv4(privateIp ?? 0)}/32`;
        const [out, back] = [sent.get(network), received.get(network)];
        return out === undefined && back === undefined
          ? []
          : [[id, { sent: out ?? none, received: back ?? none }] as const];
      }),
    );
  }
  readonly look = wakeable(
    async () => {
      try {
        await this.#look();
        await this.#tell();
        this.#trouble = "";
      } catch (error) {
        this.#failed((error as Error).message);
      }
    },
    () => this.#isStopped,
  );

  /** Whatever was read counts as not read: the next look takes it from the beginning. */
  #failed(why: string): void {
    this.#texts = [null, ""];
    if (why !== this.#trouble) this.#options.log("network-not-in-place", { why });
    this.#trouble = why;
  }

  async #look(): Promise<void> {
    const texts = [await this.#text(viewFile), (await this.#text(machineFile)) ?? ""] as const;
    const [isView, isMachine] = [texts[0] !== this.#texts[0], texts[1] !== this.#texts[1]];
    this.#texts = texts;
    if (isMachine || this.#configuration === null) this.#readMachine(texts[1]);
    if (isView && texts[0] !== null) {
      const read = readView(texts[0]);
      if (!read.ok)
        return this.#service.refuse(read.error.map(({ line, message }) => `line ${line}: ${message}`).join("; "));
      this.#view = read.value.view;
    }
    if (this.#view === null || this.#configuration === null) return;
    const bridgeMac = await this.#macOf(this.#configuration.bridge);
    const isCarrying = performance.now() < (this.#untilMs ?? Number.POSITIVE_INFINITY);
    const isSame = !isView && !isMachine && bridgeMac === this.#bridgeMac && isCarrying === this.#isCarrying;
    this.#bridgeMac = bridgeMac;
    this.#isCarrying = isCarrying;
    if (isSame) {
      await this.#service.look();
      return this.prolong();
    }
    if (isMachine) await this.#service.reconfigure();
    const { self } = this.#options;
    const view = isCarrying ? this.#view : withoutCarrier(this.#view, parseIpv4(self.address) ?? 0);
    const global = planFor(view, self, { ...this.#configuration, bridgeMac });
    await this.#nameComing(view);
    this.#plan = global;
    if (this.#untilMs !== null) this.#isBounded = true;
    await this.#service.offer({ mode: view.mode, global });
    this.#offered = view;
    await this.prolong();
  }
  /** Null: there is none. One that is too long is one that is refused. */
  async #text(name: string): Promise<string | null> {
    const text = await readFile(join(this.#options.directory, name), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    return text !== null && text.length > mostText ? text.slice(0, mostText) : text;
  }
  #readMachine(text: string): void {
    const read = readMachineFile(text, defaultsOf(this.#options));
    if (read.ok) this.#configuration = read.value;
    // The last good one stays in force.
    else this.#options.log("network-configuration-refused", { why: read.error.join("; ") });
  }
  async #macOf(bridge: string): Promise<string> {
    return (await macOf(this.#options.run, bridge))?.toUpperCase() ?? noMac;
  }

  /** No view has come: whoever gives views has to hear what one of before may have left, or that there is nothing. */
  async #tellBefore(): Promise<void> {
    if (this.#before !== null) return;
    this.#before = await this.#allocationBefore();
    this.#options.told?.({ instances: this.#before });
  }
  /** Of the process before this one, which may have ended in the middle. */
  async #allocationBefore(): Promise<readonly InstanceAllocation[]> {
    const text = await this.#text(allocationFile);
    const read = text === null ? null : readAllocation(text);
    return read?.ok === true ? read.value.instances : [];
  }
  /** Before any of it can be in place: a process that ends in the middle has named it. */
  async #nameComing(view: NetworkView): Promise<void> {
    const before = this.#before ?? (await this.#allocationBefore());
    const instances = withNames(before, allocationOf(view, this.#options.self, { ...this.#service.state, mode: null }));
    if (namesOf(instances).length > namesOf(before).length) await this.#write(instances);
    this.#before = instances;
  }
  /** In the file, then told; nothing is, should it be there as it is. @returns whether it was another thing */
  async #write(instances: readonly InstanceAllocation[]): Promise<boolean> {
    const { directory, told } = this.#options;
    const applied = this.#applied === undefined ? {} : { appliedVersion: this.#applied };
    const text = writeAllocation({ instances, ...applied });
    if (text === this.#told) return false;
    this.#told = "";
    const [path, next] = [join(directory, allocationFile), join(directory, `${allocationFile}.new`)];
    await realFiles.write(next, text, 0o644);
    await renameDurably(next, path);
    this.#told = text;
    told?.({ instances, ...applied });
    return true;
  }
  /** Where a site's own DHCP server gives addresses. One that cannot be read now is read at the next look. */
  async #learnt(view: NetworkView): Promise<ReadonlyMap<string, number>> {
    const driver = this.#drivers.get(view.mode);
    if (this.#plan?.learns !== true || driver === undefined) return new Map();
    const { now = () => performance.now(), log } = this.#options;
    const told = this.#steady.take(learntOf(view, await driver.heard(this.#plan)), now());
    const unsteady = [...this.#steady.unsteady].map(
      ([id, [one, other]]) => `${id} says ${formatIpv4(one)} and ${formatIpv4(other)}`,
    );
    const text = unsteady.join("; ");
    if (text !== this.#unsteady && text !== "")
      log("network-addresses-unsteady", { what: `${text}: the first is told, and another one once a minute` });
    this.#unsteady = text;
    return told;
  }
  /** What became of this machine's addresses, for whoever gave the view. */
  async #tell(): Promise<void> {
    if (this.#view === null) return this.#tellBefore();
    const { self, log } = this.#options;
    const { state } = this.#service;
    const left = state.left.join("; ");
    if (left !== this.#left && left !== "") log("network-left-in-place", { what: left });
    this.#left = left;
    const warned = (state.warnings ?? []).join("; ");
    if (warned !== this.#warned && warned !== "") log("network-plan-warns", { what: warned });
    this.#warned = warned;
    const before = this.#before ?? (await this.#allocationBefore());
    const learnt = await this.#learnt(this.#view);
    const isWhole = state.mode !== null && reasonOf({ ...state, refused: null }) === null;
    if (isWhole) this.#applied = this.#offered?.version;
    const told = (now: readonly InstanceAllocation[]) => (isWhole ? now : withLeft(now, before));
    // What an instance says of itself nobody has put in place: what it said before is nothing that may be left.
    this.#before = told(allocationOf(this.#view, self, state));
    try {
      if (!(await this.#write(told(allocationOf(this.#view, self, state, learnt))))) return;
    } catch (error) {
      log("network-allocation-not-written", { why: (error as Error).message });
    }
    const why = reasonOf(this.#service.state);
    if (why !== null) log("network-not-in-place", { why });
  }
}
/** Where the machine's own file says nothing. */
export const defaultsOf = ({
  outgoingClosed,
  metadataHere,
  underlay = [],
}: Pick<AgentOptions, "outgoingClosed" | "metadataHere" | "underlay">): MachineConfiguration => ({
  ...machineDefaults,
  outgoingClosed: outgoingClosed === true,
  metadataHere: metadataHere === true,
  underlay,
});
/** Of a host that is told views by the Network View Manager: rules of cells say what goes out, too (decisions 161, 162). */
export const closedFor = (
  cluster: string | undefined,
  underlay: string,
): Pick<AgentOptions, "outgoingClosed" | "metadataHere" | "underlay"> =>
  cluster === undefined ? {} : { outgoingClosed: true, metadataHere: true, underlay: [underlay] };

const none = { packets: 0, bytes: 0 };
const noMac = "00:00:00:00:00:00";
