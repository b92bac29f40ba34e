import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { isReady } from "../../cli/connection/elements.ts";
import {
  type Listener,
  listenerCommand,
  listenersOf,
  type Probe,
  probeCommand,
  seenIn,
  shopProbes,
  tryAll,
} from "../../cli/connection/probe.ts";
import type { ElementState } from "../../model/api.ts";
import type { CellCounters } from "../../model/contract/operator/numbers/counters.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { askElements, execIn, stateOf as stateOrNull } from "./questions.testing.ts";

/**
 * The whole path with real guests: `examples/shop/shop.sf` goes in, three machines run on three hosts, and packets that
 * they send pass exactly where a rule says so. One testbed serves all steps, since a guest's boot costs seconds of CPU.
 */
const example = new URL("../../examples/shop/", import.meta.url).pathname;
const vms = ["shop/web/vm", "shop/app/vm", "shop/db/vm"];

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};

const stateOf = async (t: Testbed, path: string): Promise<ElementState> => {
  const state = await stateOrNull(t, path);
  assert.ok(state, `${path} has no $state`);
  return state;
};

const until = async (what: string, holds: () => Promise<boolean>, seconds = 120): Promise<void> => {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    if (await holds()) return;
    assert.ok(performance.now() < end, `still not so after ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
};

const addressOf = async (t: Testbed, vm: string): Promise<string> => {
  const { address } = await stateOf(t, `${dirname(vm)}/interface`);
  assert.ok(address, `${vm} has no address`);
  return address;
};

const untilUp = async (t: Testbed, vm: string): Promise<void> => {
  const address = await addressOf(t, vm);
  await until(`${vm} answers with its address ${address}`, async () =>
    (await execIn(t, vm, ["ip", "-4", "address"])).stdout.includes(address),
  );
};

/** A probe's packets, and what `why` says of them. What is wrong, if anything. */
const tryProbe = async (t: Testbed, probe: Probe): Promise<readonly string[]> => {
  const command = probeCommand(probe, await addressOf(t, probe.to));
  // Rejects when it cannot be run: that proves nothing.
  const answer = await t.gateway().exec("shop", { vm: probe.from, command, timeoutMs: 60_000 });
  const seen = seenIn(probe, answer);
  const { allowed } = await t.gateway().why("shop", probe);
  return [
    ...(seen === probe.expected
      ? []
      : [`${probe.from} -> ${probe.to} ${probe.protocol} ${probe.port}: ${seen} ${answer.exitCode} ${answer.stderr}`]),
    ...(allowed === (probe.expected === "passes") ? [] : [`why says otherwise of ${JSON.stringify(probe)}`]),
  ];
};

const tryMatrix = async (t: Testbed, probes: readonly Probe[] = shopProbes): Promise<void> => {
  await Promise.all(vms.map((vm) => untilUp(t, vm)));
  const listen = ({ vm, protocol, port }: Listener): ReturnType<typeof execIn> =>
    execIn(t, vm, listenerCommand(protocol, port));
  await Promise.all(listenersOf(probes).map(listen));
  assert.deepEqual((await tryAll(probes, (probe) => tryProbe(t, probe))).flat(), []);
};
/** One that passes and one that does not. */
const [open, closed] = [shopProbes[0], shopProbes[5]] as readonly [Probe, Probe];

const tryWhy = async (t: Testbed): Promise<void> => {
  for (const { from, to, protocol, port, expected } of [open, closed]) {
    const { code } = await t.cells(["why", `${from} -> ${to}:${port}`, "--protocol", protocol]);
    assert.equal(code, expected === "passes" ? 0 : 1, "the exit code says it too");
  }
};

/** The example with texts replaced, below the testbed's own directory. */
const edited = (t: Testbed, name: string, replacements: readonly (readonly [string, string])[]): string => {
  const directory = join(dirname(t.configFile), name);
  mkdirSync(directory, { recursive: true });
  let text = readFileSync(join(example, "shop.sf"), "utf8");
  for (const [from, to] of replacements) {
    assert.ok(text.includes(from), `the example says ${from}`);
    text = text.replace(from, to);
  }
  writeFileSync(join(directory, "tier.sf"), readFileSync(join(example, "tier.sf"), "utf8"));
  writeFileSync(join(directory, "shop.sf"), text);
  return join(directory, "shop.sf");
};

const incarnations = async (t: Testbed): Promise<readonly (number | undefined)[]> =>
  Promise.all(vms.map(async (vm) => (await stateOf(t, vm)).incarnation));

const processesNaming = async (t: Testbed, member: string, text: string): Promise<number> => {
  const { stdout } = await t.exec(member, [
    "sh",
    "-c",
    `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c -- "${text}" || true`,
  ]);
  return Number(stdout.trim());
};

test("a specification becomes running, isolated machines", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (t) => {
  await withTestbed({ hosts: 3 }, async (testbed) => {
    await t.test("the example comes up, spread over the hosts", async () => {
      await cells(testbed, "apply", join(example, "shop.sf"), "--yes");
      const hosts = await Promise.all(vms.map(async (vm) => (await stateOf(testbed, vm)).host));
      assert.equal(new Set(hosts).size, 3, `three machines on three hosts: ${hosts}`);
      for (const vm of vms) assert.equal((await stateOf(testbed, vm)).power, "on");
      const again = await cells(testbed, "plan", join(example, "shop.sf"), "--output", "json");
      const { plan } = JSON.parse(again) as {
        readonly plan: { readonly steps: readonly { readonly action: string }[] };
      };
      assert.deepEqual(
        [...new Set(plan.steps.map(({ action }) => action))],
        ["none"],
        "applying it again changes nothing",
      );
    });

    await t.test("packets pass exactly where a rule says so", async () => {
      await tryMatrix(testbed);
      await tryWhy(testbed);
    });

    await t.test("a rule counts the packets that it lets pass, and interfaces what they drop", async () => {
      const counters = async (): Promise<CellCounters> =>
        JSON.parse(await cells(testbed, "counters", "shop", "--output", "json")) as CellCounters;
      const packets = ({ rules }: CellCounters): number =>
        rules.find(({ path }) => path === "shop/rules/pingWebApp")?.packets ?? 0;
      const before = await counters();
      assert.equal(before.missing, 0, "every host says what it counts");
      assert.ok(before.interfaces.some(({ drops }) => Object.values(drops).some((count) => count > 0)));
      const app = await addressOf(testbed, "shop/app/vm");
      assert.equal((await execIn(testbed, "shop/web/vm", ["ping", "-c", "3", "-W", "5", app])).code, 0);
      await until("three packets more are counted", async () => packets(await counters()) >= packets(before) + 3, 20);
    });

    await t.test("x.data is a mounted file system, and the disk is the guest's own", async () => {
      for (const vm of vms) await untilUp(testbed, vm);
      assert.equal((await execIn(testbed, "shop/db/vm", ["cat", "/data/data/role"])).stdout.trim(), "db");
      assert.equal((await execIn(testbed, "shop/db/vm", ["hostname"])).stdout.trim(), "db1");
      await execIn(testbed, "shop/db/vm", ["sh", "-c", "echo kept > /root/note; sync"]);
      assert.notEqual((await execIn(testbed, "shop/app/vm", ["cat", "/root/note"])).code, 0);
    });

    await t.test("no host sees a server's bytes", async () => {
      for (const host of ["h1", "h2", "h3"]) {
        const found = await testbed.exec(host, [
          "sh",
          "-c",
          `find ${testbed.at.directory} -name '*.qcow2' 2>/dev/null | head -n 3`,
        ]);
        assert.equal(found.stdout.trim(), "", `${host} sees volumes`);
      }
      const counts = await Promise.all(
        ["s1", "s2"].map((server) =>
          testbed.exec(server, ["sh", "-c", `find ${testbed.at.directory} -name '*.qcow2' 2>/dev/null | wc -l`]),
        ),
      );
      assert.ok(counts.reduce((sum, { stdout }) => sum + Number(stdout.trim()), 0) >= 4, "the servers have them");
    });

    await t.test("an edited rule changes only what the plan said", async () => {
      const before = await incarnations(testbed);
      const file = edited(testbed, "no-ping", [['x.protocol "icmp";', 'x.protocol "udp"; x.port2 9;']]);
      const { plan } = JSON.parse(await cells(testbed, "plan", file, "--output", "json")) as {
        readonly plan: { readonly steps: readonly { readonly path: string; readonly action: string }[] };
      };
      assert.deepEqual(
        plan.steps.filter(({ action }) => action !== "none").map(({ path, action }) => `${action} ${path}`),
        ["change shop/rules/pingWebApp"],
      );
      await cells(testbed, "apply", file, "--yes");
      const app = await addressOf(testbed, "shop/app/vm");
      await until(
        "ping is closed",
        async () => (await execIn(testbed, "shop/web/vm", ["ping", "-c", "1", "-W", "1", app])).code !== 0,
        20,
      );
      assert.deepEqual(await incarnations(testbed), before, "no machine was touched");
      await cells(testbed, "apply", join(example, "shop.sf"), "--yes");
      await until(
        "ping is open again",
        async () => (await execIn(testbed, "shop/web/vm", ["ping", "-c", "1", "-W", "1", app])).code === 0,
        20,
      );
    });

    await t.test("a machine that is killed comes back, with its disk", async () => {
      const { host, incarnation, uid } = await stateOf(testbed, "shop/db/vm");
      const killed = await testbed.exec(host ?? "", [
        "sh",
        "-c",
        `for p in /proc/[0-9]*; do if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*${uid}'; then kill -9 \${p#/proc/}; echo killed; fi; done`,
      ]);
      assert.match(killed.stdout, /killed/);
      await until("db runs again", async () => {
        const now = await stateOf(testbed, "shop/db/vm");
        return now.phase === "ready" && (now.incarnation ?? 0) > (incarnation ?? 0);
      });
      await untilUp(testbed, "shop/db/vm");
      assert.equal((await execIn(testbed, "shop/db/vm", ["cat", "/root/note"])).stdout.trim(), "kept");
    });

    await t.test("services killed at random lose nothing and touch no machine", async () => {
      const before = await incarnations(testbed);
      const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
      console.log(`seed ${seed}; replay with CELLS_SEED=${seed} ./cells test testbed/tenants/cell-life.test.ts`);
      let state = seed;
      const random = (below: number): number => {
        state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
        return (state >>> 12) % below;
      };
      const members = (await testbed.members()).map(({ name }) => name);
      for (let round = 0; round < 3; round += 1) {
        const victim = members[random(members.length)] ?? "placer";
        console.log(`kill -9 ${victim}`);
        await testbed.kill(victim).catch((error: Error) => {
          // Killed a moment ago, and not started again yet.
          if (!error.message.includes("is not running")) throw error;
        });
        await new Promise((resolve) => setTimeout(resolve, random(1500)));
      }
      await until("everything is ready again", async () => {
        const elements = (await askElements(testbed, "shop")) ?? [];
        return elements.length > 0 && elements.every(isReady);
      });
      assert.deepEqual(await incarnations(testbed), before, "no machine was started again");
      // What deaths at any moment do to rules is the simulator's to find.
      await tryMatrix(testbed, [open, closed]);
    });

    await t.test("deleting the cell leaves nothing of it", async () => {
      const disks = ["web", "app", "db"].flatMap((tier) => ["--allow-destroy", `shop/${tier}/bootvol`]);
      await cells(testbed, "delete", "shop", "--yes", ...disks);
      assert.deepEqual(await testbed.gateway().cells(), []);
      for (const host of ["h1", "h2", "h3"]) {
        assert.equal(await processesNaming(testbed, host, "[q]emu-system-x86_64"), 0, `${host} runs a machine`);
        const taps = await testbed.exec(host, ["sh", "-c", "ip -o link show type tun 2>/dev/null || ip -o tuntap"]);
        assert.equal(taps.stdout.trim(), "", `${host} has taps`);
      }
      for (const server of ["s1", "s2"]) {
        const files = await testbed.exec(server, [
          "sh",
          "-c",
          `find ${testbed.at.directory} -path '*volumes*' -name '*.qcow2' ! -path '*/bin/*' 2>/dev/null`,
        ]);
        assert.equal(files.stdout.trim(), "", `${server} has volumes`);
        assert.equal(await processesNaming(testbed, server, "[q]emu-storage-daemon"), 0, `${server} exports`);
      }
    });
  });
});
