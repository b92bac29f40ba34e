import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { GuestAgent } from "./guest-agent.ts";
import { type GuestCommand, type GuestRun, runInGuest } from "./guest-command.ts";
import { localAgent } from "./this-machine.testing.ts";

test("however many signals a client sends, few are on their way into the guest, and the last one arrives", async () => {
  const kills: { readonly name: string; done(): void }[] = [];
  const agent: GuestAgent = {
    hasAnswered: () => true,
    exec: async () => assert.fail("not asked for"),
    call: (command, parameters) =>
      new Promise((resolve) => {
        const { arg = [] } = parameters as { readonly arg?: readonly string[] };
        if (command !== "guest-exec") return;
        if (arg[0] === "-c" && arg[3] === "5") kills.push({ name: String(arg[2]), done: () => resolve({ pid: 6 }) });
        else resolve({ pid: 5 });
      }),
    close: () => undefined,
  };
  const output = { output: async () => undefined, notice: () => undefined };
  const run = runInGuest(agent, { command: ["cat"], input: null, timeoutMs: null }, output);
  run.exitCode.catch(() => undefined);
  for (let count = 0; count < 1000; count += 1) run.signal("INT");
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT"],
    "those before its start are one",
  );
  for (let count = 0; count < 1000; count += 1) run.signal("INT");
  run.signal("HUP");
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT", "HUP"],
  );
  for (const kill of kills.splice(0)) kill.done();
  await turn();
  assert.deepEqual(
    kills.map(({ name }) => name),
    ["INT"],
    "one more, since more came",
  );
});

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const left = (): readonly string[] => readdirSync("/tmp").filter((name) => name.startsWith(".cells-"));

/** A command on this machine, through an agent as a guest has it. */
const local = (t: TestContext, command: readonly string[], rest: Partial<GuestCommand> = {}) => {
  const before = new Set(left());
  const { agent, inputs, end } = localAgent();
  t.after(end);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const output = async (stream: "stdout" | "stderr", bytes: Buffer): Promise<void> =>
    void (stream === "stdout" ? out : err).push(Buffer.from(bytes));
  const start = (through = output): GuestRun =>
    runInGuest(
      agent,
      { command, input: null, timeoutMs: null, ...rest },
      { output: through, notice: (sentence) => assert.fail(sentence) },
    );
  return {
    start,
    inputs,
    out: () => Buffer.concat(out),
    err: () => Buffer.concat(err).toString(),
    /** Waits until nothing of it is in the file system. */
    isTidied: async () => {
      while (left().some((name) => !before.has(name))) await sleep(10);
    },
  };
};
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test("input and output of any length pass at the same time, whole, and nothing is left", async (t) => {
  const bytes = randomBytes(5_000_001);
  const { start, out, err, isTidied } = local(t, ["sh", "-c", "cat; echo done >&2; exit 3"], {
    input: inPieces(bytes, 200_000),
  });
  assert.equal(await start().exitCode, 3);
  assert.equal(sha256(out()), sha256(bytes));
  assert.equal(err(), "done\n");
  await isTidied();
});

test("an input that is empty ends, and one that nobody reads to its end holds nobody up", async (t) => {
  const empty = local(t, ["sh", "-c", "cat; echo end"], { input: inPieces(Buffer.alloc(0), 1) });
  assert.equal(await empty.start().exitCode, 0);
  assert.equal(empty.out().toString(), "end\n");
  const some = local(t, ["head", "-c", "10"], { input: inPieces(Buffer.alloc(10_000_000, "x"), 250_000) });
  assert.equal(await some.start().exitCode, 0);
  assert.equal(some.out().toString(), "xxxxxxxxxx");
  assert.ok(some.inputs.length < 5, "no more is given than a pipe holds");
  await some.isTidied();
});

test("a command that nobody reads waits, and goes on when it is read", async (t) => {
  const { start, isTidied } = local(t, ["sh", "-c", "head -c 3000000 /dev/zero"]);
  const first = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  let given = 0;
  const run = start(async (_stream, bytes) => {
    given += bytes.length;
    first.resolve();
    await go.promise;
  });
  await first.promise;
  assert.equal(await Promise.race([run.exitCode, sleep(300, "it waits")]), "it waits");
  assert.ok(given <= 64 * 1024, String(given));
  go.resolve();
  assert.equal(await run.exitCode, 0);
  assert.equal(given, 3_000_000);
  await isTidied();
});

test("what a command leaves behind does not hold up its end, and what it wrote before is there", async (t) => {
  const { start, out, isTidied } = local(t, [
    "sh",
    "-c",
    "sleep 5 & echo first; yes >/dev/null & echo $!; printf last",
  ]);
  assert.equal(await start().exitCode, 0);
  const [, pid = "", last] = out().toString().split("\n");
  process.kill(Number(pid), "SIGKILL");
  assert.equal(last, "last");
  await isTidied();
});

test("a program that is not there, a command that is killed, and its session with it", async (t) => {
  const none = local(t, ["no-such-program"]);
  assert.equal(await none.start().exitCode, 127);
  assert.equal(none.err(), "no-such-program: not found in this guest\n");
  const killed = local(t, ["sh", "-c", "echo up; sleep 1000; echo not here"]);
  const up = Promise.withResolvers<void>();
  const run = killed.start(async () => up.resolve());
  await up.promise;
  run.signal("KILL");
  assert.equal(await run.exitCode, 137);
  const late = local(t, ["sh", "-c", "trap '' INT; sleep 1000"], { timeoutMs: 300 });
  await assert.rejects(late.start().exitCode, /"sh" did not end within 0.3 s and was killed/);
  await Promise.all([none, killed, late].map(({ isTidied }) => isTidied()));
});

test("text comes as it is written, whatever it ends with", async (t) => {
  const asked = Promise.withResolvers<void>();
  const { start } = local(t, ["sh", "-c", "printf '? '; read -r answer; printf 'cells\\037cells-'; exit 0"], {
    input: (async function* () {
      await asked.promise;
      yield Buffer.from("yes\n");
    })(),
  });
  let text = "";
  const run = start(async (_stream, bytes) => {
    text += bytes.toString();
    if (text === "? ") asked.resolve();
  });
  assert.equal(await run.exitCode, 0);
  assert.equal(text, "? cells\u001fcells-");
});
