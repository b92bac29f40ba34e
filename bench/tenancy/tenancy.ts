import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interruptible } from "../cloud/interrupted.ts";
import { interleave, median, percentile, rangeOf, ratios } from "../measure.ts";
import { type Door, startDoor } from "./door.ts";
import { type Keystone, startKeystone } from "./keystone.ts";
import type { TenancyReport } from "./tenancy-process.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "tenancy-process.ts");

interface Size {
  readonly domains: number;
  readonly accounts: number;
  readonly users: number;
  readonly repetitions: number;
}
const whole: Size = { domains: 1_000, accounts: 10_000, users: 50_000, repetitions: 2_000 };
const small: Size = { domains: 50, accounts: 500, users: 2_500, repetitions: 200 };

/** With the settings of memory that a service VM's processes have. */
const settings = ["--disable-warning=ExperimentalWarning", "--expose-gc", "--max-semi-space-size=8"];

async function measured(store: string, { domains, accounts, users, repetitions }: Size): Promise<TenancyReport> {
  const size = [domains, accounts, users, repetitions].map(String);
  const of = async (what: string): Promise<string> => {
    const options = { maxBuffer: 64 * 1024 * 1024 };
    return (await run(process.execPath, [...settings, file, what, store, ...size], options)).stdout;
  };
  await of("make");
  return JSON.parse(await of("measure")) as TenancyReport;
}

type Question = "session" | "ticket" | "look";
const asked: { readonly [Q in Question]: readonly [ours: string, theirs: string, rounds: number] } = {
  session: ["a session for a password", "a token for a password", 30],
  ticket: ["a ticket for a session", "a token for a token", 100],
  look: ["whose a session is", "a token validated", 100],
};

/** The two in turns. Where Keystone cannot be had, our own are figures all the same. @param ends what is to be ended afterwards */
async function besideKeystone(
  store: string,
  directory: string,
  { quick, say }: BenchOptions,
  ends: (() => Promise<void>)[],
): Promise<readonly Figure[]> {
  const door = await startDoor(store);
  ends.push(door.end);
  const takenBack = await withdrawal(door, quick);
  if (quick) return [takenBack, ...(await compare(door, null, 3))];
  say("Debian's keystone: fetching and unpacking it, which takes minutes");
  let keystone: Keystone | null = null;
  try {
    keystone = await startKeystone(join(directory, "debian"), ends);
    say(`Keystone ${keystone.version} answers`);
  } catch (error) {
    say(`Keystone could not be brought up, and is not measured: ${(error as Error).message}`);
  }
  return [takenBack, ...(await compare(door, keystone, null))];
}

/** Of cells that the user of `door.ts` reaches: of accounts in his domain, and in those below. */
const reached = Array.from({ length: 10_000 }, (_none, n) => n).filter((n) => (n % whole.domains) % 32 === 0);
async function withdrawal(door: Door, quick: boolean): Promise<Figure> {
  const cells = quick ? ["cell-0", "cell-32"] : reached.slice(0, 50).map((n) => `cell-${n}`);
  const times = await door.rightTakenBack(cells, quick ? 2 : 20);
  const what = `a user disabled at the gateway until that counts at ${cells.length} controllers, p99`;
  return worst(what, times, 1000, "over TLS, with what is written");
}

async function compare(door: Door, keystone: Keystone | null, few: number | null): Promise<readonly Figure[]> {
  const session = await door.sessionForPassword();
  const token = (await keystone?.tokenForPassword()) ?? "";
  const ours: { readonly [Q in Question]: () => Promise<unknown> } = {
    session: door.sessionForPassword,
    ticket: () => door.ticketForSession(session),
    look: () => door.validate(session),
  };
  const theirs: { readonly [Q in Question]: () => Promise<unknown> } = {
    session: async () => keystone?.tokenForPassword(),
    ticket: async () => keystone?.tokenForToken(token),
    look: async () => keystone?.validate(token),
  };
  const figures: Figure[] = [];
  for (const question of Object.keys(asked) as Question[]) {
    const [what, other, rounds] = asked[question];
    const times = await interleave(few ?? rounds, {
      ours: () => timed(ours[question]),
      theirs: () => timed(theirs[question]),
    });
    figures.push(of(`at the door: ${what}, median`, times.ours));
    if (keystone === null) continue;
    figures.push(of(`at Keystone's: ${other}, median`, times.theirs));
    const ratio = ratios(times.ours, times.theirs);
    const value = median(times.ours) / median(times.theirs);
    figures.push({ what: "of what Keystone takes", unit: "×", value, range: rangeOf(ratio), atMost: 1 });
  }
  return figures;
}
const of = (what: string, values: readonly number[]): Figure => ({
  what,
  unit: "ms",
  value: median(values),
  range: rangeOf(values),
  atMost: null,
  note: `p99 ${percentile(values, 0.99).toFixed(1)} ms`,
});
async function timed(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

const worst = (what: string, values: readonly number[], atMost: number, note?: string): Figure => ({
  what,
  unit: "ms",
  value: percentile(values, 0.99),
  range: rangeOf(values),
  atMost,
  ...(note === undefined ? {} : { note }),
});

async function measureAll(options: BenchOptions): Promise<readonly Figure[]> {
  const { quick, say } = options;
  const size = quick ? small : whole;
  say(`${size.domains} domains, ${size.accounts} accounts, ${size.users} users`);
  const directory = await mkdtemp(join(tmpdir(), "cells-bench-tenancy-"));
  const store = join(directory, "state.sqlite");
  const ends: (() => Promise<void>)[] = [];
  const cleanUp = async (): Promise<void> => {
    for (const end of ends.splice(0)) await end();
    await rm(directory, { recursive: true, force: true });
  };
  return interruptible(cleanUp, async () => {
    try {
      const own = figuresOf(await measured(store, size));
      return [...own, ...(await besideKeystone(store, directory, options, ends))];
    } finally {
      await cleanUp();
    }
  });
}

function figuresOf(report: TenancyReport): readonly Figure[] {
  return [
    worst("first look at a ticket: issued, asked for, answered; p99", report.firstLooksMs, 5),
    worst("a ticket that the controller knows, p99", report.knownMs, 0.02),
    worst("a signed request verified, p99", report.signedMs, 1),
    {
      what: "the same, processor time of each",
      unit: "ms",
      range: null,
      atMost: 0.2,
      note: "5,000 a second",
      value: report.signedCpuMs,
    },
    worst("`cells can`, p99", report.canMs, 1),
    worst(
      "a user disabled until it is said to all who follow him, p99",
      report.takenBackMs,
      1000,
      "of the step; the network is not in it",
    ),
    { what: "restored from its store", unit: "s", value: report.restoreMs / 1000, range: null, atMost: 3 },
    { what: "of that in the heap", unit: "MiB", value: report.heapMiB, range: null, atMost: null },
    { what: "resident memory", unit: "MiB", value: report.residentMiB, range: null, atMost: 160 },
  ];
}

export const tenancy: Bench = {
  title: "Users: the service tenancy",
  method:
    "The step function over a store on disk, in a process of its own that asks it as its edge does: 1,000 domains, 10,000 accounts with a cell each, 50,000 users, a key for every fifth and a session for every tenth, 2,000 of each question. HTTPS and the commit of what is written are not in it. Then the service as a process over that store and a gateway before it, in turns with Debian's `keystone` (Fernet tokens, SQLite, one worker of uWSGI, one user), each question with a connection of its own over loopback: there, all is in it.",
  run: measureAll,
};
