import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { PowerController } from "../../core/ha/power/controller.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { createAgentDriver } from "./agent.ts";
import { type IpmiSim, shownWhileAsked, startIpmiSim } from "./ipmi-sim.testing.ts";

/* Debian's fence_ipmilan at OpenIPMI's simulator, and agents that lie, each a script. */
let sim: IpmiSim;
let directory: string;
const soon = (ms = 8000): AbortSignal => AbortSignal.timeout(ms);
const real = createAgentDriver();
const ipmilan = (more: Partial<PowerController> = {}): PowerController => ({
  ...sim.controller,
  kind: "agent",
  agent: "fence_ipmilan",
  options: { lanplus: "1", cipher: "3", power_wait: "0" },
  ...more,
});

before(async () => {
  sim = await startIpmiSim(await freePort());
  directory = await mkdtemp(join(tmpdir(), "cells-agents-"));
  await chmod(directory, 0o755);
});
after(async () => {
  await sim.stop();
  await rm(directory, { recursive: true, force: true });
});

/** What it reads of an agent that is this script; `$asked` has what it was told. */
const agentOf = async (script: string, agent = "fence_liar"): Promise<PowerController> => {
  await writeFile(join(directory, agent), `#!/bin/sh\nasked=$(cat)\n${script}\n`);
  await chmod(join(directory, agent), 0o755);
  return { kind: "agent", agent, address: "10.9.0.5", plug: "7", user: "cells", password: "correct-horse" };
};
const liars = () => createAgentDriver(directory);
const read = async (script: string, signal = soon()) => liars().read(await agentOf(script), signal);

test("a real agent is examined, reads the power, cuts it and reads it as off, and shows no UUID", async () => {
  assert.equal(await real.examine?.(ipmilan(), soon()), null);
  assert.deepEqual(await real.read(ipmilan(), soon()), { power: "on", uuid: null, reason: null });
  assert.equal(await sim.power(), "on", "nothing was switched");
  await real.off(ipmilan(), soon());
  assert.equal(await sim.power(), "off");
  assert.equal((await real.read(ipmilan(), soon())).power, "off");
  await sim.switch("on");
  assert.equal((await real.read(ipmilan({ password: "other" }), soon())).power, null);
});

test("off takes both the exit code and the word for it, from two runs", async () => {
  const once = join(directory, "once");
  const flips = `if [ -e ${once} ]; then echo "Status: OFF"; exit 2; fi; : >${once}; echo "Status: ON"`;
  const answers: readonly (readonly [string, "on" | "off" | null])[] = [
    ['echo "Status: OFF"; exit 2', "off"],
    ['echo "Status: ON"', "on"],
    ['echo "Status: OFF"', null],
    ['echo "Status: OFF"; exit 1', null],
    ["exit 2", null],
    ['echo "Status: ON"; exit 2', null],
    ['echo "Status: ON"; echo "Status: OFF"; exit 2', null],
    ['echo "status: off"; exit 2', null],
    ['echo "Success: Already OFF"; exit 2', null],
    ['echo "Status: OFF" >&2; exit 2', null],
    ["kill -9 $$", null],
    ["", null],
  ];
  await Promise.all(
    answers.map(async ([script, power], number) => {
      const said = await liars().read(await agentOf(script, `fence_liar${number}`), soon());
      assert.deepEqual([said.power, said.uuid], [power, null], script);
      assert.equal(said.reason === null, power !== null, script);
    }),
  );
  // The first run makes the file, which nobody in particular may write.
  await chmod(directory, 0o777);
  assert.deepEqual(await read(flips), {
    power: null,
    uuid: null,
    reason: "fence_liar says once that the power is on, and once that it is off",
  });
  await chmod(directory, 0o755);
});

test("one that does not end is ended with all that it has begun; one that says too much is not read", async () => {
  const mark = `61${process.pid}`;
  const from = performance.now();
  const slow = await read(`setsid sleep ${mark} & sleep ${mark}`, soon(700));
  assert.deepEqual([slow.power, slow.reason], [null, "fence_liar did not end in time"]);
  assert.ok(performance.now() - from < 5000);
  const left: string[] = [];
  for (let looks = 0; looks < 20; looks += 1) {
    left.length = 0;
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name)))
      if ((await readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")) === `sleep\0${mark}\0`) left.push(pid);
    if (left.length === 0) break;
    await sleep(50);
  }
  for (const pid of left) process.kill(Number(pid), "SIGKILL");
  assert.deepEqual(left, []);
  const loud = await read('yes "Status: OFF"', soon(5000));
  assert.deepEqual([loud.power, loud.reason], [null, "fence_liar says more than anybody would read"]);
  const long = await read('head -c 70000 /dev/zero | tr "\\0" x; echo; echo "Status: OFF"; exit 2');
  assert.equal(long.power, null);
});

test("nothing is run but what root alone can change, in the directory of agents, under an agent's name", async () => {
  const good = await agentOf('echo "Status: OFF"; exit 2', "fence_good");
  const agent = async (name: string) => (await liars().read({ ...good, agent: name }, soon())).reason ?? "off";
  assert.equal(await agent("fence_good"), "off", "a positive control");
  await symlink(join(directory, "fence_good"), join(directory, "fence_other_name"));
  assert.equal(await agent("fence_other_name"), "off", "as several of Debian's are");
  await agentOf('echo "Status: OFF"; exit 2', "other");
  for (const name of ["other", "../fence_good", "fence_../../bin/true", "fence_Good", "fence_", "", "fence_good\0"])
    assert.equal(await agent(name), "that is no name of an agent", name);
  assert.match(await agent("fence_none"), /not installed/);
  await symlink("/bin/true", join(directory, "fence_true"));
  assert.match(await agent("fence_true"), /does not lie in the directory of agents/);
  await chmod(join(directory, "fence_good"), 0o775);
  assert.match(await agent("fence_good"), /can be changed by others/);
});

test("what one is told is on its standard input alone, the action last; it is nobody, and may become nobody else", async () => {
  const told = await agentOf(
    `[ "$asked" = "lanplus=1
ip=10.9.0.5
username=cells
password=correct-horse
plug=7
action=status" ] || exit 1
[ $# = 0 ] && [ "$(id -u):$(id -g):$(id -G)" = 65534:65534:65534 ] || exit 1
grep -q "^NoNewPrivs:.1$" /proc/self/status && grep -q "^CapBnd:.0*$" /proc/self/status || exit 1
[ -z "$(tr '\\0' '\\n' </proc/self/environ | grep -v -e ^PATH= -e ^HOME=/nonexistent -e ^LANG=C -e ^PWD=)" ] || exit 1
echo "Status: OFF"; exit 2`,
  );
  assert.equal((await liars().read({ ...told, options: { lanplus: "1" } }, soon())).power, "off");
  const never = join(directory, "ran");
  const any = await agentOf(`: >${never}`);
  for (const password of ["x\ny", "x\raction=off", "x\u2028y", "x\u0085y", "\0"]) {
    const said = await liars().read({ ...any, password }, soon());
    assert.deepEqual([said.power, said.reason], [null, "what fence_liar is to be told is not one line each"]);
  }
});

test("while a real one asks, no argument list and no environment has the password", async () => {
  const password = "s3cret-of-this-test";
  const seen = await shownWhileAsked((address, stop) => real.read(ipmilan({ address, password }), stop));
  assert.ok(
    seen.some((text) => text.includes("fence_ipmilan")),
    "it was under way meanwhile",
  );
  // That one gives it to ipmitool as an argument, which writes over it before it sends anything.
  assert.ok(!seen.some((text) => text.includes(password)));
});

test("what is no power is not registered: it says so itself, before it is told anything", async () => {
  const whyNot = async (agent: string, more: Partial<PowerController> = {}): Promise<string | null | undefined> =>
    real.examine?.(ipmilan({ agent, options: {}, ...more }), soon());
  assert.match((await whyNot("fence_scsi", { plug: "7" })) ?? "", /cuts a machine off from a network or its disks/);
  assert.match((await whyNot("fence_kdump")) ?? "", /has no action "status"/);
  assert.match((await whyNot("fence_dummy")) ?? "", /asks no device at an address/);
  assert.match((await whyNot("fence_apc")) ?? "", /say --plug/);
  assert.equal(await whyNot("fence_apc", { plug: "7,8" }), null);
  assert.match((await whyNot("fence_ipmilan", { plug: "7" })) ?? "", /knows no plugs/);
  const option = (name: string) => whyNot("fence_ipmilan", { options: { [name]: "1" } });
  assert.equal(await option("lanplus"), null);
  const names = ["action", "password_script", "ipmitool_path", "sudo", "debug_file", "plug", "method"];
  for (const said of await Promise.all(names.map(option))) assert.match(said ?? "", /cannot be given/);
  assert.match((await option("ssl")) ?? "", /has no option ssl/);
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, number) => [`o${number}`, "1"]));
  assert.match((await whyNot("fence_ipmilan", { options: many })) ?? "", /at most 16 options/);
  const told = await agentOf(
    `[ "$asked" = action=metadata ] && echo '<resource-agent name="x">'; echo '<action name="off"/><action name="status"/>'`,
  );
  assert.match((await liars().examine?.(told, soon())) ?? "", /asks no device/, "nothing but what it is to tell");
  for (const script of ["", "echo '<html>'", "echo '<resource-agent name=\"x\">'; exit 1"])
    assert.match((await liars().examine?.(await agentOf(script), soon())) ?? "", /does not say what it is/);
});
