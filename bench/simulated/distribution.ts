import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { killed, percentile } from "../measure.ts";
import type { Command, FollowerReport, SourcesReport } from "./distribution-process.ts";

const program = fileURLToPath(new URL("distribution-process.ts", import.meta.url));

/** A process of the bench. Each command is answered by one report. */
class Party {
  readonly #child: ChildProcess;
  constructor(role: "sources" | "follower", list: string, keys: number) {
    this.#child = fork(program, [role, list, String(keys)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  }
  async next<T>(): Promise<T> {
    const done = new AbortController();
    const { signal } = done;
    const ended = once(this.#child, "exit", { signal }).then(([code]) => {
      throw new Error(`a process of the bench ended with ${code}`);
    });
    ended.catch(() => undefined);
    try {
      return (await Promise.race([once(this.#child, "message", { signal }), ended]))[0] as T;
    } finally {
      done.abort();
    }
  }
  ask<T>(command: Command): Promise<T> {
    const answer = this.next<T>();
    this.#child.send(command);
    return answer;
  }
  pause(): void {
    this.#child.kill("SIGSTOP");
  }
  resume(): void {
    this.#child.kill("SIGCONT");
  }
  async end(): Promise<void> {
    await killed(this.#child);
  }
}

async function configure(installation: TestInstallation, names: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const name of names) files.push((await installation.configure(peerName(name))).file);
  return files;
}

/** Waits until a follower has exactly what the sources say. */
async function inStep(sources: Party, follower: Party): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    const [said, has] = [
      await sources.ask<SourcesReport>({ do: "report" }),
      await follower.ask<FollowerReport>({ do: "report" }),
    ];
    if (said.published === has.held && Math.abs(said.sum - has.sum) < 1e-3 * said.published) return;
    await sleep(100);
  }
  throw new Error("a follower does not come into step with the sources");
}

/** CPU time of the sources and of a follower so far, in milliseconds. */
async function cpuOf(sources: Party, follower: Party): Promise<readonly [number, number]> {
  const [ofSources, ofFollower] = [
    await sources.ask<SourcesReport>({ do: "report" }),
    await follower.ask<FollowerReport>({ do: "report" }),
  ];
  return [ofSources.cpuMs, ofFollower.cpuMs];
}

const delivery = (what: string, values: readonly number[], atMost: number | null): Figure => ({
  what,
  unit: "ms",
  value: percentile(values, 0.99),
  range: [percentile(values, 0.5), percentile(values, 1)],
  atMost,
  note: `${values.length} deliveries; the range is from the median to the longest`,
});

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const [count, keys, perSecond] = quick ? [20, 100, 500] : [200, 100, 2000];
  const ms = quick ? 3000 : 30_000;
  const installation = await createTestInstallation("bench-distribution");
  const parties: Party[] = [];
  try {
    say(`${count} sources with ${count * keys} publications`);
    const names = Array.from({ length: count }, (_, at) => `host.h${at + 1}`);
    const lists = { sources: names, followers: ["controller.one", "controller.two"] } as const;
    const files = await configure(installation, names);
    const start = async (role: "sources" | "follower", own: readonly string[], label: string): Promise<Party> => {
      const list = join(installation.directory, `${label}.list`);
      writeFileSync(list, JSON.stringify({ files: own, sources: names }));
      const party = new Party(role, list, keys);
      parties.push(party);
      await party.next();
      return party;
    };
    const followers: Party[] = [];
    const followerFiles = await configure(installation, lists.followers);
    const sources = await start("sources", files, "sources");
    for (const file of followerFiles) followers.push(await start("follower", [file], `follower${followers.length}`));
    const [follower, stalled] = followers;
    if (follower === undefined || stalled === undefined) throw new Error("a follower is missing");
    for (const each of followers) await inStep(sources, each);

    say(`${perSecond} changes a second, two followers`);
    await follower.ask({ do: "measure" });
    const cpuBefore = await cpuOf(sources, follower);
    const running = await sources.ask<SourcesReport>({ do: "change", perSecond, ms });
    await inStep(sources, follower);
    const { latenciesMs } = await follower.ask<FollowerReport>({ do: "report" });
    const cpuAfter = await cpuOf(sources, follower);
    const perChange = (at: 0 | 1): number => (cpuAfter[at] - cpuBefore[at]) / running.changes;

    say("the same while the other follower takes nothing");
    stalled.pause();
    await follower.ask({ do: "measure" });
    const stalling = await sources.ask<SourcesReport>({ do: "change", perSecond, ms });
    await inStep(sources, follower);
    const beside = (await follower.ask<FollowerReport>({ do: "report" })).latenciesMs;
    stalled.resume();
    await inStep(sources, stalled);

    return [
      {
        what: "changes delivered, of those published",
        unit: "%",
        range: null,
        atMost: null,
        value: (100 * latenciesMs.length) / running.changes,
        note: `${perSecond} a second from ${count} sources`,
      },
      delivery("from publication to a follower, p99", latenciesMs, 150),
      {
        what: "CPU time of the sources for a change",
        unit: "ms",
        value: perChange(0),
        range: null,
        atMost: null,
        note: "two followers; publishing and TLS",
      },
      { what: "CPU time of a follower for a change", unit: "ms", value: perChange(1), range: null, atMost: null },
      delivery("the same beside a follower that takes nothing, p99", beside, 150),
      {
        what: "memory of all sources beside it, against without",
        unit: "×",
        range: null,
        atMost: 1.25,
        value: stalling.residentMiB / running.residentMiB,
        note: `${running.residentMiB.toFixed(0)} MiB before`,
      },
    ];
  } finally {
    for (const party of parties) party.resume();
    await Promise.all(parties.map((party) => party.end()));
    await installation.remove();
  }
}

export const distribution: Bench = {
  title: "State distribution",
  method:
    "Sources in one process, each a service with its own store, certificate and port; two followers in processes of their " +
    "own, over mutual-TLS TCP on loopback. Each value is the time at which it was published; a follower takes the " +
    "difference when its service is told. At the end each follower must hold exactly what the sources say, the one that " +
    "was stopped (SIGSTOP) after it goes on.",
  run,
};
