import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import type { Json } from "../../model/json/json.ts";
import { type EchoView, echoClient, echoServer } from "../http/echo.testing.ts";
import { createTestInstallation, eventually } from "../installation.testing.ts";
import type { Asked, Failure } from "./roles-of-process.testing.ts";

const program = join(import.meta.dirname, "roles-of-process.testing.ts");
type Lives = { readonly lives: number; readonly all: boolean };

/** Both ends of an echo as roles of one process. */
class Process {
  readonly child: ChildProcess;
  said = "";
  #next = 0;
  readonly #waiting = new Map<number, (response: Json) => void>();

  constructor(files: readonly string[]) {
    this.child = fork(program, files, { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
    this.child.setMaxListeners(0);
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.said += chunk;
      });
    this.child.on("message", ({ id, response }: { id: number; response: Json }) => this.#waiting.get(id)?.(response));
  }
  ask(role: string, request: Asked): Promise<Json> {
    this.#next += 1;
    const id = this.#next;
    return new Promise((resolve, reject) => {
      if (!this.child.connected) return reject(new Error(`the process has ended:\n${this.said}`));
      this.#waiting.set(id, resolve);
      this.child.once("exit", () => reject(new Error(`the process has ended:\n${this.said}`)));
      this.child.send({ id, role, request });
    });
  }
  view = async (role: string): Promise<EchoView> => (await this.ask(role, { ask: "view" })) as EchoView;
  lives = async (role: string): Promise<Lives> => (await this.ask(role, { ask: "lives" })) as Lives;
  fail = (role: string, how: Failure): Promise<Json> => this.ask(role, { ask: "fail", how });
  desire = (value: number): Promise<Json> => this.ask(echoClient, { ask: "desire", key: "number/1", value });
  answers = (): Promise<true> => eventually("all answer", async () => (await this.lives(echoServer)).all);
}

const withProcess = async (label: string, use: (at: Process) => Promise<void>): Promise<void> => {
  const installation = await createTestInstallation(label);
  const files = [(await installation.configure(echoServer)).file, (await installation.configure(echoClient)).file];
  const at = new Process(files);
  try {
    await at.answers();
    await use(at);
  } finally {
    at.child.kill("SIGKILL");
    await installation.remove();
  }
};

test("a role that fails is named and started again alone, from what is durable", () =>
  withProcess("roles", async (at) => {
    let number = 1;
    await at.desire(number);
    const echoed = (): Promise<true> =>
      eventually("what is desired is echoed", async () => {
        const { actual, reachable } = await at.view(echoClient);
        return reachable && actual["number/1"] === number;
      });
    await echoed();
    for (const how of ["step", "timer", "rejection", "restart"] as const) {
      const before = await at.lives(echoServer);
      const other = await at.lives(echoClient);
      await at.fail(echoServer, how);
      await eventually(`the next life after a ${how}`, async () => {
        const { lives, all } = await at.lives(echoServer);
        return lives === before.lives + 1 && all;
      });
      assert.equal((await at.lives(echoClient)).lives, other.lives, "the other one was started again");
      number += 1;
      await at.desire(number);
      await echoed();
      const { desired, violations } = await at.view(echoServer);
      assert.deepEqual([desired, violations], [{ "number/1": number }, []], how);
      const says = at.said.split("\n").filter((line) => line.includes(`a ${how} failed`));
      assert.equal(says.length > 0, how !== "restart");
      assert.ok(says.every((line) => JSON.parse(line).service === echoServer));
    }
  }));

test("a role that fails over and over rests, and the others go on", () =>
  withProcess("rests", async (at) => {
    await at.desire(1);
    await at.fail(echoServer, "start");
    await eventually("it answers after three starts that failed", async () => {
      const { lives, all } = await at.lives(echoServer);
      if (lives < 5) assert.equal(all, false, "the process counts as well while one of its roles is down");
      return lives === 5 && all;
    });
    assert.equal((await at.lives(echoClient)).lives, 1);
    await eventually("all is back", async () => (await at.view(echoClient)).actual["number/1"] === 1);
  }));

test("an error that is nobody's, and a port that an earlier life still has, end the process; a signal ends all in order", async () => {
  for (const how of ["nobody", "port"] as const)
    await withProcess(how, async (at) => {
      const exit = once(at.child, "exit");
      await at.fail(echoServer, how);
      assert.deepEqual(await exit, [1, null]);
    });
  await withProcess("order", async (at) => {
    const exit = once(at.child, "exit");
    at.child.kill("SIGTERM");
    assert.deepEqual(await exit, [0, null]);
    for (const role of [echoServer, echoClient])
      assert.match(at.said, new RegExp(`"service":"${role}","event":"process/stopped"`));
  });
});
