import type { Json } from "../../../model/json/json.ts";
import type { Plan, PlanStep } from "../../../model/plan/plan-types.ts";

/** A plan in words, as the page shows it before it is applied. */
export interface PlanLine {
  readonly path: string;
  readonly action: PlanStep["action"];
  readonly sign: string;
  /** What it does, a few words. */
  readonly says: string;
  readonly causes: readonly string[];
  /** Data goes with it: the path has to be said for it to be done. */
  readonly losesData: boolean;
}
const signs = { create: "+", change: "~", restart: "↻", replace: "±", delete: "−", none: " " } as const;
const words = {
  create: "is made",
  change: "is changed",
  restart: "is stopped and started again",
  replace: "is taken away and made anew",
  delete: "is taken away",
  none: "stays as it is",
} as const;

export const linesOf = ({ steps }: Plan): readonly PlanLine[] =>
  steps
    .filter(({ action }) => action !== "none")
    .map(({ path, type, action, causes, losesData, movedFrom }) => ({
      path,
      action,
      sign: signs[action],
      losesData,
      says: `${type} ${words[action]}${movedFrom === undefined ? "" : `; it was ${movedFrom}`}`,
      causes: causes.map(({ attribute, from, to }) => `${attribute}: ${shown(from)} → ${shown(to)}`),
    }));

function shown(value: Json): string {
  if (value === null) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** `2 made, 1 changed, 3 taken away`; nothing: "Nothing would change". */
export function inShort(plan: Plan): string {
  const count = new Map<string, number>();
  for (const { action } of linesOf(plan)) count.set(action, (count.get(action) ?? 0) + 1);
  const said = { create: "made", change: "changed", restart: "restarted", replace: "made anew", delete: "taken away" };
  const parts = Object.entries(said).flatMap(([action, word]) =>
    count.has(action) ? [`${count.get(action)} ${word}`] : [],
  );
  if (parts.length > 0) return parts.join(", ");
  return plan.textOnly === true ? "The text alone would be kept; nothing else changes" : "Nothing would change";
}

/**
 * Whether what is known of a cell is of after a change. A gateway of before says of no version what it tells; it reads a cell as a whole, so
 * of what is made some is there then, and a plan that makes nothing says nothing about it.
 * @param known version of the model that what is known is of; null: nobody has said
 */
export function isHeardOf(
  { plan: { steps }, version }: { readonly plan: Plan; readonly version: number },
  known: number | null,
  elements: readonly { readonly path: string }[],
): boolean {
  if (known !== null) return known >= version;
  const made = steps.flatMap(({ path, action }) => (action === "create" ? [path as string] : []));
  return made.length === 0 || elements.some(({ path }) => made.includes(path));
}
