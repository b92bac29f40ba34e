import { existsSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join, relative } from "node:path";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { makeDirectoryDurably } from "../../runtime/process/durable-files.ts";
import { type ProcessRole, runRoles } from "../../runtime/process/roles-of-process.ts";
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

type Start = (configuration: ProcessConfiguration) => Promise<void>;
/** Something that runs with a role, in the same process. */
export interface Companion {
  readonly of: string;
  readonly name: string;
  /** Asked when the role answers; null: nothing. */
  readonly configure: (role: ProcessConfiguration) => Promise<ProcessConfiguration | null>;
}

/** `start` runs a role until a signal ends it, and resolves when it answers. */
export const serveRoles = (roles: readonly string[], start: Start, companion?: Companion): void => {
  const sign = (): void => {
    if (running.answer()) beat();
  };
  const running = runRoles(
    roles.flatMap((name) => rolesOf(name, start, companion)),
    sign,
  );
  setInterval(sign, beatEveryMs).unref();
};

/** The role, and a companion in a life of its own: that fails and is started again alone, and the role never waits for it. */
const rolesOf = (name: string, start: Start, companion?: Companion): readonly ProcessRole[] => {
  const begun = Promise.withResolvers<ProcessConfiguration>();
  const run = async (): Promise<void> => {
    const configuration = await prepare(name);
    await start(configuration);
    begun.resolve(configuration);
  };
  if (companion?.of !== name) return [{ name, run }];
  const runCompanion = async (): Promise<void> => {
    const configuration = await companion.configure(await begun.promise);
    if (configuration !== null) await start(configuration);
  };
  return [
    { name, run },
    { name: companion.name, run: runCompanion, isApart: true },
  ];
};
