import { existsSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join, relative } from "node:path";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { makeDirectoryDurably } from "../../runtime/process/durable-files.ts";
import { runRoles } from "../../runtime/process/roles-of-process.ts";
import { configureRole, firstPeers, readServiceSeed } from "../../runtime/service-vm/service-data.ts";

/**
 * Roles in a service VM: each runs as the VM's `x.data` says, with its durable state on the data volume. Those of one process
 * show one sign of life to the guest's first process (`init.c`): a byte every two seconds while all of them answer. A process
 * whose event loop stands still gives none.
 */
const dataDirectory = "/var/lib/cells";
const runDirectory = "/run/cells";
const beatDescriptor = 3;
const beatEveryMs = 2000;

const beat = (): void => {
  try {
    writeSync(beatDescriptor, ".");
  } catch (error) {
    // Nobody has taken the last ones yet: they say the same.
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
};

/** The files below a directory, by their paths from it. */
const filesBelow = (directory: string): ReadonlyMap<string, string> => {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const file = join(parentPath, name);
      return [relative(directory, file), readFileSync(file, "utf8")];
    }),
  );
};

/** What the role is told, with the directories and files that it finds when it starts. */
const prepare = async (role: string): Promise<ProcessConfiguration> => {
  const own = join(runDirectory, role);
  const places = { directory: join(dataDirectory, role), runDirectory: own, seedDirectory: join(own, "seed") };
  const seed = readServiceSeed(filesBelow(places.seedDirectory), role);
  if (!seed.ok) throw new Error(seed.error);
  const configuration = configureRole(seed.value, places);
  await makeDirectoryDurably(join(places.directory, "identity"), 0o700);
  if (!existsSync(configuration.peersFile))
    writeFileSync(configuration.peersFile, firstPeers(seed.value), { mode: 0o600, flush: true });
  return configuration;
};

/** `start` runs a role until a signal ends it, and resolves when it answers. */
export const serveRoles = (
  roles: readonly string[],
  start: (configuration: ProcessConfiguration) => Promise<void>,
): void => {
  const sign = (): void => {
    if (running.answer()) beat();
  };
  const running = runRoles(
    roles.map((name) => ({ name, run: async () => start(await prepare(name)) })),
    sign,
  );
  setInterval(sign, beatEveryMs).unref();
};
