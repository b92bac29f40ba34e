import { readFileSync } from "node:fs";
import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";

/*
 * One of the processes of `distribution.ts`, told by messages what to do. Arguments: role, a file with the configuration
 * files of its services, and for sources how many keys each publishes. A value is the clock's time at which it was
 * published, in milliseconds: CLOCK_MONOTONIC is one for all processes of a machine.
 */
export type Command =
  /** Publish so many changes a second, for so long. */
  | { readonly do: "change"; readonly perSecond: number; readonly ms: number }
  | { readonly do: "measure" }
  | { readonly do: "report" };
export interface FollowerReport {
  /** Publications that are here. */
  readonly held: number;
  /** From publication to here, of what changed since `measure`. */
  readonly latenciesMs: readonly number[];
  readonly sum: number;
  readonly cpuMs: number;
}
export interface SourcesReport {
  readonly published: number;
  readonly residentMiB: number;
  readonly sum: number;
  readonly changes: number;
  /** CPU time of the process since its start, with its runtime's own threads. */
  readonly cpuMs: number;
}

const clockMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const answer = (report: FollowerReport | SourcesReport | "ready"): void => void process.send?.(report);

const open: Pick<Service<null>, "entitled" | "accepts" | "read" | "audience" | "restore"> = {
  restore: () => null,
  entitled: () => true,
  accepts: () => false,
  read: readAnything,
  audience: () => null,
};

async function runSources(files: readonly string[], keys: number): Promise<void> {
  const value = new Map<string, number>();
  const put = (source: number, key: number): Json => {
    const now = clockMs();
    value.set(`${source} ${key}`, now);
    return { key: `vm/${key}`, value: now };
  };
  const source: Service<null> = {
    ...open,
    step: (state, input) => {
      if (input.kind !== "request") return { state, effects: [] };
      const changes = input.request as unknown as { readonly key: string; readonly value: number }[];
      const effects: Effect[] = changes.map(({ key, value: at }) => ({ kind: "publish", key, value: at }));
      return { state, effects: [...effects, { kind: "reply", id: input.id, response: null }] };
    },
  };
  const running: RunningService[] = [];
  for (const file of files)
    running.push(
      await runService({
        configuration: JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration,
        service: source,
        goodbye: false,
      }),
    );
  for (const [at, service] of running.entries())
    await service.request(Array.from({ length: keys }, (_, key) => put(at, key)));
  let changes = 0;
  const change = (perSecond: number, ms: number): Promise<void> =>
    new Promise((resolve) => {
      const start = clockMs();
      let done = 0;
      const timer = setInterval(() => {
        const elapsed = Math.min(clockMs() - start, ms);
        // Each key in turn, and the sources mixed: no source has its changes all at once.
        for (; done < (elapsed * perSecond) / 1000; done += 1) {
          const number = done * 7919;
          const at = number % running.length;
          void running[at]?.request([put(at, Math.floor(number / running.length) % keys)]);
        }
        if (elapsed < ms) return;
        clearInterval(timer);
        changes += done;
        resolve();
      }, 5);
    });
  process.on("message", async (command: Command) => {
    if (command.do === "change") await change(command.perSecond, command.ms);
    const residentMiB = process.memoryUsage().rss / 1024 / 1024;
    const sum = [...value.values()].reduce((a, b) => a + b, 0);
    answer({ published: value.size, residentMiB, sum, changes, cpuMs: cpuMs() });
  });
}

async function runFollower([file = ""]: readonly string[], sources: readonly PeerName[]): Promise<void> {
  const held = new Map<string, number>();
  let latenciesMs: number[] = [];
  let since = Number.POSITIVE_INFINITY;
  const follower: Service<null> = {
    ...open,
    step: (state, input) => {
      if (input.kind === "start")
        return { state, effects: sources.map((to) => ({ kind: "subscribe", to, prefix: "" })) };
      if (input.kind === "actual" && typeof input.value === "number") {
        held.set(`${input.from} ${input.key}`, input.value);
        if (input.value >= since) latenciesMs.push(clockMs() - input.value);
      }
      return { state, effects: [] };
    },
  };
  await runService({
    configuration: JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration,
    service: follower,
    goodbye: false,
  });
  process.on("message", (command: Command) => {
    if (command.do === "measure") {
      latenciesMs = [];
      since = clockMs();
    }
    answer({ held: held.size, latenciesMs, sum: [...held.values()].reduce((a, b) => a + b, 0), cpuMs: cpuMs() });
  });
}

const [role = "", listFile = "", keys = "0"] = process.argv.slice(2);
const list = JSON.parse(readFileSync(listFile, "utf8")) as { readonly files: string[]; readonly sources: string[] };
if (role === "sources") await runSources(list.files, Number(keys));
else await runFollower(list.files, list.sources.map(peerName));
answer("ready");
