import type { StreamReader } from "./frame-codec.ts";

/**
 * Heartbeats on the connections of one process, and their deadlines: a connection is late if it is silent for too long, if its
 * first frame does not come (a heartbeat is none), or if a frame that has begun does not end.
 *
 * An idle installation does nothing but this, so it is made cheap. There is one timer for all connections of the process. An
 * end that receives a heartbeat, and has sent nothing for a while, answers at once, as it is awake anyway. So of the two ends
 * one wakes up to send, and the other's timer finds that it has just sent something.
 *
 * Where nobody concludes anything from silence (`core/presence/counted-on.ts`) a connection *rests* as soon as each end has had
 * an answer to what it said. Then one of them asks every `restEveryMs`, and a peer counts as gone if it leaves something
 * unanswered for `silenceMs`. An end that does not rest, as one of an earlier version, gets its answer at each heartbeat, so the
 * two need not agree about it. How long each is: `transportLimits` in `connections/connection.ts`.
 */
export interface PulseLimits {
  readonly aliveEveryMs: number;
  /** Between two questions on a connection that rests. */
  readonly restEveryMs: number;
  readonly silenceMs: number;
  readonly frameMs: number;
}
export type Late = "silent" | "no first frame" | "frame too slow";
/** The part of a `TLSSocket` that is used here. */
export interface Speaking {
  readonly writable: boolean;
  readonly writableLength: number;
  write(bytes: Uint8Array): unknown;
}
/** Of the reader: how many frames are complete, how many bytes of the next one are there, and the bytes of a heartbeat. */
type Heard = Pick<StreamReader<unknown>, "cut" | "waiting" | "alive">;
/** Tests bring their own; `every` returns a function that ends the timer. */
export interface PulseClock {
  now(): number;
  every(ms: number, look: () => void): () => void;
}
const ownClock: PulseClock = {
  now: () => performance.now(),
  every: (ms, look) => {
    const timer = setInterval(look, ms);
    return () => clearInterval(timer);
  },
};
export interface Life {
  /** Bytes arrived. @param frame among them was at least one frame that is no heartbeat */
  heard(frame: boolean): void;
  /** Something was sent. */
  said(): void;
  /** Watches it no more. */
  end(): void;
}
export interface Pulse {
  /**
   * Watches a connection until `end` is called. `late` is called at each check that finds it late.
   * @param counted whether somebody concludes something from its silence now; it never rests then
   */
  watch(socket: Speaking, reader: Heard, late: (why: Late) => void, counted: () => boolean): Life;
}

interface Watched {
  readonly socket: Speaking;
  readonly reader: Heard;
  readonly late: (why: Late) => void;
  readonly counted: () => boolean;
  since: number;
  heardAt: number;
  saidAt: number;
  /** Since when nothing has come of what was said; null: something has. */
  unansweredAt: number | null;
  /** A frame has come, and nothing was said since: the other end waits to hear something. */
  owes: boolean;
  greeted: boolean;
  frameSince: number;
  cut: number;
}

export const createPulse = (limits: PulseLimits, clock: PulseClock = ownClock): Pulse => {
  const { aliveEveryMs, restEveryMs } = limits;
  const all = new Set<Watched>();
  let timer: { readonly everyMs: number; readonly stop: () => void } | null = null;
  let lookedAt = 0;
  /** From now on, unless it does already. */
  const lookEvery = (everyMs: number): void => {
    if (timer?.everyMs === everyMs) return;
    timer?.stop();
    lookedAt = clock.now();
    timer = { everyMs, stop: clock.every(everyMs, () => look(everyMs)) };
  };
  const look = (everyMs: number): void => {
    const now = clock.now();
    const stoodMs = now - lookedAt;
    lookedAt = now;
    let rest = true;
    for (const one of all) {
      // This process itself was suspended, and has not read what arrived meanwhile.
      if (stoodMs > 2 * everyMs) stood(one, stoodMs, now);
      const why = lateness(one, limits, now);
      if (why !== null) one.late(why);
      else if (!rests(one)) sayAlive(one, (3 * aliveEveryMs) / 4, now, true);
      else if (now - one.heardAt >= restEveryMs - aliveEveryMs) sayAlive(one, restEveryMs - aliveEveryMs, now, true);
      rest &&= rests(one);
    }
    if (all.size > 0) lookEvery(rest ? restEveryMs : aliveEveryMs);
  };
  const end = (one: Watched): void => {
    if (!all.delete(one) || all.size > 0) return;
    timer?.stop();
    timer = null;
  };
  return {
    watch: (socket, reader, late, counted) => {
      const now = clock.now();
      const one: Watched = {
        socket,
        reader,
        late,
        counted,
        unansweredAt: null,
        owes: false,
        greeted: false,
        cut: 0,
        since: now,
        heardAt: now,
        saidAt: now,
        frameSince: now,
      };
      all.add(one);
      lookEvery(aliveEveryMs);
      return {
        heard: (frame) => {
          const now = clock.now();
          heard(one, frame, now);
          // A frame will be answered by more than a heartbeat.
          if (!frame) sayAlive(one, aliveEveryMs / 2, now, false);
          else if (all.has(one)) lookEvery(aliveEveryMs);
        },
        said: () => {
          one.saidAt = clock.now();
          one.unansweredAt ??= one.saidAt;
          one.owes = false;
          if (all.has(one)) lookEvery(aliveEveryMs);
        },
        end: () => end(one),
      };
    },
  };
};

/** Each end has heard something of the other since it last said something, and there is nobody to whom more matters. */
const rests = (one: Watched): boolean =>
  one.unansweredAt === null && !one.owes && one.greeted && one.reader.waiting === 0 && !one.counted();

const heard = (one: Watched, frame: boolean, now: number): void => {
  one.heardAt = now;
  one.unansweredAt = null;
  one.owes ||= frame;
  one.greeted ||= frame;
  if (one.reader.cut === one.cut && one.reader.waiting > 0) return;
  one.cut = one.reader.cut;
  one.frameSince = now;
};

/**
 * Sends a heartbeat, unless something was sent within `quietMs` or waits to be sent.
 * @param asks it is to be answered, unless the other end waits for it
 */
const sayAlive = (one: Watched, quietMs: number, now: number, asks: boolean): void => {
  const { socket, reader } = one;
  if (now - one.saidAt < quietMs || !socket.writable || socket.writableLength > 0) return;
  one.saidAt = now;
  if (asks && !one.owes) one.unansweredAt ??= now;
  one.owes = false;
  socket.write(reader.alive);
};

/** Does not count the time for which the process was suspended. */
const stood = (one: Watched, ms: number, now: number): void => {
  one.since = Math.min(now, one.since + ms);
  one.heardAt = Math.min(now, one.heardAt + ms);
  if (one.unansweredAt !== null) one.unansweredAt = Math.min(now, one.unansweredAt + ms);
  one.frameSince = Math.min(now, one.frameSince + ms);
};

const lateness = (one: Watched, { silenceMs, frameMs }: PulseLimits, now: number): Late | null => {
  const silentSince = one.greeted && !one.counted() ? one.unansweredAt : one.heardAt;
  if (silentSince !== null && now - silentSince > silenceMs) return "silent";
  if (one.reader.waiting > 0 && now - one.frameSince > frameMs) return "frame too slow";
  return one.greeted || one.reader.waiting > 0 || now - one.since <= silenceMs ? null : "no first frame";
};
