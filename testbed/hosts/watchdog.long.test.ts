import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fetchKernel, guestOptions, makeInitramfs } from "./debian-kernel.testing.ts";

/*
 * The watchdog of a machine for real: QEMU's i6300esb, and Linux's driver of it, in guests that have nothing but Debian's kernel,
 * Node and what the Host Manager does with such a device (decision 125).
 */
const root = join(import.meta.dirname, "../..");
const needsRoot = process.getuid?.() === 0 ? false : "needs root";
const options = { skip: needsRoot, timeout: 400_000 };
const node = "node --disable-warning=ExperimentalWarning /testbed/hosts/watchdog-guest.testing.ts /dev/watchdog0";
const init = `#!/bin/busybox sh
export PATH=/bin HOME=/
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox insmod /modules/watchdog.ko
busybox insmod /modules/i6300esb.ko
busybox head -n 20 /sys/class/watchdog/watchdog0/identity /sys/class/watchdog/watchdog0/nowayout
case "$(busybox cat /proc/cmdline)" in
  *cells=keeps*)
    ${node} 15 closes
    echo "closed"
    ${node} 0 rests /dead &
    busybox sleep 15
    ${node} 2 SIGKILL
    echo "killed"
    busybox sleep 3
    : >/dead
    wait
    busybox sleep 15
    echo "alive"
    busybox rmmod i6300esb
    busybox insmod /modules/i6300esb.ko nowayout=1
    ${node} 0 rests ;;
  *cells=stands*)
    ${node} 4 SIGSTOP &
    busybox sleep 60
    echo "alive" ;;
  *cells=dies*)
    ${node} 4 SIGKILL
    busybox sleep 60
    echo "alive" ;;
esac
busybox poweroff -f
`;

let work: string;
let image: string;
let initrd: string;
before(() => {
  if (needsRoot !== false) return;
  work = mkdtempSync(join(tmpdir(), "cells-watchdog-"));
  const kernel = fetchKernel(work, "bookworm", "amd64");
  image = kernel.image;
  const modules = ["watchdog.ko", "i6300esb.ko"].map((name) => [
    join(kernel.modules, "drivers/watchdog", name),
    join("modules", name),
  ]);
  const sources = ["package.json", "core", "model", "host/heartbeat", "testbed/hosts/watchdog-guest.testing.ts"];
  const libraries = ["node_modules/koffi", "node_modules/@koromix"];
  const copied = [...sources, ...libraries].map((path) => [join(root, path), path]);
  initrd = makeInitramfs(work, init, [process.execPath], Object.fromEntries([...modules, ...copied]));
});
after(() => {
  if (work !== undefined) rmSync(work, { recursive: true, force: true });
});

/** What a guest says until its power is off or it is reset, and how long after its watchdog was fed last that was. */
const boot = async (words: string): Promise<{ readonly text: string; readonly sinceFedMs: number }> => {
  const watchdog = ["-device", "i6300esb", "-action", "watchdog=reset"];
  const guest = spawn("qemu-system-x86_64", [...guestOptions(image, initrd, 1024, words), ...watchdog], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let [text, fed, fedMs] = ["", 0, Number.NaN];
  guest.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString().replaceAll("\r", "");
    // A line comes in pieces.
    const { length } = [...text.matchAll(/^fed \d+$/gm)];
    if (length > fed) fedMs = performance.now();
    fed = length;
  });
  const timer = setTimeout(() => guest.kill("SIGKILL"), 300_000);
  await once(guest, "close");
  clearTimeout(timer);
  return { text, sinceFedMs: performance.now() - fedMs };
};

test(
  "fed it resets nothing, nor after an orderly end, nor where the next process comes in time; one that cannot rest is refused",
  options,
  async () => {
    const { text } = await boot("cells=keeps");
    for (const line of ["host/watchdog-counts", "fed 15", "closed", "fed 2", "killed", "alive"])
      assert.match(text, new RegExp(`^${line}$`, "m"), text);
    assert.match(text, /^the watchdog \/dev\/watchdog0 \(host\.watchdog\) cannot be told to rest again/m, text);
  },
);

test(
  "12 s after it was fed last a machine is reset whose Host Manager stands still, or has died and does not come back",
  options,
  async () => {
    for (const end of ["stands", "dies"]) {
      const { text, sinceFedMs } = await boot(`cells=${end}`);
      assert.match(text, /^fed 4$/m, text);
      assert.doesNotMatch(text, /alive/);
      // The driver of this one rounds to whole seconds, and emulation stands still now and then.
      assert.ok(sinceFedMs > 10_000 && sinceFedMs < 20_000, `${sinceFedMs} ms`);
      console.log(`reset ${(sinceFedMs / 1000).toFixed(1)} s after it was fed last (${end})`);
    }
  },
);
