import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { objectFile } from "../../host/drivers/network/diverter/program/dataplane.ts";

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

/** The suite's newest kernel for virtual machines, by sources and lists of its own: the machine's are left alone. */
function fetchKernel(work: string, suite: string): string {
  const lists = join(work, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  mkdirSync(join(work, "archives/partial"), { recursive: true });
  const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
  const sources = join(work, "sources.list");
  writeFileSync(sources, `deb [signed-by=${keyring}] http://deb.debian.org/debian ${suite} main\n`);
  const options = [
    ...[`Dir::Etc::sourcelist=${sources}`, "Dir::Etc::sourceparts=/dev/null", `Dir::State::lists=${lists}`],
    ...[`Dir::Cache=${work}`, "APT::Sandbox::User=root"],
  ].flatMap((option) => ["-o", option]);
  const run = (program: string, ...args: readonly string[]): string =>
    execFileSync(program, [...options, ...args], { cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  run("apt-get", "-qq", "update");
  const found = /Depends: (linux-image-\S+)/.exec(run("apt-cache", "depends", "linux-image-cloud-amd64"))?.[1];
  assert.ok(found !== undefined, `${suite} has no kernel`);
  run("apt-get", "-qq", "download", found);
  const [file] = globSync("*.deb", { cwd: work });
  execFileSync("dpkg-deb", ["-x", join(work, file ?? ""), join(work, "kernel")]);
  return join(work, "kernel", globSync("boot/vmlinuz-*", { cwd: join(work, "kernel") })[0] ?? "");
}

function makeInitramfs(work: string): string {
  const root = join(work, "root");
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    cpSync(realpathSync(from), join(root, to));
  };
  for (const directory of ["proc", "sys", "dev"]) mkdirSync(join(root, directory), { recursive: true });
  const bpftool = execFileSync("sh", ["-c", "command -v bpftool"], { encoding: "utf8" }).trim();
  put("/bin/busybox", "bin/busybox");
  put(bpftool, "bin/bpftool");
  for (const [library] of execFileSync("ldd", [bpftool], { encoding: "utf8" }).matchAll(/\/\S+/g))
    put(library, library);
  put(objectFile, "diverter.o");
  writeFileSync(join(root, "init"), init, { mode: 0o755 });
  const file = join(work, "initrd");
  execFileSync("sh", ["-c", `find . | cpio --quiet -o -H newc -R 0:0 | gzip -1 >"$0"`, file], { cwd: root });
  return file;
}

for (const { suite, kernel } of releases)
  test(`the kernel of Debian's ${suite} accepts the packet program`, { skip }, () => {
    const work = mkdtempSync(join(tmpdir(), "cells-kernel-"));
    try {
      const [image, initrd] = [fetchKernel(work, suite), makeInitramfs(work)];
      const machine = ["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "512"];
      const boot = ["-kernel", image, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on"];
      const { stdout } = spawnSync("qemu-system-x86_64", [...machine, "-accel", "tcg", "-cpu", "max", ...boot], {
        ...{ encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 },
      });
      const text = stdout.replaceAll("\r", "");
      assert.match(text, kernel);
      assert.match(text, new RegExp(`^loaded: ${programs} $`, "m"));
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
