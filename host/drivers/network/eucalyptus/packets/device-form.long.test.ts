import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fetchKernel, guestOptions, makeInitramfs } from "../../../../../testbed/hosts/debian-kernel.testing.ts";

/**
 * What `managed.test.ts` tries by programs where a machine's kernel has no 802.1Q devices is tried here by the kernel's own: the same file, in a
 * guest with the kernel of Debian 12, which loads what it is asked for. The programs for tags and addresses are loaded there, too.
 */
const root = join(import.meta.dirname, "../../../../..");
const folder = "host/drivers/network/eucalyptus";
const programs = [
  ...[
    "ip",
    "bridge",
    "tcpdump",
    "socat",
    "dnsmasq",
    "ipset",
    "arping",
    "sysctl",
    "nsenter",
    "unshare",
    "mount",
    "umount",
  ],
  ...["iptables", "iptables-save", "iptables-restore", "ebtables-nft", "ebtables-nft-save", "ebtables-nft-restore"],
  ...["ping", "bpftool"],
] as const;
/** What a program of Debian's would have asked for by itself. */
const asked = [
  ...["crc32c_generic", "nf_tables", "nft_compat", "nft_chain_nat", "ip_set", "ip_set_hash_net", "bridge", "ebt_ip"],
  ...["ebt_arp", "xt_set", "xt_conntrack", "xt_mark", "xt_nat", "xt_MASQUERADE"],
];
const init = `#!/bin/busybox sh
export PATH=/bin:/sbin
for name in sh cat mkdir; do busybox ln -s busybox /bin/$name; done
busybox mkdir -p /sbin /run /tmp /root
busybox ln -s /bin/busybox /sbin/modprobe
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
busybox mount -t tmpfs tmpfs /run
busybox mount -t tmpfs tmpfs /tmp
busybox mount -t bpf bpf /sys/fs/bpf
echo "kernel $(busybox uname -r)"
ip link set lo up
for name in ${asked.join(" ")}; do busybox modprobe $name || echo "no $name"; done
for name in tags learn; do
  bpftool prog loadall /${folder}/$name/$name.o /sys/fs/bpf/$name >/run/said 2>&1 || busybox tail -n 40 /run/said
  echo "loaded: $name $(busybox ls /sys/fs/bpf/$name | busybox tr '\\n' ' ')"
done
ip link add wire type veth peer name end
ip link add link wire name v5 type vlan id 5 && echo "802.1Q: yes"
cd /
CELLS_TAG_FORM=vlan node --test-reporter=tap /${folder}/packets/managed.test.ts
echo "ended: $?"
busybox poweroff -f
`;

test("MANAGED runs by the kernel's own VLAN devices where it has them", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, () => {
  const work = mkdtempSync(join(tmpdir(), "cells-vlans-"));
  try {
    const { image, modules } = fetchKernel(work, "bookworm", "cloud-amd64");
    const release = basename(dirname(modules));
    execFileSync("depmod", ["-b", dirname(dirname(dirname(dirname(modules)))), release]);
    const of = (name: string): string => execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    const there = `lib/modules/${release}`;
    const lists = ["dep", "alias", "symbols", "builtin", "order"].map((name) => `modules.${name}`);
    const parts = ["net", "lib", "crypto", "drivers/net", "arch/x86/crypto"];
    const files: Record<string, string> = {
      "/usr/lib/x86_64-linux-gnu/xtables": "usr/lib/x86_64-linux-gnu/xtables",
      "/usr/lib/x86_64-linux-gnu/libbpf.so.1": "usr/lib/x86_64-linux-gnu/libbpf.so.1",
    };
    for (const name of ["passwd", "group", "nsswitch.conf", "protocols", "services", "ethertypes"])
      if (existsSync(`/etc/${name}`)) files[`/etc/${name}`] = `etc/${name}`;
    for (const name of lists) files[join(dirname(modules), name)] = `${there}/${name}`;
    for (const name of parts) files[join(modules, name)] = `${there}/kernel/${name}`;
    for (const path of [
      "package.json",
      "core",
      "model",
      "runtime",
      "host",
      "node_modules/koffi",
      "node_modules/@koromix",
    ])
      files[join(root, path)] = path;
    const initrd = makeInitramfs(work, init, [process.execPath, ...programs.map(of)], files);
    const { stdout } = spawnSync("qemu-system-x86_64", [...guestOptions(image, initrd, 3072), "-smp", "2"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 900_000,
    });
    const text = stdout.replaceAll("\r", "");
    assert.match(text, /^kernel 6\.1\./m, text);
    assert.match(text, /^loaded: tags tagged_in tagged_out $/m, text);
    assert.match(text, /^loaded: learn learn $/m, text);
    assert.match(text, /^802\.1Q: yes$/m);
    assert.match(text, /^# fail 0$/m, text);
    assert.match(text, /^ended: 0$/m);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
