import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceRole } from "../../core/documents/service-roles.ts";
import { Agent, Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { buildServiceImage } from "../../image/service.ts";
import type { Json } from "../../model/json/json.ts";
import { createServiceAuthority } from "../../testbed/management/service-authority.ts";
import type { GuestStarted } from "../../testbed/management/service-guest.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";

const goalSeconds = 6;
const goalResumedSeconds = 2;
const goalMemoryMiB = 160;
const cacheDirectory = process.env.CELLS_CACHE ?? "/var/cache/cells";
const packed: readonly ServiceRole[] = ["placer", "storage-manager", "address-manager", "dns-manager"];

interface Run {
  readonly started: GuestStarted;
  readonly hostMiB: number;
  /** Percent of a core, over some seconds without anything to do. */
  readonly idle: number;
}

type How = "boot" | "resume";

async function once(host: Agent, memoryMiB: number, data: Json, idleMs: number, how: How = "boot"): Promise<Run> {
  const started = await host.call<GuestStarted>("start", { memoryMiB, data, awaitAnswer: true, how });
  if (started.remark !== null) throw new Error(started.remark);
  const usage = (): Promise<{ memoryMiB: number; cpuMs: number }> => host.call("usage");
  // What V8 does after a start is no idleness yet.
  await sleep(idleMs / 2);
  const before = await usage();
  await sleep(idleMs);
  const after = await usage();
  await host.call("stop", 20_000);
  return { started, hostMiB: after.memoryMiB, idle: (100 * (after.cpuMs - before.cpuMs)) / idleMs };
}

const figure = (
  what: string,
  unit: Figure["unit"],
  values: readonly number[],
  atMost: number | null = null,
  note?: string,
): Figure => ({
  what,
  unit,
  value: median(values),
  range: values.length > 1 ? rangeOf(values) : null,
  atMost,
  ...(note === undefined ? {} : { note }),
});

interface Runs {
  readonly blank: Run | undefined;
  readonly alone: readonly Run[];
  readonly resumed: readonly Run[];
  readonly four: readonly Run[];
}

function figuresOf({ blank, alone, resumed, four }: Runs, image: string): readonly Figure[] {
  const answered = (runs: readonly Run[]): readonly number[] => runs.map(({ started }) => started.answeredMs / 1000);
  const cpu = (runs: readonly Run[]): readonly number[] => runs.map(({ started }) => started.cpuMs / 1000);
  const fits = `${goalMemoryMiB} MiB of guest memory`;
  return [
    figure(
      "one role: from the order to start to the answer to a liveness probe",
      "s",
      answered(alone),
      goalSeconds,
      fits,
    ),
    figure("of that, CPU time of QEMU", "s", cpu(alone)),
    figure("the same from the saved state of the image", "s", answered(resumed), goalResumedSeconds),
    figure("of that, CPU time of QEMU", "s", cpu(resumed)),
    {
      what: "from the saved state against a cold boot",
      unit: "×",
      atMost: null,
      value: median(answered(resumed)) / median(answered(alone)),
      range: rangeOf(ratios(answered(resumed), answered(alone))),
    },
    figure(
      "the same on a blank data volume, with a token to enrol by",
      "s",
      answered(blank === undefined ? [] : [blank]),
    ),
    figure(
      "one role: memory of the host",
      "MiB",
      alone.map(({ hostMiB }) => hostMiB),
      null,
      fits,
    ),
    figure(
      "one role from the saved state: memory of the host",
      "MiB",
      resumed.map(({ hostMiB }) => hostMiB),
    ),
    figure(
      "one role: of a core, idle",
      "%",
      alone.map(({ idle }) => idle),
    ),
    figure(`${packed.length} roles in one VM: to the answer`, "s", answered(four), null, `${2 * goalMemoryMiB} MiB`),
    figure(
      `${packed.length} roles: memory of the host`,
      "MiB",
      four.map(({ hostMiB }) => hostMiB),
    ),
    figure(
      `${packed.length} roles: of a core, idle`,
      "%",
      four.map(({ idle }) => idle),
    ),
    figure("the image's disk", "MiB", [statSync(join(image, "disk.qcow2")).size / 1024 / 1024]),
  ];
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const image = await buildServiceImage({ cacheDirectory, onProgress: say });
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
  // QEMU's user passes through.
  chmodSync(directory, 0o711);
  const machine = await Machine.start();
  const host = new Agent(machine, "../../../../../testbed/management/service-guest.ts", directory, image);
  try {
    await host.call("prepare");
    const idleMs = quick ? 1000 : 10_000;
    const authority = await createServiceAuthority(
      join(directory, "authority"),
      Object.fromEntries(packed.map((role) => [role, role])),
    );
    await host.call("authority", authority.configurationFile);
    const one = authority.data({ placer: {} });
    const all = authority.data(Object.fromEntries(packed.map((role) => [role, {}])));
    const measure = async (what: string, memoryMiB: number, data: Json, rounds: number): Promise<readonly Run[]> => {
      const runs: Run[] = [];
      for (let round = 0; round < rounds; round += 1) {
        runs.push(await once(host, memoryMiB, data, idleMs));
        say(`${what}: ${((runs.at(-1)?.started.answeredMs ?? 0) / 1000).toFixed(1)} s`);
      }
      return runs;
    };
    const [blank] = await measure("on a blank data volume", goalMemoryMiB, one, 1);
    const [alone, resumed]: [Run[], Run[]] = [[], []];
    const add = async (how: How, runs: Run[]): Promise<number> => {
      const run = await once(host, goalMemoryMiB, one, idleMs, how);
      say(`one role, ${how}: ${(run.started.answeredMs / 1000).toFixed(1)} s`);
      runs.push(run);
      return run.started.answeredMs;
    };
    await interleave(quick ? 1 : 7, { boot: () => add("boot", alone), resume: () => add("resume", resumed) });
    const four = await measure("four roles", 2 * goalMemoryMiB, all, quick ? 1 : 3);
    return figuresOf({ blank, alone, resumed, four }, image);
  } finally {
    await host.call("end").catch(() => undefined);
    await host.stop();
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

export const serviceImage: Bench = {
  title: "A service VM",
  method:
    "The service image in one VM with one processor, its disk and data volume as local qcow2 files, its network a tap. The " +
    "clock runs from the order to the hypervisor driver to the guest's answer to an echo request, sent every 20 ms, which it " +
    "gives once all its roles answer. Hosts that it asks for are not there.",
  run,
};

/** `node bench/cloud/service-image.ts [--quick]` is `./cells bench service-image [--quick]`. */
if (import.meta.main)
  // Not awaited: it imports this very module.
  import("../main.ts")
    .then(({ main }) => main(["service-image", ...process.argv.slice(2)]))
    .catch((error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 2;
    });
