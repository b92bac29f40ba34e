import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../cli/client.ts";
import { CommandFailure } from "../cli/failure.ts";
import type { Bundle } from "../model/cell.ts";
import { cacheDirectory } from "../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "./bench.ts";
import { type Cloud, withCloud } from "./cloud.ts";
import { type Fault, type Happened, hostFault, killedController } from "./figure-6-faults.ts";
import { othersShare, type Provenance, provenance } from "./measure.ts";
import { formatNumber } from "./table.ts";
import { TimeLine } from "./time-line.ts";
import {
  answersAt,
  cellOf,
  delaysOf,
  type Failure,
  failuresBetween,
  largestDeviation,
  type Sample,
  type Span,
  type Spell,
  type Submissions,
  samplesOf,
  spellsOf,
} from "./trace.ts";
import { type Chart, renderChart } from "./trace-svg.ts";

/** The first one's controller is killed; each has VMs on the host that loses its power. */
const cells = ["alpha", "beta"] as const;
type CellName = (typeof cells)[number];
const [victim, other] = cells;

/** How a run goes: times from the submission of the first VM of each cell on. */
export interface Plan {
  readonly vmsOfCell: number;
  readonly intervalMs: number;
  /** Shortly before a submission, so that there is something to do without what was killed. */
  readonly faultMs: number;
  /** How long a host is without power. */
  readonly darkMs: number;
  /** How long the trace goes on when every VM answers. */
  readonly tailMs: number;
}
const planOf = ({ quick }: BenchOptions): Plan =>
  quick
    ? { vmsOfCell: 3, intervalMs: 10_000, faultMs: 19_700, darkMs: 25_000, tailMs: 5000 }
    : { vmsOfCell: 8, intervalMs: 12_000, faultMs: 47_700, darkMs: 45_000, tailMs: 15_000 };

const patienceMs = 240_000;
const vmsOf = (cell: CellName, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${cell}/m${index + 1}/vm`);

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

/** Submits one VM more at each of the moments; what is refused meanwhile is submitted again until it is taken. */
async function grow(client: Client, cell: CellName, due: Submissions): Promise<void> {
  for (const [index, dueMs] of due.entries()) {
    await sleep(Math.max(0, dueMs - Date.now()));
    for (const end = Date.now() + patienceMs; ; ) {
      try {
        await client.apply(cell, specification(cell, index + 1), false);
        break;
      } catch (error) {
        if (!(error instanceof CommandFailure) || Date.now() > end) throw error;
        await sleep(300);
      }
    }
  }
}

/** One run as it was seen. Times in milliseconds since 1970. */
interface Trace extends Span {
  readonly plan: Plan;
  readonly due: Submissions;
  readonly happened: Happened;
  readonly spells: readonly Spell[];
  readonly samples: readonly Sample[];
  readonly failures: readonly Failure[];
}

async function traceOf({ testbed, client }: Cloud, line: TimeLine, plan: Plan, fault: Fault): Promise<Trace> {
  for (const cell of cells) await client.apply(cell, specification(cell, 0), false);
  for (const cell of cells)
    await line.event(
      `the image of ${cell} is there`,
      0,
      ({ event, path, fields }) => event === "element/state" && path === `${cell}/golden` && fields.phase === "ready",
      patienceMs,
    );
  const startMs = Date.now() + 500;
  const due = Array.from({ length: plan.vmsOfCell }, (_, index) => startMs + index * plan.intervalMs);
  const all = cells.flatMap((cell) => vmsOf(cell, plan.vmsOfCell));
  const faultOnce = async (): Promise<Happened> => {
    await sleep(startMs + plan.faultMs - Date.now());
    const now = (): readonly Spell[] => spellsOf(line.events(), []).filter((spell) => answersAt(spell, Date.now()));
    return fault({ testbed, line, answering: now, darkMs: plan.darkMs, patienceMs });
  };
  const [happened] = await Promise.all([faultOnce(), ...cells.map((cell) => grow(client, cell, due))]);
  const spells = (): readonly Spell[] => spellsOf(line.events(), happened.cuts);
  await line.until(
    "every VM answers",
    () => {
      const now = spells().filter((spell) => answersAt(spell, Date.now()));
      return all.every((vm) => now.some((spell) => spell.vm === vm)) ? true : null;
    },
    patienceMs,
  );
  await sleep(plan.tailMs);
  const span = { startMs, endMs: Date.now() };
  const found = spells();
  return {
    ...{ ...span, plan, due, happened, spells: found },
    samples: samplesOf(found, cells, [due, due], span),
    failures: failuresBetween(found, happened.atMs, span.endMs),
  };
}

const traced = (plan: Plan, fault: Fault): Promise<Trace> =>
  withCloud({ hosts: 3, servers: 2 }, async (cloud) => {
    const line = new TimeLine(cloud.client);
    try {
      return await traceOf(cloud, line, plan, fault);
    } finally {
      await line.stop();
    }
  });

const figure = (what: string, unit: Figure["unit"], value: number, atMost: number | null = null): Figure => ({
  ...{ what, unit, value, range: null, atMost },
});
const seconds = (ms: number): number => ms / 1000;

/** How far a cell left its line after the fault, with what it does without one for comparison. */
function deviation({ spells, due, plan, happened }: Trace, run: string, cell: CellName, atMost: number | null): Figure {
  const delays = delaysOf(spells, vmsOf(cell, plan.vmsOfCell), due);
  const { before, after } = largestDeviation(delays, due, happened.atMs, plan.intervalMs);
  return {
    ...figure(`${run}: ${cell} off its own line, largest, in times between two VMs`, "×", after ?? Number.NaN, atMost),
    note: `before the fault ${formatNumber(before ?? Number.NaN)} ×`,
  };
}
const lostOf = ({ failures }: Trace, cell: CellName): number => failures.filter(({ vm }) => cellOf(vm) === cell).length;

function controllerFigures(trace: Trace): readonly Figure[] {
  const { happened, spells, due, plan } = trace;
  const run = "controller killed";
  const delays = delaysOf(spells, vmsOf(victim, plan.vmsOfCell), due);
  const next = due.findIndex((ms) => ms > happened.atMs);
  return [
    figure(`${run}: VMs lost of ${victim}, whose controller it was`, "VMs", lostOf(trace, victim), 0),
    figure(`${run}: VMs lost of ${other}`, "VMs", lostOf(trace, other), 0),
    deviation(trace, run, other, 1),
    deviation(trace, run, victim, null),
    figure(`${run}: until it answers again`, "s", seconds((happened.endMs ?? Number.NaN) - happened.atMs)),
    figure(`${run}: next VM of ${victim}, from submission to answer`, "s", seconds(delays[next] ?? Number.NaN)),
  ];
}

function hostFigures(trace: Trace): readonly Figure[] {
  const { happened, failures } = trace;
  const run = "host without power";
  const back = failures.map((failure) => failure.back?.atMs ?? Number.POSITIVE_INFINITY);
  const over = (fromMs: number | null, what: string, atMost: number | null): Figure => {
    const values = back.map((ms) => seconds(ms - (fromMs ?? Number.NaN)));
    const range = values.length === 0 ? null : ([Math.min(...values), Math.max(...values)] as const);
    return { what: `${run}: ${what}`, unit: "s", value: range?.[1] ?? Number.NaN, range, atMost };
  };
  const elsewhere = failures.filter((failure) => failure.back !== null && failure.back.host !== failure.host).length;
  return [
    ...cells.map((cell) => figure(`${run}: VMs lost of ${cell}`, "VMs", lostOf(trace, cell))),
    figure(
      `${run}: declared dead by Presence after`,
      "s",
      seconds((happened.declaredMs ?? Number.NaN) - happened.atMs),
    ),
    over(happened.atMs, "lost VMs answer again, from the power cut", null),
    over(happened.endMs, "lost VMs answer again, from the host's return", 120),
    figure(`${run}: of the lost VMs, back on another host`, "VMs", elsewhere),
    ...cells.map((cell) => deviation(trace, run, cell, null)),
  ];
}

const second = ({ startMs }: Span, ms: number): number => Math.round((ms - startMs) / 100) / 10;

function chartOf(trace: Trace, name: "controller" | "host", from: Provenance): Chart {
  const { happened, samples } = trace;
  const at = (ms: number | null): number | null => (ms === null ? null : second(trace, ms));
  const lost = `${lostOf(trace, victim)} VMs of ${victim}, ${lostOf(trace, other)} of ${other} lost`;
  const fault = { fromSecond: second(trace, happened.atMs), toSecond: at(happened.endMs) };
  const host = happened.cuts[0]?.host ?? "";
  const common = { cells, samples, origin: `commit ${from.commit}, ${from.time}, ${from.machine}` };
  if (name === "controller")
    return {
      ...common,
      title: `(a) The controller process of cell ${victim} is killed`,
      description: `VMs that answer in two cells that grow alike. The controller of ${victim} is killed; ${lost}.`,
      marks: [
        { ...fault, text: `${victim}'s controller killed` },
        { fromSecond: fault.toSecond ?? fault.fromSecond, toSecond: null, text: "it answers again" },
      ],
    };
  const more = [
    { ms: happened.declaredMs, text: "declared dead; not fenced, so nothing starts elsewhere" },
    { ms: happened.endMs, text: `${host} has power again` },
  ].flatMap(({ ms, text }) => (ms === null ? [] : [{ fromSecond: second(trace, ms), toSecond: null, text }]));
  return {
    ...common,
    title: `(b) Host ${host} loses its power and comes back`,
    description: `VMs that answer in two cells that grow alike. A host loses its power: ${lost}; they answer again after its return.`,
    marks: [{ ...fault, text: `${host} loses its power` }, ...more].sort((a, b) => a.fromSecond - b.fromSecond),
  };
}

/** What the drawing is made of, for whoever wants to draw it otherwise. */
const jsonOf = (trace: Trace, chart: Chart, from: Provenance): string => {
  const { samples, spells, failures, plan } = trace;
  const at = (ms: number | null): number | null => (ms === null ? null : second(trace, ms));
  const document = {
    title: chart.title,
    from,
    plan,
    marks: chart.marks,
    cells,
    columns: ["second", ...cells.map((cell) => `${cell} answering`), ...cells.map((cell) => `${cell} submitted`)],
    samples: samples.map((sample) => [sample.second, ...sample.answering, ...sample.wanted]),
    spells: spells.map(({ vm, host, fromMs, toMs }) => ({ vm, host, fromSecond: at(fromMs), toSecond: at(toMs) })),
    failures: failures.map(({ vm, host, lostMs, back }) => ({
      ...{ vm, host, lostSecond: at(lostMs) },
      back: back === null ? null : { second: at(back.atMs), host: back.host },
    })),
  };
  return `${JSON.stringify(document, null, 1).replaceAll(/\[\s+(?=[\d"])([^[\]{}]*?)\s+\]/g, (_, inner: string) => `[${inner.replaceAll(/\s+/g, " ")}]`)}\n`;
};

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say, into = join(cacheDirectory(), "figures") } = options;
  const plan = planOf(options);
  mkdirSync(into, { recursive: true });
  const parts = [
    { name: "controller", fault: killedController(victim), figures: controllerFigures },
    { name: "host", fault: hostFault(cells), figures: hostFigures },
  ] as const;
  const lines: Figure[] = [];
  for (const { name, fault, figures } of parts) {
    const from = await provenance(quick);
    say(`${name}: ${plan.vmsOfCell} VMs for each of two cells, one each ${plan.intervalMs / 1000} s`);
    const trace = await traced(plan, fault);
    const chart = chartOf(trace, name, { ...from, others: Math.max(from.others, await othersShare(1000)) });
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
    "Two cells grow by one VM each at the same pace on three hosts. A VM counts from its first answer to a liveness probe " +
    "until its machine has ended, by the hosts' events; one sample a second. Run (a) kills the controller process of one " +
    "cell, which its supervisor starts again. Run (b) takes a host's link down and kills everything on it, and gives it " +
    "back later: VMs of a silent host are not started elsewhere, since without fencing nobody knows that they do not run, " +
    "so they come back when their host does. A cell's own line has the pace of the submissions and the median delay from " +
    "before the fault. `--into DIR` says where the drawings go.",
  run,
};
