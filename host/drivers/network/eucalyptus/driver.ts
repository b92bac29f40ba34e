import type { Mode } from "../../../../model/cell/network/modes.ts";
import { calls, type ModeDriver, PartlyFailed } from "../service/mode-driver.ts";
import { type Counted, readCounted } from "./handlers/counted.ts";
import { DeviceHandler } from "./handlers/device-handler.ts";
import {
  Announcer,
  addressChanges,
  applyAddresses,
  type Devices,
  type LeftOfLease,
  readDevices,
  renamedDevices,
} from "./handlers/devices.ts";
import { DhcpHandler, type FoundDhcp } from "./handlers/dhcp.ts";
import { FlowHandler } from "./handlers/flows.ts";
import { saidOf } from "./handlers/learning.ts";
import { gathered, missingPrograms, type Run } from "./handlers/run.ts";
import { applySets, destroySets, readSets, type Sets, setChanges, staleSets } from "./handlers/sets.ts";
import { type Printed, readTables, TableHandler } from "./handlers/tables.ts";
import type { HeardTap, Learner } from "./learn/learn.ts";
import { allSets, allTables } from "./plan/own.ts";
import type { LocalPlan, Self, Table } from "./plan/plan.ts";
import type { FoundTag, Tags } from "./tags/tags.ts";

/** What is in place on this machine. */
export interface LocalNetwork {
  readonly sets: Sets;
  readonly iptables: Printed;
  readonly ebtables: Printed;
  readonly devices: Devices;
  readonly dhcp: FoundDhcp;
  /** Where the kernel has no devices for VLANs. */
  readonly tags: readonly FoundTag[];
  /** What taps say of addresses. */
  readonly heard: readonly HeardTap[];
}
export interface PlanDriverOptions {
  readonly run: Run;
  /** Of the DHCP server's files, and of what goes of kept connections. */
  readonly dhcpDirectory: string;
  /** VLANs where the kernel has no devices for them; absent: there are none then. */
  readonly tags?: Tags;
  /** Addresses that a site's DHCP server gives; absent: none is known. */
  readonly learner?: Learner;
  /** What the mode needs of the machine; absent: nothing is asked of its devices. */
  readonly machine?: { readonly mode: Mode; readonly peer: Self["peer"] };
  /** Absent: the machine has its addresses without a lease. */
  readonly left?: LeftOfLease;
}
/** Of a machine, as far as the driver itself needs it. */
export interface DriverConfiguration {
  readonly publicInterface?: string;
  readonly privateInterface?: string;
  readonly bridge?: string;
  readonly dhcpUser?: string;
}
/** What is in force and reads otherwise than it was put there. */
export interface Deviation {
  readonly tool: "iptables" | "ebtables" | "ipset";
  /** Of a chain `filter FORWARD`, of a set its own. */
  readonly name: string;
  /** A sentence without its end. */
  readonly what: string;
}
export interface PlanDriver extends ModeDriver<LocalPlan, LocalNetwork, DriverConfiguration> {
  /** Of a plan that was put in place by this process. */
  deviations(plan: LocalPlan, found: LocalNetwork): readonly Deviation[];
  /** Packets and bytes, by what is counted: an address (`a.b.c.d/n`) as the source or the destination of what passes. */
  counted(): Promise<Counted>;
  /** What instances say of their addresses, by tap: where the plan has it so. */
  heard(plan: LocalPlan): Promise<ReadonlyMap<string, number>>;
}
type Device = "publicInterface" | "privateInterface" | "bridge";
/** Devices that have to be there, by the paper. */
const needs: Readonly<Record<Mode, Readonly<Record<Self["peer"], readonly Device[]>>>> = {
  EDGE: { node: ["publicInterface", "bridge"], network: [] },
  MANAGED: { node: ["privateInterface"], network: ["publicInterface", "privateInterface"] },
  "MANAGED-NOVLAN": { node: ["bridge"], network: ["publicInterface", "privateInterface"] },
  STATIC: { node: ["bridge"], network: ["privateInterface"] },
  SYSTEM: { node: ["bridge"], network: [] },
};
const keyOf = { publicInterface: "VNET_PUBINTERFACE", privateInterface: "VNET_PRIVINTERFACE", bridge: "VNET_BRIDGE" };
const defaultDhcpUser = "nobody";

/**
 * The driver of every Eucalyptus mode: its global view is the machine's plan, which the mode's planner has made. Devices are one call,
 * rules of groups and their sets another, addresses, DHCP and the guard at the bridge the third.
 */
export function createPlanDriver(options: PlanDriverOptions): PlanDriver {
  const { run, dhcpDirectory, machine, tags, learner } = options;
  const parts = new DeviceHandler(options);
  let dhcpUser = defaultDhcpUser;
  const [iptables, ebtables] = [new TableHandler(run, "iptables"), new TableHandler(run, "ebtables")];
  const dhcp = new DhcpHandler(run, dhcpDirectory);
  const flows = new FlowHandler(run, dhcpDirectory);
  const announcer = new Announcer(run);
  /** Of the last call: which of the system's own chains are the mode's, and which addresses. */
  let inForce: LocalPlan | null = null;
  const of = (plan: LocalPlan, name: string): readonly Table[] =>
    allTables(plan).iptables.filter((table) => table.name === name);
  const read = async (): Promise<LocalNetwork> => {
    const others = gathered(run);
    const [filters, bridged, sets, devices, server, found, heard] = await Promise.all([
      // What takes longest is started first, and beside it the others, which take as long together.
      ...([readTables(run, "iptables"), readTables(others, "ebtables"), readSets(others)] as const),
      ...([readDevices(others), dhcp.read(), tags?.read() ?? [], learner?.read() ?? []] as const),
    ]);
    return { sets, iptables: filters, ebtables: bridged, devices, dhcp: server, tags: found, heard };
  };
  /** Sets that nobody wants any more and that rules of the site's own still name. */
  let left: readonly string[] = [];
  const clearRules = async (found: LocalNetwork): Promise<void> => {
    const tables = inForce === null ? { iptables: [], ebtables: [] } : allTables(inForce);
    await iptables.clear(tables.iptables, found.iptables);
    await ebtables.clear(tables.ebtables, found.ebtables);
    left = await destroySets(run, staleSets(found.sets, []));
  };
  return {
    async init(configuration) {
      dhcpUser = configuration.dhcpUser ?? defaultDhcpUser;
      const missing = await missingPrograms(run);
      if (missing.length > 0 || machine === undefined) return missing;
      const { links } = await readDevices(run);
      return needs[machine.mode][machine.peer].flatMap((device) => {
        const name = configuration[device];
        return name === undefined || links.has(name)
          ? []
          : [`there is no device ${name} on this machine, which ${keyOf[device]} names`];
      });
    },
    // Chains and sets of earlier names go with the first call that writes theirs.
    async upgrade(plan) {
      for (const { device, name } of renamedDevices(plan, await readDevices(run)))
        await run("ip", ["link", "set", "dev", device, "name", name]).catch(async () => {
          // An older kernel renames what is down alone.
          await run("ip", ["link", "set", "dev", device, "down"]);
          await run("ip", ["link", "set", "dev", device, "name", name]);
          await run("ip", ["link", "set", "dev", name, "up"]);
        });
    },
    read,
    scrub(plan, found) {
      const [filter, nat] = [of(plan, "filter"), of(plan, "nat")];
      const all = allTables(plan);
      const isGroup =
        setChanges(found.sets, allSets(plan)).length > 0 ||
        staleSets(found.sets, allSets(plan)).some((name) => !left.includes(name)) ||
        iptables.due(filter, found.iptables).length > 0 ||
        iptables.stale(all.iptables, found.iptables).length > 0;
      const { added, removed } = addressChanges(plan, found.devices);
      const isAddress =
        iptables.due(nat, found.iptables).length > 0 ||
        ebtables.due(all.ebtables, found.ebtables).length > 0 ||
        ebtables.stale(all.ebtables, found.ebtables).length > 0 ||
        added.length + removed.length + announcer.failedOf(plan.addresses).length > 0 ||
        dhcp.isDue(plan.dhcp, dhcpUser, found.dhcp);
      const isNetwork = parts.isDue(plan, found);
      return (isNetwork ? calls.network : 0) | (isGroup ? calls.securityGroup : 0) | (isAddress ? calls.addressing : 0);
    },
    // The calls that follow write each table anew, in one transaction each: nothing is open meanwhile.
    async flush() {
      iptables.forget();
      ebtables.forget();
    },
    async network(plan, found, next) {
      inForce = plan;
      // A tap is no port of a bridge before the guard is there: what nobody guards would speak for others.
      flows.note(allTables(plan).ebtables, found.ebtables);
      const bridged = await ebtables.apply(allTables(plan).ebtables, found.ebtables);
      const devices = await parts.apply(plan, found);
      next(async () => ({ ...found, ebtables: bridged, devices: devices ?? (await readDevices(run)) }));
    },
    async securityGroup(plan, found, next) {
      inForce = plan;
      const changes = setChanges(found.sets, allSets(plan));
      const short = changes.length > 0 ? await applySets(run, changes) : new Map<string, string>();
      const parts = [...short].map(([name, why]) => [name, `the set ${name} lacks members: ${why}`] as const);
      // A member that a group's set lacks is reached by nobody; by the mode's own sets all are kept from outside.
      const [all] = parts.filter(([name]) => /^(?:EUCA_|CELLS_)/.test(name));
      if (all !== undefined) throw new Error(all[1]);
      // Whose an address is says the bridge where it holds taps to theirs; elsewhere, on a network host, whose traffic is counted.
      if (plan.taps.length === 0) flows.note(of(plan, "filter"), found.iptables);
      const filters = await iptables.apply(of(plan, "filter"), found.iptables, allTables(plan).iptables);
      const forgets = await flows.apply(plan, null).catch((error: Error) => error);
      next(async () => ({ ...found, iptables: filters }));
      left = await destroySets(run, staleSets(found.sets, allSets(plan)));
      if (forgets instanceof Error) throw forgets;
      if (parts.length > 0) throw new PartlyFailed(new Map(parts));
    },
    async addressing(plan, found) {
      inForce = plan;
      const changes = addressChanges(plan, found.devices);
      // No address is here without what translates it: it goes before that, and comes after it.
      await applyAddresses(run, { added: [], removed: changes.removed });
      flows.note(of(plan, "nat"), found.iptables);
      flows.note(allTables(plan).ebtables, found.ebtables);
      await iptables.apply(of(plan, "nat"), found.iptables, allTables(plan).iptables);
      await ebtables.apply(allTables(plan).ebtables, found.ebtables);
      // What is kept may be much, and keeps nothing else from being in place.
      const forgets = await flows.apply(plan, of(plan, "nat")).catch((error: Error) => error);
      await applyAddresses(run, { added: changes.added, removed: [] }, options.left);
      const again = announcer.failedOf(plan.addresses);
      announcer.announce([...changes.added.filter(({ announced }) => announced), ...again]);
      // A server hears at devices that have their addresses.
      await dhcp.apply(plan.dhcp, dhcpUser, found.dhcp);
      if (forgets instanceof Error) throw forgets;
    },
    deviations(plan, found) {
      const all = allTables(plan);
      const chains = ([iptables, ebtables] as const).flatMap((handler) =>
        handler.due(all[handler.tool], found[handler.tool]).map(
          (name): Deviation => ({
            tool: handler.tool,
            name,
            what: `the chain ${name.split(" ")[1]} of ${handler.tool}, table ${name.split(" ")[0]}, reads otherwise than it was put in place`,
          }),
        ),
      );
      const sets = allSets(plan)
        .filter((set) => setChanges(found.sets, [set]).length > 0)
        .map(
          ({ name }): Deviation => ({
            tool: "ipset",
            name,
            what: `the set ${name} has other members than it was given`,
          }),
        );
      return [...chains, ...sets];
    },
    counted: () => readCounted(run),
    async heard(plan) {
      if (!plan.learns || learner === undefined) return new Map();
      const [devices, taps] = await Promise.all([readDevices(run), learner.read()]);
      return saidOf(plan, devices, taps);
    },
    warnings: ({ warnings }) => warnings,
    left: () =>
      left.map((name) => `the set ${name} stays, since a rule of the site's own names it; nothing keeps it up to date`),
    async cleanup() {
      const found = await read();
      // An address goes before what translates it, and who is at a bridge before what guards that: what ends in the middle leaves nothing open.
      const addresses = { addresses: [], managed: inForce?.managed ?? [] };
      await applyAddresses(run, addressChanges(addresses, found.devices));
      await parts.clear(found);
      await dhcp.stop(found.dhcp);
      await clearRules(found);
    },
  };
}
