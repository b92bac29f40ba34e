import { type ChildProcess, spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { carryOutBatch } from "../../core/distribution/node/batch.ts";
import { createNode, stepNode } from "../../core/distribution/node/node.ts";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import { beatKey, type DesiredBeat, everyBeatMs } from "../../core/documents/ha.ts";
import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { toJson } from "../../core/outbox.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { issueCertificate } from "../../runtime/identity/certificates.ts";
import { createTestInstallation, eventually } from "../../runtime/installation.testing.ts";
import { createTransport } from "../../runtime/transport/transport.ts";
import { processCpuMs, residentMiBOf } from "../measure.ts";

/**
 * `heartbeats-process.ts HOSTS SECONDS`: a storage agent in a process of its own, and in this one so many hosts, each with a connection and a
 * name of its own, that say every 3 s that they are there, as Host Managers do. Prints a `HeartbeatsReport`.
 */
export interface HeartbeatsReport {
  /** Of a core: of the agent while all are connected and say nothing, and while they beat. */
  readonly silentPercent: number;
  readonly percent: number;
  /** Made durable and acknowledged meanwhile, and how many were said. */
  readonly acknowledged: number;
  readonly said: number;
  /** From saying to being acknowledged, ms, the slowest. */
  readonly slowestMs: number;
  readonly residentMiB: number;
}
const [hosts = 0, seconds = 0] = process.argv.slice(2).map(Number);
const agent = peerName("agent.s1");

/** What all hosts of this process do now, and what was heard. */
const world = { beats: false, connected: 0, said: 0, acknowledged: 0, slowestMs: 0 };

/** Beats as a Host Manager does, and nothing else. */
function hostService(self: PeerName, firstMs: number): Service<null> {
  let count = 0;
  const saidMs = new Map<number, number>();
  const beat = (): readonly Effect[] => {
    const timer: Effect = { kind: "timer", name: "beat", afterMs: everyBeatMs };
    if (!world.beats) return [timer];
    count += 1;
    world.said += 1;
    saidMs.set(count, performance.now());
    const value = toJson({ boot: 7, count } satisfies DesiredBeat);
    return [timer, { kind: "desire", to: agent, key: beatKey, value }];
  };
  return {
    restore: () => null,
    entitled: () => false,
    accepts: () => false,
    read: readAnything,
    audience: () => null,
    step: (state, input) => {
      if (input.kind === "start") {
        const effects: readonly Effect[] = [
          { kind: "subscribe", to: agent, prefix: `${self}/${beatKey}` },
          { kind: "timer", name: "beat", afterMs: firstMs },
        ];
        return { state, effects };
      }
      if (input.kind === "reachable" && input.reachable) world.connected += 1;
      if (input.kind === "actual" && input.value !== null) {
        const { count: heard } = input.value as unknown as DesiredBeat;
        const ms = saidMs.get(heard);
        saidMs.delete(heard);
        if (ms !== undefined) {
          world.acknowledged += 1;
          world.slowestMs = Math.max(world.slowestMs, performance.now() - ms);
        }
      }
      return { state, effects: input.kind === "timer" && input.name === "beat" ? beat() : [] };
    },
  };
}

/** A host with a transport of its own, whose store is its memory. @returns what ends it */
async function host(number: number, authority: string, peersFile: string, below: string): Promise<() => Promise<void>> {
  const self = peerName(`host.h${number}`);
  const directory = join(below, self);
  await mkdir(directory);
  const certificate = await issueCertificate(authority, self, ["127.0.0.1"]);
  // Their first beats are spread over the three seconds, as those of machines that started at any time.
  const service = hostService(self, (everyBeatMs * number) / hosts);
  const node = createNode(service, new Map(), self, { ms: performance.now(), wallMs: Date.now() }, self, []);
  const timers = new Map<string, NodeJS.Timeout>();
  const give = (input: NodeInput): void => {
    const output = stepNode(node, input, { ms: performance.now(), wallMs: Date.now() });
    for (const { name, afterMs } of output.timers) {
      clearTimeout(timers.get(name));
      if (afterMs !== null)
        timers.set(
          name,
          setTimeout(() => give({ kind: "timer", name }), afterMs),
        );
    }
    carryOutBatch([output], {
      commit: (_writes, durable) => durable(),
      log: () => undefined,
      reply: () => undefined,
      connect: (peer) => transport.connect(peer),
      send: (connection, frames) => transport.send(connection, frames),
      close: (connection) => transport.close(connection),
    });
  };
  const configuration = { name: self, role: "host", address: "127.0.0.1", directory, runDirectory: directory } as const;
  const transport = await createTransport(
    { ...configuration, certificate, peersFile, distributionPort: 0, httpPort: 0 },
    { input: give, log: () => undefined },
  );
  give({ kind: "start" });
  return async () => {
    for (const timer of timers.values()) clearTimeout(timer);
    await transport.stop();
  };
}

const listens = async (child: ChildProcess): Promise<void> => {
  if (child.stdout === null) throw new Error("a process without an output");
  for await (const line of createInterface({ input: child.stdout })) if (line === "listening") return;
  throw new Error("the agent ended before it listened");
};

const installation = await createTestInstallation("heartbeats");
const { file } = await installation.configure(agent, { change: { role: "agent" } });
const options = ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "agent-process.ts"), file];
const child = spawn(process.execPath, options, { stdio: ["ignore", "pipe", "inherit"] });
const ends: (() => Promise<void>)[] = [];
try {
  await listens(child);
  const pid = child.pid ?? 0;
  const authority = join(installation.directory, "authority");
  for (let number = 1; number <= hosts; number += 1)
    ends.push(await host(number, authority, installation.peersFile, installation.directory));
  await eventually("all hosts are connected", () => world.connected >= hosts);
  /** Of a core, over so long, once what went before is over. */
  const measured = async (): Promise<number> => {
    await sleep(2 * everyBeatMs);
    Object.assign(world, { said: 0, acknowledged: 0, slowestMs: 0 });
    const [cpuMs, ms] = [processCpuMs(pid), performance.now()];
    await sleep(seconds * 1000);
    return (100 * (processCpuMs(pid) - cpuMs)) / (performance.now() - ms);
  };
  const silentPercent = await measured();
  world.beats = true;
  const percent = await measured();
  const { said, acknowledged, slowestMs } = world;
  const residentMiB = residentMiBOf(pid).now;
  const report: HeartbeatsReport = { silentPercent, percent, said, acknowledged, slowestMs, residentMiB };
  process.stdout.write(`${JSON.stringify(report)}\n`);
} finally {
  child.kill("SIGKILL");
  await Promise.all(ends.map((end) => end()));
  await installation.remove();
}
