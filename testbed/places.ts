import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { configurationIn } from "../cli/connection/client-config.ts";

/** Where everything of one testbed lies. All paths are absolute. */
export interface Places {
  /** Durable; `down --purge` removes it. */
  readonly directory: string;
  /** `cells-<hash of directory>`: names the run directory, the cgroups and the processes of this testbed, and of no other. */
  readonly tag: string;
  /** Volatile, in the machine's `/run`: who is process 1, the supervisor's socket. */
  readonly run: string;
  readonly recordFile: string;
  /** What opens this cloud, for whoever names its directory. */
  readonly clientFile: string;
  readonly authority: string;
  readonly logs: string;
  /** `peers.json`, shown read-only to every member. */
  readonly shared: string;
  readonly supervisorSocket: string;
  /** Pid and start time of the first process, and what has to be removed after it. */
  readonly firstProcessFile: string;
  /** What this start of the supervisor shall do. */
  readonly instructionsFile: string;
}

/** Images and other things that can be made again, shared by all testbeds of the machine. */
export const cacheDirectory = (): string => process.env.CELLS_CACHE ?? "/var/cache/cells";

export const defaultDirectory = (): string => process.env.CELLS_HOME || "/var/lib/cells/testbed";

export const places = (directory: string): Places => {
  const absolute = resolve(directory);
  const tag = `cells-${createHash("sha256").update(absolute).digest("hex").slice(0, 10)}`;
  const run = `/run/cells/${tag}`;
  return {
    directory: absolute,
    tag,
    run,
    recordFile: join(absolute, "installation.json"),
    clientFile: configurationIn(absolute),
    authority: join(absolute, "authority"),
    logs: join(absolute, "logs"),
    shared: join(absolute, "shared"),
    supervisorSocket: join(run, "supervisor.sock"),
    firstProcessFile: join(run, "first-process.json"),
    instructionsFile: join(run, "instructions.json"),
  };
};

export const memberDirectory = (at: Places, member: string): string => join(at.directory, "members", member);
/** Inside the private namespaces only: their `/run` is their own. */
export const memberRunDirectory = (member: string): string => join("/run/members", member);

/** Files of the page, as the gateway serves them. */
export const pageDirectory = (at: Places): string => join(at.shared, "page");
