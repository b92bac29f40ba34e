import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { storeKey } from "../../core/distribution/node/stored.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { heapOptions } from "../../runtime/life/heap.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { percentile, processCpuMs, residentMiBOf } from "../measure.ts";
import { machineMiB, reservedMiB, root } from "./many-hosts.ts";
import { type Asked, dedicated, isPooled, machineAt, mixOf, ownerOf, pooled, poolsOf } from "./mix.ts";
import { type Manner, type Peer, startPeer } from "./storeless-peer.ts";

/*
 * The process of a Placer as every installation starts it, with its store, and its peers in this one, of `placement.ts`: hosts, and
 * controllers whose documents it answers. Arguments: hosts, controllers, documents that come as fast as they are answered, how
 * many a second after that, and for how many seconds.
 */
export interface CommitsReport {
  /** Answers a second, from the first document to the last answer, each of what is durable. */
  readonly perSecond: number;
  /** How many of them: those that came as fast as they were answered. */
  readonly count: number;
  /** From the document to its answer, as fast as they are answered and at the steady rate. */
  readonly busy: Waits;
  readonly steady: Waits;
  /** Processor time of the Placer's process for one, as fast as they are answered. */
  readonly cpuMs: number;
  readonly residentMiB: number;
  readonly placed: number;
  /** Answered that there is no place, which is kept nowhere. */
  readonly refused: number;
  /** Told that they have a place, which the store of the Placer, killed then, does not know. */
  readonly lost: number;
}
interface Waits {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}
const [hosts = 1000, accounts = 50, count = 20_000, perSecond = 1000, seconds = 10] = process.argv.slice(2).map(Number);
/** On their way at one time, of all controllers together. */
const most = 32 * accounts;
const placer = peerName("placer");
const program = join(import.meta.dirname, "../../runtime/main.ts");

const directory = mkdtempSync(join(tmpdir(), "cells-bench-commits-"));
const authority = join(directory, "authority");
const peersFile = join(directory, "peers.json");
const book: Record<string, string> = {};
const writeBook = (): void => writeFileSync(peersFile, JSON.stringify({ peers: book }));

async function configurationOf(name: PeerName, address: string): Promise<ProcessConfiguration> {
  const own = join(directory, name);
  mkdirSync(own);
  const certificate = await issueCertificate(authority, name, [address]);
  const at = { address, directory: own, runDirectory: own, peersFile, distributionPort: 0 };
  return { name, role: "placer", certificate, ...at };
}
/** Each at an address of its own, as machines are: of 127.0.0.0/8, which is all this machine's. */
async function peerAt(name: PeerName, at: number, manner: Manner): Promise<Peer> {
  const address = `127.1.${Math.floor(at / 250)}.${1 + (at % 250)}`;
  const peer = await startPeer(await configurationOf(name, address), manner);
  book[name] = `${address}:${peer.port}`;
  return peer;
}
const hostAt = (at: number): string => `h${String(at).padStart(5, "0")}`;
const hostPeerAt = (at: number): Promise<Peer> => {
  const about = { state: "up", address: "10.0.1.1", mac: "02:00:00:00:00:01", accelerator: "kvm", boot: 1 };
  const value = { host: hostAt(at), ...about, reservedMiB, machineMiB, ...machineAt(at) };
  return peerAt(peerName(`host.${hostAt(at)}`), at, ({ kind }) =>
    kind === "start" ? [{ kind: "publish", key: "host", value }] : [],
  );
};

/** Documents on their way, since when; and what was answered. */
const since = new Map<string, number>();
const places = new Map<string, string>();
let refused = 0;
let answered: (tookMs: number) => void = () => undefined;
let known = 0;

const followerOf =
  (self: PeerName): Manner =>
  (input) => {
    if (input.kind === "start")
      return [`${self}/`, "hosts"].map((prefix) => ({ kind: "subscribe", to: placer, prefix }) as const);
    if (input.kind !== "actual" || input.value === null) return [];
    if (input.key === "hosts") known = ((input.value as JsonObject).hosts as readonly Json[]).length;
    const [, kind, vm = ""] = input.key.split("/");
    const began = since.get(vm);
    if (kind !== "placement" || began === undefined) return [];
    since.delete(vm);
    const { host } = input.value as JsonObject;
    if (typeof host === "string") places.set(vm, host);
    else refused += 1;
    answered(performance.now() - began);
    return [];
  };

async function startPlacer(): Promise<{ readonly child: ChildProcess; readonly store: string }> {
  const made = await configurationOf(placer, "127.0.0.1");
  const configuration = { ...made, distributionPort: await freePort(), httpPort: await freePort() };
  book[placer] = `127.0.0.1:${configuration.distributionPort}:${configuration.httpPort}`;
  writeBook();
  const file = join(made.directory, "configuration.json");
  writeFileSync(file, JSON.stringify(configuration));
  // As a supervisor does it: each change of state is a line there.
  const log = createWriteStream(join(made.directory, "log"));
  await once(log, "open");
  const child = spawn(process.execPath, [...heapOptions, program, file], {
    stdio: ["ignore", log, "inherit"],
  });
  return { child, store: join(made.directory, "state.sqlite") };
}

const waitsOf = (all: readonly number[]): Waits => ({
  medianMs: percentile(all, 0.5),
  p99Ms: percentile(all, 0.99),
  longestMs: percentile(all, 1),
});

/** Of those that were told, how many a killed Placer's store has not, or at another host. */
function lostIn(store: string): number {
  const database = new DatabaseSync(store);
  const kept = new Map<string, string>();
  const prefix = storeKey.own("reservation/");
  for (const row of database.prepare("SELECT key, value FROM entries").iterate()) {
    const { key, value } = row as { readonly key: string; readonly value: string };
    if (key.startsWith(prefix)) kept.set(key.slice(prefix.length), (JSON.parse(value) as { host: string }).host);
  }
  database.close();
  return [...places].filter(([vm, host]) => kept.get(vm) !== host).length;
}

const pools = poolsOf(hosts, accounts);
/** Whose cells and hosts are. */
function sayWhose(say: (key: string, document: JsonObject) => void): void {
  for (let at = 0; at < accounts; at += 1) say(`owner/k${at}`, ownerOf(at));
  for (let at = 0; at < hosts; at += 1) {
    const host = hostAt(at);
    if (at % 10 === 0) say(`dedicated/${host}`, dedicated(host, at, accounts));
    if (isPooled(at)) say(`pooled/${host}`, pooled(host, at, accounts, pools));
  }
}

async function run(): Promise<CommitsReport> {
  await createAuthority(authority);
  writeBook();
  const all: Peer[] = [];
  for (let at = 0; at < hosts; at += 1) all.push(await hostPeerAt(at));
  const controllers = new Map<PeerName, Peer>();
  for (const [at, name] of [
    root,
    ...Array.from({ length: accounts }, (_, of) => peerName(`controller.k${of}`)),
  ].entries())
    controllers.set(name, await peerAt(name, hosts + at, followerOf(name)));
  const desire = (from: PeerName, key: string, value: Json): void => controllers.get(from)?.desire(placer, key, value);
  const { child, store } = await startPlacer();
  const ended = once(child, "exit");
  try {
    await eventually(
      "the Placer knows all hosts",
      () => known === hosts,
      () => `; it knows ${known}`,
    );
    sayWhose((key, document) => desire(root, key, document));
    await sleep(1000);
    const { kindOf, request, first } = mixOf(accounts, pools, desire);
    const ask = ({ client, document }: Asked): void => {
      since.set(document.vm, performance.now());
      desire(client, `placement/${document.vm}`, document);
    };
    /** Each answer brings the next document. */
    const asFast = (requests: readonly (() => Asked)[]): Promise<readonly number[]> =>
      new Promise((resolve) => {
        const waits: number[] = [];
        let next = 0;
        const ahead = (): void => {
          const make = requests[next];
          next += 1;
          if (make !== undefined) ask(make());
        };
        answered = (tookMs) => {
          waits.push(tookMs);
          if (waits.length === requests.length) resolve(waits);
          else ahead();
        };
        for (let at = 0; at < most; at += 1) ahead();
      });
    const pid = child.pid ?? 0;
    // What is compiled by then is not in the figures.
    await asFast(first().map((kind) => () => request(kind)));
    await asFast(Array.from({ length: count / 4 }, () => () => request(kindOf())));
    const [beganMs, cpuMs] = [performance.now(), processCpuMs(pid)];
    const busy = await asFast(Array.from({ length: count }, () => () => request(kindOf())));
    const [tookMs, usedMs] = [performance.now() - beganMs, processCpuMs(pid) - cpuMs];
    const steady: number[] = [];
    answered = (waitedMs) => void steady.push(waitedMs);
    const from = performance.now();
    for (let asked = 0; asked < perSecond * seconds; ) {
      for (; asked < ((performance.now() - from) * perSecond) / 1000; asked += 1) ask(request(kindOf()));
      await sleep(2);
    }
    await eventually("all are answered", () => since.size === 0);
    const residentMiB = residentMiBOf(pid).now;
    child.kill("SIGKILL");
    await ended;
    return {
      perSecond: (count / tookMs) * 1000,
      count,
      busy: waitsOf(busy),
      steady: waitsOf(steady),
      cpuMs: usedMs / count,
      residentMiB,
      placed: places.size,
      refused,
      lost: lostIn(store),
    };
  } finally {
    child.kill("SIGKILL");
    await ended;
    for (const peer of [...all, ...controllers.values()]) await peer.stop();
  }
}

try {
  process.stdout.write(`${JSON.stringify(await run())}\n`);
} finally {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}
process.exit(0);
