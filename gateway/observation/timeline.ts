import type { ServiceEvent } from "../../model/api.ts";
import type { EventRing } from "../../runtime/observation/events.ts";
import { timeoutWithVmsMs } from "./connections.ts";
import { createPathBook, eventKey, inOrder, isNews, type Mark, markOf, Newest } from "./event-merge.ts";
import { type Sources, supervisorName } from "./sources.ts";

/**
 * One time line over all services. Each process keeps its newest events itself, so nothing is gathered while nobody looks.
 * With the first follower the gateway follows every source, once for all followers; the supervisor tells when a service
 * answers again, so a connection that broke is not tried blindly but in long intervals.
 */
export interface Timeline {
  /** What every source still knows of what is wanted. */
  past(wanted?: (event: ServiceEvent) => boolean): Promise<Past>;
  /** What happens from now on, and possibly some of what happened a moment ago. Returns how to stop. */
  follow(listener: (event: ServiceEvent) => void): () => void;
  stop(): void;
}

export interface Past {
  /** In order. */
  readonly events: readonly ServiceEvent[];
  /** Sources that did not answer in time: what they know is not there, or not all of it. */
  readonly silent: readonly string[];
  /** So many older ones were left out, since all of them would be too many for one answer. */
  readonly leftOut: number;
}

const processTimeoutMs = 2_000;
/** A process keeps a thousand, and there may be a thousand processes. */
const mostPast = 20_000;
/** Events of different machines arrive in another order than they happened: they wait this long for one another. */
const reorderMs = 200;
const retryMs = { first: 500, last: 15_000 } as const;

interface Followed {
  readonly stop: AbortController;
  retry: NodeJS.Timeout | null;
  retryMs: number;
  last: Mark | null;
  connected: boolean;
}

export const createTimeline = (sources: Sources, own: EventRing): Timeline => {
  const book = createPathBook();
  const listeners = new Set<(event: ServiceEvent) => void>();
  const followed = new Map<string, Followed>();
  let waiting: ServiceEvent[] = [];
  let flush: NodeJS.Timeout | null = null;
  let forgetOwn: (() => void) | null = null;
  let forgetPeers: (() => void) | null = null;

  const past = async (wanted: (event: ServiceEvent) => boolean = () => true): Promise<Past> => {
    const names = [...sources.supervisor, ...(await sources.services())];
    // Where there is no supervisor, services are VMs.
    const timeoutMs = sources.supervisor.length === 0 ? timeoutWithVmsMs : processTimeoutMs;
    const newest = new Newest(mostPast);
    const take = (event: ServiceEvent): void => {
      book.learn(event);
      if (wanted(event)) newest.add(event);
    };
    const silent: string[] = [];
    await Promise.all(
      names.map(async (name) => {
        try {
          for await (const event of sources.events(name, false, AbortSignal.timeout(timeoutMs))) take(event);
        } catch {
          // What came until then counts.
          silent.push(name);
        }
      }),
    );
    for (const event of own.past()) take(event);
    const events = book.annotate(newest.all());
    return { events, silent: silent.sort(), leftOut: newest.leftOut };
  };

  const arrived = (event: ServiceEvent): void => {
    waiting.push(event);
    flush ??= setTimeout(() => {
      const events = book.annotate(inOrder(waiting));
      waiting = [];
      flush = null;
      for (const each of events) for (const listener of listeners) listener(each);
    }, reorderMs);
  };

  const connect = (name: string): void => {
    const known = followed.get(name);
    if (known?.connected === true) return;
    const source: Followed = known ?? {
      stop: new AbortController(),
      retry: null,
      retryMs: retryMs.first,
      last: null,
      connected: false,
    };
    followed.set(name, source);
    if (source.retry !== null) clearTimeout(source.retry);
    source.retry = null;
    source.connected = true;
    void listen(name, source);
  };
  const listen = async (name: string, source: Followed): Promise<void> => {
    try {
      for await (const event of sources.events(name, true, source.stop.signal)) {
        source.retryMs = retryMs.first;
        if (!isNews(event, source.last)) continue;
        source.last = markOf(event);
        arrived(event);
        const { peer } = event.fields;
        if (name === supervisorName && event.event === "service/answers" && typeof peer === "string") connect(peer);
      }
    } catch {
      // It ended, or was not there.
    }
    source.connected = false;
    if (source.stop.signal.aborted) return;
    const exists = name === supervisorName || (await sources.services().catch(() => [])).some((each) => each === name);
    if (source.stop.signal.aborted || source.connected) return;
    if (!exists) {
      followed.delete(name);
      return;
    }
    source.retry = setTimeout(() => connect(name), source.retryMs);
    source.retryMs = Math.min(source.retryMs * 2, retryMs.last);
  };

  const start = async (): Promise<void> => {
    forgetOwn = own.subscribe(arrived);
    for (const name of sources.supervisor) connect(name);
    const connectAll = async (): Promise<void> => {
      for (const name of await sources.services().catch(() => []))
        if (listeners.size > 0 && !followed.has(name)) connect(name);
    };
    // Who comes to be there later: no supervisor tells of a VM.
    forgetPeers = sources.watch(() => void connectAll());
    await connectAll();
  };
  const stop = (): void => {
    forgetPeers?.();
    forgetPeers = null;
    forgetOwn?.();
    forgetOwn = null;
    for (const source of followed.values()) {
      source.stop.abort();
      if (source.retry !== null) clearTimeout(source.retry);
    }
    followed.clear();
    if (flush !== null) clearTimeout(flush);
    flush = null;
    waiting = [];
  };

  return {
    past,
    follow: (listener) => {
      listeners.add(listener);
      if (listeners.size === 1) void start();
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) stop();
      };
    },
    stop: () => {
      listeners.clear();
      stop();
    },
  };
};

export interface Attached {
  readonly past: Past;
  /** What was not in the past, in order; to be called once. Returns how to stop. */
  listen(listener: (event: ServiceEvent) => void): () => void;
}

/**
 * The past and then what comes, every event once and none left out in between: following begins before the past is asked
 * for. Whoever does not `listen` must `leave`.
 */
export const attach = async (
  timeline: Timeline,
  wanted?: (event: ServiceEvent) => boolean,
): Promise<Attached & { leave(): void }> => {
  let early: ServiceEvent[] = [];
  let listener: ((event: ServiceEvent) => void) | null = null;
  const leave = timeline.follow((event) => {
    if (listener === null) early.push(event);
    else listener(event);
  });
  const past = await timeline.past(wanted).catch((error: Error) => {
    leave();
    throw error;
  });
  const told = new Set(past.events.map(eventKey));
  return {
    past,
    leave,
    listen: (deliver) => {
      listener = (event) => {
        if (!told.has(eventKey(event))) deliver(event);
      };
      const missed = early;
      early = [];
      for (const event of missed) listener(event);
      return leave;
    },
  };
};
