import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { ElementState } from "../../model/api.ts";
import { type Testbed, withTestbed } from "../harness.ts";

/** A day's work of somebody with one small cell: what each command says is done is done, in the guest too. */
const specification = `day extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  net extends Subnet { x.size 16; }
  web extends {
    boot extends VolumeCopy { x.image "<ref:/day/golden>"; }
    vm extends VM { x.memory 128; }
    disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
    nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/day/net>"; x.vifName "web"; }
  }
}
`;

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
/** In the guest, at once: a VM that is ready has an agent that answers. */
const inGuest = async (t: Testbed, command: string): Promise<string> =>
  (await cells(t, "exec", "day/web/vm", "--", "sh", "-c", command)).trim();

test("a day's work with one cell", { skip: process.getuid?.() === 0 ? false : "needs root" }, async (t) => {
  await withTestbed({ hosts: 1, servers: 1 }, async (testbed) => {
    const file = join(dirname(testbed.configFile), "day.sf");
    writeFileSync(file, specification);

    await t.test("a cell is applied, and its guest answers", async () => {
      assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      assert.equal(await inGuest(testbed, "cat /proc/sys/kernel/ostype"), "Linux");
      assert.match(await cells(testbed, "events", "day/web/vm"), /working[^\n]*its guest boots[\s\S]*ready/);
    });

    await t.test("a VM whose guest resets itself is not ready until it has come up again", async () => {
      const shown = async (): Promise<ElementState> => {
        const element = JSON.parse(await cells(testbed, "get", "day/web/vm", "--state", "--output", "json"));
        return (element as { readonly $state: ElementState }).$state;
      };
      await inGuest(testbed, "(sleep 0.3; reboot) >/dev/null 2>&1 </dev/null &");
      let state = await shown();
      for (const end = performance.now() + 120_000; state.reboots !== 1 || state.phase !== "ready"; ) {
        assert.ok(performance.now() < end, JSON.stringify(state));
        if (state.reboots === 1) assert.match(state.reason ?? "", /^its guest boots/);
        state = await shown();
      }
      assert.ok(Number(await inGuest(testbed, "cut -d. -f1 /proc/uptime")) < 60);
    });

    await t.test(
      'with x.ready "started" it is ready as soon as its machine runs, and a change of that starts nothing',
      async () => {
        writeFileSync(file, specification.replace("x.memory 128;", 'x.memory 128; x.ready "started";'));
        assert.match(
          await cells(testbed, "apply", file, "--yes"),
          /x\.ready: nothing → "started"[\s\S]*day is as declared/,
        );
        assert.match(await cells(testbed, "restart", "day/web/vm"), /incarnation 2/);
        const events = await cells(testbed, "events", "day/web/vm");
        assert.doesNotMatch(events.slice(events.lastIndexOf("starts at")), /its guest boots/);
        writeFileSync(file, specification);
        assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
        await inGuest(testbed, "true");
      },
    );

    await t.test("a file of several pieces goes into the guest and comes back as it was", async () => {
      const [here, back] = ["sent.bin", "back.bin"].map((name) => join(dirname(testbed.configFile), name));
      assert.ok(here !== undefined && back !== undefined);
      const bytes = randomBytes(2_500_000);
      writeFileSync(here, bytes);
      await cells(testbed, "cp", here, "day/web/vm:/tmp/");
      assert.match(await inGuest(testbed, "ls /tmp"), /^sent\.bin$/m);
      await cells(testbed, "cp", "day/web/vm:/tmp/sent.bin", back);
      assert.ok(readFileSync(back).equals(bytes));
      const none = await testbed.cells(["cp", "day/web/vm:/tmp/none", back]);
      assert.equal(none.code, 1, none.stderr);
      assert.ok(readFileSync(back).equals(bytes), "what was there stays");
    });

    await t.test("power by verb, and what powered itself off is told and started again", async () => {
      assert.match(await cells(testbed, "stop", "day/web/vm"), /x\.desiredState: "on" → "off"[\s\S]*power off/);
      assert.match(await cells(testbed, "start", "day/web/vm"), /"off" → "on"[\s\S]*power on, on h1, incarnation 3/);
      await inGuest(testbed, "(sleep 0.3; poweroff) >/dev/null 2>&1 </dev/null &");
      let plan = "";
      for (const end = performance.now() + 60_000; !plan.includes("Failed, and left so by this:"); ) {
        assert.ok(performance.now() < end, plan);
        plan = await cells(testbed, "plan", file);
      }
      assert.match(plan, /its guest powered off by itself.*`cells start day\/web\/vm` starts it again/);
      const unchanged = await testbed.cells(["apply", file, "--yes"]);
      assert.equal(unchanged.code, 4, unchanged.stderr);
      assert.match(
        unchanged.stderr,
        /3 of \d+ elements do not become ready[\s\S]*To lift that: `cells start day\/web\/vm`/,
      );
      assert.match(await cells(testbed, "start", "day/web/vm"), /x\.restart: nothing → 1[\s\S]*incarnation 4/);
      assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      assert.match(await cells(testbed, "restart", "day/web/vm"), /x\.restart: nothing → 1[\s\S]*incarnation 5/);
    });

    await t.test("a volume grows while its guest runs, which sees it, and is not made smaller", async () => {
      const sized = (size: number): void =>
        writeFileSync(file, specification.replace('golden>"; }', `golden>"; x.size ${size}; }`));
      sized(256);
      assert.match(await cells(testbed, "plan", file), /day\/web\/boot +VolumeCopy +grows while day\/web\/vm runs/);
      assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      assert.equal(await inGuest(testbed, "cat /sys/class/block/vda/size"), String(256 * 2048));
      sized(100);
      const smaller = await testbed.cells(["apply", file, "--yes"]);
      assert.notEqual(smaller.code, 0);
      assert.match(smaller.stderr, /has 256 MiB, and a volume cannot be made smaller/);
      sized(256);
    });
  });
});
