import type { Figure } from "../bench.ts";
import type { Provenance } from "../measure.ts";
import { formatNumber } from "../table.ts";
import type { Chart } from "../trace-svg.ts";
import type { Happened } from "./figure-6-faults.ts";
import {
  cellOf,
  delaysOf,
  type Failure,
  largestDeviation,
  type Sample,
  type Span,
  type Spell,
  type Submissions,
} from "./trace.ts";

/** The first one's controller is killed; each has VMs on the host that loses its power. */
export const cells = ["alpha", "beta"] as const;
export type CellName = (typeof cells)[number];
export const [victim, other] = cells;

/** How a run goes. VMs of a cell are numbered from 1; the first one of each runs before the trace begins. */
export interface Plan {
  readonly vmsOfCell: number;
  /** The fault comes right before the submission of the one after these, so that there is something to do without what was killed. */
  readonly vmsBeforeFault: number;
  /** For so many times the interval a host is without power. */
  readonly darkIntervals: number;
  /** How long the trace goes on when every VM answers. */
  readonly tailMs: number;
}
export const vmsOf = (cell: CellName, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${cell}/m${index + 1}/vm`);

/** One run as it was seen. Times in milliseconds since 1970. */
export interface Trace extends Span {
  readonly plan: Plan;
  /** Time between two submissions of a cell: as the machine can bear. */
  readonly intervalMs: number;
  readonly due: Submissions;
  readonly happened: Happened;
  readonly spells: readonly Spell[];
  readonly samples: readonly Sample[];
  readonly failures: readonly Failure[];
}

const figure = (what: string, unit: Figure["unit"], value: number, atMost: number | null = null): Figure => ({
  what,
  unit,
  value,
  range: null,
  atMost,
});
const seconds = (ms: number): number => ms / 1000;

/**
 * VMs that were submitted before the host was declared dead and had not answered when those on it were fenced: they had been
 * placed there, since others take less long.
 */
const waitingOf = ({ spells, happened, due, plan }: Trace, cell: CellName): readonly string[] =>
  vmsOf(cell, plan.vmsOfCell).filter((vm, index) => {
    const first = spells.find((spell) => spell.vm === vm);
    const { declaredMs, overMs } = happened;
    if (first === undefined || declaredMs === null || overMs === null) return false;
    return (due[index] ?? declaredMs) < declaredMs && first.fromMs >= overMs;
  });

/** How far a cell left its line after the fault, with what it does without one for comparison. */
function deviation(trace: Trace, run: string, cell: CellName, atMost: number | null): Figure {
  const { spells, due, plan, intervalMs, happened } = trace;
  const waiting = new Set(waitingOf(trace, cell));
  const vms = vmsOf(cell, plan.vmsOfCell).map((vm, index) => ({ vm, dueMs: due[index] ?? Number.NaN }));
  const kept = vms.filter(({ vm }) => !waiting.has(vm));
  const dues = kept.map(({ dueMs }) => dueMs);
  const delays = delaysOf(
    spells,
    kept.map(({ vm }) => vm),
    dues,
  );
  const { before, after } = largestDeviation(delays, dues, happened.atMs, intervalMs);
  return {
    ...figure(`${run}: ${cell} off its own line, largest, in times between two VMs`, "×", after ?? Number.NaN, atMost),
    note: `before the fault ${formatNumber(before ?? Number.NaN)} ×${waiting.size === 0 ? "" : "; without those that waited"}`,
  };
}
const lostOf = ({ failures }: Trace, cell: CellName): number => failures.filter(({ vm }) => cellOf(vm) === cell).length;

export const runs = ["controller", "controller-vm", "host"] as const;
export type Run = (typeof runs)[number];

export const controllerFigures = (trace: Trace): readonly Figure[] => figuresOf(trace, "controller killed");
export const frozenFigures = (trace: Trace): readonly Figure[] => {
  const run = "controller's VM frozen";
  const { atMs, declaredMs } = trace.happened;
  return [
    ...figuresOf(trace, run),
    figure(`${run}: found silent after`, "s", seconds((declaredMs ?? Number.NaN) - atMs)),
  ];
};
function figuresOf(trace: Trace, run: string): readonly Figure[] {
  const { happened, spells, due, plan } = trace;
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

export function hostFigures(trace: Trace): readonly Figure[] {
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
    figure(`${run}: the last of its VMs fenced after`, "s", seconds((happened.overMs ?? Number.NaN) - happened.atMs)),
    over(happened.atMs, "lost VMs answer again, from the power cut", 120),
    figure(`${run}: of the lost VMs, back on another host`, "VMs", elsewhere),
    figure(
      `${run}: VMs placed there that had not answered yet, and waited too`,
      "VMs",
      cells.reduce((sum, cell) => sum + waitingOf(trace, cell).length, 0),
    ),
    ...cells.map((cell) => deviation(trace, run, cell, null)),
  ];
}

const second = ({ startMs }: Span, ms: number): number => Math.round((ms - startMs) / 100) / 10;

export function chartOf(trace: Trace, name: Run, from: string): Chart {
  const { happened, samples } = trace;
  const at = (ms: number | null): number | null => (ms === null ? null : second(trace, ms));
  const lost = `${lostOf(trace, victim)} VMs of ${victim}, ${lostOf(trace, other)} of ${other} lost`;
  const fault = { fromSecond: second(trace, happened.atMs), toSecond: at(happened.endMs) };
  const host = happened.cuts[0]?.host ?? "";
  const common = { cells, samples, origin: from.replaceAll("**", "").split("; ") };
  if (name !== "host") {
    const [title, does, says] =
      name === "controller"
        ? [`The controller process of cell ${victim} is killed`, "is killed", "killed"]
        : [`The VM of the controller of cell ${victim} freezes`, "freezes with its VM", "frozen"];
    const silent = at(happened.declaredMs);
    return {
      ...common,
      title: `(a) ${title}`,
      description: `VMs that answer in two cells that grow alike. The controller of ${victim} ${does}; ${lost}.`,
      marks: [
        { ...fault, text: `${victim}'s controller ${says}` },
        ...(silent === null ? [] : [{ fromSecond: silent, toSecond: null, text: "found silent" }]),
        { fromSecond: fault.toSecond ?? fault.fromSecond, toSecond: null, text: "it answers again" },
      ],
    };
  }
  const more = [
    { ms: happened.declaredMs, text: "declared dead" },
    { ms: happened.overMs, text: "its VMs are fenced" },
    { ms: happened.endMs, text: `${host} has power again` },
  ].flatMap(({ ms, text }) => (ms === null ? [] : [{ fromSecond: second(trace, ms), toSecond: null, text }]));
  return {
    ...common,
    title: `(b) Host ${host} loses its power and comes back`,
    description: `VMs that answer in two cells that grow alike. A host loses its power: ${lost}; they are fenced, and answer again elsewhere without anybody being asked.`,
    marks: [{ ...fault, text: `${host} loses its power` }, ...more].sort((a, b) => a.fromSecond - b.fromSecond),
  };
}

/** What the drawing is made of, for whoever wants to draw it otherwise. */
export const jsonOf = (trace: Trace, chart: Chart, from: Provenance): string => {
  const { samples, spells, failures, plan, intervalMs } = trace;
  const at = (ms: number | null): number | null => (ms === null ? null : second(trace, ms));
  const document = {
    title: chart.title,
    from,
    plan: { ...plan, intervalMs },
    marks: chart.marks,
    cells,
    columns: ["second", ...cells.map((cell) => `${cell} answering`), ...cells.map((cell) => `${cell} submitted`)],
    samples: samples.map((sample) => [sample.second, ...sample.answering, ...sample.wanted]),
    spells: spells.map(({ vm, host, fromMs, toMs }) => ({ vm, host, fromSecond: at(fromMs), toSecond: at(toMs) })),
    failures: failures.map(({ vm, host, lostMs, back }) => ({
      vm,
      host,
      lostSecond: at(lostMs),
      back: back === null ? null : { second: at(back.atMs), host: back.host },
    })),
  };
  return `${JSON.stringify(document, null, 1).replaceAll(/\[\s+(?=[\d"])([^[\]{}]*?)\s+\]/g, (_, inner: string) => `[${inner.replaceAll(/\s+/g, " ")}]`)}\n`;
};
