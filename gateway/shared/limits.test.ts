import assert from "node:assert/strict";
import { test } from "node:test";
import { createLimits, known, unknown } from "./limits.ts";

const here = "192.0.2.1";
const login = "a password";
interface All {
  readonly ask: (who: string, status?: number | null, source?: string) => number | null;
  /** Answered, and the gateway says whose it is. */
  readonly askOf: (whose: string, who: string) => number | null;
  /** How many of so many are answered at one moment. */
  readonly served: (ask: (at: number) => number | null) => number;
  readonly belongs: (who: string, whose: string) => void;
  /** Of a refusal; undefined: it is none. */
  readonly laterMs: (who: string, source?: string) => number | null | undefined;
  now: number;
}
function world(): All {
  const state = { now: 0 };
  const limits = createLimits(() => state.now);
  return Object.assign(state, {
    belongs: limits.belongs,
    laterMs: (who: string, source = here): number | null | undefined => {
      const begun = limits.begin(who, source);
      return "waitS" in begun ? begun.laterMs : undefined;
    },
    ask: (who: string, status: number | null = 200, source = here) => {
      const begun = limits.begin(who, source);
      if ("waitS" in begun) return begun.waitS;
      begun.answered(status, who === login);
      return null;
    },
    askOf: (whose: string, who: string) => {
      const begun = limits.begin(who, here);
      if ("waitS" in begun) return begun.waitS;
      limits.belongs(who, whose);
      begun.answered(200, false);
      return null;
    },
    served: (ask: (at: number) => number | null) =>
      Array.from({ length: 5000 }, (_, at) => ask(at)).filter((waitS) => waitS === null).length,
  });
}

test("who is known has so many requests at once and so many a second, and another one has his own", () => {
  const all = world();
  let taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.ok(taken === known.burst || taken === known.burst + 1, String(taken));
  assert.equal(all.ask("ann"), 1, "after a second there are more");
  assert.equal(all.ask("bob"), null, "of the same address");
  all.now += 1000;
  taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.equal(taken, known.rate);
  all.now += 3_600_000;
  taken = 0;
  while (taken < 1000 && all.ask("ann") === null) taken += 1;
  assert.equal(taken, known.burst, "never more than that at once");
});

test("who guesses is slow, by where he comes from, and costs nobody who is known anything", () => {
  const all = world();
  assert.equal(all.ask("ann"), null);
  let guesses = 0;
  while (guesses < 1000 && all.ask(`guess ${guesses}`, 401) === null) guesses += 1;
  assert.equal(guesses, unknown.burst);
  assert.equal(all.ask("ann"), null, "of the same address, and known");
  assert.equal(all.ask("guess", 401, "192.0.2.2"), null, "another address");
  assert.equal(all.ask("new"), 1, "who was never seen from there waits with him");
  all.now += 1000;
  assert.equal(all.ask("new"), null);
  assert.equal(all.ask("ann", 401), null);
  all.now += 100_000;
  for (let at = 0; at < 3 * unknown.burst; at += 1)
    assert.equal(all.ask(""), null, "a login that succeeds is no guess");
  for (let at = 0; at < unknown.burst; at += 1) all.ask("other", 401);
  assert.notEqual(all.ask("ann"), null, "a credential that ended is one like any other");
});

test("sessions of one account have one measure, also those that are made meanwhile", () => {
  const all = world();
  for (const session of ["ann 1", "ann 2", "al 1"]) {
    assert.equal(all.ask(session), null);
    all.belongs(session, "acme");
  }
  all.ask("bob");
  all.belongs("bob", "other");
  let taken = 0;
  const next = (): string => ["ann 1", "ann 2", "al 1"][taken % 3] ?? "";
  while (taken < 1000 && all.ask(next()) === null) taken += 1;
  assert.equal(taken, known.burst);
  assert.equal(all.ask("ann 3"), null, "it is known by no more than where it comes from");
  all.belongs("ann 3", "acme");
  assert.equal(all.ask("ann 3"), 1);
  assert.equal(all.ask("bob"), null);
});

test("one session is the same in each spelling of its header, and new sessions of an account count for it at once", () => {
  const all = world();
  assert.equal(all.askOf("other", "Bearer bob"), null);
  const spelt = (at: number): string => `${at % 2 === 0 ? "bearer" : "BEARER"}${" ".repeat(1 + at)}T`;
  assert.equal(
    all.served((at) => all.askOf("acme", spelt(at))),
    known.burst,
  );
  assert.equal(all.askOf("other", "Bearer bob"), null, "another account has its own");
  const anew = world();
  assert.equal(anew.askOf("other", "Bearer bob"), null);
  // Those that find nothing left of the account count for where they come from.
  assert.equal(
    anew.served((at) => anew.askOf("acme", `Bearer T${at}`)),
    known.burst + unknown.burst,
  );
  assert.equal(anew.askOf("other", "Bearer bob"), null);
});

test("what the gateway does not vouch for counts for where it comes from, whatever is answered", () => {
  const all = world();
  // A gateway of the version before says nothing of anybody.
  for (let at = 0; at < 3; at += 1) assert.equal(all.ask("made up before"), null);
  assert.equal(
    all.served(() => all.ask("made up before")),
    known.burst - 2,
  );
  assert.equal(all.askOf("acme", "ann"), null);
  for (const [status, who] of [
    [200, () => "made up before"],
    [200, () => "made up"],
    [403, (at: number) => `made up ${at}`],
    [200, () => ""],
    [401, () => login],
    [null, () => login],
  ] as const) {
    const asked = all.served((at) => all.ask(who(at), status));
    assert.equal(asked, unknown.burst, `${status} of ${who(0)}`);
    assert.equal(all.ask("ann"), null, "who is known has another one");
    all.now += 60_000;
  }
  assert.equal(
    all.served(() => all.ask(login)),
    5000,
    "a login that succeeds is no guess",
  );
  assert.equal(
    all.served(() => all.ask("ann")),
    known.burst,
  );
});

test("refusals are said later, as many a second as answers, and where too many wait there are none", () => {
  const all = world();
  all.ask("ann");
  for (let at = 0; at < known.burst; at += 1) all.ask("ann");
  const later = Array.from({ length: 1000 }, () => all.laterMs("ann"));
  const said = later.filter((ms) => typeof ms === "number");
  assert.equal(said[0], 1000);
  assert.ok(said.every((ms, at) => at === 0 || Math.abs(ms - (said[at - 1] ?? 0) - 1000 / known.rate) < 1e-6));
  assert.ok(said.length > 400 && Math.max(...said) <= 10_000, String(said.length));
  assert.ok(later.slice(said.length).every((ms) => ms === null));
  for (let at = 0; at < unknown.burst; at += 1) all.ask(`guess ${at}`, 401);
  assert.equal(all.laterMs("guess"), 1000, "another one waits for nothing of his");
  all.now += 60_000;
  for (let at = 0; at < known.burst; at += 1) all.ask("ann");
  assert.equal(all.laterMs("ann"), 1000, "a minute later it is forgotten");
});
