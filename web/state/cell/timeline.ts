import type { Json } from "../../../model/json/json.ts";

/** What happened, as services tell it: of one cell by its controller, or of all by each of them. Pure. */
export interface Happened {
  readonly id: string;
  /** ISO 8601. */
  readonly time: string;
  /** In words. */
  readonly what: string;
  /** What it is about; "": nothing in particular. */
  readonly about: string;
  /** More of it, in words; "": there is no more. */
  readonly says: string;
  /** Who says so; null: the cell's controller, of itself. */
  readonly service: string | null;
}

/** As much as somebody reads; what is older is found by words. */
export const mostShown = 200;

/** Events of a stream that has ended (`text/event-stream`), the newest first. What cannot be read is left out. */
export function eventsIn(stream: string): readonly Happened[] {
  const all = stream.split("\n").flatMap((line) => {
    if (!line.startsWith("data:")) return [];
    try {
      const said: unknown = JSON.parse(line.slice("data:".length));
      const event = typeof said === "object" && said !== null ? happened(said as Told) : null;
      return event === null ? [] : [event];
    } catch {
      return [];
    }
  });
  return all.reverse();
}

/** Of a cell (`CellEvent`) or of a service (`ServiceEvent`), by whoever that is. */
type Told = Readonly<Record<string, Json>>;
function happened({ id, time, event, service, cell, path, phase, reason, fields }: Told): Happened | null {
  if ((typeof id !== "string" && typeof id !== "number") || typeof time !== "string" || typeof event !== "string")
    return null;
  const about = [path, cell].find((each) => typeof each === "string") ?? "";
  const all = { ...(typeof fields === "object" ? fields : {}) } as Told;
  const says = [
    ...(typeof phase === "string" ? [phase] : []),
    ...(typeof reason === "string" ? [reason] : []),
    ...Object.entries(all)
      .filter(([, value]) => value !== null && value !== "")
      .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`),
  ].join(", ");
  return {
    id: String(id),
    time,
    what: event.replace("/", ": ").replaceAll("-", " "),
    about: String(about),
    says,
    service: typeof service === "string" ? service : null,
  };
}

/** Those that have all of these words, wherever. */
export function withWords(events: readonly Happened[], words: string): readonly Happened[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return events.filter(({ what, about, says, service }) => {
    const text = `${what} ${about} ${says} ${service ?? ""}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
