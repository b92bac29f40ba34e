import type { StreamReader } from "./frame-codec.ts";

/**
 * Signs of life on the connections of one process, and what is due of each: signs of life, a first frame (a sign of life
 * is none), and the end of each that began.
 *
 * An idle installation does nothing else, so what this costs is what it costs to do nothing. Hence one timer for all
 * connections of the process; and who hears the other end and has said nothing for a while answers at once, while it is
 * awake. Of the two ends then one has a timer that finds something to say, and the other's finds that it has just spoken.
 */
export interface PulseLimits {
  readonly aliveEveryMs: number;
  readonly silenceMs: number;
  readonly frameMs: number;
}
export type Late = "silent" | "no first frame" | "frame too slow";
/** Of a `TLSSocket`, what is needed here. */
export interface Speaking {
  readonly writable: boolean;
  readonly writableLength: number;
  write(bytes: Uint8Array): unknown;
}
/** How much of what came is whole, and what to say. */
type Heard = Pick<StreamReader<unknown>, "cut" | "waiting" | "alive">;
/** The process', but for tests; `every` returns how to end it. */
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
  /** Bytes came; among them at least one frame that is no sign of life. */
  heard(frame: boolean): void;
  /** Something was said. */
  said(): void;
  /** Forgets it. */
  end(): void;
}
export interface Pulse {
  /** Watches over a connection until it ends. `late` is called at every look that finds it so. */
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
      // This process itself stood still for so long, and has not read what came meanwhile.
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
          // What a frame brings about says more.
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

/** Unless something was said within `quietMs`, or waits to be sent. */
const sayAlive = (one: Watched, quietMs: number, now: number): void => {
  const { socket, reader } = one;
  if (now - one.saidAt < quietMs || !socket.writable || socket.writableLength > 0) return;
  one.saidAt = now;
  socket.write(reader.alive);
};

/** It may have begun while the process stood still. */
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
