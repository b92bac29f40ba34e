import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Phase } from "../../core/documents/vocabulary.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import type { CellEvent } from "../../model/api.ts";
import type { Cause } from "../../model/cause/cause.ts";
import type { Json } from "../../model/json/json.ts";
import type { LogEvent } from "../observation/events.ts";

/** How many events of a cell are kept. */
export const keptEvents = 2_000;
/** Events of the cell among those of the process, and what the contract calls them. */
const publicNames: { readonly [event in EventName]?: CellEvent["event"] } = {
  "model/accepted": "accepted",
  "element/state": "state",
  "element/moved": "moved",
  "element/removed": "removed",
  "vm/rebooted": "rebooted",
};
const ownFields: readonly string[] = ["path", "type", "phase", "reason", "causes"];

/**
 * The events of one cell: the newest 2,000, kept over restarts in `<directory>/events.sqlite`, each with an id that only
 * grows. They are for people: what a controller does never follows from them, so their store is synced lazily.
 */
export interface CellEvents {
  /** Takes a line of the controller's log if it is an event of the cell. */
  record(line: LogEvent): void;
  /** Events with an id above `after`, oldest first. */
  since(after: number): readonly CellEvent[];
  /** All of it as the lines of log that they were. */
  lines(): readonly LogEvent[];
  subscribe(listener: (event: CellEvent) => void): () => void;
  close(): void;
}

export function openEvents(directory: string, cell: string): CellEvents {
  const database = new DatabaseSync(join(directory, "events.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  database.exec("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY AUTOINCREMENT, json TEXT NOT NULL)");
  const insert = database.prepare("INSERT INTO event (json) VALUES (?)");
  const trim = database.prepare("DELETE FROM event WHERE id <= ?");
  const select = database.prepare("SELECT id, json FROM event WHERE id > ? ORDER BY id");
  const listeners = new Set<(event: CellEvent) => void>();
  const since = (after: number): readonly CellEvent[] =>
    select
      .all(after)
      .map(({ id, json }) => ({ id: Number(id), ...(JSON.parse(String(json)) as Omit<CellEvent, "id">) }));
  return {
    record: (line) => {
      const event = eventOf(line, cell);
      if (event === null) return;
      const id = Number(insert.run(JSON.stringify(event)).lastInsertRowid);
      trim.run(id - keptEvents);
      for (const listener of listeners) listener({ id, ...event });
    },
    since,
    lines: () => since(0).flatMap(lineOf),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => database.close(),
  };
}

/** The log line that an event was. */
function lineOf({ time, path, type, event, phase, reason, causes, fields }: CellEvent): readonly LogEvent[] {
  const name = (Object.keys(publicNames) as EventName[]).find((each) => publicNames[each] === event);
  if (name === undefined) return [];
  const why = { reason: reason ?? null, ...(causes === undefined ? {} : { causes: causes as unknown as Json }) };
  const told = { path, type, ...fields, ...(phase === undefined ? {} : { phase, ...why }) };
  return [{ event: name, fields: told, wallMs: Date.parse(time) }];
}

/** The event that a log line is; null for lines about the process and its connections. */
function eventOf({ event: name, fields, wallMs }: LogEvent, cell: string): Omit<CellEvent, "id"> | null {
  const event = publicNames[name];
  if (event === undefined) return null;
  const { path, type, phase, reason, causes } = fields;
  if (typeof path !== "string" || typeof type !== "string") return null;
  const more: Record<string, Json> = {};
  for (const [name, value] of Object.entries(fields)) if (!ownFields.includes(name)) more[name] = value;
  return {
    time: new Date(wallMs).toISOString(),
    cell,
    path,
    type,
    event,
    ...(typeof phase === "string" ? { phase: phase as Phase } : {}),
    ...(typeof reason === "string" || reason === null ? { reason } : {}),
    ...(Array.isArray(causes) ? { causes: causes as unknown as readonly Cause[] } : {}),
    ...(Object.keys(more).length === 0 ? {} : { fields: more }),
  };
}
