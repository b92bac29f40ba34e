import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { machineIdentity } from "../../host/drivers/unix-users.ts";
import { buildTinyImage } from "../../image/build.ts";
import { buildServiceImage } from "../../image/service.ts";
import { type Testbed, withTestbedDirectory } from "../../testbed/harness.ts";
import { killMachine, tenant, untilAllReady, vmState } from "../../testbed/management/self-hosted.testing.ts";
import { cacheDirectory } from "../../testbed/places.ts";
import { firstProcesses } from "../../testbed/supervisor/first-process.ts";
import { down } from "../../testbed/up.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { birthOf, type Moments } from "../birth/birth.ts";
import { renderBirth, stepLines } from "../birth/birth-svg.ts";
import { happeningsOf, vmsOfServices } from "../birth/record.ts";
import { idleFigures, idleness, machinesAmong, memoryMiBOf, networkOf } from "../idle/idle.ts";
import { figureOf as figure, provenance } from "../measure.ts";
import { renderProvenance } from "../table.ts";
import { takenDown } from "./cloud.ts";
import { interruptible } from "./interrupted.ts";

/** A cloud that runs in itself: how long it takes to come, what it takes, and how it comes back. */
const patienceSeconds = 1200;

/** Of the machine in the last minute: times of a run that others disturb are worth what it says. */
const loadNow = (): string => `load ${(loadavg()[0] ?? 0).toFixed(1)}`;
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
/** What is counted apart: the QEMU of each of these VMs, by its user (host/drivers/unix-users.ts). */
interface Apart {
  readonly machine: string;
  readonly controller: string;
}
interface Usages {
  /** Every process of the testbed but the tenant's machine: hosts, storage servers, services, the tenant's controller too. */
  readonly management: Usage;
  readonly machine: Usage;
  readonly controller: Usage;
}
const nothing: Usage = { memoryMiB: 0, cpuSeconds: 0 };
const sum = (a: Usage, b: Usage): Usage => ({
  memoryMiB: a.memoryMiB + b.memoryMiB,
  cpuSeconds: a.cpuSeconds + b.cpuSeconds,
});

/** Of a process and all its threads; memory in proportion, where pages are shared. Null: it is gone. */
const usageOf = (pid: number): Usage | null => {
  try {
    const memoryMiB = memoryMiBOf(pid);
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return { memoryMiB, cpuSeconds: (Number(stat[11]) + Number(stat[12])) / 100 };
  } catch {
    return null;
  }
};

/** `apart`: identities of the VMs. Throws when one of them has no process, since it would be counted wrongly. */
const usages = (t: Testbed, apart: Apart): Usages => {
  const [init] = firstProcesses(t.at.tag).init;
  if (init === undefined) throw new Error("the testbed is not up");
  const owner = { machine: machineIdentity(apart.machine).uid, controller: machineIdentity(apart.controller).uid };
  let [management, machine, controller] = [nothing, nothing, nothing];
  for (const pid of membersOf(init.pid)) {
    const usage = usageOf(pid);
    const uid = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
    if (usage === null || uid === undefined) continue;
    if (uid === owner.machine) machine = sum(machine, usage);
    else management = sum(management, usage);
    if (uid === owner.controller) controller = sum(controller, usage);
  }
  if (machine === nothing || controller === nothing)
    throw new Error("the tenant's machine or its controller's VM has no process");
  return { management, machine, controller };
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

type Shares = Readonly<Record<keyof Usages, number>>;
interface Rest {
  readonly memory: Shares;
  readonly processor: Shares;
  readonly idle: Awaited<ReturnType<typeof idleness>>;
}
/** Everything that runs in a VM of this cloud. */
const vms = ["core1", "core2", "core3", "controllers/primary", "controllers/one"].map((name) => `root/${name}/vm`);
const counted = async (t: Testbed): Promise<Parameters<typeof idleness>[0]> => {
  const [init] = firstProcesses(t.at.tag).init;
  const pids = init === undefined ? [] : membersOf(init.pid);
  const paths = [...vms, "primary/gateway/vm", "one/vm"];
  const known = await Promise.all(paths.map(async (path) => ({ path, uid: (await vmState(t, path)).uid })));
  return machinesAmong(pids, known).map((each) => ({ ...each, networkOf: networkOf(pids, each.pid) }));
};

/** What all of it takes, and what each VM does, after some time without anything to do. */
const rest = async (t: Testbed, idleSeconds: number, { long = false, say }: BenchOptions): Promise<Rest> => {
  const [machine, controller] = [(await vmState(t, "one/vm")).uid, (await vmState(t, "root/controllers/one/vm")).uid];
  const machines = await counted(t);
  await sleep(20_000);
  const before = usages(t, { machine, controller });
  const idle = await idleness(machines, idleSeconds, { translations: long, say });
  const after = usages(t, { machine, controller });
  const each = (of: (name: keyof Usages) => number): Shares => ({
    management: of("management"),
    machine: of("machine"),
    controller: of("controller"),
  });
  const percent = (name: keyof Usages): number =>
    ((after[name].cpuSeconds - before[name].cpuSeconds) / idleSeconds) * 100;
  return { memory: each((name) => after[name].memoryMiB), processor: each(percent), idle };
};
const apartFrom = ({ machine, controller }: Shares, unit: string): string =>
  `of that the controller of the tenant's cell ${controller.toFixed(1)} ${unit}; the tenant's own machine is not in it and takes ` +
  `${machine.toFixed(1)} ${unit}`;

/** `birth.svg`, and what it is made of, from what the services of this birth recorded. */
async function drawBirth(t: Testbed, moments: Moments, from: string, { say, into }: BenchOptions): Promise<void> {
  const vmOf = new Map<string, string>();
  for (const cell of ["root", "primary"]) {
    const model: unknown = JSON.parse((await t.cells(["get", cell, "--output", "json"])).stdout);
    for (const [peer, vm] of vmsOfServices(model)) vmOf.set(peer, vm);
  }
  const happenings = await happeningsOf(t, t.gateway());
  const birth = birthOf(happenings, moments, vmOf);
  const directory = into ?? join(cacheDirectory(), "figures");
  mkdirSync(directory, { recursive: true });
  // What no bar shows: services in VMs keep their logs there, and the VMs are gone after this.
  const lines = happenings.toSorted((a, b) => a.atMs - b.atMs).map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(join(directory, "birth.log"), lines.join(""));
  const title = "From `cells up` until a tenant's cell is accepted (profile small)";
  const origin = [
    "Three hosts and two storage servers of a testbed, every service in a VM on emulated processors.",
    from,
  ];
  writeFileSync(join(directory, "birth.svg"), renderBirth({ title, origin, birth }));
  writeFileSync(join(directory, "birth.json"), `${JSON.stringify(birth, null, 1)}\n`);
  for (const line of stepLines(birth)) say(line);
  say(`drawn: ${join(directory, "birth.svg")}`);
}

/** A step of the tutorial from nothing until all of it is as declared; nothing of it is left. */
const tutorialStep = async (t: Testbed): Promise<number> => {
  const file = fileURLToPath(new URL("../../docs/tutorial/03-rule/shop.sf", import.meta.url));
  const took = await seconds(() => untilDone(t, ["apply", file, "--yes"]));
  // It says which volumes have something of their own.
  const { stdout, stderr } = await t.cells(["delete", "shop", "--yes"]);
  const [, volumes] = /--allow-destroy (\S+)/.exec(`${stdout}\n${stderr}`) ?? [];
  if (volumes !== undefined) await untilDone(t, ["delete", "shop", "--yes", "--allow-destroy", volumes]);
  return took;
};

async function measure(t: Testbed, options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say } = options;
  const file = join(dirname(t.configFile), "one.sf");
  writeFileSync(file, tenant("one"));
  const from = renderProvenance(await provenance(quick), quick);
  const startMs = Date.now();
  await t.up({ timeoutMs: patienceSeconds * 1000 });
  const gatewayMs = Date.now();
  await untilDone(t, ["apply", file, "--yes", "--no-wait"]);
  const acceptedMs = Date.now();
  const upSeconds = (acceptedMs - startMs) / 1000;
  const upLoad = loadNow();
  say(`a cell was accepted after ${upSeconds.toFixed(1)} s`);
  await untilAllReady(t, "root", patienceSeconds);
  await untilAllReady(t, "one", patienceSeconds);
  await drawBirth(t, { startMs, gatewayMs, acceptedMs }, from, options);
  const { memory, processor, idle } = await rest(t, quick ? 10 : 60, options);
  say(`the management takes ${memory.management.toFixed(0)} MiB and ${processor.management.toFixed(1)} % of a core`);
  const restLoad = loadNow();
  const step = await tutorialStep(t);
  const stepLoad = loadNow();
  say(`a step of the tutorial took ${step.toFixed(1)} s`);
  const service = await backAgain(t, "root/core2/vm", say);
  const serviceLoad = loadNow();
  const root = await backAgain(t, "root/core1/vm", say);
  const rootLoad = loadNow();
  const figures = [
    figure("from `cells up` until a cell was accepted, images built before", "s", upSeconds, 45, upLoad),
    figure("memory of the management", "MiB", memory.management, 1800, apartFrom(memory, "MiB")),
    figure(
      "processor of the management when idle, of one core",
      "%",
      processor.management,
      10,
      `${apartFrom(processor, "%")}; ${restLoad}`,
    ),
    ...idleFigures(idle),
    figure("the VM of a core service killed, until it is ready again", "s", service, 6, serviceLoad),
    figure("the root controller's VM killed, until it answers again", "s", root, 10, rootLoad),
  ];
  if (quick) return figures;
  await down({ directory: t.at.directory });
  const power = await seconds(async () => {
    await t.up();
    await untilDone(t, ["exec", "one/vm", "--", "true"]);
  });
  const powerLoad = loadNow();
  await down({ directory: t.at.directory });
  const asProcesses = await stepOfProcesses();
  return [
    ...figures,
    figure("everything without power, until a tenant's machine answers again", "s", power, 60, powerLoad),
    figure(
      "docs/tutorial/03-rule applied from nothing until it is ready, against the same where the management runs as processes",
      "×",
      step / asProcesses,
      2,
      `${step.toFixed(1)} and ${asProcesses.toFixed(1)} s; ${stepLoad} and ${loadNow()}`,
    ),
  ];
}

/** On as many hosts and storage servers, with the management as processes beside them. */
const stepOfProcesses = async (): Promise<number> => {
  let took = Number.NaN;
  await withTestbedDirectory({ profile: "processes", hosts: 3, servers: 2 }, async (testbed) => {
    await interruptible(
      () => takenDown(testbed),
      async () => {
        await testbed.up();
        took = await tutorialStep(testbed);
      },
    );
  });
  return took;
};

/** What the cloud said last, before it is taken away: of a measurement that failed nothing else is left. */
async function said(t: Testbed, say: BenchOptions["say"], error: unknown): Promise<never> {
  const { stdout } = await t.cells(["events"]).catch(() => ({ stdout: "" }));
  for (const line of stdout.trim().split("\n").slice(-200)) say(line);
  throw error;
}

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  let figures: readonly Figure[] = [];
  const built = { cacheDirectory: cacheDirectory(), onProgress: options.say };
  await buildServiceImage(built);
  await buildTinyImage(built);
  await withTestbedDirectory({ profile: "small", hosts: 3, servers: 2 }, async (testbed) => {
    figures = await interruptible(
      () => takenDown(testbed),
      () => measure(testbed, options).catch((error: unknown) => said(testbed, options.say, error)),
    );
  });
  return figures;
}

export const selfHosting: Bench = {
  title: "The cloud that runs in itself (profile small)",
  method:
    "Three hosts and two storage servers of a testbed, everything else in VMs of the root cell on emulated processors. Times " +
    "are what somebody waits at the command line, asked again every quarter of a second; the images are built before. The " +
    "management is every process of the testbed, hosts and storage servers and the controller of a tenant's cell with them, but " +
    "not the QEMU of the tenant's own machine; what each VM does when idle is counted apart (bench/idle). Memory is their proportional share (Pss), processor time theirs over a minute, " +
    "from 20 s after the last element was ready.",
  run,
};
