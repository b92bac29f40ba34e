import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";

/**
 * Works with a process in a machine of its own with one uplink, and takes all of it away.
 * @param program a file beside this one; its arguments are a directory for its data and its run directory
 */
export const inMachine = async <T>(program: string, work: (agent: Agent) => Promise<T>): Promise<T> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
  const machine = await Machine.start();
  let agent: Agent | null = null;
  try {
    machine.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other");
    for (const device of ["eth0", "other"]) machine.run("ip", "link", "set", device, "up");
    for (const name of ["data", "run"]) mkdirSync(join(directory, name));
    // An agent's file is named from where the agents of the driver's own tests lie.
    const file = `../../../../../bench/dataplane/${program}`;
    agent = new Agent(machine, file, join(directory, "data"), join(directory, "run"));
    return await work(agent);
  } finally {
    await agent?.stop();
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
};

const tables = ["identities", "locations", "broadcasts"] as const;
/** Memory in the kernel of the tables that addresses are in, in bytes. */
export const tableBytes = (runDirectory: string): number =>
  tables.reduce((sum, name) => {
    const shown = execFileSync("bpftool", ["-j", "map", "show", "pinned", `${runDirectory}/bpf/diverter/maps/${name}`]);
    return sum + (JSON.parse(shown.toString()) as { readonly bytes_memlock: number }).bytes_memlock;
  }, 0);
