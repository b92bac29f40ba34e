import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { buildTinyImage } from "../../image/build.ts";
import { cacheDirectory } from "../places.ts";

/**
 * What `examples/egress.sf` and `examples/own-gateway.sf` ask of the tiny guest, without a cloud around it: one guest between
 * two networks, in namespaces of their own that are gone with the process. DHCP gives it its addresses, as hosts do.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

/** Arguments: the work directory, the image's. `inside` is the worker's and the controller's network, `beyond` the other one. */
const script = `
set -eu
work=$1 image=$2
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
mount -t proc proc /proc
ip link set lo up
for net in inside beyond; do
  ip netns add $net
  ip link add sw-$net type bridge
  ip tuntap add tap-$net mode tap
  ip link add to-$net type veth peer name eth0 netns $net
  for port in tap-$net to-$net; do ip link set $port master sw-$net up; done
  ip link set sw-$net up
  for device in lo eth0; do ip -n $net link set $device up; done
done
ip -n inside address add 10.64.0.5/24 dev eth0
ip -n inside address add 10.64.0.1/24 dev eth0
ip -n inside route add default via 10.64.0.9
ip -n beyond address add 198.18.0.1/24 dev eth0
ip -n beyond address add 203.0.113.9/32 dev lo
lease() {
  ip netns exec $1 dnsmasq --conf-file=/dev/null --port=0 --interface=eth0 --user=root --pid-file=/run/$1.pid \\
    --dhcp-range=$2,$2,255.255.255.0 --dhcp-option=3,$3 --dhcp-option=6,10.64.0.5 --dhcp-leasefile=/run/$1.leases
}
lease inside 10.64.0.9 10.64.0.1
lease beyond 198.18.0.3 198.18.0.1
ip netns exec beyond socat TCP4-LISTEN:8080,fork,reuseaddr SYSTEM:'echo from $SOCAT_PEERADDR' &
ip netns exec inside socat TCP4-LISTEN:7101,bind=10.64.0.5,fork,reuseaddr SYSTEM:'echo controller' &
card() { echo "-netdev tap,id=$1,ifname=tap-$1,script=no,downscript=no -device virtio-net-pci,netdev=$1,romfile="; }
qemu-system-x86_64 -nodefaults -no-reboot -display none -m 128 -accel tcg -cpu max \\
  -kernel "$image/kernel" -initrd "$image/initrd" -append "console=ttyS0 quiet panic=-1 net.ifnames=0" \\
  -drive file="$work/disk.qcow2",if=virtio -drive file="$work/seed.iso",if=virtio,format=raw,readonly=on \\
  $(card inside) $(card beyond) -device virtio-serial -serial file:"$work/serial" </dev/null &
asks() {
  for try in $(seq 1 90); do
    said=$(ip netns exec $1 socat -t10 -T10 - TCP4:$2,connect-timeout=2 </dev/null 2>/dev/null || :)
    [ -z "$said" ] || break
    sleep 1
  done
  echo "$said"
}
asks inside 203.0.113.9:8080
asks beyond 198.18.0.3:443
`;

test("a tiny guest leads its neighbours outside under its own address, and hands on to the controller", {
  skip,
}, async () => {
  const image = await buildTinyImage({ cacheDirectory: cacheDirectory() });
  const work = mkdtempSync(join(tmpdir(), "cells-egress-"));
  try {
    mkdirSync(join(work, "seed/data/serve"), { recursive: true });
    writeFileSync(join(work, "seed/identity"), "v1 egress\n");
    writeFileSync(join(work, "seed/data/serve/masquerade"), "eth1\n");
    writeFileSync(join(work, "seed/data/serve/controller"), "443\n");
    execFileSync("genisoimage", ["-quiet", "-V", "CIDATA", "-R", "-o", join(work, "seed.iso"), join(work, "seed")]);
    const overlay = ["-F", "qcow2", "-b", join(image, "disk.qcow2"), join(work, "disk.qcow2")];
    execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", ...overlay]);
    const own = ["--net", "--mount", "--pid", "--fork", "--kill-child"];
    const { stdout } = await promisify(execFile)("unshare", [...own, "sh", "-c", script, "cells-egress", work, image]);
    assert.equal(stdout, "from 198.18.0.3\ncontroller\n");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
