import type { ServerResponse } from "node:http";
import type { LogLine } from "../../core/distribution/node/types.ts";
import type { ServiceEvent } from "../../model/api.ts";
import { sentThrough } from "../http/http.ts";

/** A line of log with its time, milliseconds since 1970. */
export interface LogEvent extends LogLine {
  readonly wallMs: number;
}

/** How many of its newest events a process keeps in memory, and so how many a killed one can take out of the time line. */
export const keptServiceEvents = 1_000;

/** The newest events of one process, for the time line. */
export interface EventRing {
  record(event: LogEvent): void;
  /** Events of an earlier life that were kept elsewhere, oldest first; before anything is recorded. */
  seed(events: readonly LogEvent[]): void;
  /** Oldest first. */
  past(): readonly ServiceEvent[];
  subscribe(listener: (event: ServiceEvent) => void): () => void;
}

/**
 * `life` tells one process from the next of the same service, so that events have ids of their own: `<life>-<number>`.
 */
export const createEventRing = (service: string, life: string, capacity = keptServiceEvents): EventRing => {
  const events: ServiceEvent[] = [];
  const listeners = new Set<(event: ServiceEvent) => void>();
  let number = 0;
  const add = (line: LogEvent): ServiceEvent => {
    number += 1;
    const event = serviceEvent(service, `${life}-${number}`, line);
    events.push(event);
    if (events.length > capacity) events.shift();
    return event;
  };
  return {
    record: (line) => {
      const event = add(line);
      for (const listener of listeners) listener(event);
    },
    seed: (lines) => {
      for (const line of lines) add(line);
    },
    past: () => events.slice(),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};

/** Where an event belongs is said by its fields, or by whose it is: a controller speaks of its own cell. */
const serviceEvent = (service: string, id: string, { event, fields, wallMs }: LogEvent): ServiceEvent => {
  const { cell, path, ...others } = fields;
  const own = /^controller\.(.+)$/.exec(service)?.[1] ?? null;
  const first = typeof path === "string" ? (path.split("/")[0] ?? null) : null;
  return {
    id,
    time: new Date(wallMs).toISOString(),
    service,
    event,
    cell: typeof cell === "string" ? cell : (own ?? first),
    path: typeof path === "string" ? path : null,
    fields: others,
  };
};

const heartbeatMs = 15_000;
/** A follower that lets this much pile up is let go: it comes back and says what it saw last. */
const followerBacklogBytes = 4 * 1024 * 1024;

export interface EventSource<E> {
  readonly past: readonly E[];
  /** Absent: the answer ends with the past. */
  readonly follow?: (listener: (event: E) => void) => () => void;
  /** The lines `id:` and `event:` of one event. */
  readonly heading: (event: E) => { readonly id: string | number; readonly event: string };
}

/** Answers with a text/event-stream (HTML Living Standard, section 9.2): the past first, then what comes. */
export const streamEvents = <E>(response: ServerResponse, { past, follow, heading }: EventSource<E>): void => {
  // Whoever left while its credential was looked at will not leave again.
  if (response.destroyed) return;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  // A client that waits for events learns by the headers that none will be missed from now on.
  response.flushHeaders();
  const send = (event: E): void => {
    const { id, event: name } = heading(event);
    response.write(
      `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(sentThrough(response, event as object, null))}\n\n`,
    );
  };
  for (const event of past) send(event);
  if (follow === undefined) {
    response.end();
    return;
  }
  const unsubscribe = follow((event) => {
    if (response.writableLength > followerBacklogBytes) response.destroy();
    else send(event);
  });
  // What lies in between ends connections that stay silent.
  const heartbeat = setInterval(() => response.write(": \n\n"), heartbeatMs);
  response.on("close", () => {
    clearInterval(heartbeat);
    unsubscribe();
  });
};

export const serviceHeading = ({ id, event }: ServiceEvent): { readonly id: string; readonly event: string } => ({
  id,
  event,
});
