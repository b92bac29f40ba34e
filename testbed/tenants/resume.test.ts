import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { ElementState } from "../../model/api.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { execIn, stateOf as stateOrNull } from "./questions.testing.ts";

/**
 * `x.start "resume"` over the whole path: two machines go on from one saved state on two hosts, are two, and their packets
 * pass where a rule says so. What a machine has beyond its boot disk is plugged in; its next incarnation boots.
 */
const specification = `
Machine extends {
  bootvol extends VolumeCopy { x.image "<ref:/twins/golden>"; }
  vm extends VM {
    x.memory 128;
    x.start "resume";
    x.restartOnFailure true;
    x.data extends { serve extends { tcp 7000; } }
  }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  interface extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/twins/subnet>"; }
}
twins extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  subnet extends Subnet { x.size 16; }
  castor extends Machine {
    interface extends Machine:interface { x.vifName "castor"; }
    store extends Volume { x.size 16; }
    plug extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../store>"; }
  }
  pollux extends Machine {
    interface extends Machine:interface { x.vifName "pollux"; }
  }
  rule extends NetworkRule {
    x.address1 "<ref:/twins/castor/interface>";
    x.address2 "<ref:/twins/pollux/interface>";
    x.protocol "tcp";
    x.port2 7000;
    x.direction "1to2";
  }
}
sfConfig extends { cell extends twins; }
`;
const [castor, pollux] = ["twins/castor/vm", "twins/pollux/vm"];

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const stateOf = async (t: Testbed, path: string): Promise<ElementState> =>
  (await stateOrNull(t, path)) ?? assert.fail(`${path} has no $state`);
const guest = async (
  t: Testbed,
  vm: string,
  script: string,
): Promise<{ readonly code: number; readonly said: string }> => {
  const { code, stdout } = await execIn(t, vm, ["/bin/sh", "-c", script]);
  return { code, said: stdout.trim() };
};
const until = async (what: string, holds: () => Promise<boolean>, seconds = 120): Promise<void> => {
  const end = performance.now() + seconds * 1000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `still not so after ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
};
/** Sends a line to the other's echo server and gives back what comes. */
const echo = (t: Testbed, from: string, to: string): ReturnType<typeof guest> =>
  guest(t, from, `echo hello | nc -w 3 ${to} 7000`);

test("two machines go on from one saved state, are two, and the next incarnation boots with its data", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async () => {
  await withTestbed({ hosts: 2 }, async (t) => {
    const file = join(dirname(t.configFile), "twins.sf");
    writeFileSync(file, specification);
    await cells(t, "apply", file, "--yes");
    const addresses: Record<string, string> = {};
    for (const vm of [castor, pollux]) {
      await until(`${vm} runs`, async () => (await stateOf(t, vm)).phase === "ready");
      const { reason } = await stateOf(t, vm);
      assert.equal(reason ?? null, null, "it was not said to have booted");
      const { address } = await stateOf(t, `${dirname(vm)}/interface`);
      assert.ok(address);
      addresses[vm] = address;
      await until(`${vm} has its address`, async () =>
        (await guest(t, vm, "ip -4 -o address")).said.includes(` ${address}/`),
      );
      assert.equal(
        (await guest(t, vm, "cat /run/cards-before")).said,
        "/sys/class/net/lo",
        "it went on, without a card",
      );
    }
    const identity = "hostname; cat /etc/machine-id; head -c 16 /dev/urandom | md5sum";
    const [one, two] = [await guest(t, castor, identity), await guest(t, pollux, identity)];
    for (const [index, line] of one.said.split("\n").entries()) assert.notEqual(line, two.said.split("\n")[index]);
    assert.match(one.said, /^castor\n[0-9a-f]{32}\n/);
    await until("a further disk is plugged in", async () =>
      (await guest(t, castor, "cat /sys/block/vd*/size")).said.split("\n").includes(String(16 * 2048)),
    );

    await until(
      "castor reaches pollux",
      async () => (await echo(t, castor, addresses[pollux] ?? "")).said === "hello",
      30,
    );
    const back = await echo(t, pollux, addresses[castor] ?? "");
    assert.equal(back.said, "", "no rule lets pollux open a connection to castor");
    assert.equal((await guest(t, castor, "echo hello | nc -w 3 127.0.0.1 7000")).said, "hello", "castor does serve");

    await guest(t, castor, "echo kept >/root/note; sync");
    const { host, incarnation, uid } = await stateOf(t, castor);
    const killed = await t.exec(host ?? "", [
      "sh",
      "-c",
      `for p in /proc/[0-9]*; do if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*cells-${uid}-'; then kill -9 \${p#/proc/}; echo killed; fi; done`,
    ]);
    assert.match(killed.stdout, /killed/);
    await until("the next incarnation runs", async () => {
      const now = await stateOf(t, castor);
      return now.phase === "ready" && (now.incarnation ?? 0) > (incarnation ?? 0);
    });
    assert.match((await stateOf(t, castor)).reason ?? "", /it booted, since .* may have been written/);
    await until("its guest is up", async () => (await guest(t, castor, "cat /root/note")).said === "kept");
    assert.equal((await guest(t, castor, "cat /etc/machine-id")).said, one.said.split("\n")[1], "it is who it was");
    await until(
      "castor reaches pollux again",
      async () => (await echo(t, castor, addresses[pollux] ?? "")).said === "hello",
    );
  });
});
