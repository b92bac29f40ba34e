import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { BootRecord } from "../../../../core/documents/vocabulary.ts";
import { ipv4, uid } from "../../../../model/cell/identifiers.ts";
import type { ImageManifest } from "../../../../runtime/installation.ts";
import type { ComposedDisk } from "../../storage/driver.ts";
import { machineIdentity } from "../../unix-users.ts";
import type { HypervisorDriver, MachineSpecification } from "../driver.ts";
import { createQemuDriver } from "../qemu.ts";

const cached = "/var/cache/cells/images/tiny";
const manifest = existsSync(join(cached, "manifest.json"))
  ? (JSON.parse(readFileSync(join(cached, "manifest.json"), "utf8")) as ImageManifest)
  : null;
const boot = manifest?.boot ?? null;
const skip =
  process.getuid?.() !== 0
    ? "needs root"
    : boot?.saved === undefined
      ? "the tiny image has no saved state: run image/main.ts"
      : false;

let directory = "";
let driver: HypervisorDriver;
const taps: string[] = [];
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-resume-"));
  await chmod(directory, 0o711);
  driver = createQemuDriver({ runDirectory: join(directory, "run") });
});
after(async () => {
  for (const { vm } of await driver.list()) await driver.stop(vm, 0);
  await driver.close();
  for (const tap of taps) execFileSync("ip", ["tuntap", "del", "dev", tap, "mode", "tap"]);
  await rm(directory, { recursive: true, force: true });
});

const makeTap = (number: number): string => {
  const tap = `tr${process.pid}x${number}`.slice(0, 15);
  execFileSync("ip", ["tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr"]);
  execFileSync("ip", ["link", "set", tap, "up"]);
  taps.push(tap);
  return tap;
};
const packetsFrom = (tap: string): number =>
  Number(readFileSync(`/sys/class/net/${tap}/statistics/rx_packets`, "utf8"));

/** A copy of the image's disk, and a machine that has it. `number` makes everything about it its own. */
const machine = async (number: number): Promise<MachineSpecification & { readonly file: string }> => {
  assert.ok(manifest !== null && boot !== null);
  const file = join(directory, `disk${number}.qcow2`);
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", join(cached, manifest.disk), file]);
  await chmod(file, 0o666);
  const { commandLine, saved } = boot;
  const record: BootRecord = {
    digest: manifest.digest,
    address: ipv4("10.0.2.1"),
    port: 7101,
    commandLine,
    ...(saved === undefined ? {} : { saved }),
  };
  const disk: ComposedDisk = {
    desired: {
      connection: uid(`c1-${number}9`),
      busType: "virtio",
      busNumber: null,
      busSlot: null,
      bootOrder: 0,
      readOnly: false,
      attachment: { volume: uid(`c1-${number}8`), epoch: 1, sizeMiB: 64, layers: [], boot: record, pristine: true },
    },
    objects: [],
    blockdevs: [JSON.stringify({ driver: "qcow2", "node-name": "root", file: { driver: "file", filename: file } })],
    node: "root",
    boot: {
      kernel: join(cached, boot.kernel),
      initrd: join(cached, boot.initrd),
      commandLine,
      saved: { memory: join(cached, "memory"), state: join(cached, "state") },
    },
    secretDirectories: [],
  };
  const desired = {
    uid: uid(`c1-${number}4`),
    path: "shop/nic" as never,
    mac: `52:54:00:00:00:0${number}` as never,
    address: ipv4(`10.231.0.${number}`),
    prefixLength: 24,
    gateway: ipv4("10.231.0.1"),
    nameServer: ipv4("10.231.0.1"),
    hostName: `web${number}`,
    domain: "shop.cells.internal",
    identity: 1,
    vmIdentity: 2,
    subnetIdentity: 3,
    audience: [],
  };
  return {
    file,
    vm: uid(`c1-${number}`),
    incarnation: 1,
    name: `vm${number}`,
    memoryMiB: 128,
    cpus: 1,
    disks: [disk],
    interfaces: [{ tap: makeTap(number), desired }],
    data: { number },
    start: "resume",
  };
};

/** What makes a guest this guest. */
const identityOf = async (vm: MachineSpecification["vm"]): Promise<readonly string[]> => {
  const script = `hostname; cat /etc/machine-id; cat /sys/class/net/eth0/address
    ip -4 -o address show dev eth0 | sed 's/ *brd.*//'; head -c 16 /dev/urandom | md5sum; cat /data/data/number`;
  for (;;) {
    const { stdout } = await driver.exec(vm, ["/bin/sh", "-c", script], 30_000);
    // The address is there when its card is.
    if (stdout.includes("10.231.0.")) return stdout.trim().split("\n");
    await sleep(20);
  }
};

test("two machines that go on from one state are two, and were nobody when they had no network card", {
  skip,
}, async () => {
  const [first, second] = [await machine(2), await machine(3)];
  assert.equal(await driver.start(first), null);
  assert.equal(await driver.start(second), null);
  const [one, two] = [await identityOf(first.vm), await identityOf(second.vm)];
  assert.equal(one[0], "web2");
  assert.equal(two[0], "web3");
  assert.equal(one[2], "52:54:00:00:00:02");
  assert.match(two[3] ?? "", /10\.231\.0\.3\/24/);
  assert.equal(one[5], "2");
  for (const [index, what] of ["host name", "machine-id", "MAC", "address", "random numbers", "x.data"].entries())
    assert.notEqual(one[index], two[index], `${what}: ${one[index]}`);
  assert.match(one[1] ?? "", /^[0-9a-f]{32}$/);
  const { stdout } = await driver.exec(first.vm, ["/bin/sh", "-c", "cat /run/cards-before; date +%s"], 30_000);
  const [cards, seconds] = stdout.trim().split("\n");
  assert.equal(cards, "/sys/class/net/lo", "the only card when it became itself");
  assert.ok(Math.abs(Number(seconds) * 1000 - Date.now()) < 60_000, "its clock is right");
  const [running] = await driver.list();
  const status = await readFile(`/proc/${running?.pid}/status`, "utf8");
  assert.match(status, new RegExp(`^Uid:\\s+${machineIdentity(running?.vm ?? "").uid}\\s`, "m"));
  assert.match(status, /^CapBnd:\s+0000000000000000$/m);
  // Their disks are their own, and a guest that reboots finds its own again.
  await driver.exec(first.vm, ["/bin/sh", "-c", "echo mine >/root/note; sync"], 30_000);
  assert.notEqual((await driver.exec(second.vm, ["/bin/cat", "/root/note"], 30_000)).exitCode, 0);
  await driver.stop(second.vm, 0);

  // The next incarnation: its disk was written, so it boots, says why, and has its data.
  await driver.stop(first.vm, 60_000);
  const written = { ...first.disks[0]?.desired.attachment, epoch: 3 };
  const { pristine: _, ...attachment } = written as { readonly pristine?: true };
  const disk = { ...first.disks[0], desired: { ...first.disks[0]?.desired, attachment } } as ComposedDisk;
  const remark = await driver.start({ ...first, incarnation: 2, disks: [disk] });
  assert.match(remark ?? "", /it booted, since .*: its disk may have been written/);
  const { stdout: note } = await driver.exec(first.vm, ["/bin/sh", "-c", "cat /root/note /etc/machine-id"], 90_000);
  assert.deepEqual(note.trim().split("\n"), ["mine", one[1]]);
  await driver.stop(first.vm, 0);
});

test("a guest whose disk is not what it remembers writes nothing: the machine boots instead", {
  skip,
}, async () => {
  const vm = await machine(4);
  assert.equal(await driver.start(vm), null);
  await identityOf(vm.vm);
  // The guest sets its card up a moment after it was plugged in.
  const isHeard = (): boolean => packetsFrom(vm.interfaces[0]?.tap ?? "") > 0;
  for (const end = performance.now() + 30_000; !isHeard() && performance.now() < end; )
    await driver.exec(vm.vm, ["/bin/ping", "-c", "1", "-W", "1", "10.231.0.1"], 30_000);
  assert.ok(isHeard(), "a guest that is itself is heard");
  // The next Host Manager takes it over like any other machine.
  await driver.close();
  driver = createQemuDriver({ runDirectory: join(directory, "run") });
  assert.deepEqual(
    (await driver.list()).map((found) => found.vm),
    [vm.vm],
  );
  await driver.exec(vm.vm, ["/bin/sh", "-c", "echo precious >/root/note; sync"], 30_000);
  await driver.stop(vm.vm, 60_000);
  // As if a host had forgotten that it had started this very incarnation before.
  const remark = await driver.start(vm);
  assert.match(remark ?? "", /its disk was written since the state was saved/);
  assert.equal((await driver.exec(vm.vm, ["/bin/cat", "/root/note"], 90_000)).stdout, "precious\n");

  // One whose starter ended half-way may have a guest that is nobody: it is ended, not taken over.
  const record = join(directory, "run", "vms", vm.vm, "record.json");
  await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, "utf8")), unfinished: true }));
  const [half] = await driver.list();
  await driver.close();
  driver = createQemuDriver({ runDirectory: join(directory, "run") });
  assert.deepEqual(await driver.list(), []);
  assert.equal(existsSync(`/proc/${half?.pid}/fd/0`), false, "its process is gone");
  await driver.stop(vm.vm, 0);
});
