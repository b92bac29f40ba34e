import type { InstallationStatus } from "../../../model/api.ts";
import { type History, type Moment, momentOf, type Series } from "../../../model/contract/operator/numbers/history.ts";

/** The last hour as it goes on: what the gateway has kept is asked once, and each later moment is of the stream. Pure. */
const hourMs = 60 * 60_000;

/** Nothing is added before the next moment is due; moments of which nothing was heard stay free. */
export function goneOn(history: History, status: Pick<InstallationStatus, "hosts">, nowMs: number): History {
  const { everyMs, until, moments } = history;
  const due = Math.floor((nowMs - Date.parse(until)) / everyMs);
  if (due < 1) return history;
  const mostMoments = Math.floor(hourMs / everyMs);
  const count = Math.min(mostMoments, moments + due);
  const moment = momentOf(status);
  const on = (kind: keyof Moment): Readonly<Record<string, Series>> => {
    const names = new Set([...Object.keys(history[kind]), ...moment[kind].keys()]);
    return Object.fromEntries(
      [...names].map((name) => {
        const before = history[kind][name] ?? new Array<null>(moments).fill(null);
        const free = new Array<null>(Math.min(mostMoments, due - 1)).fill(null);
        return [name, [...before, ...free, moment[kind].get(name) ?? null].slice(-count)];
      }),
    );
  };
  return {
    ...history,
    moments: count,
    until: new Date(Date.parse(until) + due * everyMs).toISOString(),
    load: on("load"),
    usedMiB: on("usedMiB"),
    running: on("running"),
  };
}

/** Pieces of a curve in a box of that size; where nothing was heard it breaks off. */
export function curvesOf(series: Series, width: number, height: number): readonly string[] {
  const most = Math.max(1, ...series.map((value) => value ?? 0));
  const pieces: string[][] = [[]];
  series.forEach((value, at) => {
    if (value === null) pieces.push([]);
    else {
      const x = series.length < 2 ? width : (at / (series.length - 1)) * width;
      pieces.at(-1)?.push(`${x.toFixed(1)},${(height - (value / most) * height).toFixed(1)}`);
    }
  });
  return pieces.filter(({ length }) => length > 0).map((points) => points.join(" "));
}

/** Of a history: which moments its values are of. */
export type Span = Pick<History, "everyMs" | "until" | "moments">;
/** Which of its moments that was; null: it was before or after all of them. */
export function whereIn({ everyMs, until, moments }: Span, atMs: number): number | null {
  const at = moments - 1 - Math.round((Date.parse(until) - atMs) / everyMs);
  return at >= 0 && at < moments ? at : null;
}

/** `3 run; from 1 to 4 in the last hour`. */
export function inWords(series: Series): string {
  const said = series.filter((value) => value !== null);
  if (said.length === 0) return "nothing was heard";
  const [least, most, now] = [Math.min(...said), Math.max(...said), series.at(-1) ?? null];
  return `${now === null ? "not known" : now} now; from ${least} to ${most} in the last hour`;
}
