import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../cli/connection/client.ts";
import { CommandFailure } from "../../cli/terminal/failure.ts";
import type { Bundle } from "../../model/cell/cell.ts";
import { cacheDirectory } from "../../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { type Cloud, withCloud } from "../cloud/cloud.ts";
import { provenance } from "../measure.ts";
import { renderProvenance } from "../table.ts";
import { renderChart } from "../trace-svg.ts";
import { type Fault, frozenController, type Happened, hostFault, killedController } from "./figure-6-faults.ts";
import {
  type CellName,
  cells,
  chartOf,
  controllerFigures,
  frozenFigures,
  hostFigures,
  jsonOf,
  type Plan,
  type Run,
  type Trace,
  victim,
  vmsOf,
} from "./figure-6-report.ts";
import { TimeLine } from "./time-line.ts";
import { answersAt, failuresBetween, type PowerCut, type Submissions, samplesOf, spellsOf } from "./trace.ts";

const planOf = ({ quick }: BenchOptions): Plan =>
  quick
    ? { vmsOfCell: 4, vmsBeforeFault: 2, darkIntervals: 6, tailMs: 5000 }
    : { vmsOfCell: 8, vmsBeforeFault: 4, darkIntervals: 9, tailMs: 15_000 };

/** The pace that a machine bears whose first two VMs, of which each cell has one, took so long: it boots one pair at a time. */
const intervalFor = (firstMs: number): number => 1000 * Math.round(Math.min(40, Math.max(10, (1.3 * firstMs) / 1000)));
/** Before a submission. */
const faultLeadMs = 300;

type Say = BenchOptions["say"];
const patienceMs = 240_000;

/** A cell of so many small VMs, each with a copy of the image `tiny` and asked by ping whether it lives. */
function specification(cell: CellName, count: number): Bundle {
  const machines = Array.from({ length: count }, (_, index) => `  m${index + 1} extends Machine {}`).join("\n");
  const text = `
Machine extends {
  bootvol extends VolumeCopy { x.image "<ref:/${cell}/golden>"; }
  vm extends VM {
    x.memory 80;
    x.restartOnFailure true;
    x.liveness.protocol "icmp";
    x.liveness.intervalMs 1000;
    x.liveness.failures 20;
  }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  interface extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/${cell}/subnet>"; }
}
${cell} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  subnet extends Subnet { x.size 32; }
${machines}
}
sfConfig extends { cell extends ${cell}; }
`;
  return { main: "figure-6.sf", files: { "figure-6.sf": text } };
}

/** What is refused meanwhile is submitted again until it is taken. */
async function submit(client: Client, cell: CellName, count: number): Promise<void> {
  for (const end = Date.now() + patienceMs; ; ) {
    try {
      await client.apply(cell, specification(cell, count), false);
      return;
    } catch (error) {
      if (!(error instanceof CommandFailure) || Date.now() > end) throw error;
      await sleep(300);
    }
  }
}
/** Submits one VM more at each of the moments. */
async function grow(client: Client, cell: CellName, due: Submissions): Promise<void> {
  for (const [index, dueMs] of due.entries()) {
    await sleep(Math.max(0, dueMs - Date.now()));
    await submit(client, cell, index + 1);
  }
}

/** The images and the first VM of each cell. Returns when these were submitted. */
async function begin(client: Client, line: TimeLine): Promise<number> {
  for (const cell of cells) await submit(client, cell, 0);
  for (const cell of cells)
    await line.event(
      `the image of ${cell} is there`,
      0,
      ({ event, path, fields }) => event === "element/state" && path === `${cell}/golden` && fields.phase === "ready",
      patienceMs,
    );
  const atMs = Date.now();
  await Promise.all(cells.map((cell) => grow(client, cell, [atMs])));
  await untilAnswering(line, [], 1);
  return atMs;
}

/** Resolves when so many VMs of each cell answer. */
const untilAnswering = (line: TimeLine, cuts: readonly PowerCut[], vmsOfCell: number): Promise<true> => {
  const all = cells.flatMap((cell) => vmsOf(cell, vmsOfCell));
  const everyOne = (): true | null => {
    const now = spellsOf(line.events(), cuts).filter((spell) => answersAt(spell, Date.now()));
    return all.every((vm) => now.some((spell) => spell.vm === vm)) ? true : null;
  };
  return line.until(`${vmsOfCell} VMs of each cell answer`, everyOne, patienceMs);
};

async function traceOf({ testbed, client }: Cloud, line: TimeLine, plan: Plan, fault: Fault, say: Say): Promise<Trace> {
  const firstMs = await begin(client, line);
  const startMs = Date.now() + 1000;
  const intervalMs = intervalFor(startMs - firstMs);
  say(`${plan.vmsOfCell} VMs for each of two cells, one each ${intervalMs / 1000} s`);
  const due = Array.from({ length: plan.vmsOfCell }, (_, index) =>
    index === 0 ? firstMs : startMs + (index - 1) * intervalMs,
  );
  const faultMs = (due[plan.vmsBeforeFault] ?? startMs) - faultLeadMs;
  const faultOnce = async (): Promise<Happened> => {
    await sleep(Math.max(0, faultMs - Date.now()));
    const now = Date.now();
    const answering = spellsOf(line.events(), []).filter((spell) => answersAt(spell, now));
    return fault({ testbed, client, line, answering, darkMs: plan.darkIntervals * intervalMs, patienceMs });
  };
  const [happened] = await Promise.all([faultOnce(), ...cells.map((cell) => grow(client, cell, due))]);
  // What does not come back is drawn as it is.
  await untilAnswering(line, happened.cuts, plan.vmsOfCell).catch((error: Error) => say(error.message));
  await sleep(plan.tailMs);
  const span = { startMs, endMs: Date.now() };
  const spells = spellsOf(line.events(), happened.cuts);
  return {
    ...span,
    plan,
    intervalMs,
    due,
    happened,
    spells,
    samples: samplesOf(spells, cells, [due, due], span),
    failures: failuresBetween(spells, happened.atMs, span.endMs),
  };
}

interface Part {
  readonly name: Run;
  readonly fault: Fault;
  readonly figures: (trace: Trace) => readonly Figure[];
  /** Where the management runs. */
  readonly cloud: Parameters<typeof withCloud>[0];
}
const asProcesses: Part["cloud"] = { hosts: 3, servers: 2, ha: true };
const asVms: Part["cloud"] = { hosts: 3, servers: 2, profile: "small", timeoutMs: 1_200_000 };

async function traced({ cloud: where, fault }: Part, plan: Plan, say: Say): Promise<Trace> {
  return withCloud(where, async (cloud) => {
    const line = new TimeLine(cloud.client);
    try {
      return await traceOf(cloud, line, plan, fault, say);
    } finally {
      await line.stop();
    }
  });
}

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say, into = join(cacheDirectory(), "figures") } = options;
  const plan = planOf(options);
  mkdirSync(into, { recursive: true });
  const parts: readonly Part[] = [
    { name: "controller", fault: killedController(victim), figures: controllerFigures, cloud: asProcesses },
    { name: "host", fault: hostFault(cells), figures: hostFigures, cloud: asProcesses },
    // Minutes pass before the first cell is there.
    ...(quick
      ? []
      : [{ name: "controller-vm", fault: frozenController(victim), figures: frozenFigures, cloud: asVms } as const]),
  ];
  const lines: Figure[] = [];
  for (const part of parts) {
    const { name, figures } = part;
    const from = await provenance(quick);
    say(`${name}: a cloud with the first VM of each cell`);
    const trace = await traced(part, plan, (text) => say(`${name}: ${text}`));
    const chart = chartOf(trace, name, renderProvenance(from, quick));
    const file = join(into, `figure-6-${name}`);
    writeFileSync(`${file}.svg`, renderChart(chart));
    writeFileSync(`${file}.json`, jsonOf(trace, chart, from));
    say(`drawn: ${file}.svg, and what it is made of: ${file}.json`);
    lines.push(...figures(trace));
  }
  return lines;
}

export const figure6: Bench = {
  title: "Figure 6 of the paper, again",
  method:
    "Two cells grow by one VM each at the same pace on three hosts, as fast as the machine booted their first ones. A VM counts from its first answer to a liveness probe " +
    "until its machine has ended, by the hosts' events; one sample a second. Run (a) kills the controller process of one " +
    "cell, which its supervisor starts again; once more with the management in VMs, where the VM of that controller is frozen, found by its liveness and " +
    "started again. Run (b) takes a host's link down and kills everything on it, and gives it " +
    "back later. Nobody says a word of it: the HA Manager has the host's VMs fenced by the storage servers, so that none of them can write " +
    "any more, and they start elsewhere, as do VMs that were starting on it. A cell's own line has the pace of the submissions and the median delay from " +
    "before the fault. `--into DIR` says where the drawings go.",
  run,
};
