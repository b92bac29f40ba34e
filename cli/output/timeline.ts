import type { CellEvent, ServiceEvent } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import type { Json } from "../../model/json/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type Colour, cut, type Paint } from "../terminal/terminal.ts";
import { phaseLabel } from "./render.ts";

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `10m`, `2h`, `30s`, `1d` ago, or a time as ISO 8601; as ISO 8601. */
export const readSince = (text: string, nowMs: number): Result<string, string> => {
  const ago = /^(\d+(?:\.\d+)?) *([smhd])$/.exec(text);
  const at = ago === null ? Date.parse(text) : nowMs - Number(ago[1]) * (unitMs[ago[2] ?? ""] ?? 0);
  if (Number.isNaN(at) || Math.abs(at) > 8.64e15)
    return fail(`\`${text}\` is no time: write 30s, 10m, 2h or 1d for how long ago, or 2026-01-31T12:00:00Z`);
  return ok(new Date(at).toISOString());
};

const two = (value: number): string => String(value).padStart(2, "0");
/** Local time; the day only where it is not today. */
export const renderTime = (time: string, nowMs: number): string => {
  const [at, now] = [new Date(time), new Date(nowMs)];
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  if (at.toDateString() === now.toDateString()) return clock;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
};

/** What a cell's own events are called among those of all services. */
const namesOfCell: Readonly<Record<string, string>> = {
  accepted: "model/accepted",
  state: "element/state",
  moved: "element/moved",
  removed: "element/removed",
  rebooted: "vm/rebooted",
};
/** A cell's own event as its controller's among those of all services: there is one form for both. */
export const asServiceEvent = ({
  id,
  cell,
  path,
  type,
  event,
  phase,
  reason,
  time,
  fields,
}: CellEvent): ServiceEvent => ({
  id: String(id),
  time,
  service: `controller.${cell}`,
  event: namesOfCell[event] ?? event,
  cell,
  path,
  fields: {
    type,
    ...(phase === undefined ? {} : { phase }),
    ...(reason === undefined ? {} : { reason }),
    ...fields,
  },
});

const alarming = /(failed|died|refused|unreachable|misuse)$/;
const uneasy = /(ended|left|fencing|adopted|removed|stopped)$/;
const colourOf = (event: string): Colour | null =>
  alarming.test(event) ? "red" : uneasy.test(event) ? "yellow" : null;

const valueText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
/** Said by other columns. */
const unsaid = new Set(["uid", "type", "phase", "reason", "why"]);
/** UIDs, which the path says better where it is known. */
const identities = new Set(["vm", "volume"]);

/** What happened: the event, its phase, what it is about, and why. */
const whatOf = ({ event, path, fields }: ServiceEvent, paint: Paint): string => {
  const { phase, reason, why } = fields;
  const colour = colourOf(event);
  const said = Object.entries(fields).flatMap(([name, value]) =>
    unsaid.has(name) || (path !== null && identities.has(name)) || value === null
      ? []
      : [`${name}=${printable(valueText(value))}`],
  );
  const because = reason ?? why ?? null;
  return [
    colour === null ? event : paint(colour, event),
    ...(typeof phase === "string" ? [phaseLabel(phase, paint)] : []),
    ...(said.length === 0 ? [] : [paint("grey", said.join(" "))]),
    ...(because === null ? [] : [printable(valueText(because))]),
  ].join("  ");
};

const serviceWidth = 16;
const pathWidth = 22;

/** One line: time, service, element, what happened. Columns have fixed widths, since lines come one by one. */
export const renderServiceEvent = (event: ServiceEvent, paint: Paint, nowMs: number): string => {
  const about = event.path ?? event.cell ?? "";
  return [
    paint("grey", renderTime(event.time, nowMs)),
    paint("blue", cut(printable(event.service), serviceWidth).padEnd(serviceWidth)),
    printable(about).padEnd(pathWidth),
    whatOf(event, paint),
  ].join("  ");
};
