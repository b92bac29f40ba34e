import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { buildDebianImage } from "../../image/debian.ts";
import type { Ended } from "../command.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { cacheDirectory } from "../places.ts";

/**
 * An ordinary Debian cloud image, which knows nothing of Cells, comes in from outside, boots by its own boot loader, and
 * takes its name, its address and its data. An emulated CPU needs about a minute for it.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const bootPatienceMs = 480_000;

const specification = `lab extends Cell {
  images extends {
    debian extends Volume { x.size 2048; x.access "ro"; x.import "debian"; }
    tiny extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  }
  net extends Subnet { x.size 8; }
  deb extends VM {
    x.memory 512; x.restartOnFailure true;
    x.data extends { greeting "hello from the specification"; }
  }
  debDisk extends VolumeCopy { x.image "<ref:../images/debian>"; }
  debBoot extends VolumeConnection { x.vm "<ref:../deb>"; x.volume "<ref:../debDisk>"; x.bootOrder 0; }
  debCard extends VirtualInterface { x.vm "<ref:../deb>"; x.subnet "<ref:../net>"; x.vifName "deb1"; }
  peer extends VM { x.memory 96; x.restartOnFailure true; }
  peerDisk extends VolumeCopy { x.image "<ref:../images/tiny>"; }
  peerBoot extends VolumeConnection { x.vm "<ref:../peer>"; x.volume "<ref:../peerDisk>"; }
  peerCard extends VirtualInterface { x.vm "<ref:../peer>"; x.subnet "<ref:../net>"; x.vifName "peer1"; }
  ping extends NetworkRule { x.address1 "<ref:../deb>"; x.address2 "<ref:../peer>"; x.protocol "icmp"; x.direction "1to2"; }
}
`;

const inGuest = (t: Testbed, ...command: readonly string[]): Promise<Ended> =>
  t.cells(["exec", "lab/deb", "--timeout", "60", "--", ...command]);

/** Asks until the guest's agent is there and the answer is as wanted; the last answer otherwise. */
async function until(wanted: (ended: Ended) => boolean, ask: () => Promise<Ended>): Promise<Ended> {
  const end = performance.now() + bootPatienceMs;
  for (;;) {
    const ended = await ask();
    if (wanted(ended) || performance.now() > end) return ended;
    await sleep(3000);
  }
}

describe("a Debian cloud image", { skip }, () => {
  test("imports, boots and takes its name, address and data", async () => {
    const image = await buildDebianImage({ cacheDirectory: cacheDirectory() });
    await withTestbed({ hosts: 1, servers: 1 }, async (t) => {
      const added = await t.cells(["image", "add", "debian", image, "--format", "qcow2"]);
      assert.equal(added.code, 0, added.stderr);
      const file = join(dirname(t.configFile), "lab.sf");
      writeFileSync(file, specification);
      const applied = await t.cells(["apply", file, "--yes"]);
      assert.equal(applied.code, 0, `${applied.stdout}${applied.stderr}`);

      const done = await until(
        ({ stdout }) => /status: (done|error)/.test(stdout),
        () => inGuest(t, "cloud-init", "status", "--long"),
      );
      assert.match(done.stdout, /status: done/, `${done.stdout}${done.stderr}`);
      assert.match(done.stdout, /NoCloud/);
      assert.equal((await inGuest(t, "hostname")).stdout.trim(), "deb1");
      const shown = JSON.parse((await t.cells(["get", "lab/debCard", "--state", "-o", "json"])).stdout) as {
        readonly $state: { readonly address: string; readonly mac: string };
      };
      const address = await inGuest(t, "ip", "-4", "-o", "addr", "show", "eth0");
      assert.ok(address.stdout.includes(` ${shown.$state.address}/29 `), address.stdout);
      const data = await inGuest(t, "cat", "/data/data.json");
      assert.match(data.stdout, /hello from the specification/, data.stderr);

      const ping = await until(
        ({ code }) => code === 0,
        () => inGuest(t, "ping", "-c", "1", "-W", "5", "peer1.lab.cells.internal"),
      );
      assert.equal(ping.code, 0, `${ping.stdout}${ping.stderr}`);
      const closed = await inGuest(t, "nc", "-z", "-w", "2", "peer1.lab.cells.internal", "22");
      assert.notEqual(closed.code, 0, "what no rule opens stays closed");
    });
  });
});
