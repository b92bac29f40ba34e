import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "../cli/connection/client.ts";
import { type ClientConfiguration, readClientConfiguration } from "../cli/connection/client-config.ts";
import { type Ended, runCommand, runInside } from "./command.ts";
import { cacheDirectory, type Places, places } from "./places.ts";
import { noteBoots } from "./suite/boots.ts";
import { enterMember, enterOutside, enterResolver } from "./supervisor/namespaces.ts";
import type { MemberStatus } from "./supervisor/supervised.ts";
import { askSupervisor, memberStatus } from "./supervisor/supervisor-client.ts";
import { down, type UpOptions, up } from "./up.ts";

/** A testbed of its own, for one test. */
export interface Testbed {
  readonly at: Places;
  readonly configFile: string;
  /** Of the last `up`. */
  readonly client: () => ClientConfiguration;
  up(further?: Partial<UpOptions>): Promise<ClientConfiguration>;
  down(): Promise<void>;
  /**
   * Asks the gateway from this process, as commands do. For questions that are asked again and again: a process for each
   * costs more than its answer, beside guests with emulated processors.
   */
  gateway(): Client;
  /** `cells ARGS` as a user runs it. */
  /** @param configuration of the command line; the operator's where none is given */
  cells(args: readonly string[], configuration?: string): Promise<Ended>;
  /** A command in a member's namespaces. */
  exec(member: string, command: readonly string[]): Promise<Ended>;
  /** A command on the network outside, where the upstream router is. */
  outside(command: readonly string[]): Promise<Ended>;
  /** The same where the operator's resolver is, on the management network. */
  resolver(command: readonly string[]): Promise<Ended>;
  members(): Promise<readonly MemberStatus[]>;
  /** Sends a signal to the member's process, which is started again when that ends it. */
  kill(member: string, signal?: NodeJS.Signals): Promise<void>;
  stop(member: string): Promise<void>;
  start(member: string): Promise<void>;
  /** The supervisor, as the gateway asks it. */
  supervisor<T>(method: string, path: string, body?: unknown): Promise<T>;
}

/** As `./cells` sets it: a command starts in half the time. */
const compiled = (): string => process.env.NODE_COMPILE_CACHE ?? join(cacheDirectory(), "compiled", "commands");

const cli = fileURLToPath(new URL("../cli/main.ts", import.meta.url));

const testbedIn = (root: string, options: UpOptions): Testbed => {
  const at = places(join(root, "testbed"));
  const configFile = join(root, "client.json");
  let client: ClientConfiguration | undefined;
  const supervisor = <T>(method: string, path: string, body?: unknown): Promise<T> =>
    askSupervisor<T>(at.supervisorSocket, method, path, body);
  const inside = (command: readonly string[]): Promise<Ended> => runInside(at, command);
  return {
    at,
    configFile,
    client: () => {
      if (client === undefined) throw new Error("the testbed was never up");
      return client;
    },
    up: async (further = {}) => {
      client = await up({ profile: "processes", ...options, ...further, directory: at.directory, configFile });
      return client;
    },
    down: () => down({ directory: at.directory }),
    gateway: () => {
      const known = readClientConfiguration(configFile);
      if (known === undefined) throw new Error("the testbed was never up");
      return new Client(known);
    },
    cells: (args, configuration = configFile) =>
      runCommand(process.execPath, [cli, ...args], {
        environment: {
          CELLS_HOME: at.directory,
          CELLS_CONFIG: configuration,
          NO_COLOR: "1",
          NODE_COMPILE_CACHE: compiled(),
        },
      }),
    exec: (member, command) => inside([...enterMember(member), ...command]),
    outside: (command) => inside([...enterOutside, ...command]),
    resolver: (command) => inside([...enterResolver, ...command]),
    members: async () => (await memberStatus(at.supervisorSocket)) ?? [],
    kill: async (member, signal = "SIGKILL") => {
      await supervisor("POST", `/kill/${member}`, { signal });
    },
    stop: async (member) => {
      await supervisor("POST", `/stop/${member}`);
    },
    start: async (member) => {
      await supervisor("POST", `/start/${member}`);
    },
    supervisor,
  };
};

/** Gives a directory for a testbed and takes everything away afterwards, whatever happened. The test calls `up`. */
export const withTestbedDirectory = async (
  options: UpOptions,
  work: (testbed: Testbed) => Promise<void>,
): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), "cells-test-"));
  const testbed = testbedIn(root, options);
  const coming: Promise<unknown>[] = [];
  const up: Testbed["up"] = (further) => {
    const client = testbed.up(further);
    coming.push(client);
    return client;
  };
  try {
    await work({ ...testbed, up });
  } finally {
    // Who gives up while it comes cannot take it away before it is there, or has failed.
    await Promise.allSettled(coming);
    noteBoots(places(join(root, "testbed")).logs);
    await down({ directory: join(root, "testbed"), purge: true });
    rmSync(root, { recursive: true, force: true });
  }
};

/** The same with the testbed up: `withTestbed({ hosts: 2 }, async (t) => …)`. */
export const withTestbed = (options: UpOptions, work: (testbed: Testbed) => Promise<void>): Promise<void> =>
  withTestbedDirectory(options, async (testbed) => {
    await testbed.up();
    await work(testbed);
  });

/**
 * What ends or changes a guest for itself, once the agent has answered. The answer may be lost on a busy machine, and whoever asks again
 * does nothing, in the next boot either. @param name of its own in that guest
 */
export const onceSoon = (name: string, command: string): string =>
  `[ -e /root/${name} ] || { touch /root/${name}; sync; (sleep 0.3; ${command}) >/dev/null 2>&1 </dev/null & }`;
