import assert from "node:assert/strict";
import { test } from "node:test";
import { aliveFrame, createFrameReader } from "./frame-codec.ts";
import { createPulse, type Late, type Life, type PulseClock } from "./pulse.ts";

const limits = { aliveEveryMs: 2000, restEveryMs: 10_000, silenceMs: 8000, frameMs: 120_000 } as const;

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

/**
 * Two ends of a connection; the second begins to look `apartMs` after the first. What each said, by time, heartbeats alone.
 * @param counted whether somebody counts on its silence, at each end
 */
const connect = (time: ReturnType<typeof createTime>, apartMs: number, counted: readonly [boolean, boolean]) => {
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
    const pulse = createPulse(limits, time.clock);
    const life = pulse.watch(
      socket,
      createFrameReader(),
      (why) => late.push(why),
      () => counted[own],
    );
    lives[own] = life;
    // A greeting.
    life.heard(true);
  };
  end(0);
  time.pass(apartMs);
  end(1);
  /** A frame. */
  const say = (own: 0 | 1): void => {
    lives[own]?.said();
    if (!cut) lives[1 - own]?.heard(true);
  };
  return { said, late, lives, say, cut: () => (cut = true) };
};
const bothCount = [true, true] as const;
const neitherCounts = [false, false] as const;

for (const apartMs of [0, 1, 500, 999, 1000, 1001, 1499, 1500, 1501, 1999])
  test(`ends that look ${apartMs} ms apart speak once in two seconds each, and never rest for longer than 3.5`, () => {
    const time = createTime();
    const { said, late } = connect(time, apartMs, bothCount);
    time.pass(100_000);
    assert.deepEqual(late, []);
    for (const times of said) {
      assert.ok(times.length >= 45 && times.length <= 51, `${times.length} signs of life`);
      for (const [at, one] of times.entries()) assert.ok(at === 0 || one - (times[at - 1] ?? 0) <= 3000);
    }
  });

test("who is not heard is late after eight seconds, not before, and at every look from then on", () => {
  const time = createTime();
  const connection = connect(time, 700, bothCount);
  time.pass(10_000);
  connection.cut();
  time.pass(7000);
  assert.deepEqual(connection.late, []);
  time.pass(4000);
  assert.ok(connection.late.length >= 2);
  assert.deepEqual(new Set(connection.late), new Set(["silent"]));
});

for (const apartMs of [0, 500, 2000, 5000, 7000])
  test(`nobody counts on it: ends that look ${apartMs} ms apart rest, and one asks every ten seconds`, () => {
    const time = createTime();
    const { said, late } = connect(time, apartMs, neitherCounts);
    time.pass(1_000_000);
    assert.deepEqual(late, []);
    for (const times of said) assert.ok(times.length >= 99 && times.length <= 103, `${times.length} signs of life`);
    // Of a question and its answer one end's timer is the cause, and the two are one moment.
    assert.ok(new Set(said.flat()).size <= 103);
  });

for (const counted of [
  [true, false],
  [false, true],
] as const)
  test(`one end counts on it, ${counted.join(" and ")}: the other one answers it every two seconds`, () => {
    const time = createTime();
    const { said, late } = connect(time, 700, counted);
    time.pass(100_000);
    assert.deepEqual(late, []);
    for (const times of said) assert.ok(times.length >= 45, `${times.length} signs of life`);
  });

test("who has said something on a connection that rests knows within ten seconds that nothing came of it", () => {
  const time = createTime();
  const connection = connect(time, 700, neitherCounts);
  time.pass(101_000);
  connection.cut();
  connection.say(0);
  time.pass(7900);
  assert.deepEqual(connection.late, []);
  time.pass(2100);
  assert.deepEqual(new Set(connection.late), new Set(["silent"]));
});

test("who has nothing to say knows it twenty seconds after a connection that rests was cut", () => {
  for (let afterMs = 0; afterMs < 10_000; afterMs += 500) {
    const time = createTime();
    const connection = connect(time, 700, neitherCounts);
    time.pass(100_000 + afterMs);
    connection.cut();
    time.pass(8000);
    assert.deepEqual(connection.late, [], `cut after ${afterMs} ms`);
    time.pass(12_000);
    assert.ok(connection.late.length > 0, `cut after ${afterMs} ms`);
  }
});

test("who is told things all the time and has nothing to say is heard nevertheless", () => {
  const time = createTime();
  const { said, late, say } = connect(time, 700, neitherCounts);
  for (let ms = 0; ms < 60_000; ms += 1000) {
    say(0);
    time.pass(1000);
  }
  assert.deepEqual(late, []);
  assert.ok((said[1]?.length ?? 0) >= 14, `${said[1]?.length} signs of life`);
  time.pass(10_000);
  const before = said.flat().length;
  time.pass(60_000);
  assert.ok(said.flat().length - before <= 14, "they rest again");
});

test("on a connection that rests, too, a process that stood still does not hold it against others", () => {
  for (const atMs of [60_000, 63_000, 67_000]) {
    const time = createTime();
    const { late, say } = connect(time, 700, neitherCounts);
    time.pass(atMs);
    say(0);
    time.stand(60_000);
    time.pass(1);
    time.pass(60_000);
    assert.deepEqual(late, []);
  }
});

test("a process that stood still does not hold its own silence against others", () => {
  const time = createTime();
  const { late } = connect(time, 700, bothCount);
  time.pass(10_000);
  time.stand(60_000);
  time.pass(1);
  assert.deepEqual(late, []);
});

test("there is a timer while there is a connection, one for all of them", () => {
  const time = createTime();
  const pulse = createPulse(limits, time.clock);
  const socket = { writable: true, writableLength: 0, write: () => undefined };
  const lives = [1, 2, 3].map(() =>
    pulse.watch(
      socket,
      createFrameReader(),
      () => undefined,
      () => true,
    ),
  );
  assert.equal(time.timers.size, 1);
  for (const life of lives) {
    life.end();
    life.end();
  }
  assert.equal(time.timers.size, 0);
  pulse.watch(
    socket,
    createFrameReader(),
    () => undefined,
    () => true,
  );
  assert.equal(time.timers.size, 1);
});
