import type { StreamReader } from "./frame-codec.ts";

/**
 * Heartbeats on the connections of one process, and their deadlines: a connection is late if it is silent for too long, if its
 * first frame does not come (a heartbeat is none), or if a frame that has begun does not end.
 *
 * An idle installation does nothing but this, so it is made cheap. There is one timer for all connections of the process. An
 * end that receives a heartbeat, and has sent nothing for a while, answers at once, as it is awake anyway. So of the two ends
 * one wakes up to send, and the other's timer finds that it has just sent something.
 */
export interface PulseLimits {
  readonly aliveEveryMs: number;
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
  /** Watches a connection until `end` is called. `late` is called at each check that finds it late. */
  watch(socket: Speaking, reader: Heard, late: (why: Late) => void): Life;
}

interface Watched {
  readonly socket: Speaking;
  readonly reader: Heard;
  readonly late: (why: Late) => void;
  since: number;
  heardAt: number;
  saidAt: number;
  greeted: boolean;
  frameSince: number;
  cut: number;
}

export const createPulse = (limits: PulseLimits, clock: PulseClock = ownClock): Pulse => {
  const { aliveEveryMs } = limits;
  const all = new Set<Watched>();
  let rest: (() => void) | null = null;
  let lookedAt = 0;
  const look = (): void => {
    const now = clock.now();
    const stoodMs = now - lookedAt;
    lookedAt = now;
    for (const one of all) {
      // This process itself was suspended, and has not read what arrived meanwhile.
      if (stoodMs > 2 * aliveEveryMs) stood(one, stoodMs, now);
      const why = lateness(one, limits, now);
      if (why !== null) one.late(why);
      else sayAlive(one, (3 * aliveEveryMs) / 4, now);
    }
  };
  const end = (one: Watched): void => {
    if (!all.delete(one) || all.size > 0) return;
    rest?.();
    rest = null;
  };
  return {
    watch: (socket, reader, late) => {
      const now = clock.now();
      const one: Watched = {
        ...{ socket, reader, late, greeted: false, cut: 0 },
        ...{ since: now, heardAt: now, saidAt: now, frameSince: now },
      };
      if (all.size === 0) {
        lookedAt = now;
        rest = clock.every(aliveEveryMs, look);
      }
      all.add(one);
      return {
        heard: (frame) => {
          heard(one, frame, clock.now());
          // A frame will be answered by more than a heartbeat.
          if (!frame) sayAlive(one, aliveEveryMs / 2, clock.now());
        },
        said: () => {
          one.saidAt = clock.now();
        },
        end: () => end(one),
      };
    },
  };
};

const heard = (one: Watched, frame: boolean, now: number): void => {
  one.heardAt = now;
  one.greeted ||= frame;
  if (one.reader.cut === one.cut && one.reader.waiting > 0) return;
  one.cut = one.reader.cut;
  one.frameSince = now;
};

/** Sends a heartbeat, unless something was sent within `quietMs` or waits to be sent. */
const sayAlive = (one: Watched, quietMs: number, now: number): void => {
  const { socket, reader } = one;
  if (now - one.saidAt < quietMs || !socket.writable || socket.writableLength > 0) return;
  one.saidAt = now;
  socket.write(reader.alive);
};

/** Does not count the time for which the process was suspended. */
const stood = (one: Watched, ms: number, now: number): void => {
  one.since = Math.min(now, one.since + ms);
  one.heardAt = Math.min(now, one.heardAt + ms);
  one.frameSince = Math.min(now, one.frameSince + ms);
};

const lateness = (one: Watched, { silenceMs, frameMs }: PulseLimits, now: number): Late | null => {
  if (now - one.heardAt > silenceMs) return "silent";
  if (one.reader.waiting > 0 && now - one.frameSince > frameMs) return "frame too slow";
  return one.greeted || one.reader.waiting > 0 || now - one.since <= silenceMs ? null : "no first frame";
};
