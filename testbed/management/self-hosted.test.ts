import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { type Testbed, withTestbedDirectory } from "../harness.ts";
import { losesBootstrapHost } from "../hosts/succession.testing.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { bootstrapProgress, rootSpecification } from "../self-hosted.ts";
import { execIn } from "../tenants/questions.testing.ts";
import {
  killMachine,
  pingsLost,
  processesOf,
  startPings,
  tenant,
  untilAllReady,
  vmState,
} from "./self-hosted.testing.ts";

/**
 * A cloud whose management runs in VMs of its own root cell: its birth, a tenant's cell in it, and what dies and returns.
 * One testbed for all of it, since a birth costs a minute of emulated processors.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const patience = 400;

const inTenant = async (t: Testbed, script: string): Promise<string> => {
  const { stdout } = await until(
    `one/vm: ${script}`,
    () => execIn(t, "one/vm", ["sh", "-c", script]),
    ({ code }) => code === 0,
  );
  return stdout;
};

/** Asked again and again: whoever answers may be what is away. */
const untilNext = (t: Testbed, path: string, incarnation = 0): Promise<unknown> =>
  until(
    `${path} runs in its next incarnation`,
    () => stateOf(t, path),
    (state) => state?.phase === "ready" && (state.incarnation ?? 0) > incarnation,
    patience,
  );

/** A machine runs before its services answer. */
const primaryAnswers = (t: Testbed): Promise<unknown> =>
  until(
    "the primary cell's controller answers",
    () => stateOf(t, "primary/gateway/vm"),
    (state) => state !== null,
    patience,
  );

/** The root cell has no gateway, its child `primary` has; and what would take that away is refused. */
const primaryIsTheWayIn = async (t: Testbed): Promise<void> => {
  assert.equal(await stateOf(t, "root/gateway/vm"), null);
  assert.equal((await vmState(t, "primary/gateway/vm")).phase, "ready");
  assert.equal((await vmState(t, "root/controllers/primary/vm")).phase, "ready");
  for (const args of [
    ["delete", "primary", "--yes", "--allow-destroy", "primary/gateway/boot,primary/gateway/data"],
    ["delete", "root/cells/primary", "--yes"],
  ]) {
    const { code, stderr } = await t.cells(args);
    assert.equal(code, 1);
    assert.match(stderr, /is the way into this cloud, whose gateway is at 10\.0\.0\.40/);
  }
  // As it is, and the root cell as it is: nothing changes, and the cells stay.
  const specifications = dirname(rootSpecification(t.at, "small"));
  for (const [file, cell] of [
    ["primary.sf", "primary"],
    ["small.sf", "one"],
  ] as const) {
    await cells(t, "apply", join(specifications, file), "--yes");
    assert.ok((await stateOf(t, `${cell}/${cell === "one" ? "vm" : "gateway/vm"}`)) !== null);
  }
};

describe("the cloud that runs in itself", { skip }, () => {
  test("birth, a tenant's cell, deaths and returns", async (context) => {
    const start = performance.now();
    const reached = (what: string): void =>
      context.diagnostic(`${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`);
    const told: string[] = [];
    const onProgress = (line: string): void => void told.push(line);
    await withTestbedDirectory({ profile: "small", hosts: 4, servers: 1, onProgress }, async (t) => {
      const coming = t.up();
      // The Host Manager that carries out the birth dies in the middle of two of its steps, and goes on where it was.
      for (const [step, what] of [
        [1, "the services of the birth run"],
        [3, "they have ended and the first VM starts"],
      ] as const) {
        const steps = () => Promise.resolve(bootstrapProgress(t.at)?.steps.length ?? 0);
        await Promise.race([until(what, steps, (count) => count >= step, patience), coming]);
        await t.kill("h1");
        reached(`${what}: killed the Host Manager`);
      }
      const { url } = await coming;
      reached("up");
      assert.equal((await fetch(`${url}/ui/`)).status, 200, "its gateway has the page");
      const shown = told.join("\n");
      const steps = [/run as a process/, /bootstrap model was accepted/, /the process has ended/, /accepted the whole/];
      const places = steps.map((step) => shown.search(step));
      assert.ok(
        places.every((place, at) => place > (places[at - 1] ?? -1)),
        shown,
      );
      assert.deepEqual(
        (await t.members()).map(({ name }) => name),
        ["s1", "h1", "h2", "h3", "h4"],
        "machines alone are members",
      );
      for (const host of ["h1", "h2", "h3", "h4"]) assert.deepEqual(await processesOf(t, host, "bootstrap-main"), []);

      const file = join(dirname(t.configFile), "one.sf");
      writeFileSync(file, tenant("one"));
      await cells(t, "apply", file, "--yes");
      reached("a tenant's cell is as declared");
      await untilAllReady(t, "root", patience);
      const core = await Promise.all(["core1", "core2", "core3"].map((name) => vmState(t, `root/${name}/vm`)));
      assert.deepEqual([...new Set(core.map(({ host }) => host))].sort(), ["h1", "h2", "h3"]);
      assert.equal((await vmState(t, "root/controllers/one/vm")).phase, "ready");

      // Its own name service answers; nothing of the management does, though some of it is on the same machine.
      const { host, incarnation } = await vmState(t, "one/vm");
      assert.match(await inTenant(t, "nslookup me.one.cells.internal && echo found"), /found/);
      // The root controller, the gateway's side towards the services, the other controllers, the hosts.
      for (const address of ["10.0.0.31", "10.0.0.40", "10.0.3.2", "10.0.3.3", "10.0.1.1", "10.0.1.2"])
        assert.match(await inTenant(t, `ping -c 1 -W 1 ${address} >/dev/null 2>&1 || echo unreachable`), /unreachable/);
      for (const place of ["10.0.0.31 7100", "10.0.0.31 7101", "10.0.0.31 7102", "10.0.0.40 7127"])
        assert.match(await inTenant(t, `nc -w 1 ${place} </dev/null >/dev/null 2>&1 || echo closed`), /closed/);
      await primaryIsTheWayIn(t);

      reached("the root cell is as declared, and out of reach");
      await inTenant(t, "echo kept > /tmp/kept");
      await startPings(t, file);
      const gateway = await vmState(t, "primary/gateway/vm");
      await killMachine(t, gateway.host, gateway.uid);
      // Nobody can be asked until its own controller has brought it back.
      await untilNext(t, "primary/gateway/vm", gateway.incarnation);
      reached("the gateway is back");
      // The controllers of the cloud, of the tenant and of the primary cell at once: the first one's host brings it back, and
      // it the others. The gateway needs none of them to answer.
      const core1 = await vmState(t, "root/core1/vm");
      const controller = await vmState(t, "root/controllers/one/vm");
      const primary = await vmState(t, "root/controllers/primary/vm");
      for (const { host, uid } of [core1, controller, primary]) await killMachine(t, host, uid);
      const { code, stdout } = await t.cells(["get", "--output", "json"]);
      assert.deepEqual([code, /"unreachable"/.test(stdout)], [0, true], stdout);
      await untilNext(t, "root/controllers/primary/vm", primary.incarnation);
      await primaryAnswers(t);
      const kept = await vmState(t, "primary/gateway/vm");
      assert.equal(kept.incarnation, (gateway.incarnation ?? 0) + 1, "the gateway's VM went on");
      await untilNext(t, "root/controllers/one/vm", controller.incarnation);
      assert.equal((await vmState(t, "root/core1/vm")).incarnation, core1.incarnation);
      reached("both controllers are back");
      assert.equal((await inTenant(t, "cat /tmp/kept")).trim(), "kept");
      const still = await vmState(t, "one/vm");
      assert.deepEqual([still.host, still.incarnation], [host, incarnation], "the tenant's VM went on");

      const { sent, lost } = await pingsLost(t);
      reached(`${lost} of ${sent} pings between the tenant's machines were lost meanwhile`);
      assert.ok(sent > 30 && lost <= 1, `${lost} of ${sent} pings were lost`);
      writeFileSync(file, tenant("one"));
      await cells(t, "apply", file, "--yes", "--allow-destroy", "one/peerBoot");

      await losesBootstrapHost({ t, reached, patience, cell: "one" });
      await untilAllReady(t, "root", patience);
      await cells(
        t,
        "delete",
        "one",
        "--yes",
        "--allow-destroy",
        "one/boot,one/boot2,one/extra",
        "--timeout",
        String(patience),
      );
      reached("the tenant's cell is deleted");
      await until(
        "nothing is left of the cell",
        () => t.cells(["get", "root", "--output", "json"]),
        ({ code, stdout }) => code === 0 && !/"one"/.test(stdout),
        patience,
      );
      reached("nothing is left of it");
      assert.doesNotMatch((await t.cells(["get", "--output", "json"])).stdout, /"one"/);
    });
  });
});
