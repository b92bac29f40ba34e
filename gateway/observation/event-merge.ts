import type { ServiceEvent } from "../../model/api.ts";
import { keepNewest } from "../../model/limits.ts";
import { fail, ok, type Result } from "../../model/result.ts";

/** Which events of the time line somebody wants. */
export interface EventFilter {
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  readonly cell: string | null;
  readonly service: string | null;
  readonly follow: boolean;
  /** What happened before is told too. */
  readonly past: boolean;
}

/** Reads `GET /events`' query. The error is a sentence for whoever wrote it. */
export const readEventFilter = (query: URLSearchParams): Result<EventFilter, string> => {
  const since = query.get("since");
  const sinceMs = since === null ? 0 : Date.parse(since);
  if (Number.isNaN(sinceMs)) return fail(`since is a time as 2026-01-31T12:00:00Z, not "${since}"`);
  return ok({
    sinceMs,
    cell: query.get("cell"),
    service: query.get("service"),
    follow: query.get("follow") === "true",
    past: query.get("past") !== "false",
  });
};

/** A service is named in full or, where it is one of a kind, by its last part: `host.h1`, `h1`. */
export const isService = (service: string, asked: string): boolean =>
  service === asked || service.slice(service.indexOf(".") + 1) === asked;

export const passes = (event: ServiceEvent, filter: EventFilter): boolean =>
  passesUnnamed(event, filter) && (filter.cell === null || event.cell === filter.cell);
/** The same, as far as it can be said before it is known which element an event is about. */
export const passesUnnamed = (event: ServiceEvent, { sinceMs, service }: EventFilter): boolean =>
  Date.parse(event.time) >= sinceMs && (service === null || isService(event.service, service));

export const eventKey = ({ service, id }: ServiceEvent): string => `${service} ${id}`;

export const textOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
/** By time, which ISO 8601 in UTC sorts as text; what is alike keeps its service's order. */
export const inOrder = (events: readonly ServiceEvent[]): readonly ServiceEvent[] =>
  events
    .map((event, index) => ({ event, index }))
    .sort((a, b) => textOrder(a.event.time, b.event.time) || a.index - b.index)
    .map(({ event }) => event);

/** Keeps the newest of all that it is given; of twice as many at a time it sorts out the rest. */
export class Newest {
  readonly #most: number;
  #events: readonly ServiceEvent[] = [];
  #added: ServiceEvent[] = [];
  leftOut = 0;
  constructor(most: number) {
    this.#most = most;
  }
  add(event: ServiceEvent): void {
    this.#added.push(event);
    if (this.#added.length >= this.#most) this.#cut();
  }
  /** In order. */
  all(): readonly ServiceEvent[] {
    this.#cut();
    return this.#events;
  }
  #cut(): void {
    const events = inOrder([...this.#events, ...this.#added]);
    const over = Math.max(0, events.length - this.#most);
    this.#events = events.slice(over);
    this.#added = [];
    this.leftOut += over;
  }
}

/** How many elements' names are remembered; the oldest go first. */
const mostNames = 20_000;
const uidFields = ["uid", "vm", "volume"] as const;

/**
 * Services speak of elements by UID, people by path: whoever says both teaches it. A UID is never used again, so what was
 * learned stays true until the element moves, which is said by an event of its own.
 */
export interface PathBook {
  learn(event: ServiceEvent): void;
  /** Learns from the events, then gives those without a path that of the element they are about. */
  annotate(events: readonly ServiceEvent[]): readonly ServiceEvent[];
}
export const createPathBook = (): PathBook => {
  const paths = new Map<string, string>();
  const learn = ({ path, fields }: ServiceEvent): void => {
    if (path === null) return;
    for (const field of uidFields) {
      const uid = fields[field];
      if (typeof uid !== "string" || paths.get(uid) === path) continue;
      paths.delete(uid);
      paths.set(uid, path);
    }
    keepNewest(paths, mostNames);
  };
  const name = (event: ServiceEvent): ServiceEvent => {
    if (event.path !== null) return event;
    for (const field of uidFields) {
      const uid = event.fields[field];
      const path = typeof uid === "string" ? paths.get(uid) : undefined;
      if (path !== undefined) return { ...event, path, cell: event.cell ?? path.split("/")[0] ?? null };
    }
    return event;
  };
  return {
    learn,
    annotate: (events) => {
      for (const event of events) learn(event);
      return events.map(name);
    },
  };
};

/** What was last seen of a source, so that its past is not told again after its connection broke. */
export interface Mark {
  readonly life: string;
  readonly number: number;
  readonly time: string;
}
export const markOf = ({ id, time }: ServiceEvent): Mark => {
  const dash = id.lastIndexOf("-");
  return { life: id.slice(0, dash), number: Number(id.slice(dash + 1)), time };
};
/** A process started again counts from the beginning, and may repeat what its former life said: time tells then. */
export const isNews = (event: ServiceEvent, last: Mark | null): boolean => {
  if (last === null) return true;
  const mark = markOf(event);
  return mark.life === last.life ? mark.number > last.number : mark.time > last.time;
};
