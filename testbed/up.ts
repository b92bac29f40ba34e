import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";
import {
  type ClientConfiguration,
  clientConfigurationFile,
  leftConfigurationFiles,
  readClientConfiguration,
  writeClientConfiguration,
} from "../cli/connection/client-config.ts";
import { hashCredential } from "../runtime/http/bearer.ts";
import { buildPage } from "../web/build.ts";
import { openPrimary } from "./doors.ts";
import { readJson, writeJson } from "./files.ts";
import { withLock } from "./lock.ts";
import { cacheDirectory, defaultDirectory, type Places, pageDirectory, places } from "./places.ts";
import { type Door, type InstallationRecord, readRecord, rootRecord, writeRecord } from "./record.ts";
import { birthCredential, bootstrapHost, bootstrapProgress, type Profile, prepareBirth } from "./self-hosted.ts";
import { prepareCompiled } from "./suite/compile-cache.ts";
import { cgroupRoots, removeCgroups } from "./supervisor/cgroups.ts";
import {
  endFirstProcess,
  firstProcesses,
  isAlive,
  listenOnLoopback,
  type ProcessIdentity,
  startFirstProcess,
} from "./supervisor/first-process.ts";
import type { Instructions } from "./supervisor/instructions.ts";
import { doorsOf } from "./supervisor/members.ts";
import type { MemberStatus } from "./supervisor/supervised.ts";
import { memberStatus } from "./supervisor/supervisor-client.ts";

export interface UpOptions {
  /** Default: `$CELLS_HOME`, or /var/lib/cells/testbed. */
  readonly directory?: string;
  /** Default: as many as there are, or 3. */
  readonly hosts?: number;
  /** Default: as many as there are, or 2. Storage servers hold data: their number grows only. */
  readonly servers?: number;
  /** Placers, and Storage Managers, that run as processes. Default: as many as there are, or one. */
  readonly services?: number;
  /** With an HA Manager, which starts VMs elsewhere whose host is lost. */
  readonly ha?: true;
  /** See `InstallationRecord.rootCell`. */
  readonly rootCell?: true;
  /** See `InstallationRecord.networkModes`. */
  readonly networkModes?: InstallationRecord["networkModes"];
  /** See `InstallationRecord.networkHosts`. */
  readonly networkHosts?: InstallationRecord["networkHosts"];
  /** Where the management runs: in VMs of its own root cell, or as processes beside the hosts. Default: as before, or `newProfile`. */
  readonly profile?: Profile | "processes";
  /** Default: small. */
  readonly newProfile?: Profile | "processes";
  /** Personalities beside the gateway; default: as many as there are, or none. */
  readonly personalities?: readonly Door[];
  /** Each in a VM of its own (decision 212). Default: as before, or so with the profile large. */
  readonly apart?: true;
  /** Loopback port of the gateway; 0: the one of the last start, or any free one. */
  readonly port?: number;
  readonly hostMemoryMiB?: number;
  /** Where the url and the credential are written; default: the user's configuration. */
  readonly configFile?: string;
  /** One line per thing that is done. */
  readonly onProgress?: (line: string) => void;
  /** Default: built, or found in the cache. */
  readonly imagesDirectory?: string;
  /** See `Instructions.commands`. */
  readonly commands?: Instructions["commands"];
  readonly timeoutMs?: number;
}
export interface TestbedStatus {
  readonly directory: string;
  readonly running: boolean;
  readonly record: InstallationRecord | undefined;
  readonly members: readonly MemberStatus[];
}

const defaultTimeoutMs = 120_000;
/** Emulated CPUs on a machine that has other things to do. */
const selfHostedTimeoutMs = 600_000;
const goodbyeMs = 12_000;
const pollMs = 150;
/** For what an emulated processor has yet to do, which has better to do than to be asked. */
const patientPollMs = 500;
/** A handshake that is given up is work for nothing, and done again. */
const answerMs = 20_000;
const mostOfAKind = 64;

/** Memory of one host, in MiB: the machine's less 4 GiB, shared out, at most 4 GiB each. */
export const hostMemory = (machineMiB: number, hosts: number): number =>
  Math.max(512, Math.min(4096, Math.floor((machineMiB - 4096) / hosts)));

const requireRoot = (): void => {
  if (process.getuid?.() !== 0) {
    throw new Error("a testbed needs root, for namespaces and network devices: run the command with `sudo`");
  }
};

/** What the installation shall be now: what it was, and what the options change. */
const nextRecord = (
  found: InstallationRecord | undefined,
  options: UpOptions,
  credential: string,
): InstallationRecord => {
  const hosts = options.hosts ?? found?.hosts ?? 3;
  const servers = options.servers ?? found?.servers ?? 2;
  for (const [what, number] of Object.entries({ hosts, servers })) {
    if (!Number.isInteger(number) || number < 1 || number > mostOfAKind) {
      throw new Error(`a testbed has 1 to ${mostOfAKind} ${what}, not ${number}`);
    }
  }
  if (found !== undefined && servers < found.servers) {
    throw new Error(
      `this testbed has ${found.servers} storage servers, and volumes may lie on any of them: keep them, or begin anew after \`cells down --purge\``,
    );
  }
  const profile = profileOf(found, options);
  const services = Math.max(options.services ?? 1, found?.services ?? 1);
  const isRooted = (found ?? options).rootCell === true;
  return {
    hosts,
    servers,
    ...(profile === undefined ? {} : { profile }),
    hostMemoryMiB: options.hostMemoryMiB ?? hostMemory(totalmem() / 2 ** 20, hosts),
    hostCpus: 2,
    port: found?.port ?? 0,
    ...(services === 1 ? {} : { services }),
    ...(options.ha === true || found?.ha === true ? { ha: true as const } : {}),
    ...(isRooted ? { rootCell: true as const } : {}),
    ...modesAsked(found, options),
    ...doorsAsked(found, options, profile),
    nextCellNumber: found?.nextCellNumber ?? 1,
    cells: found?.cells ?? (isRooted ? { root: rootRecord } : {}),
    credentialHash: hashCredential(credential),
  };
};

const modesAsked = (
  found: InstallationRecord | undefined,
  options: UpOptions,
): Pick<InstallationRecord, "networkModes" | "networkHosts"> => {
  const networkModes = options.networkModes ?? found?.networkModes;
  const networkHosts = options.networkHosts ?? found?.networkHosts;
  return {
    ...(networkModes === undefined ? {} : { networkModes }),
    ...(networkHosts === undefined ? {} : { networkHosts }),
  };
};

/** With their ports of the last start; 0: any free one. */
const doorsAsked = (
  found: InstallationRecord | undefined,
  { personalities = [], apart }: UpOptions,
  profile: Profile | undefined,
): Pick<InstallationRecord, "doors" | "apart"> => {
  const open = { ...Object.fromEntries(personalities.map((door) => [door, 0])), ...found?.doors };
  const isNew = personalities.some((door) => found?.doors?.[door] === undefined);
  if (isNew && found?.profile !== undefined)
    throw new Error(
      `this testbed was made without ${personalities.join(", ")}: begin anew with \`cells down --purge\`, or in another --directory`,
    );
  if (apart === true && profile === undefined)
    throw new Error(
      "as processes there are no VMs for personalities to stand in: leave out --apart, or take another --profile",
    );
  if (apart === true && found !== undefined && found.apart !== true)
    throw new Error(
      "this testbed was made with its personalities beside the gateway: begin anew with `cells down --purge`, or in another --directory",
    );
  if (Object.keys(open).length === 0) return {};
  const isApart = found === undefined ? (apart ?? profile === "large") : found.apart;
  return { doors: open, ...(isApart === true ? { apart: true as const } : {}) };
};

const profileOf = (found: InstallationRecord | undefined, options: UpOptions): Profile | undefined => {
  const before = found === undefined ? undefined : (found.profile ?? "processes");
  const wanted = options.profile ?? before ?? options.newProfile ?? "small";
  if (before !== undefined && wanted !== before) {
    throw new Error(
      `this testbed's profile is "${before}": begin anew with \`cells down --purge\`, or in another --directory`,
    );
  }
  return wanted === "processes" ? undefined : wanted;
};

/**
 * The one that a birth was begun with, which its root cell knows, also where the `up` that began it was ended before its
 * user's configuration was written; otherwise the one that the user has, if it is the installation's, or a new one.
 */
const credentialFor = (
  born: string | undefined,
  found: InstallationRecord | undefined,
  known: ClientConfiguration | undefined,
): string =>
  born ??
  (known !== undefined && hashCredential(known.credential) === found?.credentialHash
    ? known.credential
    : randomBytes(32).toString("base64url"));

const listenAgain = async (wanted: number, last: number): ReturnType<typeof listenOnLoopback> => {
  if (wanted !== 0 || last === 0) return listenOnLoopback(wanted);
  return listenOnLoopback(last).catch(() => listenOnLoopback(0));
};

/** Ends what runs and removes what is volatile. Durable data stays. */
const clear = async (at: Places, graceMs: number): Promise<void> => {
  await endFirstProcess(at.tag, graceMs);
  const roots = new Set([...(readJson<Instructions>(at.instructionsFile)?.cgroupRoots ?? []), ...cgroupRoots(at.tag)]);
  for (const root of roots) {
    // A group counts as busy for a moment after its last process ended.
    for (let attempt = 0; !removeCgroups(root); attempt += 1) {
      if (attempt === 100) throw new Error(`cannot remove the control group ${root}: something is still in it`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  rmSync(at.run, { recursive: true, force: true });
};

const logTail = (file: string, lines: number): string => {
  try {
    return readFileSync(file, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "";
  }
};

/** One paragraph per member that does not answer: what happened to it and the end of its log. */
const whatIsWrong = (at: Places, members: readonly MemberStatus[] | undefined): string => {
  if (members === undefined) return `the supervisor does not answer:\n${logTail(`${at.logs}/supervisor.log`, 15)}`;
  return members
    .filter(({ answers }) => !answers)
    .map(
      ({ name, restarts, lastEnd, logFile }) =>
        `${name} does not answer (${lastEnd === null ? "it is still starting" : `last end: ${lastEnd}`}, ${restarts} restarts), ${logFile}:\n${logTail(logFile, 12)}`,
    )
    .join("\n\n");
};

const gatewayWrong = (at: Places): string => {
  const birth = bootstrapProgress(at);
  if (birth === undefined) return `the gateway does not answer:\n${logTail(`${at.logs}/gateway.log`, 12)}`;
  const last = birth.steps.at(-1)?.text ?? "nothing was done";
  const log = logTail(`${at.logs}/${bootstrapHost.name}.log`, 15);
  return `the gateway's VM does not answer. The birth came to: ${last}. ${birth.trouble ?? ""}\n${log}`;
};

const gatewayAnswers = async ({ url, credential }: ClientConfiguration): Promise<boolean> => {
  try {
    const headers = { authorization: `Bearer ${credential}` };
    const response = await fetch(`${url}/cells`, { headers, signal: AbortSignal.timeout(answerMs) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
};

/** Resolves when every member answers; rejects when one does not in time or process 1 ended. */
const untilUp = async (
  at: Places,
  client: ClientConfiguration,
  timeoutMs: number,
  say: (line: string) => void,
): Promise<void> => {
  const end = performance.now() + timeoutMs;
  const told = new Set<string>();
  // Looked for once: that means reading of every process of the machine.
  let first: ProcessIdentity | undefined;
  let steps = bootstrapProgress(at)?.stage === "done" ? (bootstrapProgress(at)?.steps.length ?? 0) : 0;
  for (;;) {
    for (const { text } of bootstrapProgress(at)?.steps.slice(steps) ?? []) {
      steps += 1;
      say(text);
    }
    const members = await memberStatus(at.supervisorSocket);
    first ??= firstProcesses(at.tag).outer[0];
    for (const { name, address, answers } of members ?? []) {
      if (!answers || told.has(name) || name === "gateway") continue;
      told.add(name);
      say(`${name} answers at ${address}`);
    }
    const all = members?.every(({ answers }) => answers) === true;
    if (all && (await gatewayAnswers(client))) {
      say(`gateway answers at ${client.url}`);
      return;
    }
    const ended = first === undefined || !isAlive(first);
    if (ended || performance.now() > end) {
      const what = all ? gatewayWrong(at) : whatIsWrong(at, members);
      throw new Error(`the testbed did not come up${ended ? "" : ` within ${timeoutMs / 1000} s`}.\n${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, all ? patientPollMs : pollMs));
  }
};

const images = async (say: (line: string) => void, profile: Profile | undefined): Promise<string> => {
  const options = { cacheDirectory: cacheDirectory(), onProgress: say };
  if (profile !== undefined) await (await import("../image/service.ts")).buildServiceImage(options);
  const { buildTinyImage } = await import("../image/build.ts");
  return dirname(await buildTinyImage(options));
};

const start = async (at: Places, options: UpOptions, say: (line: string) => void): Promise<ClientConfiguration> => {
  const found = readRecord(at);
  const credential = credentialFor(birthCredential(at), found, knownConfiguration(at, options, found));
  const record = nextRecord(found, options, credential);
  const imagesDirectory = options.imagesDirectory ?? (await images(say, record.profile));
  for (const path of [at.directory, at.logs, at.shared, at.run]) mkdirSync(path, { recursive: true, mode: 0o755 });
  if (record.profile !== undefined)
    prepareBirth(at, record.profile, credential, { doors: doorsOf(record), apart: record.apart === true });
  const page = record.profile === undefined ? buildPage(pageDirectory(at)) : null;
  await Promise.all([prepareCompiled(at, cacheDirectory()), page]);
  const { server, descriptor, port } = await listenAgain(options.port ?? 0, record.port);
  const outside = await Promise.all(
    doorsOf(record).map(async (door) => ({ door, ...(await listenAgain(0, record.doors?.[door] ?? 0)) })),
  );
  const ports = Object.fromEntries(outside.map((each) => [each.door, each.port]));
  try {
    writeRecord(at, { ...record, port, ...(outside.length === 0 ? {} : { doors: ports }) });
    const instructions: Instructions = {
      directory: at.directory,
      cacheDirectory: cacheDirectory(),
      imagesDirectory,
      cgroupRoots: cgroupRoots(at.tag),
      commands: options.commands ?? {},
    };
    writeJson(at.instructionsFile, instructions);
    const rest = record.profile === undefined ? " and the services" : ": everything else will run in VMs";
    say(`starting ${record.hosts} hosts, ${record.servers} storage servers${rest}`);
    startFirstProcess(at, [descriptor, ...outside.map((each) => each.descriptor)]);
  } finally {
    server.close();
    for (const each of outside) each.server.close();
  }
  const client = { url: `http://127.0.0.1:${port}`, credential };
  try {
    const limitMs = record.profile === undefined ? defaultTimeoutMs : selfHostedTimeoutMs;
    await untilUp(at, client, options.timeoutMs ?? limitMs, say);
  } catch (error) {
    await clear(at, 0);
    throw error;
  }
  return client;
};

/** Of this installation, wherever it was left: another cloud's, which the user asks by default, does not open it. */
const knownConfiguration = (
  at: Places,
  { configFile }: UpOptions,
  record: InstallationRecord | undefined,
): ClientConfiguration | undefined =>
  [at.clientFile, ...(configFile === undefined ? leftConfigurationFiles() : [configFile])]
    .map((file) => readClientConfiguration(file))
    .find((known) => known !== undefined && hashCredential(known.credential) === record?.credentialHash);

/** Commands find it by `CELLS_HOME`: the configuration for those who name no cloud is not touched. */
const isNamedByHome = (at: Places): boolean => {
  const { CELLS_HOME: home = "", CELLS_CONFIG: config = "" } = process.env;
  return config === "" && home !== "" && places(home).directory === at.directory;
};

/** Where the gateway of a running and healthy testbed is; undefined when it must be started (again). */
const alreadyUp = async (at: Places, options: UpOptions): Promise<ClientConfiguration | undefined> => {
  const record = readRecord(at);
  const known = knownConfiguration(at, options, record);
  const members = await memberStatus(at.supervisorSocket);
  if (record === undefined || known === undefined || members === undefined) return undefined;
  if ((options.hosts ?? record.hosts) !== record.hosts || (options.servers ?? record.servers) !== record.servers) {
    throw new Error(
      `this testbed is up with ${record.hosts} hosts and ${record.servers} servers: \`cells down\` first, its data stays`,
    );
  }
  const client = { url: `http://127.0.0.1:${record.port}`, credential: known.credential };
  const healthy = members.every(({ answers }) => answers) && hashCredential(known.credential) === record.credentialHash;
  return healthy && (await gatewayAnswers(client)) ? client : undefined;
};

/**
 * Starts the testbed, or finds it running. Resolves when every process answers, and leaves them running on their own.
 * Rejects with a sentence (what, why, the end of the log concerned); nothing runs then.
 */
export const up = async (options: UpOptions = {}): Promise<ClientConfiguration> => {
  requireRoot();
  const at = places(options.directory || defaultDirectory());
  const say = options.onProgress ?? (() => undefined);
  return withLock(at.tag, async () => {
    const running = await alreadyUp(at, options);
    if (running === undefined) await clear(at, firstProcesses(at.tag).init.length > 0 ? goodbyeMs : 0);
    else say("already up");
    const gateway = running ?? (await start(at, options, say));
    await openPrimary(at, gateway);
    const client = throughDoor(at, gateway);
    writeClientConfiguration(client, at.clientFile, { forInvoker: true });
    const left = options.configFile ?? (isNamedByHome(at) ? null : clientConfigurationFile());
    if (left !== null) writeClientConfiguration(client, left);
    return client;
  });
};

/** CaaS has all that the gateway has, and more: commands ask it where it is. */
const throughDoor = (at: Places, client: ClientConfiguration): ClientConfiguration => {
  const { caas } = doorsAt(at.directory);
  return caas === undefined ? client : { ...client, url: caas };
};

/** Where the personalities of a testbed are, by their names. */
export const doorsAt = (directory: string | undefined): Readonly<Record<string, string>> => {
  const open = readRecord(places(directory || defaultDirectory()))?.doors ?? {};
  return Object.fromEntries(Object.entries(open).map(([door, port]) => [door, `http://127.0.0.1:${port}`]));
};

const durable = (at: Places): readonly string[] => [
  join(at.directory, "members"),
  at.authority,
  at.logs,
  at.shared,
  at.recordFile,
  at.clientFile,
];

/** Ends the testbed; its data stays for the next `up`, unless `purge`. Resolves when nothing of it runs any more. */
export const down = async (options: { readonly directory?: string; readonly purge?: boolean } = {}): Promise<void> => {
  requireRoot();
  const at = places(options.directory || defaultDirectory());
  await withLock(at.tag, async () => {
    await clear(at, goodbyeMs);
    if (options.purge !== true) return;
    const record = readRecord(at);
    for (const file of leftConfigurationFiles()) {
      const left = readClientConfiguration(file);
      if (left !== undefined && hashCredential(left.credential) === record?.credentialHash) rmSync(file);
    }
    for (const path of durable(at)) rmSync(path, { recursive: true, force: true });
    try {
      rmdirSync(at.directory);
    } catch {
      // Not there, or something in it that is not ours.
    }
  });
};

export const status = async (options: { readonly directory?: string } = {}): Promise<TestbedStatus> => {
  const at = places(options.directory || defaultDirectory());
  const members = await memberStatus(at.supervisorSocket);
  const record = existsSync(at.recordFile) ? readRecord(at) : undefined;
  return { directory: at.directory, running: members !== undefined, record, members: members ?? [] };
};
