import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PeerName } from "../model/cell/identifiers.ts";
import { createAuthority, issueCertificate } from "./identity/certificates.ts";
import type { ProcessConfiguration } from "./installation.ts";
import { renameDurably } from "./process/durable-files.ts";
import { freePort } from "./process/free-port.testing.ts";

/** An installation of one test: its own authority, peers file and directories below the system's temporary one. */
export interface TestInstallation {
  readonly directory: string;
  readonly peersFile: string;
  /** Directory of another authority, which nobody of the installation trusts. */
  readonly foreignAuthority: string;
  /** Certificate, directory, free loopback ports and entry in the peers file of one peer; also as a file. */
  configure(name: PeerName, more?: ConfigureOptions): Promise<Configured>;
  /** Takes a peer out of the peers file. */
  forget(name: PeerName): Promise<void>;
  remove(): Promise<void>;
}
export interface ConfigureOptions {
  readonly authority?: string;
  readonly change?: Partial<ProcessConfiguration>;
}
export interface Configured {
  readonly configuration: ProcessConfiguration;
  readonly file: string;
}

/** As the product does it: a process that starts meanwhile reads the old file or the new one, never half of one. */
const replacePeers = async (file: string, peers: Readonly<Record<string, string>>): Promise<void> => {
  const next = `${file}.${randomUUID()}`;
  await writeFile(next, JSON.stringify({ peers }));
  await renameDurably(next, file);
};

export const createTestInstallation = async (label: string): Promise<TestInstallation> => {
  const directory = await mkdtemp(join(tmpdir(), `cells-${label}-${process.pid}-`));
  const ownAuthority = join(directory, "authority");
  const foreignAuthority = join(directory, "foreign");
  await createAuthority(ownAuthority);
  await createAuthority(foreignAuthority);
  const peers: Record<string, string> = {};
  const peersFile = join(directory, "peers.json");
  await replacePeers(peersFile, peers);
  return {
    directory,
    peersFile,
    foreignAuthority,
    configure: async (name, { authority = ownAuthority, change = {} } = {}) => {
      const own = join(directory, name);
      await mkdir(own, { recursive: true });
      const [distributionPort, httpPort] = [await freePort(), await freePort()];
      const configuration: ProcessConfiguration = {
        name,
        role: "placer",
        address: "127.0.0.1",
        directory: own,
        runDirectory: own,
        certificate: await issueCertificate(authority, name, ["127.0.0.1"]),
        peersFile,
        distributionPort,
        httpPort,
        ...change,
      };
      const ports = [configuration.distributionPort, configuration.httpPort];
      peers[name] = [configuration.address, ...ports].join(":");
      await replacePeers(peersFile, peers);
      const file = join(own, "configuration.json");
      await writeFile(file, JSON.stringify(configuration));
      return { configuration, file };
    },
    forget: async (name) => {
      delete peers[name];
      await replacePeers(peersFile, peers);
    },
    // A write that was begun may still come.
    remove: () => rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  };
};

/**
 * Repeats a look until it finds something, and gives that; the deadline only keeps a failing test from hanging.
 * @param known said with a failure
 */
export const eventually = async <T>(
  what: string,
  look: () => T | false | undefined | Promise<T | false | undefined>,
  known: () => string = () => "",
): Promise<T> => {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) assert.fail(`never so: ${what}${known()}`);
    await sleep(20);
  }
};
