import assert from "node:assert/strict";
import { test } from "node:test";
import { aliveFrame, createFrameReader } from "./frame-codec.ts";
import { createPulse, type Late, type Life, type PulseClock } from "./pulse.ts";

const limits = { aliveEveryMs: 2000, silenceMs: 8000, frameMs: 120_000 } as const;

/** Time that passes when it is told to; whoever waits is called at its moment. */
const createTime = () => {
  let now = 0;
  const timers = new Set<{ readonly ms: number; readonly look: () => void; next: number }>();
  const clock: PulseClock = {
    now: () => now,
    every: (ms, look) => {
      const timer = { ms, look, next: now + ms };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  const pass = (ms: number): void => {
    for (const end = now + ms; ; ) {
      const due = [...timers].filter(({ next }) => next <= end).sort((a, b) => a.next - b.next)[0];
      if (due === undefined) {
        now = end;
        return;
      }
      now = Math.max(now, due.next);
      due.next = now + due.ms;
      due.look();
    }
  };
  return { clock, pass, timers, stand: (ms: number) => (now += ms) };
};

/** Two ends of a connection; the second begins to look `apartMs` after the first. What each said, by time. */
const connect = (time: ReturnType<typeof createTime>, apartMs: number) => {
  const said: [number[], number[]] = [[], []];
  const late: Late[] = [];
  const lives: Life[] = [];
  let cut = false;
  const end = (own: 0 | 1): void => {
    const socket = {
      writable: true,
      writableLength: 0,
      write: (bytes: Uint8Array) => {
        assert.deepEqual(bytes, aliveFrame);
        said[own].push(time.clock.now());
        if (!cut) lives[1 - own]?.heard(false);
      },
    };
    const life = createPulse(limits, time.clock).watch(socket, createFrameReader(), (why) => late.push(why));
    lives[own] = life;
    // A greeting.
    life.heard(true);
  };
  end(0);
  time.pass(apartMs);
  end(1);
  return { said, late, lives, cut: () => (cut = true) };
};

for (const apartMs of [0, 1, 500, 999, 1000, 1001, 1499, 1500, 1501, 1999])
  test(`ends that look ${apartMs} ms apart speak once in two seconds each, and never rest for longer than 3.5`, () => {
    const time = createTime();
    const { said, late } = connect(time, apartMs);
    time.pass(100_000);
    assert.deepEqual(late, []);
    for (const times of said) {
      assert.ok(times.length >= 45 && times.length <= 51, `${times.length} signs of life`);
      for (const [at, one] of times.entries()) assert.ok(at === 0 || one - (times[at - 1] ?? 0) <= 3000);
    }
  });

test("who is not heard is late after eight seconds, not before, and at every look from then on", () => {
  const time = createTime();
  const connection = connect(time, 700);
  time.pass(10_000);
  connection.cut();
  time.pass(7000);
  assert.deepEqual(connection.late, []);
  time.pass(4000);
  assert.ok(connection.late.length >= 2);
  assert.deepEqual(new Set(connection.late), new Set(["silent"]));
});

test("a process that stood still does not hold its own silence against others", () => {
  const time = createTime();
  const { late } = connect(time, 700);
  time.pass(10_000);
  time.stand(60_000);
  time.pass(1);
  assert.deepEqual(late, []);
});

test("there is a timer while there is a connection, one for all of them", () => {
  const time = createTime();
  const pulse = createPulse(limits, time.clock);
  const socket = { writable: true, writableLength: 0, write: () => undefined };
  const lives = [1, 2, 3].map(() => pulse.watch(socket, createFrameReader(), () => undefined));
  assert.equal(time.timers.size, 1);
  for (const life of lives) {
    life.end();
    life.end();
  }
  assert.equal(time.timers.size, 0);
  pulse.watch(socket, createFrameReader(), () => undefined);
  assert.equal(time.timers.size, 1);
});
