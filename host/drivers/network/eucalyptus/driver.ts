import { calls, type ModeDriver } from "../service/mode-driver.ts";
import { missingPrograms, type Run } from "./handlers/run.ts";
import { applySets, readSets, type Sets, setChanges, staleSets } from "./handlers/sets.ts";
import { type Printed, readTables, TableHandler } from "./handlers/tables.ts";
import type { LocalPlan, Table } from "./plan/plan.ts";

/** What is in place on this machine. */
export interface LocalNetwork {
  readonly sets: Sets;
  readonly iptables: Printed;
  readonly ebtables: Printed;
}

/**
 * The driver of every Eucalyptus mode: its global view is the machine's plan, which the mode's planner has made. Rules of groups and
 * their sets are one call, addresses and the guard at the bridge another. Devices are not its own yet.
 */
export function createPlanDriver(run: Run): ModeDriver<LocalPlan, LocalNetwork, unknown> {
  const [iptables, ebtables] = [new TableHandler(run, "iptables"), new TableHandler(run, "ebtables")];
  /** Of the last call: which of the system's own chains are the mode's. */
  let inForce: LocalPlan | null = null;
  const of = ({ iptables: tables }: LocalPlan, name: string): readonly Table[] =>
    tables.filter((table) => table.name === name);
  const read = async (): Promise<LocalNetwork> => ({
    sets: await readSets(run),
    iptables: await readTables(run, "iptables"),
    ebtables: await readTables(run, "ebtables"),
  });
  const clear = async (all: boolean): Promise<void> => {
    const found = await read();
    await iptables.clear(inForce?.iptables ?? [], found.iptables, all);
    await ebtables.clear(inForce?.ebtables ?? [], found.ebtables, all);
    for (const name of staleSets(found.sets, [])) await run("ipset", ["destroy", name]);
  };
  return {
    init: () => missingPrograms(run),
    upgrade: async () => {},
    read,
    scrub(plan, found) {
      const [filter, nat] = [of(plan, "filter"), of(plan, "nat")];
      const isGroup =
        setChanges(found.sets, plan.sets).length > 0 ||
        staleSets(found.sets, plan.sets).length > 0 ||
        iptables.due(filter, found.iptables).length > 0 ||
        iptables.stale(plan.iptables, found.iptables).length > 0;
      const isAddress =
        iptables.due(nat, found.iptables).length > 0 || ebtables.due(plan.ebtables, found.ebtables).length > 0;
      return (isGroup ? calls.securityGroup : 0) | (isAddress ? calls.addressing : 0);
    },
    flush: () => clear(false),
    network: async () => {},
    async securityGroup(plan, found) {
      inForce = plan;
      const changes = setChanges(found.sets, plan.sets);
      if (changes.length > 0) await applySets(run, changes);
      await iptables.apply(of(plan, "filter"), found.iptables);
      for (const name of staleSets(await readSets(run), plan.sets)) await run("ipset", ["destroy", name]);
    },
    async addressing(plan, found) {
      inForce = plan;
      await iptables.apply(of(plan, "nat"), found.iptables);
      await ebtables.apply(plan.ebtables, found.ebtables);
    },
    cleanup: () => clear(true),
  };
}
