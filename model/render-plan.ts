import type { Json } from "./json.ts";
import type { Plan, PlanAction, PlanStep } from "./plan-types.ts";
import { painter, printable } from "./render-diagnostic.ts";

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
const widestValue = 60;

/**
 * A plan as a person reads it, in the order of execution, with the counts at the end and no newline after them. `all`
 * shows unchanged elements and what each step waits for as well.
 */
export function renderPlan(plan: Plan, options: { readonly color: boolean; readonly all?: boolean }): string {
  const paint = painter(options.color);
  const all = options.all ?? false;
  const shown = plan.steps.filter((step) => all || step.action !== "none" || step.movedFrom !== undefined);
  const width = Math.max(0, ...shown.map((step) => Math.min(step.path.length, 48)));
  const typeWidth = Math.max(0, ...shown.map((step) => step.type.length));
  const lines: string[] = [];
  for (const step of shown) {
    const style = styles[step.action];
    const path = printable(step.path).padEnd(width);
    const what = step.action === "none" && step.movedFrom !== undefined ? "is renamed" : style.what;
    const loss = step.losesData ? paint(31, "; its data is lost") : "";
    lines.push(
      `${paint(style.color, `${style.sign} ${path}`)}  ${paint(2, step.type.padEnd(typeWidth))}  ${what}${loss}`,
    );
    lines.push(...details(step, all).map((line) => `    ${line}`));
  }
  if (shown.length > 0) lines.push("");
  lines.push(counts(plan, paint));
  return lines.join("\n");

  function details(step: PlanStep, withWaits: boolean): string[] {
    const found: string[] = [];
    if (step.movedFrom !== undefined) found.push(paint(36, `was ${printable(step.movedFrom)}`));
    for (const { attribute, from, to } of step.causes)
      found.push(`${printable(attribute)}: ${paint(31, value(from))} → ${paint(32, value(to))}`);
    if (withWaits && step.waitsFor.length > 0) found.push(paint(2, `after ${printable(step.waitsFor.join(", "))}`));
    return found;
  }
}

function value(json: Json): string {
  if (json === null) return "nothing";
  const text = printable(JSON.stringify(json));
  return text.length > widestValue ? `${text.slice(0, widestValue)}…` : text;
}

function counts(plan: Plan, paint: (code: number, text: string) => string): string {
  const parts: string[] = [];
  for (const [action, style] of Object.entries(styles)) {
    const number = plan.steps.filter((step) => step.action === action).length;
    if (number > 0 || action === "none") parts.push(paint(style.color, `${number} ${style.count}`));
  }
  const moved = plan.steps.filter((step) => step.movedFrom !== undefined).length;
  if (moved > 0) parts.push(paint(36, `${moved} renamed`));
  const busy = plan.steps.some((step) => step.action !== "none") || moved > 0;
  return busy ? `Plan: ${parts.join(", ")}.` : `Nothing to do: the cell is as specified (${parts.join(", ")}).`;
}
