import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { machineUsages } from "../drivers/hypervisor/usage.ts";
import { agentFile, hostFile, places } from "./configuration.ts";
import { bridgeScript, removeUnits } from "./units.ts";

export interface LeaveOptions {
  /** Also with machines that run and volumes that lie here: they are lost to their cells. */
  readonly force: boolean;
  /** Removes keys, state and volumes too. */
  readonly purge: boolean;
  readonly say: (line: string) => void;
}
const run = promisify(execFile);

const configurationIn = async (file: string): Promise<ProcessConfiguration | null> => {
  const text = await readFile(file, "utf8").catch(() => null);
  return text === null ? null : (JSON.parse(text) as ProcessConfiguration);
};

/**
 * Takes this machine out: its units end, its bridge gives the interface back. Refuses with a sentence while machines run on
 * it or volumes lie on it, unless it is forced. The installation forgets it by `cells host remove`.
 */
export const leaveMachine = async ({ force, purge, say }: LeaveOptions): Promise<string> => {
  if (process.getuid?.() !== 0) throw new Error("only root can take this machine out: run the command with `sudo`");
  const [host, agent] = [await configurationIn(hostFile), await configurationIn(agentFile)];
  if (host === null) throw new Error(`this machine is no host: there is no ${hostFile}`);
  const machines = (await machineUsages(host.runDirectory)).length;
  const volumes =
    agent === null
      ? 0
      : (await readdir(join(agent.directory, "volumes"))).filter((name) => name.endsWith(".qcow2")).length;
  if (!force && machines + volumes > 0)
    throw new Error(
      `${machines} machines run here and ${volumes} volumes lie here: delete them, or move what they do to other machines, and try again. With --force they are ended; ${purge ? "the volumes are removed with their data" : "the volumes' files stay"}`,
    );
  await removeUnits();
  say("its units are stopped and removed");
  const device = host.host?.uplink ?? "";
  await run("tc", ["qdisc", "del", "dev", device, "clsact"]).catch(() => undefined);
  await run("sh", [bridgeScript, "down", device]);
  say(`${device} has its address back`);
  // The rules of machines that ran here; nothing holds them any more.
  await run("umount", [join(host.runDirectory, "bpf")]).catch(() => undefined);
  await rm(places.run, { recursive: true, force: true }).catch(() => undefined);
  for (const file of [hostFile, agentFile]) await rm(file, { force: true });
  if (purge) {
    const directories = [host.directory, agent?.directory, agent === null ? undefined : `${places.state}/agent`];
    for (const path of directories) if (path !== undefined) await rm(path, { recursive: true, force: true });
    say("its keys and state are removed");
  }
  return host.name.slice("host.".length);
};
