import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, rangeOf } from "../measure.ts";
import {
  type Cloud,
  cellName,
  qemuOf,
  specification,
  untilGuestAnswers,
  untilGuestsAnswer,
  vmPaths,
  withCloud,
} from "./cloud.ts";
import { linesSince } from "./logs.ts";

/** The way back, step by step, each as the event by which it is over. */
const steps = [
  { what: "noticed by the Host Manager", event: "machine/stage", stage: "ended" },
  { what: "pause before the next incarnation", event: "vm/stage", stage: "placing" },
  { what: "placed", event: "vm/stage", stage: "connecting" },
  { what: "leased", event: "vm/stage", stage: "running" },
  { what: "QEMU launched", event: "machine/stage", stage: "running" },
  { what: "guest up", event: null, stage: null },
] as const;

/** Milliseconds of each step. */
async function oneRestart(cloud: Cloud, vm: string): Promise<readonly number[]> {
  const { testbed, client } = cloud;
  const pid = await qemuOf(cloud, vm);
  const killedAt = Date.now();
  process.kill(pid, "SIGKILL");
  // Until then the old incarnation is what answers, or what does not.
  const ended = async (): Promise<boolean> =>
    linesSince(testbed.at.logs, killedAt).some(
      ({ event, fields }) => event === "machine/stage" && fields.stage === "running",
    );
  for (const end = performance.now() + 120_000; !(await ended()); ) {
    if (performance.now() > end) throw new Error(`${vm} does not come back within two minutes`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await untilGuestAnswers(client, vm, 120_000);
  const upAt = Date.now();
  const lines = linesSince(testbed.at.logs, killedAt);
  let before = killedAt;
  return steps.map(({ what, event, stage }) => {
    const line = lines.find((each) => each.event === event && each.fields.stage === stage && each.at >= before);
    if (event !== null && line === undefined) throw new Error(`no service says when the machine was ${what}`);
    const at = line?.at ?? upAt;
    const spent = at - before;
    before = at;
    return spent;
  });
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  return withCloud({ hosts: 1, servers: 1 }, async (cloud) => {
    const vms = vmPaths(quick ? 1 : 3);
    say(`${vms.length} machines on one host`);
    await cloud.client.apply(cellName, specification(vms.length, 7001), false);
    await untilGuestsAnswer(cloud.client, vms, 240_000);
    const rounds: (readonly number[])[] = [];
    for (const vm of vms) {
      say(`killing the QEMU of ${vm}`);
      rounds.push(await oneRestart(cloud, vm));
    }
    const totals = rounds.map((parts) => parts.reduce((sum, part) => sum + part, 0) / 1000);
    const line = (what: string, values: readonly number[], atMost: number | null): Figure => ({
      what,
      unit: "s",
      value: median(values),
      range: rangeOf(values),
      atMost,
    });
    return [
      line("from the kill to a guest that answers", totals, 8),
      ...steps.map(({ what }, index) =>
        line(
          what,
          rounds.map((parts) => (parts[index] ?? 0) / 1000),
          null,
        ),
      ),
    ];
  });
}

export const restart: Bench = {
  title: "A killed machine comes back",
  method:
    "QEMU is killed; the next incarnation's guest agent answers. Each of three machines on one host is killed once, since " +
    "the pause grows with every failure of a machine in a row (1, 2, 4, … s). The parts are the times between lines of the " +
    "services' logs.",
  run,
};
