import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { ElementState, ServiceEvent } from "../../model/api.ts";
import type { VolumeDetails } from "../../model/contract/tenancy/volumes/volumes.ts";
import { onceSoon, type Testbed, withTestbed } from "../harness.ts";
import { execIn, stateOf as stateOrNull } from "./questions.testing.ts";

/**
 * How the life of a VM ends, and goes on: guests that reboot, panic, power off, or run and do not answer, each told apart
 * and each come back. One testbed and three guests; what can happen to several at once does, since boots cost CPU. Last, what one of them
 * wrote outlives its cell.
 */
const machine = (name: string, more: string, beside = ""): string => `
  ${name} extends {
    boot extends VolumeCopy { x.image "<ref:/life/golden>"; }
    vm extends VM { x.memory 128; x.restartOnFailure true; ${more} }
    disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
    nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/life/net>"; x.vifName "${name}"; }
    ${beside}
  }`;
const specification = `life extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  net extends Subnet { x.size 16; }
  ${machine("plain", "")}
  ${machine("pinged", 'x.liveness.protocol "icmp"; x.liveness.intervalMs 1000;')}
  ${machine(
    "asked",
    'x.liveness.protocol "udp"; x.liveness.port 7; x.liveness.intervalMs 1000; x.liveness.interface "<ref:../second>"; x.data extends { serve extends { udp 7; } }',
    'second extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/life/net>"; }',
  )}
}
`;
const names = ["plain", "pinged", "asked"] as const;
type Name = (typeof names)[number];

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const stateOf = async (t: Testbed, name: Name): Promise<ElementState> =>
  (await stateOrNull(t, `life/${name}/vm`)) ?? assert.fail(`life/${name}/vm has no $state`);
/** Without an end if it never comes: the limit of the test then says so, with the last state. */
const until = async (
  t: Testbed,
  name: Name,
  holds: (state: ElementState) => boolean | Promise<boolean>,
): Promise<ElementState> => {
  const end = performance.now() + 240_000;
  for (;;) {
    const state = await stateOf(t, name);
    if (await holds(state)) return state;
    assert.ok(performance.now() < end, `${name} does not come to what is awaited: ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
};
const exec = (t: Testbed, name: Name, command: string): ReturnType<Testbed["cells"]> =>
  execIn(t, `life/${name}/vm`, ["sh", "-c", command]);
/** Waits for the guest's agent. */
const inGuest = async (t: Testbed, name: Name, command: string): Promise<string> => {
  let output = "";
  await until(t, name, async () => {
    const { code, stdout } = await exec(t, name, command);
    output = stdout.trim();
    return code === 0;
  });
  return output;
};
const isBack = (incarnation: number) => (state: ElementState) =>
  state.incarnation === incarnation && state.phase === "ready" && state.power === "on";

const machines = async (t: Testbed): Promise<readonly string[]> => {
  const { stdout } = await t.exec("h1", ["sh", "-c", "grep -l '^Name:.qemu-system' /proc/[0-9]*/status | sort"]);
  return stdout.trim().split("\n").filter(Boolean);
};

test("guests that reboot, panic, power off or fall silent are told apart and come back", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (t) => {
  await withTestbed({ hosts: 1, servers: 1, personalities: ["caas"] }, async (testbed) => {
    const file = join(dirname(testbed.configFile), "life.sf");
    writeFileSync(file, specification);

    await t.test("a VM with liveness is ready when it has answered", async () => {
      await cells(testbed, "apply", file, "--yes");
      for (const name of names) await until(testbed, name, isBack(1));
      assert.deepEqual(await Promise.all(names.map(async (name) => (await stateOf(testbed, name)).health)), [
        undefined,
        "answering",
        "answering",
      ]);
      const events = await cells(testbed, "events", "life", "--output", "json");
      assert.match(events, /waits for the first answer to its liveness probes/);
    });

    await t.test("no key of a disk is in a machine's arguments or environment", async () => {
      const { stdout: keys } = await testbed.exec("h1", ["sh", "-c", "cat $(find /run -name keys.psk) | cut -d: -f2"]);
      const secrets = keys.trim().split("\n");
      assert.ok(secrets.length >= 3 && secrets.every((key) => /^[0-9a-f]{32,}$/.test(key)), "the keys were found");
      const processes = (await machines(testbed)).map((status) => dirname(status));
      assert.equal(processes.length, 3);
      for (const directory of processes) {
        const { stdout } = await testbed.exec("h1", ["cat", `${directory}/cmdline`, `${directory}/environ`]);
        assert.match(stdout, /tls-creds-psk/, "its disks have keys");
        for (const secret of secrets) assert.ok(!stdout.includes(secret));
      }
    });

    await t.test("a Host Manager's death changes nothing for them", async () => {
      const before = await machines(testbed);
      const states = await Promise.all(names.map((name) => stateOf(testbed, name)));
      await testbed.kill("h1");
      for (const name of names)
        await until(testbed, name, async (state) => {
          const member = (await testbed.members()).find((each) => each.name === "h1");
          return member?.answers === true && state.phase === "ready" && state.reason === null;
        });
      const after = await Promise.all(names.map((name) => stateOf(testbed, name)));
      const facts = (all: readonly ElementState[]) =>
        all.map(({ incarnation, health, since }) => ({ incarnation, health, since }));
      assert.deepEqual(facts(after), facts(states));
      assert.deepEqual(await machines(testbed), before);
    });

    await t.test("a reboot keeps the incarnation; a silent guest and a silent service get the next one", async () => {
      await inGuest(testbed, "plain", "echo kept > /root/note; sync");
      await Promise.all([
        inGuest(testbed, "plain", onceSoon("rebooted", "reboot")),
        inGuest(testbed, "pinged", onceSoon("silenced", "ip link set eth0 down")),
        inGuest(testbed, "asked", onceSoon("silenced", "killall socat")),
      ]);
      const rebooted = await until(testbed, "plain", (state) => state.reboots === 1);
      assert.equal(rebooted.incarnation, 1);
      const pinged = await until(testbed, "pinged", isBack(2));
      assert.deepEqual(pinged.lastEnd, {
        incarnation: 1,
        how: "silent",
        reason: "did not answer 3 ICMP probes in a row",
      });
      const asked = await until(testbed, "asked", isBack(2));
      assert.deepEqual(asked.lastEnd, {
        incarnation: 1,
        how: "silent",
        reason: "did not answer 3 UDP (port 7) probes in a row",
      });
      assert.equal(await inGuest(testbed, "plain", "cat /root/note"), "kept");
      assert.equal((await stateOf(testbed, "plain")).incarnation, 1);
      const shown = await cells(testbed, "events", "life", "--output", "json");
      const events = shown
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as ServiceEvent);
      assert.equal(events.filter(({ event, path }) => event === "vm/rebooted" && path === "life/plain/vm").length, 1);
    });

    await t.test("a panic is a crash with the kernel's own words; a power-off is none", async () => {
      await inGuest(testbed, "plain", onceSoon("panicked", "echo c > /proc/sysrq-trigger"));
      const panicked = await until(testbed, "plain", isBack(2));
      assert.equal(panicked.lastEnd?.how, "crashed");
      assert.match(panicked.lastEnd?.reason ?? "", /^its guest's kernel panicked: Kernel panic - not syncing: sysrq/);
      await inGuest(testbed, "plain", onceSoon("left", "poweroff"));
      const exited = await until(testbed, "plain", isBack(3));
      assert.deepEqual([exited.lastEnd?.how, exited.lastEnd?.incarnation], ["exited", 2]);
      assert.equal(await inGuest(testbed, "plain", "cat /root/note"), "kept");
      const others = await Promise.all((["pinged", "asked"] as const).map((name) => stateOf(testbed, name)));
      assert.deepEqual(
        others.map(({ incarnation, health }) => [incarnation, health]),
        [
          [2, "answering"],
          [2, "answering"],
        ],
      );
    });

    await t.test(
      "bytes that a guest wrote outlive its cell in a persistent volume, and are another guest's",
      async () => {
        const digest = await inGuest(
          testbed,
          "plain",
          "[ -e /root/bytes ] || { head -c 3000000 /dev/urandom > /root/new && sync && mv /root/new /root/bytes && sync; }; sha256sum /root/bytes",
        );
        assert.match(digest, /^[0-9a-f]{64} /);
        await cells(testbed, "stop", "life/plain/vm");
        await cells(testbed, "volume", "create", "kept", "--from", "life/plain/boot");
        await cells(
          testbed,
          "delete",
          "life",
          "--yes",
          "--allow-destroy",
          names.map((name) => `life/${name}/boot`).join(),
        );
        const kept = async (): Promise<VolumeDetails> =>
          JSON.parse(await cells(testbed, "volume", "show", "kept", "--output", "json")) as VolumeDetails;
        const { reference } = await kept();
        await cells(testbed, "volume", "share", "kept", "copy", "--cell", "again");
        const again = `again extends Cell {
        boot extends VolumeCopy { x.image "${reference}"; }
        vm extends VM { x.memory 128; }
        disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
      }
`;
        writeFileSync(file, again);
        await cells(testbed, "apply", file, "--yes");
        assert.deepEqual(
          (await kept()).versions.map(({ phase }) => phase),
          ["ready"],
        );
        const end = performance.now() + 240_000;
        for (;;) {
          const { code, stdout } = await execIn(testbed, "again/vm", ["sh", "-c", "sha256sum /root/bytes"]);
          if (code === 0) {
            assert.equal(stdout.trim(), digest);
            break;
          }
          assert.ok(performance.now() < end, "the other guest never answered");
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
      },
    );
  });
});
