import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { onceSoon, withTestbed } from "../harness.ts";
import {
  cells,
  inGuest,
  tryDownAndUp,
  tryExample,
  tryInterrupt,
  tryRename,
  tryReset,
  tryStarted,
  tryStreams,
} from "./daily-life.testing.ts";

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

test("a day's work with one cell", { skip: process.getuid?.() === 0 ? false : "needs root" }, async (t) => {
  await withTestbed({ hosts: 1, servers: 1 }, async (testbed) => {
    const file = join(dirname(testbed.configFile), "day.sf");
    writeFileSync(file, specification);

    await t.test("a cell is applied, and its guest answers", async () => {
      assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      assert.equal(await inGuest(testbed, "day/web/vm", "cat /proc/sys/kernel/ostype"), "Linux");
      assert.match(await cells(testbed, "events", "day/web/vm"), /working[^\n]*its guest boots[\s\S]*ready/);
    });

    await t.test("the example of docs/typescript.md becomes ready", () => tryExample(testbed));
    await t.test("a VM whose guest resets itself is not ready until it has come up again", () => tryReset(testbed));
    await t.test(
      'with x.ready "started" it is ready as soon as its machine runs, and a change of that starts nothing',
      () => tryStarted(testbed, file),
    );
    await t.test("a file of several pieces goes into the guest and comes back as it was", async () => {
      const [here, back] = ["sent.bin", "back.bin"].map((name) => join(dirname(testbed.configFile), name));
      assert.ok(here !== undefined && back !== undefined);
      const bytes = randomBytes(2_500_000);
      writeFileSync(here, bytes);
      await cells(testbed, "cp", here, "day/web/vm:/tmp/");
      assert.match(await inGuest(testbed, "day/web/vm", "ls /tmp"), /^sent\.bin$/m);
      await cells(testbed, "cp", "day/web/vm:/tmp/sent.bin", back);
      assert.ok(readFileSync(back).equals(bytes));
      const none = await testbed.cells(["cp", "day/web/vm:/tmp/none", back]);
      assert.equal(none.code, 1, none.stderr);
      assert.ok(readFileSync(back).equals(bytes), "what was there stays");
    });

    await t.test("exec streams both ways, whatever the length", () => tryStreams(testbed));

    await t.test("power by verb, and what powered itself off is told and started again", async () => {
      assert.match(await cells(testbed, "stop", "day/web/vm"), /x\.desiredState: "on" → "off"[\s\S]*power off/);
      assert.match(await cells(testbed, "start", "day/web/vm"), /"off" → "on"[\s\S]*power on, on h1, incarnation 3/);
      await inGuest(testbed, "day/web/vm", onceSoon("left", "poweroff"));
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
    });

    await t.test("a volume grows while its guest runs, which sees it, and is not made smaller", async () => {
      const sized = (size: number): void =>
        writeFileSync(file, specification.replace('golden>"; }', `golden>"; x.size ${size}; }`));
      sized(256);
      assert.match(await cells(testbed, "plan", file), /day\/web\/boot +VolumeCopy +grows while day\/web\/vm runs/);
      assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      assert.equal(await inGuest(testbed, "day/web/vm", "cat /sys/class/block/vda/size"), String(256 * 2048));
      sized(100);
      const smaller = await testbed.cells(["apply", file, "--yes"]);
      assert.notEqual(smaller.code, 0);
      assert.match(smaller.stderr, /has 256 MiB, and a volume cannot be made smaller/);
      sized(256);
    });

    await t.test("an image that nobody has added is not waited for: apply says so, and what to do", async () => {
      const before = readFileSync(file, "utf8");
      const late = 'late extends Volume { x.size 64; x.access "ro"; x.import "late"; }\n  net extends';
      writeFileSync(file, before.replace("net extends", late));
      const told = await testbed.cells(["apply", file, "--yes"]);
      assert.equal(told.code, 4, `${told.stdout}${told.stderr}`);
      assert.match(
        told.stderr,
        /^1 of \d+ elements do not become ready before something is changed:\n.*day\/late .*no image "late"; there are: tiny\n.*`cells image add late FILE`/m,
      );
      writeFileSync(file, before);
      assert.match(await cells(testbed, "apply", file, "--yes", "--allow-destroy", "day/late"), /day is as declared/);
    });

    await t.test(
      "what another cell does not show is not waited for: apply says so after a while, and what to do",
      async () => {
        const before = readFileSync(file, "utf8");
        const ends = 'x.address1 "<ref:/day/net>"; x.address2 "<ref://nobody.cells.internal/nobody/vm>";';
        const rule = `out extends NetworkRule { ${ends} x.protocol "tcp"; x.port2 80; x.direction "1to2"; }`;
        writeFileSync(file, before.replace("net extends", `${rule}\n  net extends`));
        const told = await testbed.cells(["apply", file, "--yes", "--timeout", "120"]);
        assert.equal(told.code, 4, `${told.stdout}${told.stderr}`);
        assert.match(told.stderr, /^1 of \d+ elements wait for what nothing of this change brings.*:\n.*day\/out /m);
        assert.doesNotMatch(told.stderr, /not ready after/);
        writeFileSync(file, before);
        assert.match(await cells(testbed, "apply", file, "--yes"), /day is as declared/);
      },
    );

    await t.test("a group is renamed with its guest running, and events have the new path", () =>
      tryRename(testbed, file),
    );
    await t.test("Ctrl-C leaves a change that goes on", () => tryInterrupt(testbed, file));
    await t.test("down and up are no crash, and a crash is one", () => tryDownAndUp(testbed, file));
  });
});
