import { type LimitKey, type Limits, limitKeys } from "../../model/contract/tenancy/quotas.ts";
import { dayPattern, dayRule } from "../../model/contract/tenancy/usage.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { pathOf } from "./names.ts";
import { columns, print } from "./people.ts";

/* `cells usage`: what accounts have had, for how many hours of that it was in use, by day. */

const textOf = (hours: Limits): string =>
  limitKeys.flatMap((key) => ((hours[key] ?? 0) > 0 ? [`${key} ${shown(hours[key] ?? 0)}`] : [])).join(", ") ||
  "nothing";
/** Of small amounts minutes count as well. */
const shown = (hours: number): string =>
  hours < 100 ? String(Math.round(hours * 100) / 100) : String(Math.round(hours));
const sum = (all: readonly Limits[]): Limits => {
  const sums: { [key in LimitKey]?: number } = {};
  for (const each of all) for (const key of limitKeys) sums[key] = (sums[key] ?? 0) + (each[key] ?? 0);
  return sums;
};

export const listUsage = async (
  context: Context,
  path: string | undefined,
  { from, until }: { readonly from?: string; readonly until?: string },
): Promise<void> => {
  for (const day of [from, until])
    if (day !== undefined && !dayPattern.test(day)) throw usage(`\`${day}\` is no day: write it as ${dayRule}`);
  const query = { from, until, path: path === undefined ? undefined : pathOf(path) };
  const days = await context.client().all("listUsage", query);
  const rows = days.map(({ day, account, hours, used = {} }) => [day, account, textOf(hours), textOf(used)]);
  if (rows.length > 1) {
    const [had, used] = [days.map(({ hours }) => hours), days.map(({ used = {} }) => used)].map((all) =>
      textOf(sum(all)),
    );
    rows.push(["in all", "", had ?? "", used ?? ""]);
  }
  print(
    context,
    days,
    rows.length === 0
      ? "nothing was had on these days"
      : columns([["day", "account", "hours of", "of that in use"], ...rows]),
  );
};
