import { isCarrierIn } from "../../../core/eucalyptus/network-hosts/held.ts";
import {
  allocationOf,
  namesOf,
  withLeft,
  withNames,
} from "../../../host/drivers/network/eucalyptus/agent/allocations.ts";
import { type OfferedNetwork, type PlacedRequest, placedOf } from "../../../host/network/network-view.ts";
import { formatIpv4, parseIpv4 } from "../../../model/addresses/addresses.ts";
import type { HostName, Ipv4 } from "../../../model/cell/identifiers.ts";
import { isLearnt, isManaged } from "../../../model/cell/network/modes.ts";
import type { Allocation, InstanceAllocation } from "../../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkView } from "../../../model/eucalyptus/view/network-view.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Life } from "../../kernel/process.ts";
import type { Random } from "../../kernel/random.ts";
import type { Truth } from "../truth.ts";

const sleep = (life: Life, ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));
/** Until what failed is tried again. */
const againMs = 5000;
export const cluster = "one";

/** Which address the site's DHCP server gives an instance. */
export const ofTheSite = (instance: string): string => {
  const number = Number.parseInt(instance.slice(-4), 16);
  return `10.88.${number >> 8}.${number & 255}`;
};

/** Of one life of the Host Manager, in whose process the agent runs. */
interface Running {
  view: NetworkView | null;
  /** What it has named last; null: it has not read its file. */
  before: readonly InstanceAllocation[] | null;
  applied: string | undefined;
  told: string;
  hasBegun: boolean;
  isBusy: boolean;
  isListening: boolean;
  isDue: boolean;
}

export interface ModeAgentOptions {
  readonly host: HostName;
  readonly address: Ipv4;
  readonly peer: OfferedNetwork["peer"];
  readonly kernel: Kernel;
  readonly truth: Truth;
  /** Why nothing can be put in place now; null: it can. */
  readonly trouble: () => string | null;
}
/**
 * The agent of a mode of Eucalyptus at one host: puts views in place, a part after the other, and says what became of addresses by the
 * rules of the real one. What is in place outlives its process and not the machine's power; its file outlives both.
 */
export class ModeAgent {
  readonly #options: ModeAgentOptions;
  readonly #random: Random;
  readonly #lives = new WeakMap<Life, Running>();
  #file: Allocation = { instances: [] };
  /** What the machine itself lets go of at its time, whatever runs on it; null: it carries without a lease. */
  #leaseUntilMs: number | null = null;

  constructor(options: ModeAgentOptions) {
    this.#options = options;
    this.#random = options.kernel.random.fork(`agent of modes ${options.host}`);
  }

  /** @param isBooted the machine has started anew: its file is taken away */
  offered(life: Life, isBooted: boolean): OfferedNetwork {
    if (isBooted) this.#file = { instances: [] };
    const running: Running = {
      view: null,
      before: null,
      applied: undefined,
      told: "",
      hasBegun: false,
      isBusy: false,
      isListening: false,
      isDue: false,
    };
    this.#lives.set(life, running);
    const onView = (view: NetworkView): void => {
      running.view = view;
      if (running.hasBegun) this.#wake(life, running);
    };
    const onLease = (leftMs: number | null): void => {
      this.#hold(leftMs);
      // Its last look may have been without one.
      const { host, truth } = this.#options;
      if (running.hasBegun && leftMs !== null && this.#isHeld && truth.dataplane(host).mode.carries === null)
        this.#wake(life, running);
    };
    return { cluster, peer: this.#options.peer, onView, onLease };
  }
  /** Addresses on a device have a lifetime there, in whole seconds, and end with it. */
  #hold(leftMs: number | null): void {
    const { clock } = this.#options.kernel;
    this.#leaseUntilMs = leftMs === null ? null : Math.floor(clock.nowMs + leftMs + this.#random.next() * 1000);
    if (this.#leaseUntilMs !== null) clock.after(this.#leaseUntilMs - clock.nowMs, () => this.#expire());
  }
  get #isHeld(): boolean {
    return this.#leaseUntilMs === null || this.#options.kernel.clock.nowMs < this.#leaseUntilMs;
  }
  #expire(): void {
    if (!this.#isHeld) this.#letGo("by the machine");
  }
  #letGo(how: string): void {
    const { host, truth, kernel } = this.#options;
    const { mode } = truth.dataplane(host);
    if (mode.carries === null) return;
    kernel.log(`agent.${host}`, "lets-go", { cluster: mode.carries, how });
    mode.carries = null;
    mode.addresses.clear();
  }
  begin(life: Life): void {
    const running = this.#lives.get(life);
    if (running === undefined) return;
    running.hasBegun = true;
    this.#wake(life, running);
  }

  #wake(life: Life, running: Running): void {
    running.isDue = true;
    if (running.isBusy) return;
    running.isBusy = true;
    void this.#looks(life, running);
  }
  async #looks(life: Life, running: Running): Promise<void> {
    while (running.isDue) {
      running.isDue = false;
      await sleep(life, 2 + this.#random.next() * 20);
      await this.#look(life, running);
    }
    running.isBusy = false;
  }
  async #look(life: Life, running: Running): Promise<void> {
    const { address, peer } = this.#options;
    const { view } = running;
    const before = running.before ?? this.#file.instances;
    running.before = before;
    if (view === null) return this.#tell(life, running, { instances: before });
    const self = { address, peer };
    const state = { missing: [], refused: null, left: [] };
    // Whatever may be in place soon is named before.
    const coming = withNames(before, allocationOf(view, self, { ...state, mode: null, failed: {} }));
    if (namesOf(coming).length > namesOf(before).length) this.#write(life, running, coming);
    const why = await this.#apply(life, view);
    const failed = why === null ? {} : { network: why };
    const now = allocationOf(view, self, { ...state, mode: view.mode, failed }, this.#heard(view));
    if (isLearnt(view.mode)) this.#listenOn(life, running);
    if (why === null) running.applied = view.version;
    else life.after(againMs, () => this.#wake(life, running));
    this.#write(life, running, why === null ? now : withLeft(now, coming));
  }
  /** What instances say is told a while later. */
  #listenOn(life: Life, running: Running): void {
    if (running.isListening) return;
    running.isListening = true;
    life.after(againMs, () => {
      running.isListening = false;
      this.#wake(life, running);
    });
  }
  /** In SYSTEM, what the machines here have from the site's DHCP server, and have said by ARP. */
  #heard(view: NetworkView): ReadonlyMap<string, number> {
    const { host, truth } = this.#options;
    if (!isLearnt(view.mode)) return new Map();
    const here = [...truth.machines].filter((machine) => machine.host === host);
    return new Map(
      here.flatMap(({ interfaces }) =>
        interfaces.flatMap(({ instance }) =>
          instance === undefined ? [] : [[instance, parseIpv4(ofTheSite(instance)) ?? 0] as const],
        ),
      ),
    );
  }
  #write(life: Life, running: Running, instances: readonly InstanceAllocation[]): void {
    running.before = instances;
    this.#file = { instances, ...(running.applied === undefined ? {} : { appliedVersion: running.applied }) };
    this.#tell(life, running, this.#file);
  }
  #tell(life: Life, running: Running, allocation: Allocation): void {
    const text = JSON.stringify(allocation);
    if (text === running.told) return;
    running.told = text;
    const placed: PlacedRequest = { kind: "network-placed", placed: placedOf(allocation) };
    void life.request(placed as unknown as Json);
  }

  /** @returns why not, as a sentence; a part of it may be in place then */
  async #apply(life: Life, view: NetworkView): Promise<string | null> {
    const { host, address, peer, kernel, truth, trouble } = this.#options;
    const own = this.#ownIn(view);
    const isCarrier = peer === "network" && isCarrierIn(view, parseIpv4(address) ?? 0);
    const { mode } = truth.dataplane(host);
    const steps = [
      () => {
        if (isCarrier && !this.#isHeld) return;
        if (isCarrier && mode.carries === null) {
          mode.carries = cluster;
          kernel.log(`agent.${host}`, "carries", { cluster });
          truth.tell((watcher) => watcher.carried?.(host, cluster));
        }
        for (const [each, id] of own) {
          mode.addresses.set(each, id);
          truth.tell((watcher) => watcher.addressPlaced?.(host, each, id));
        }
      },
      () => {
        mode.view = view;
      },
      () => {
        for (const each of [...mode.addresses.keys()]) if (!own.has(each)) mode.addresses.delete(each);
        if (!isCarrier) this.#letGo("by its view");
      },
    ];
    for (const step of steps) {
      const why = trouble();
      if (why !== null) return why;
      step();
      await sleep(life, 1 + this.#random.next() * 30);
    }
    kernel.log(`agent.${host}`, "view-in-place", { version: view.version ?? "", instances: own.size });
    return null;
  }

  /** By address, whose it is here: a node has those of its instances, elastic ones where no network host has them; that has those of its cluster. */
  #ownIn(view: NetworkView): ReadonlyMap<string, string> {
    const { address, peer } = this.#options;
    const self = parseIpv4(address) ?? 0;
    const nodes = view.clusters.flatMap((each) =>
      peer === "network"
        ? each.enabledCcIp === self
          ? each.nodes
          : []
        : each.nodes.filter(({ name }) => name === address),
    );
    const here = new Set(nodes.flatMap(({ instances }) => instances));
    const own = new Map<string, string>();
    for (const { id, privateIp, publicIp } of view.instances) {
      const outside = peer === "network" || !isManaged(view.mode) ? publicIp : undefined;
      for (const each of [peer === "network" ? undefined : privateIp, outside])
        if (here.has(id) && each !== undefined) own.set(formatIpv4(each), id);
    }
    return own;
  }
}
