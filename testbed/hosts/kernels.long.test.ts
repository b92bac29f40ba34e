import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { objectFile } from "../../host/drivers/network/diverter/program/dataplane.ts";
import { fetchKernel, guestOptions, makeInitramfs } from "./debian-kernel.testing.ts";

/**
 * Each kernel has a verifier of its own, and an older one forgets what a newer one knows: so the packet program is loaded on
 * the kernels of Debian 12 and 13. A guest has nothing but the kernel, `bpftool` and the object.
 */
const releases = [
  { suite: "bookworm", kernel: /^kernel 6\.1\./m },
  { suite: "trixie", kernel: /^kernel 6\.12\./m },
] as const;
const programs = "fan_in fan_out from_outside from_service from_vm from_wire";
const skip = process.getuid?.() === 0 ? false : "needs root";

const init = `#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t bpf bpf /sys/fs/bpf
echo "kernel $(busybox uname -r)"
bpftool prog loadall /diverter.o /sys/fs/bpf/programs type classifier pinmaps /sys/fs/bpf/maps >/said 2>&1 ||
  busybox tail -n 60 /said
echo "loaded: $(busybox ls /sys/fs/bpf/programs | busybox tr '\\n' ' ')"
busybox poweroff -f
`;

for (const { suite, kernel } of releases)
  test(`the kernel of Debian's ${suite} accepts the packet program`, { skip }, () => {
    const work = mkdtempSync(join(tmpdir(), "cells-kernel-"));
    try {
      const { image } = fetchKernel(work, suite, "cloud-amd64");
      const bpftool = execFileSync("sh", ["-c", "command -v bpftool"], { encoding: "utf8" }).trim();
      const initrd = makeInitramfs(work, init, [bpftool], { [objectFile]: "diverter.o" });
      const { stdout } = spawnSync("qemu-system-x86_64", guestOptions(image, initrd, 512), {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 300_000,
      });
      const text = stdout.replaceAll("\r", "");
      assert.match(text, kernel);
      assert.match(text, new RegExp(`^loaded: ${programs} $`, "m"));
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
