import { painter, printable } from "../diagnostics/render-diagnostic.ts";
import { isObject, type Json } from "../json/json.ts";
import { sameJson } from "../json/same.ts";
import { losesOf, lossText } from "./data-loss.ts";
import type { CellStep, Plan, PlanAction, PlanStep, VolumeGrowth } from "./plan-types.ts";

interface Style {
  readonly sign: string;
  readonly color: number;
  /** What happens, in the line of an element. */
  readonly what: string;
  /** In the counts at the end. */
  readonly count: string;
}
const styles: Readonly<Record<PlanAction, Style>> = {
  create: { sign: "+", color: 32, what: "is created", count: "to create" },
  change: { sign: "~", color: 33, what: "changes while it runs", count: "to change" },
  restart: { sign: "!", color: 35, what: "is started again", count: "to restart" },
  replace: { sign: "±", color: 31, what: "is deleted and created anew", count: "to replace" },
  delete: { sign: "-", color: 31, what: "is deleted", count: "to delete" },
  none: { sign: " ", color: 2, what: "stays as it is", count: "unchanged" },
};
/** Of what is kept elsewhere, where it may be there already, and stays when it is declared no longer. */
const declared: { readonly [type: string]: { readonly [A in PlanAction]?: string } } = Object.fromEntries(
  ["Domain", "Account", "Role"].map((type) => [
    type,
    {
      create: "is declared: made, or taken over as it is there",
      change: "changes",
      delete: "is declared no longer, and goes on as it is",
    },
  ]),
);
const widestValue = 60;

const mostNamed = 4;
const mostDifferences = 6;

type Paint = ReturnType<typeof painter>;

/**
 * A plan as a person reads it, in the order of execution, with the counts at the end and no newline after them. A step
 * shows what causes it, and what it waits for as far as something happens there; `all` shows unchanged elements and
 * everything that is waited for as well.
 */
export function renderPlan(plan: Plan, options: { readonly color: boolean; readonly all?: boolean }): string {
  const paint = painter(options.color);
  const all = options.all ?? false;
  const busy = new Set(plan.steps.flatMap(({ path, action }) => (action === "none" ? [] : [path])));
  const shown = plan.steps.filter((step) => all || step.action !== "none" || step.movedFrom !== undefined);
  const cell = shownCell(plan, busy.size > 0);
  const width = shown.reduce((most, { path }) => Math.max(most, Math.min(path.length, 48)), cell?.path.length ?? 0);
  const typeWidth = shown.reduce((most, { type }) => Math.max(most, type.length), cell ? "Cell".length : 0);
  const lines: string[] = [];
  if (cell) {
    const { sign, color } = styles[cell.action];
    const path = printable(cell.path).padEnd(width);
    lines.push(`${paint(color, `${sign} ${path}`)}  ${paint(2, "Cell".padEnd(typeWidth))}  ${cell.what}`);
    for (const cause of cell.causes) lines.push(...causeLines(cause, paint).map((line) => `    ${line}`));
  }
  for (const step of shown) {
    const style = styles[step.action];
    const path = printable(step.path).padEnd(width);
    const what =
      step.action === "none" && step.movedFrom !== undefined
        ? "is renamed"
        : (declared[step.type]?.[step.action] ?? style.what);
    const grows = sizeText(step);
    const said =
      grows !== "" && step.causes.length === 1 ? grows : [what, grows].filter((each) => each !== "").join("; ");
    const loss = step.losesData ? paint(31, "; its data is lost") : "";
    lines.push(
      `${paint(style.color, `${style.sign} ${path}`)}  ${paint(2, step.type.padEnd(typeWidth))}  ${said}${loss}`,
    );
    const waits = step.waitsFor.filter((other) => all || busy.has(other));
    lines.push(...details(step, waits, paint).map((line) => `    ${line}`));
  }
  if (lines.length > 0) lines.push("");
  const lost = losesOf(plan).map(({ path }) => path);
  if (lost.length > 0) lines.push(paint(31, `The data of ${named(lost)} is lost.`));
  lines.push(counts(plan, paint));
  return lines.join("\n");
}

function sizeText({ grows, keepsMiB }: PlanStep): string {
  if (keepsMiB !== undefined) return `keeps its ${keepsMiB} MiB`;
  return grows === undefined ? "" : growthText(grows);
}

/** What is larger while it runs is so at once; what is not says when. */
function growthText(growth: VolumeGrowth): string {
  const vm = printable(growth.vm ?? "its VM");
  const when = { now: "at once", running: `while ${vm} runs`, "next-start": `when ${vm} starts next` } as const;
  return `grows ${when[growth.when]}`;
}

/**
 * The cell itself, if its own attributes change, or it opens something as it is made; that it is made or goes is seen by its
 * elements, where it has any.
 */
function shownCell({ cell }: Plan, elements: boolean): (CellStep & { readonly what: string }) | null {
  if (cell === undefined || (cell.action !== "change" && elements && cell.causes.length === 0)) return null;
  const what = elements ? "changes" : "changes; none of its elements does";
  return { ...cell, what: cell.action === "change" ? what : styles[cell.action].what };
}

function details(step: PlanStep, waits: readonly string[], paint: Paint): string[] {
  const found: string[] = [];
  if (step.movedFrom !== undefined) found.push(paint(36, `was ${printable(step.movedFrom)}`));
  for (const cause of step.causes) found.push(...causeLines(cause, paint));
  if (step.loss !== undefined) found.push(paint(31, `loses ${printable(lossText(step.loss))}`));
  if (waits.length > 0) found.push(paint(2, `after ${named(waits)}`));
  return found;
}

const named = (paths: readonly string[]): string => {
  const more = paths.length > mostNamed + 1 ? paths.length - mostNamed : 0;
  const shown = more > 0 ? paths.slice(0, mostNamed) : paths;
  return `${printable(shown.join(", "))}${more > 0 ? ` and ${more} more` : ""}`;
};

function causeLines({ attribute, from, to }: PlanStep["causes"][number], paint: Paint): string[] {
  const name = printable(attribute);
  // A path is that of a connection or interface, which gives its VM something else; `a/b/x.c` is its attribute.
  if (!/(^|\/)x\.[^/]*$/.test(attribute)) {
    const [old, now] = [paint(31, plain(from)), paint(32, plain(to))];
    if (from === null) return [`${name} connects ${now}`];
    if (to === null) return [`${name} connects ${old} no longer`];
    return [from === to ? `${name} connects ${now} anew` : `${name} connects ${now} instead of ${old}`];
  }
  if (from === to) return [`${name}: ${plain(to)} is made anew`];
  const parts = differences(name, from, to);
  const lines = parts.slice(0, mostDifferences).map(([part, old, now]) => {
    const [before, after] = around(old, now);
    return `${part}: ${paint(31, before)} → ${paint(32, after)}`;
  });
  const more = parts.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more in ${name}`] : lines;
}

const plain = (json: Json): string => (typeof json === "string" ? printable(json) : value(json));

/** What differs inside of two structures, each with its own name: of large data a person wants to see just that. */
function differences(name: string, from: Json, to: Json): (readonly [string, Json, Json])[] {
  if (!isObject(from) || !isObject(to)) return [[name, from, to]];
  const parts = [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) => {
    const [old, now] = [from[key] ?? null, to[key] ?? null];
    return sameJson(old, now) ? [] : differences(`${name}/${printable(key)}`, old, now);
  });
  return parts.length > 0 ? parts : [[name, from, to]];
}

/** Both values, cut so that the place where they differ is seen. */
function around(from: Json, to: Json): readonly [string, string] {
  const [old, now] = [value(from), value(to)];
  let at = 0;
  while (at < old.length && old[at] === now[at]) at++;
  const start = Math.max(old.length, now.length) > widestValue && at > 30 ? at - 20 : 0;
  const cut = (text: string): string => {
    const shown = text.slice(start, start + widestValue);
    return `${start > 0 ? "…" : ""}${shown}${start + widestValue < text.length ? "…" : ""}`;
  };
  return [cut(old), cut(now)];
}

const value = (json: Json): string => (json === null ? "nothing" : printable(JSON.stringify(json)));

function counts(plan: Plan, paint: Paint): string {
  const parts: string[] = [];
  const cell = shownCell(
    plan,
    plan.steps.some(({ action }) => action !== "none"),
  );
  if (cell) parts.push(paint(styles[cell.action].color, `the cell itself ${styles[cell.action].count}`));
  for (const [action, style] of Object.entries(styles)) {
    const number = plan.steps.filter((step) => step.action === action).length;
    if (number > 0 || action === "none") parts.push(paint(style.color, `${number} ${style.count}`));
  }
  const moved = plan.steps.filter((step) => step.movedFrom !== undefined).length;
  if (moved > 0) parts.push(paint(36, `${moved} renamed`));
  const busy = cell !== null || plan.steps.some((step) => step.action !== "none") || moved > 0;
  if (busy) return `Plan: ${parts.join(", ")}.`;
  const so = plan.textOnly ? "the text changes, and nothing that is deployed does" : "the cell is as specified";
  return `Nothing to do: ${so} (${parts.join(", ")}).`;
}
