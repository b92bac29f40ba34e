import { join } from "node:path";
import type { GlobalNetwork } from "../../../driver.ts";
import { type Addressing, createAddressing } from "../../addressing.ts";
import { gatewayMac } from "../../diverter.ts";
import { type Names, openNames } from "../../names.ts";
import { closeOutside, putNetworks, putRouters } from "../../outside/in-force.ts";
import { networksOf } from "../../outside/networks.ts";
import { type Dataplane, openDataplane } from "../../program/dataplane.ts";
import { config, dropReasons, flow, flowKey, interfaceCounters, word } from "../../program/layout.ts";
import { type BpfMap, openInner } from "../../program/libbpf.ts";
import { type CellRules, createCellRules } from "../../rules/cell-rules.ts";
import { createGenerations, type Generations } from "../../rules/generations.ts";
import { closeInterface, openInterface } from "../../taps/interfaces.ts";
import { slotOf } from "../../taps/slots.ts";
import {
  type HostKey,
  hostAddresses,
  hostMacs,
  mtu,
  networks,
  outsideMacs,
  type Port,
  routerAddresses,
  type View,
  type World,
} from "../world.testing.ts";
import { addressText, type Compiler, cidrText, desiredOf, locationOf, macText, uidOf } from "./documents.testing.ts";
import type { ProgramRun, Ran } from "./program-run.testing.ts";

/** Devices of the namespace that the fuzz runs in; frames are given to programs, not to devices. */
export interface Devices {
  readonly taps: readonly number[];
  readonly uplink: number;
  readonly outside: number;
}
export interface Counted {
  readonly sent: number;
  readonly received: number;
  readonly drops: ReadonlyMap<string, number>;
}
/** Room for more flows than an episode has frames, so that none is evicted. */
const memoryMiB = 4096;
const closeEvery = 40;
const key = (value: number): Buffer => word.encode({ value });

/**
 * One host: the driver's own parts put into the maps what the host was told, and the loaded programs are run. It is kept from
 * one episode to the next, since to load the object costs more than an episode.
 */
export class HostUnderTest {
  readonly key: HostKey;
  readonly #dataplane: Dataplane;
  readonly #devices: Devices;
  readonly #names: Names;
  readonly #run: ProgramRun;
  readonly #open = new Set<number>();
  /** Key of an open interface's slot, which a frame needs each time. */
  readonly #slots = new Map<number, Buffer>();
  #leaves = 0;
  /** What the former world left is still there; the first that is told in this one takes its place. */
  #isStale = false;
  #generations: Generations;
  #rules: CellRules;
  #addressing: Addressing;
  #world: World | null = null;
  #compiler: Compiler | null = null;
  #global: GlobalNetwork = { policies: [], interfaces: [], locations: [] };

  /** @param directory with a bpffs at `bpf` */
  constructor(directory: string, hostKey: HostKey, devices: Devices, run: ProgramRun, object?: string) {
    this.key = hostKey;
    this.#devices = devices;
    this.#run = run;
    this.#dataplane = openDataplane(join(directory, "bpf", hostKey), object);
    this.#names = openNames(join(directory, `${hostKey}-names`));
    this.#dataplane.maps.config.set(
      key(0),
      config.encode({
        uplink: devices.uplink,
        host_address: addressText(hostAddresses[hostKey]),
        host_mac: macText(hostMacs[hostKey]),
        gateway_mac: gatewayMac,
      }),
    );
    this.#generations = createGenerations(this.#dataplane);
    this.#rules = createCellRules(this.#dataplane, this.#names, this.#generations);
    this.#addressing = createAddressing(this.#dataplane, mtu, this.#rules, this.#generations);
    this.#generations.renewAll();
  }

  /** An empty host in another world. */
  begin(world: World, compiler: Compiler): void {
    this.#world = world;
    this.#compiler = compiler;
    this.#isStale = true;
    const { external, internal, underlay, outside } = networks;
    if (world.wayOut === "none") closeOutside(this.#dataplane);
    putNetworks(
      this.#dataplane,
      networksOf({
        device: "",
        address: addressText(outside.first),
        prefixLength: outside.prefixLength,
        mac: macText(0),
        routers: routerAddresses.map(addressText),
        external: [cidrText(external)],
        inside: [cidrText(underlay), cidrText(internal)],
      }).networks,
    );
    this.routers([0, 0], 0);
  }
  /** As the executor does: devices, then rules, then addresses. */
  tell({ rules, here, elsewhere }: View): void {
    if (this.#isStale) for (const at of this.#open) this.#leave(at);
    this.#isStale = false;
    const [world, compiler] = [this.#world!, this.#compiler!];
    for (const at of this.#open) if (!here.includes(at)) this.#leave(at);
    for (const at of here) if (!this.#open.has(at)) this.#openTap(at);
    const policies = world.cells.flatMap((cell) => {
      const set = rules.get(cell.number);
      return set === undefined ? [] : [compiler.policy(cell, set)];
    });
    this.#global = {
      policies,
      interfaces: here.map((at) => {
        const each = world.interfaces[at]!;
        const cell = world.cells.find(({ number }) => number === each.cell)!;
        return { vm: uidOf(each), memoryMiB, cellNumber: each.cell, desired: desiredOf(each, cell) };
      }),
      locations: elsewhere.map((told) => locationOf(world.interfaces[told.interface]!, told)),
    };
    this.#implement();
  }
  #implement(): void {
    const { policies } = this.#global;
    for (const policy of policies) {
      const problem = this.#rules.problem(policy);
      if (problem !== null) throw new Error(`rules that the fuzz drew cannot be put in force: ${problem}`);
      this.#rules.implement(policy);
    }
    const wanted = new Set(policies.map(({ cellNumber }) => cellNumber));
    for (const bytes of this.#dataplane.maps.policies.keys())
      if (!wanted.has(word.decode(bytes).value)) this.#rules.remove(word.decode(bytes).value);
    this.#addressing.implement(this.#global);
    // A few lists of groups are written at a time, and the oracle knows all of them.
    while (this.#addressing.renewGroups(true));
  }
  #openTap(at: number): void {
    const index = this.#devices.taps[at]!;
    openInterface(this.#dataplane, index, memoryMiB);
    const slot = key(slotOf(this.#dataplane, index)!);
    this.#dataplane.maps.counters.clear(slot);
    this.#slots.set(at, slot);
    this.#open.add(at);
  }
  /** Its tables are taken away now and then; to empty them does the same, and takes no moment of all CPUs. */
  #leave(at: number): void {
    this.#open.delete(at);
    this.#leaves += 1;
    if (this.#leaves % closeEvery === 0) {
      closeInterface(this.#dataplane, this.#devices.taps[at]!);
      // Its entries are gone behind the back of whoever wrote them, as when a tap is taken away.
      this.#addressing.doubt();
      return;
    }
    for (const table of this.#tablesOf(at)) {
      for (const entry of table.entries()) table.delete(entry.key);
      table.close();
    }
  }
  /** Another process goes on where the former one stopped. */
  restart(): void {
    if (this.#isStale) return;
    this.#rules.close();
    this.#generations = createGenerations(this.#dataplane);
    this.#generations.renewAll();
    this.#rules = createCellRules(this.#dataplane, this.#names, this.#generations);
    this.#addressing = createAddressing(this.#dataplane, mtu, this.#rules, this.#generations);
    this.#implement();
  }
  routers(macs: readonly number[], used: number): void {
    const { wayOut } = this.#world!;
    if (wayOut === "none") return;
    const isOwn = wayOut === "own";
    const device = isOwn ? this.#devices.outside : this.#devices.uplink;
    const mac = macText(isOwn ? outsideMacs[this.key] : hostMacs[this.key]);
    const found = routerAddresses.map((each, at) => ({ address: addressText(each), mac: BigInt(macs[at] ?? 0) }));
    putRouters(this.#dataplane, this.#generations, { device, mac, isOwn }, found, BigInt(used));
  }
  /** Flows were last seen so much earlier: before the machine started, if it runs for less. */
  age(seconds: number): void {
    for (const at of this.#open)
      for (const table of this.#tablesOf(at)) {
        const entries = table.entries().map(({ key: name, value }) => {
          const seen = flow.offsets.last_seen;
          value.writeBigInt64LE(value.readBigInt64LE(seen) - BigInt(seconds) * 1_000_000_000n, seen);
          return { key: name, value };
        });
        table.setAll(entries);
        table.close();
      }
  }
  #tablesOf(at: number): readonly BpfMap[] {
    const { maps } = this.#dataplane;
    const slot = this.#slots.get(at)!;
    return (["flows", "openings"] as const).flatMap((name) => {
      const id = maps[name].get(slot);
      return id === null ? [] : (openInner(word.decode(id).value, flowKey.size, flow.size) ?? []);
    });
  }
  run(port: Port, frame: Buffer, pieces: number): Ran {
    if (this.#isStale) this.tell({ rules: new Map(), here: [], elsewhere: [] });
    const { programs } = this.#dataplane;
    if (port.kind === "tap") return this.#run.run(programs.from_vm, frame, this.#devices.taps[port.interface]!, pieces);
    return port.kind === "wire"
      ? this.#run.run(programs.from_wire, frame, this.#devices.uplink, pieces)
      : this.#run.run(programs.from_outside, frame, this.#devices.outside, pieces);
  }
  /** As if a while had gone by since an interface sent to many: how much of that it may have copied is tried elsewhere. */
  rest(at: number): void {
    const slot = this.#slots.get(at);
    if (slot !== undefined) this.#dataplane.maps.copies_left.clear(slot);
  }
  /** What was counted for an interface since it is here. */
  counted(at: number): Counted {
    const values = this.#dataplane.maps.counters
      .getPerCpu(this.#slots.get(at)!)
      .map((bytes) => interfaceCounters.decode(bytes));
    const sum = (of: (value: (typeof values)[number]) => bigint): number =>
      Number(values.reduce((total, value) => total + of(value), 0n));
    return {
      sent: sum(({ sent_packets }) => sent_packets),
      received: sum(({ received_packets }) => received_packets),
      drops: new Map(
        dropReasons.map((reason, number) => [
          reason,
          sum(({ drops }) => Buffer.from(drops).readBigUInt64LE(8 * (number + 1))),
        ]),
      ),
    };
  }
  close(): void {
    this.#rules.close();
    this.#names.close();
  }
}
