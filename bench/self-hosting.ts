import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { firstProcesses } from "../testbed/first-process.ts";
import { type Testbed, withTestbedDirectory } from "../testbed/harness.ts";
import { killMachine, tenant, untilAllReady, vmState } from "../testbed/self-hosted.testing.ts";
import { down } from "../testbed/up.ts";
import type { Bench, BenchOptions, Figure } from "./bench.ts";
import { interruptible } from "./interrupted.ts";

/** A cloud that runs in itself: how long it takes to come, what it takes, and how it comes back. */
const patienceSeconds = 400;

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
};

/** Again and again until the command succeeds. */
const untilDone = async (t: Testbed, args: readonly string[], good = (_text: string) => true): Promise<void> => {
  for (const end = performance.now() + patienceSeconds * 1000; ; ) {
    const { code, stdout, stderr } = await t.cells(args);
    if (code === 0 && good(stdout)) return;
    if (performance.now() > end) throw new Error(`cells ${args.join(" ")}: ${stderr.trim() || stdout.trim()}`);
    await sleep(250);
  }
};

interface Usage {
  readonly memoryMiB: number;
  readonly cpuSeconds: number;
}
/** All processes of the testbed but those of the tenants' machines: in proportion, where pages are shared. */
const management = (t: Testbed): Usage => {
  const [init] = firstProcesses(t.at.tag).init;
  if (init === undefined) throw new Error("the testbed is not up");
  let memoryKiB = 0;
  let ticks = 0;
  for (const pid of membersOf(init.pid)) {
    try {
      memoryKiB += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      ticks += Number(stat[11]) + Number(stat[12]);
    } catch {
      // It ended in between.
    }
  }
  return { memoryMiB: memoryKiB / 1024, cpuSeconds: ticks / 100 };
};

/** Process 1 of the testbed and all that came of it. */
const membersOf = (root: number): readonly number[] => {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const parent = Number(
        readFileSync(`/proc/${entry}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ")[1],
      );
      children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
    } catch {
      // It ended in between.
    }
  }
  const found: number[] = [];
  for (const waiting = [root]; waiting.length > 0; ) {
    const pid = waiting.pop() ?? 0;
    found.push(pid);
    waiting.push(...(children.get(pid) ?? []));
  }
  return found;
};

const backAgain = async (t: Testbed, path: string, say: BenchOptions["say"]): Promise<number> => {
  const { host, uid, incarnation = 0 } = await vmState(t, path);
  await killMachine(t, host, uid);
  const took = await seconds(async () => {
    // Until its end is noticed, the old state still stands.
    await sleep(500);
    await untilDone(t, ["get", path, "--state", "--output", "json"], (text) => {
      const state = (JSON.parse(text) as { readonly $state?: { phase: string; incarnation: number } }).$state;
      return state?.phase === "ready" && (path === "root/core1/vm" || state.incarnation > incarnation);
    });
  });
  say(`${path} is back after ${took.toFixed(1)} s`);
  return took;
};

async function measure(t: Testbed, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const file = join(dirname(t.configFile), "one.sf");
  writeFileSync(file, tenant("one"));
  const figure = (what: string, unit: Figure["unit"], value: number, atMost: number | null, note?: string): Figure => ({
    ...{ what, unit, value, range: null, atMost },
    ...(note === undefined ? {} : { note }),
  });
  const upSeconds = await seconds(async () => {
    await t.up();
    await untilDone(t, ["apply", file, "--yes", "--no-wait"]);
  });
  say(`a cell was accepted after ${upSeconds.toFixed(1)} s`);
  await untilAllReady(t, "root", patienceSeconds);
  await untilAllReady(t, "one", patienceSeconds);
  await sleep(20_000);
  const before = management(t);
  const idleSeconds = quick ? 10 : 60;
  await sleep(idleSeconds * 1000);
  const after = management(t);
  const idle = ((after.cpuSeconds - before.cpuSeconds) / idleSeconds) * 100;
  say(`all of it takes ${after.memoryMiB.toFixed(0)} MiB and ${idle.toFixed(1)} % of a core`);
  const service = await backAgain(t, "root/core2/vm", say);
  const root = await backAgain(t, "root/core1/vm", say);
  const figures = [
    figure("from `cells up` until a cell was accepted", "s", upSeconds, 90, "images in the cache"),
    figure("memory of everything, a tenant's machine of 96 MiB included", "MiB", after.memoryMiB, 2560),
    figure("processor of everything when idle, of one core", "%", idle, 5, "a tenant's idle machine included"),
    figure("the VM of a core service killed, until it is ready again", "s", service, 30),
    figure("the root controller's VM killed, until it answers again", "s", root, 40),
  ];
  if (quick) return figures;
  await down({ directory: t.at.directory });
  const power = await seconds(async () => {
    await t.up();
    await untilDone(t, ["exec", "one/vm", "--", "true"]);
  });
  return [...figures, figure("everything without power, until a tenant's machine answers again", "s", power, 180)];
}

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  let figures: readonly Figure[] = [];
  await withTestbedDirectory({ profile: "small", hosts: 3, servers: 2 }, async (testbed) => {
    figures = await interruptible(
      () => down({ directory: testbed.at.directory, purge: true }),
      () => measure(testbed, options),
    );
  });
  return figures;
}

export const selfHosting: Bench = {
  title: "The cloud that runs in itself (profile small)",
  method:
    "Three hosts and two storage servers of a testbed, everything else in VMs of the root cell on emulated processors. Times " +
    "are what somebody waits at the command line, asked again every quarter of a second. Memory is the proportional share " +
    "(Pss) of all processes of the testbed, processor time theirs over a minute after 20 s of rest.",
  run,
};
