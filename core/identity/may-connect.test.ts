import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../model/cell/identifiers.ts";
import type { CurrentKeys } from "./current-keys.ts";
import { mayConnect as decide, type Expected, type Pins, span, type Verdict } from "./may-connect.ts";
import type { Presented } from "./presented.ts";

const mayConnect = (
  shown: Presented | null,
  expected: Expected,
  pins: Pins,
  nowMs: number,
  keys: CurrentKeys = new Map(),
): Verdict => decide(shown, expected, { pins, keys }, nowMs);
const now = Date.UTC(2026, 10, 21);
const hour = 3_600_000;
const [h1, h2, placer] = [peerName("host.h1"), peerName("host.h2"), peerName("placer")];
const pinOf = (name: string): string => `key of ${name}`;
const shown = (change: Partial<Presented> = {}): Presented => {
  const name = change.name === undefined ? h2 : change.name;
  const dates = { validFromMs: now - hour, validToMs: now + hour };
  return { name, signed: true, key: pinOf(String(name)), ...dates, ...change };
};
const ended = { validFromMs: now - 9 * hour, validToMs: now - 2 * hour };
const early = { validFromMs: now + 2 * hour, validToMs: now + 9 * hour };
const names = ["host.h1", "host.h2", "controller.root", "authority", "controller.shop", "placer", "agent.s1"].map(
  peerName,
);
const pins: Pins = new Map(names.map((name) => [name, pinOf(name)]));
const none: Pins = new Map();
const from = (peer: typeof h1 | null, self = h1) => ({ self, peer });
const because = (verdict: Verdict): string => (verdict.ok ? `ok by ${verdict.by}` : verdict.because);
const why = (verdict: Verdict): string => ("why" in verdict ? verdict.why : "");

test("a certificate of the authority within its dates is good for the peer that it names, pins or not", () => {
  for (const known of [none, pins, new Map([[h2, "another"]])]) {
    assert.deepEqual(mayConnect(shown(), from(h2), known, now), { ok: true, name: h2, by: "certificate" });
    assert.deepEqual(mayConnect(shown(), from(null), known, now), { ok: true, name: h2, by: "certificate" });
  }
  // Both ends of its time belong to it (RFC 5280, section 4.1.2.5).
  assert.equal(because(mayConnect(shown({ validFromMs: now }), from(h2), none, now)), "ok by certificate");
  assert.equal(because(mayConnect(shown({ validToMs: now }), from(h2), none, now)), "ok by certificate");
});

test("what is no certificate of the authority, or names somebody else, is refused whatever is pinned", () => {
  for (const dates of [{}, ended, early]) {
    const verdict = (change: Partial<Presented>, peer: typeof h1 | null = h2) =>
      because(mayConnect(shown({ ...dates, ...change }), from(peer), pins, now));
    assert.equal(verdict({ signed: false }), "foreign");
    assert.equal(verdict({ signed: false, name: null }), "foreign");
    assert.equal(verdict({ name: null }), "nameless");
    assert.equal(verdict({ name: null }, null), "nameless");
    assert.equal(verdict({ name: placer }), "another");
    assert.equal(verdict({}, placer), "another");
  }
  assert.equal(because(mayConnect(null, from(h2), pins, now)), "no-certificate");
  assert.match(why(mayConnect(shown({ name: placer }), from(h2), pins, now)), /is "placer", not "host.h2"/);
  assert.match(why(mayConnect(shown({ signed: false }), from(h2), pins, now)), /"host.h2" was not signed by/);
  assert.match(why(mayConnect(shown({ signed: false, name: null }), from(h2), pins, now)), /of the other end was not/);
});

test("a certificate of before its name got another key is refused, whatever is pinned and by whatever dates", () => {
  const keys: CurrentKeys = new Map([[h2, { key: "newer", sinceMs: now }]]);
  for (const dates of [{}, ended])
    for (const known of [none, pins])
      for (const peer of [h2, null])
        assert.equal(because(mayConnect(shown(dates), from(peer), known, now, keys)), "superseded");
  assert.match(why(mayConnect(shown(), from(h2), pins, now, keys)), /"host.h2" has another key since, and this/);
  assert.equal(because(mayConnect(shown({ key: "newer" }), from(h2), none, now, keys)), "ok by certificate");
  assert.equal(
    because(mayConnect(shown({ name: h1 }), from(h1), none, now, keys)),
    "ok by certificate",
    "another name",
  );
});

test("outside its dates a certificate counts only with the pinned key", () => {
  for (const dates of [ended, early]) {
    const verdict = (known: Pins, change: Partial<Presented> = {}) =>
      because(mayConnect(shown({ ...dates, ...change }), from(h2), known, now));
    assert.equal(verdict(pins), "ok by pin");
    assert.equal(verdict(none), "dates");
    assert.equal(verdict(pins, { key: "another" }), "another-key");
    assert.equal(verdict(new Map([[h1, pinOf(h2)]])), "dates", "another peer's pin");
  }
  const late = mayConnect(shown(ended), from(h2), pins, now);
  assert.match(why(late), /"host.h2" ended at 2026-11-20T22:00:00.000Z, 2 hours before .* clock/);
  assert.match(why(mayConnect(shown(early), from(h2), none, now)), /begins at 2026-11-21T02:00.*, 2 hours after/);
  assert.match(why(mayConnect(shown({ ...ended, key: "x" }), from(h2), pins, now)), /not the one that was pinned/);
});

test("exactly hosts among one another, and a host or an agent and the root controller, make up for dates with a pin", () => {
  const made = names.flatMap((self) =>
    names
      .filter((name) => mayConnect(shown({ ...ended, name }), from(name, self), pins, now).ok)
      .map((name) => `${self} ← ${name}`),
  );
  const hosts = ["host.h1", "host.h2"];
  const root = ["controller.root", "authority"];
  const machines = [...hosts, "agent.s1"];
  const expected = [
    ...hosts.flatMap((a) => hosts.map((b) => `${a} ← ${b}`)),
    ...machines.flatMap((a) => root.flatMap((b) => [`${a} ← ${b}`, `${b} ← ${a}`])),
  ];
  assert.deepEqual(made.sort(), expected.sort());
});

test("names that only look like a host's or the root controller's are not pinned", () => {
  for (const name of [
    "host.",
    "agent.s1.x",
    "hosts.h1",
    "xhost.h1",
    "host.h1.x",
    "host",
    "controller.rooted",
    "authority.2",
  ]) {
    const other = peerName(name);
    const known = new Map([[other, "k"]]);
    assert.equal(
      because(mayConnect(shown({ ...ended, name: other, key: "k" }), from(other), known, now)),
      "dates",
      name,
    );
    assert.equal(because(mayConnect(shown({ ...ended }), from(h2, other), pins, now)), "dates", name);
  }
});

test("whatever is presented: accepted only if signed and named as expected, and within dates or pinned", () => {
  const count = { certificate: 0, pin: 0, refused: 0 };
  fc.assert(
    fc.property(
      fc.record({
        name: fc.option(fc.constantFrom(...names), { nil: null }),
        signed: fc.constantFrom(true, true, true, false),
        own: fc.constantFrom(true, true, false),
        validFromMs: fc.constantFrom(now - hour, now - 1, now, now + 1),
        validToMs: fc.constantFrom(now - 1, now, now + 1, now + hour),
      }),
      fc.record({ self: fc.constantFrom(...names), peer: fc.option(fc.constantFrom(...names), { nil: null }) }),
      fc.subarray([...pins.entries()]),
      ({ own, ...rest }, expected, known) => {
        const presented = { ...rest, key: own ? pinOf(String(rest.name)) : pinOf("somebody else") };
        const verdict = mayConnect(presented, expected, new Map(known), now);
        count[verdict.ok ? verdict.by : "refused"] += 1;
        if (!verdict.ok) return;
        assert.ok(presented.signed && presented.name !== null && verdict.name === presented.name);
        assert.ok(expected.peer === null || expected.peer === presented.name);
        const within = presented.validFromMs <= now && now <= presented.validToMs;
        assert.equal(verdict.by === "certificate", within);
        if (!within) assert.ok(known.some(([name, key]) => name === presented.name && key === presented.key));
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(count.certificate > 0 && count.pin > 0 && count.refused > 0, JSON.stringify(count));
});

test("a span is told in the largest unit that fits", () => {
  const told = [0, 1000, 59_999, 60_000, hour, 25 * hour, 400 * 24 * hour].map(span);
  assert.deepEqual(told, ["1 second", "1 second", "59 seconds", "1 minute", "1 hour", "1 day", "400 days"]);
});
