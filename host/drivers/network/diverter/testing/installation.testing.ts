import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  ActualLocation,
  CellPolicy,
  CompiledRule,
  DesiredInterface,
} from "../../../../../core/documents/vocabulary.ts";
import { cellName, cidr, elementPath, hostName, ipv4, mac, uid } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork, NetworkAllocation, NetworkChanges, Outside } from "../../driver.ts";
import { tapName } from "../taps/devices.ts";
import { Agent, Machine } from "./namespaces.testing.ts";

/** Two hosts, a controller's machine and a few guests on one underlay, for the tests of the dataplane. */
export const hosts = { a: ["10.0.1.1", "02:00:00:00:01:01"], b: ["10.0.1.2", "02:00:00:00:01:02"] } as const;
export type HostKey = keyof typeof hosts;
export const controllerAddress = "10.0.3.1";
export const controllerMac = "02:00:00:00:03:01";
export const controllerIdentity = 90;

export interface GuestPlan {
  readonly name: string;
  readonly host: HostKey;
  readonly address: string;
  readonly number: number;
  readonly cell: number;
  /** Who it is in its cell: itself, its VM, its subnet. */
  readonly identities: readonly [number, number, number];
  /** Of its guest; absent: little. */
  readonly memoryMiB?: number;
  /** That its guest has joined, as its host tells the other one. */
  readonly groups?: readonly string[];
  /** On the management network, which is the wire itself. */
  readonly management?: true;
}
/** The first address of its /24; on the management network there is none. */
const gatewayOf = ({ address, management }: GuestPlan): string =>
  management === true ? "0.0.0.0" : address.replace(/\d+$/, "1");
/** The network outside, with a router that a host is to use, and an address of somebody behind it. */
export const outsideNetwork = {
  router: { own: "192.0.2.1", uplink: "10.0.254.1" },
  routerMac: "02:00:00:00:fe:01",
  somebody: "203.0.113.9",
  hosts: { a: ["192.0.2.11", "02:00:00:00:0f:01"], b: ["192.0.2.12", "02:00:00:00:0f:02"] },
} as const;
export type WayOutside = keyof typeof outsideNetwork.router;
export const externalPool = "198.18.0.0/15";
const networks = { external: [cidr(externalPool)], inside: [cidr("10.0.0.0/16"), cidr("10.64.0.0/10")] };
export const macOf = ({ number }: GuestPlan): string => `02:00:00:00:aa:${number.toString(16).padStart(2, "0")}`;
export const uidOf = ({ name }: GuestPlan) => uid(`test-${name}`);

export function rule(
  id: number,
  from: number,
  to: number,
  protocol: CompiledRule["protocol"],
  port?: number,
  more: Partial<CompiledRule> = {},
): CompiledRule {
  const ports = port === undefined ? { from: 0, to: 65535 } : { from: port, to: port };
  return { id, path: `shop/rules/r${id}`, from, to, protocol, ports, sourcePorts: { from: 0, to: 65535 }, ...more };
}
export function policy(
  cellNumber: number,
  version: number,
  rules: readonly CompiledRule[],
  networks: readonly (readonly [string, number])[] = [],
): CellPolicy {
  return {
    cell: cellName(`cell${cellNumber}`),
    cellNumber,
    version,
    rules,
    networks: networks.map(([text, identity]) => ({ cidr: cidr(text), identity })),
    controller: {
      address: ipv4(cellNumber === 1 ? controllerAddress : "10.0.3.2"),
      mac: mac(cellNumber === 1 ? controllerMac : "02:00:00:00:03:02"),
      identity: controllerIdentity,
    },
    hosts: [hostName("a"), hostName("b")],
  };
}

const desiredOf = (guest: GuestPlan): DesiredInterface => ({
  uid: uidOf(guest),
  path: elementPath(`shop/${guest.name}/if`),
  mac: mac(macOf(guest)),
  address: ipv4(guest.address),
  prefixLength: guest.management === true ? 16 : 24,
  gateway: ipv4(gatewayOf(guest)),
  nameServer: ipv4(controllerAddress),
  hostName: guest.name,
  domain: "shop.cells.internal",
  identity: guest.identities[0],
  vmIdentity: guest.identities[1],
  subnetIdentity: guest.identities[2],
  audience: [],
  ...(guest.management === true ? { management: true } : {}),
});

export interface Applied {
  readonly changes: NetworkChanges;
  readonly after: NetworkChanges;
  readonly allocation: NetworkAllocation;
}
export interface Guest {
  readonly plan: GuestPlan;
  readonly machine: Machine;
  readonly agent: Agent;
}

export class Installation {
  #directory: string | null = null;
  /** Made when it is asked for: a test that is not chosen makes one of these, and never stops it. */
  get directory(): string {
    this.#directory ??= mkdtempSync(join(tmpdir(), `diverter-${process.pid}-`));
    return this.#directory;
  }
  readonly machines: Machine[] = [];
  readonly agents = new Set<Agent>();
  readonly hostMachines = {} as Record<HostKey, Machine>;
  readonly drivers = {} as Record<HostKey, Agent>;
  readonly guests: Record<string, Guest> = {};
  controller!: { readonly machine: Machine; readonly agent: Agent };
  /** Upstream router, with somebody behind it, and another machine on its segment. */
  router!: { readonly machine: Machine; readonly agent: Agent };
  stranger!: { readonly machine: Machine; readonly agent: Agent };

  async machine(): Promise<Machine> {
    const machine = await Machine.start();
    this.machines.push(machine);
    return machine;
  }
  agent(machine: Machine, file: string, ...args: readonly string[]): Agent {
    const agent = new Agent(machine, file, ...args);
    this.agents.add(agent);
    return agent;
  }
  /**
   * With `bridge`, hosts have one that their uplink is a port of, and are ready for the management network. With `outside`
   * they have a way out, by a device of its own or by the uplink.
   */
  async start(more: { readonly bridge?: string; readonly outside?: WayOutside } = {}): Promise<void> {
    const wire = await this.machine();
    this.#outside = more.outside ?? null;
    wire.run("ip", "link", "add", "br0", "type", "bridge");
    wire.run("ip", "link", "set", "br0", "addrgenmode", "none", "up");
    const plug = async (port: string, address: string, hardware: string): Promise<Machine> => {
      const machine = await this.machine();
      wire.cable(port, machine, "eth0", hardware);
      wire.run("ip", "link", "set", port, "master", "br0");
      machine.run("ip", "addr", "add", `${address}/16`, "dev", "eth0");
      return machine;
    };
    if (more.outside !== undefined) await this.#startOutside(wire, more.outside);
    for (const key of ["a", "b"] as const) {
      const host = await plug(`w${key}`, hosts[key][0], hosts[key][1]);
      this.hostMachines[key] = host;
      if (more.outside === "own") {
        const [address, hardware] = outsideNetwork.hosts[key];
        wire.cable(`o${key}`, host, "out0", hardware);
        wire.run("ip", "link", "set", `o${key}`, "master", "br1");
        host.run("ip", "addr", "add", `${address}/24`, "dev", "out0");
      }
      if (more.bridge !== undefined) this.#bridge(key, more.bridge);
      await this.startDriver(key);
    }
    const machine = await plug("wc", controllerAddress, controllerMac);
    machine.run("ip", "route", "add", "10.64.0.0/10", "dev", "eth0");
    this.controller = { machine, agent: this.agent(machine, "guest-process.testing.ts") };
  }
  #outside: WayOutside | null = null;
  /** In which hosts announce external addresses, from the next start of their driver on. */
  table: number | undefined;
  async #startOutside(wire: Machine, way: WayOutside): Promise<void> {
    const segment = way === "own" ? "br1" : "br0";
    if (way === "own") {
      wire.run("ip", "link", "add", segment, "type", "bridge");
      wire.run("ip", "link", "set", segment, "addrgenmode", "none", "up");
    }
    const plug = async (port: string, hardware: string): Promise<Machine> => {
      const machine = await this.machine();
      wire.cable(port, machine, "eth0", hardware);
      wire.run("ip", "link", "set", port, "master", segment);
      /* It will send in others' names; the switch must not believe it. */
      wire.run("bridge", "link", "set", "dev", port, "learning", "off");
      return machine;
    };
    const { routerMac, somebody } = outsideNetwork;
    const router = await plug("or", routerMac);
    router.run("sysctl", "-qw", "net.ipv4.conf.eth0.arp_accept=1");
    router.run("ip", "addr", "add", `${outsideNetwork.router[way]}/${way === "own" ? 24 : 16}`, "dev", "eth0");
    router.run("ip", "addr", "add", `${somebody}/32`, "dev", "lo");
    for (const pool of [externalPool, "10.64.0.0/10"])
      router.run("ip", "route", "add", pool, "dev", "eth0", "src", somebody);
    this.router = { machine: router, agent: this.agent(router, "guest-process.testing.ts") };
    const stranger = await plug("os", "02:00:00:00:fe:66");
    this.stranger = { machine: stranger, agent: this.agent(stranger, "guest-process.testing.ts") };
  }
  /** The MAC that a host has outside. */
  outsideMac(key: HostKey): string {
    return this.#outside === "own" ? outsideNetwork.hosts[key][1] : hosts[key][1];
  }
  #outsideOf(key: HostKey): Outside | undefined {
    const way = this.#outside;
    if (way === null) return undefined;
    const isOwn = way === "own";
    return {
      device: isOwn ? "out0" : "eth0",
      address: ipv4(isOwn ? outsideNetwork.hosts[key][0] : hosts[key][0]),
      prefixLength: isOwn ? 24 : 16,
      mac: mac(this.outsideMac(key)),
      routers: [ipv4(outsideNetwork.router[way])],
      ...(this.table === undefined ? {} : { table: this.table }),
      ...networks,
    };
  }
  /** What the host had on its uplink is the bridge's from now on. */
  #bridge(key: HostKey, bridge: string): void {
    const machine = this.hostMachines[key];
    machine.run("ip", "link", "add", bridge, "address", hosts[key][1], "type", "bridge", "forward_delay", "0");
    machine.run("ip", "addr", "flush", "dev", "eth0");
    machine.run("ip", "link", "set", "eth0", "master", bridge);
    machine.run("ip", "addr", "add", `${hosts[key][0]}/16`, "dev", bridge);
    machine.run("ip", "link", "set", bridge, "up");
    this.#uplinkMore = { bridge };
  }
  #uplinkMore: { readonly bridge?: string } = {};
  async startDriver(key: HostKey): Promise<void> {
    const runDirectory = join(this.directory, key, "run");
    mkdirSync(runDirectory, { recursive: true });
    this.drivers[key] = this.agent(
      this.hostMachines[key],
      "driver-process.testing.ts",
      join(this.directory, key, "data"),
      runDirectory,
    );
    await this.drivers[key].call("init", {
      device: "eth0",
      address: hosts[key][0],
      mac: hosts[key][1],
      ...this.#uplinkMore,
      networks,
      outside: this.#outsideOf(key),
    });
  }
  /** A guest with an ordinary stack behind a cable that stands in for its tap. */
  async addGuest(plan: GuestPlan): Promise<Guest> {
    const machine = await this.machine();
    this.hostMachines[plan.host].cable(tapName(uidOf(plan)), machine, "eth0", macOf(plan));
    machine.run("ip", "addr", "add", `${plan.address}/${plan.management === true ? 16 : 24}`, "dev", "eth0");
    const way = plan.management === true ? ["dev", "eth0"] : ["via", gatewayOf(plan)];
    machine.run("ip", "route", "add", "default", ...way);
    const guest = { plan, machine, agent: this.agent(machine, "guest-process.testing.ts") };
    this.guests[plan.name] = guest;
    return guest;
  }
  global(key: HostKey, plans: readonly GuestPlan[], policies: readonly CellPolicy[]): GlobalNetwork {
    const locations = plans
      .filter(({ host, management }) => host !== key && management !== true)
      .map(
        (plan): ActualLocation => ({
          address: ipv4(plan.address),
          host: hostName(plan.host),
          hostMac: mac(hosts[plan.host][1]),
          cellNumber: plan.cell,
          identity: plan.identities[0],
          vmIdentity: plan.identities[1],
          subnetIdentity: plan.identities[2],
          ...(plan.groups === undefined ? {} : { groups: plan.groups.map((group) => ipv4(group)) }),
        }),
      );
    const interfaces = plans
      .filter(({ host }) => host === key)
      .map((plan) => ({
        vm: uid(`vm-${plan.name}`),
        memoryMiB: plan.memoryMiB ?? 256,
        cellNumber: plan.cell,
        desired: desiredOf(plan),
      }));
    return { policies, interfaces, locations };
  }
  async apply(plans: readonly GuestPlan[], policies: readonly CellPolicy[]): Promise<Record<HostKey, Applied>> {
    const [a, b] = await Promise.all(
      (["a", "b"] as const).map((key) => this.drivers[key].call<Applied>("apply", this.global(key, plans, policies))),
    );
    return { a: a!, b: b! };
  }
  async stop(): Promise<void> {
    await Promise.all([...this.agents].map((agent) => agent.stop()));
    await Promise.all(this.machines.map((machine) => machine.stop()));
    if (this.#directory !== null) rmSync(this.#directory, { recursive: true, force: true });
  }
}
