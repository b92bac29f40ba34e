import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { JoinToken } from "../../runtime/identity/join-token.ts";
import { EnrolmentRefused, enrolNow } from "../../runtime/identity/own/enrol.ts";
import { type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { makeDirectoryDurably } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { beginAnew } from "./anew.ts";
import { agentConfiguration, agentFile, hostConfiguration, hostFile, type Machine, places } from "./configuration.ts";
import { type Examined, examine, requireUnderlay } from "./examine.ts";
import { listens } from "./listens.ts";
import { commandsOf, installUnits, startUnits } from "./units.ts";

/** Makes this machine a host of an installation (decision 32). */
export interface JoinOptions {
  readonly interface: string;
  /** Directory of its storage agent's volumes; null: it has none. */
  readonly storage: string | null;
  readonly images: string;
  /** A line for each thing that is done or waited for. */
  readonly say: (line: string) => void;
  readonly timeoutMs: number;
}

const pauseMs = 2000;

/**
 * Rejects with a sentence where the machine cannot be a host, or the token opens nothing; what was done until then is found
 * again by the next try.
 */
export const joinMachine = async (token: JoinToken, options: JoinOptions): Promise<void> => {
  const { say, storage, images } = options;
  if (token.agent !== undefined && storage === null)
    throw new Error(`this token makes ${token.name} a storage server as well: say where its volumes go, --storage DIR`);
  if (token.agent === undefined && storage !== null)
    throw new Error(
      `this token makes no storage server of ${token.name}: leave out --storage, or ask for one with \`cells host token ${token.name} --agent\``,
    );
  await requireUnused(token.name);
  const examined = await examine(options.interface, token.address);
  requireUnderlay(examined);
  for (const warning of examined.warnings) say(`note: ${warning}`);
  const machine: Machine = { ...machineOf(examined, options), name: token.name, storage, images };
  if (token.anew === true) await beginAnew(token);
  const known = { authority: token.authority, fingerprint: token.fingerprint };
  const host = hostConfiguration(machine, known);
  const agent = agentConfiguration(machine, known);
  await prepare(host, token.peers);
  await enrol(host, token.host, options);
  if (agent !== null && token.agent !== undefined) {
    await prepare(agent, token.peers);
    await enrol(agent, token.agent, options);
  }
  await writeConfigurations(host, agent);
  await startMachine(host, options);
};

export const machineOf = (
  { address, mac, memoryMiB, cpus, cgroups }: Examined,
  { interface: device }: { readonly interface: string },
): Omit<Machine, "name" | "storage" | "images"> => ({ address, interface: device, mac, memoryMiB, cpus, cgroups });

/** A machine is one host, of one installation. */
export const requireUnused = async (name: string): Promise<void> => {
  const found = await readFile(hostFile, "utf8").catch(() => null);
  if (found === null) return;
  const { name: peer } = JSON.parse(found) as ProcessConfiguration;
  if (peer !== `host.${name}`)
    throw new Error(`this machine is ${peer} already (${hostFile}): \`cells host leave\` first, to make it ${name}`);
};

/** Its directories, and where it finds the authority at first. */
export const prepare = async (
  { directory, runDirectory, certificate, peersFile, name, address }: ProcessConfiguration,
  peers: Readonly<Record<string, string>>,
): Promise<void> => {
  for (const path of [places.configuration, places.state, places.run]) await makeDirectoryDurably(path, 0o755);
  // What is enrolled lies in them: a token is spent by one key, which must not go with its directory.
  for (const path of [directory, dirname(peersFile), dirname(certificate.keyFile)])
    await makeDirectoryDurably(path, 0o700);
  await mkdir(runDirectory, { recursive: true, mode: 0o711 });
  // Exports and machines run as users of their own, who pass through.
  await chmod(directory, 0o711);
  if (!existsSync(peersFile)) await replaceFile(peersFile, JSON.stringify({ peers: { [name]: address, ...peers } }));
};

export const writeConfigurations = async (
  host: ProcessConfiguration,
  agent: ProcessConfiguration | null,
): Promise<void> => {
  await replaceFile(hostFile, `${JSON.stringify(host, null, 2)}\n`);
  if (agent !== null) await replaceFile(agentFile, `${JSON.stringify(agent, null, 2)}\n`);
};

/** A token is spent by one key: whoever asks again with the key that it made is answered again. */
const enrol = async (
  configuration: ProcessConfiguration,
  token: string,
  { say, timeoutMs }: JoinOptions,
): Promise<void> => {
  const { name, enrolment, certificate } = configuration;
  const end = performance.now() + timeoutMs;
  let told = "";
  for (;;) {
    try {
      const log = (event: EventName, { why }: Readonly<Record<string, string | number>>): void => {
        if (event === "identity/clock") say(`note: ${why}`);
      };
      await enrolNow({ configuration, token, log });
      const { validToDate } = new X509Certificate(await readFile(certificate.certFile));
      say(`${name} has its certificate, of a key made here; until ${validToDate.toISOString()}, and renewed before`);
      return;
    } catch (error) {
      const why = (error as Error).message;
      if (error instanceof EnrolmentRefused) throw new Error(`${name} was not let in: ${why}`);
      if (performance.now() > end)
        throw new Error(`${name} could not ask for its certificate: ${why}. Is TCP to ${enrolment?.authority} open?`);
      if (why !== told) say(`waiting for the authority at ${enrolment?.authority}: ${why}`);
      told = why;
      await sleep(pauseMs);
    }
  }
};

/** Puts the units into place, starts them, and waits until the Host Manager listens. */
export const startMachine = async (
  { address, name }: ProcessConfiguration,
  { interface: device, storage, say, timeoutMs }: JoinOptions,
): Promise<void> => {
  await installUnits(device, storage);
  say(`units are in ${places.units}; configurations in ${places.configuration}`);
  if (await startUnits(storage)) say("started, now and at every boot");
  else {
    say("systemd does not run here. In its place, keep these running, in this order:");
    for (const command of await commandsOf(storage)) say(`  ${command}`);
  }
  const end = performance.now() + timeoutMs;
  say(`waiting for ${name} to listen at ${address}:${ports.distribution}`);
  while (!(await listens(address, ports.distribution, pauseMs))) {
    if (performance.now() > end)
      throw new Error(
        `${name} does not listen at ${address}:${ports.distribution}: \`journalctl -u cells-host\` says why`,
      );
    await sleep(pauseMs / 4);
  }
  say(`${name} is running at ${address}`);
};
