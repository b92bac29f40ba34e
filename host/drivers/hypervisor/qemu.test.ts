import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Ipv4, ipv4, uid } from "../../../model/cell/identifiers.ts";
import type { ComposedDisk } from "../storage/driver.ts";
import { machineIdentity, setprivArguments } from "../unix-users.ts";
import type { HypervisorDriver, MachineCondition, MachineEnd, MachineSpecification } from "./driver.ts";
import { machineFiles } from "./launch.ts";
import { startHalfGone, stuckProcesses } from "./process/process.testing.ts";
import { findByArgument, isAlive, NotConfirmedGone, type ProcessIdentity, processControl } from "./process/process.ts";
import { createQemuDriver } from "./qemu.ts";

// Boot sectors, real mode. Writes "U" to COM1, then halts for good.
const idle = [0xba, 0xf8, 0x03, 0xb0, 0x55, 0xee, 0xfa, 0xf4, 0xeb, 0xfd];
// Writes S5 to q35's PM1 control register (port 0x604): an ACPI power-off.
const powerOff = [0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef, 0xfa, 0xf4, 0xeb, 0xfd];
// Writes 1 to pvpanic's port (0x505): the guest's kernel panicked.
const panic = [0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xf4, 0xeb, 0xfd];
// Writes 6 to the chipset's reset control register (0xcf9): a reboot, again and again.
const reboot = [0xba, 0xf9, 0x0c, 0xb0, 0x06, 0xee, 0xf4, 0xeb, 0xfd];

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-qemu-"));
  // QEMU's user must pass through.
  await chmod(directory, 0o711);
});
after(async () => {
  // Whatever a failed test left running.
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  for (const { vm } of await driver.list()) await driver.stop(vm, 0);
  await driver.close();
  await rm(directory, { recursive: true, force: true });
});

const diskOf = (file: string, format: "raw" | "qcow2", boot: ComposedDisk["boot"] = null): ComposedDisk => ({
  desired: {
    connection: uid("c1-9"),
    busType: "virtio",
    busNumber: null,
    busSlot: null,
    bootOrder: null,
    readOnly: false,
    attachment: { volume: uid("c1-8"), epoch: 1, sizeMiB: 64, layers: [], boot: null },
  },
  objects: [],
  blockdevs: [JSON.stringify({ driver: format, "node-name": "root", file: { driver: "file", filename: file } })],
  node: "root",
  boot,
  secretDirectories: [],
});

const sectorDisk = async (name: string, code: readonly number[]): Promise<ComposedDisk> => {
  const sector = Buffer.alloc(1024 * 1024);
  Buffer.from(code).copy(sector);
  sector.writeUInt16LE(0xaa55, 510);
  const file = join(directory, name);
  await writeFile(file, sector);
  await chmod(file, 0o666);
  return diskOf(file, "raw");
};

const machine = (vm: string, incarnation: number, disk: ComposedDisk, memoryMiB = 32): MachineSpecification => ({
  vm: uid(vm),
  incarnation,
  cell: "shop",
  name: vm,
  memoryMiB,
  cpus: 1,
  disks: [disk],
  interfaces: [],
  data: { greeting: "hello" },
});

const endsOf = (driver: HypervisorDriver): { readonly ends: MachineEnd[]; next(): Promise<MachineEnd> } => {
  const ends: MachineEnd[] = [];
  const waiting: ((end: MachineEnd) => void)[] = [];
  driver.onEnd((end) => {
    ends.push(end);
    waiting.shift()?.(end);
  });
  return { ends, next: () => new Promise((resolve) => waiting.push(resolve)) };
};

test("a machine is started, found again by a new driver, and told apart by how it ends", async () => {
  const options = { runDirectory: join(directory, "run") };
  const first = createQemuDriver(options);
  const accelerator = await first.accelerator();
  assert.ok(accelerator === "tcg" || accelerator === "kvm");
  const disk = await sectorDisk("idle.img", idle);
  const vm = uid("c1-1");
  await first.start(machine(vm, 3, disk));
  const [found] = await first.list();
  assert.equal(found?.incarnation, 3);
  const status = await readFile(`/proc/${found?.pid}/status`, "utf8");
  assert.match(status, new RegExp(`^Uid:\\s+${machineIdentity(vm).uid}\\s`, "m"));
  assert.match(status, /^CapBnd:\s+0000000000000000$/m);
  assert.match(status, /^Seccomp:\s+2$/m);
  await assert.rejects(first.start(machine(vm, 4, disk)), /incarnation 3 of c1-1 still runs/);
  const console = join(options.runDirectory, "vms", vm, "console.log");
  // Without an end if it never comes: the runner's time-out then says so.
  while (!(await readFile(console, "utf8").catch(() => "")).includes("U")) await sleep(20);
  await first.close();

  const second = createQemuDriver(options);
  const told = endsOf(second);
  assert.deepEqual(await second.list(), [found]);
  const crash = told.next();
  process.kill(found?.pid ?? 0, "SIGKILL");
  assert.equal((await crash).ended, "crashed");
  assert.deepEqual(await second.list(), []);
  assert.match(String(await second.kept({ cell: "shop", vm, incarnation: 3 })), /Machine U/);
  assert.equal(await second.kept({ cell: "other", vm, incarnation: 3 }), null);

  await second.start(machine(vm, 5, disk));
  const stopped = told.next();
  await second.stop(vm, 0);
  assert.deepEqual(await stopped, { vm, incarnation: 5, ended: "stopped", detail: "stopped on request" });
  assert.deepEqual(await second.list(), []);
  assert.equal(existsSync(join(options.runDirectory, "vms", vm)), false);
  assert.match(
    String(await second.kept({ cell: "shop", vm, incarnation: 3 })),
    /Machine U/,
    "the next one leaves it there",
  );

  const off = told.next();
  await second.start(machine(vm, 6, await sectorDisk("off.img", powerOff)));
  assert.equal((await off).ended, "exited");
  assert.equal(told.ends.length, 3);
  await second.stop(vm, 0);
  await second.close();
});

test("how a machine ended that is seen to end is announced before its driver is closed", async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const told = endsOf(driver);
  const vm = uid("c1-12");
  await driver.start(machine(vm, 1, await sectorDisk("off-closed.img", powerOff)));
  const process = findByArgument(
    `socket,id=qmp,path=${machineFiles(join(directory, "run", "vms"), vm).qmp},server=on,wait=off`,
  );
  while (process !== null && isAlive(process)) await sleep(0);
  await driver.close();
  assert.deepEqual(told.ends, [{ vm, incarnation: 1, ended: "exited", detail: "the guest powered itself off" }]);
});

test("a guest that reboots goes on and is counted; one that panics has crashed, also when nobody was there to hear it", async () => {
  const options = { runDirectory: join(directory, "run") };
  const driver = createQemuDriver(options);
  const told = endsOf(driver);
  const vm = uid("c1-5");
  const heard: MachineCondition[] = [];
  const third = new Promise<void>((resolve) => {
    driver.onCondition((condition) => {
      heard.push(condition);
      if (heard.length === 3) resolve();
    });
  });
  await driver.start(machine(vm, 1, await sectorDisk("reboot.img", reboot)));
  const [before] = await driver.list();
  await third;
  assert.deepEqual(new Set(heard.map(({ condition }) => condition)), new Set(["rebooted"]));
  assert.deepEqual(await driver.list(), [before], "the same process, the same incarnation");
  assert.deepEqual(told.ends, []);
  await driver.stop(vm, 0);

  const crash = told.next();
  await driver.start(machine(vm, 2, await sectorDisk("panic.img", panic)));
  assert.deepEqual(await crash, { vm, incarnation: 2, ended: "crashed", detail: "its guest's kernel panicked" });
  assert.equal(heard.at(-1)?.condition, "panicked");
  await driver.stop(vm, 0);

  // It panics while no driver is connected: QEMU keeps it as it is until the next one looks.
  await driver.start(machine(vm, 3, await sectorDisk("panic.img", panic)));
  await driver.close();
  const second = createQemuDriver(options);
  const later = endsOf(second).next();
  assert.equal((await second.list())[0]?.incarnation, 3);
  assert.equal((await later).ended, "crashed");
  await second.stop(vm, 0);
  await second.close();
});

test("a machine that has ended is listed until its end was announced: whoever lists would take it for lost meanwhile", async () => {
  const options = { runDirectory: join(directory, "listed") };
  const vm = uid("c1-13");
  const first = createQemuDriver(options);
  await first.start(machine(vm, 1, await sectorDisk("panic-listed.img", panic)));
  await first.close();
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const waitGone = async (target: ProcessIdentity, ms: number): Promise<boolean> => {
    await held;
    return processControl.waitGone(target, ms);
  };
  const second = createQemuDriver({ ...options, processes: { ...processControl, waitGone } });
  const end = endsOf(second).next();
  const [found] = await second.list();
  const gone = findByArgument(
    `socket,id=qmp,path=${machineFiles(join(options.runDirectory, "vms"), vm).qmp},server=on,wait=off`,
  );
  while (gone !== null && isAlive(gone)) await sleep(5);
  assert.deepEqual(await second.list(), [found]);
  assert.equal(found?.incarnation, 1);
  goOn();
  assert.deepEqual([(await end).ended, await second.list()], ["crashed", []]);
  await second.close();
});

test("a QEMU that answers nothing holds up nobody who lists the others after a restart", {
  timeout: 60_000,
}, async () => {
  const options = { runDirectory: join(directory, "silent-run") };
  const vm = uid("c1-19");
  const first = createQemuDriver(options);
  await first.start(machine(vm, 1, await sectorDisk("silent-listed.img", idle)));
  const [found] = await first.list();
  await first.close();
  const pid = found?.pid ?? 0;
  process.kill(pid, "SIGSTOP");
  const second = createQemuDriver(options);
  try {
    const listed = await Promise.race([second.list(), sleep(20_000, "nothing", { ref: false })]);
    assert.deepEqual(listed, [found], "what lives must be known");
    process.kill(pid, "SIGCONT");
    while (second.console(vm) === null) await sleep(20);
  } finally {
    process.kill(pid, "SIGCONT");
    await second.stop(vm, 0);
    await second.close();
  }
});

test("a machine whose disk gives errors stands still, says which disk, and goes on by itself once it works", async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const vm = uid("c1-6");
  const heard: MachineCondition[] = [];
  const goesOn = new Promise<void>((resolve) => {
    driver.onCondition((condition) => {
      heard.push(condition);
      if (condition.condition === "running") resolve();
    });
  });
  const disk = await sectorDisk("faulty.img", idle);
  const file = { driver: "file", filename: join(directory, "faulty.img") };
  // The first two reads fail, as over a connection that must be made anew.
  const error = (state: number) => ({ event: "read_aio", errno: 5, once: true, state });
  const next = (state: number) => ({ event: "read_aio", state, new_state: state + 1 });
  const faulty = {
    driver: "blkdebug",
    image: file,
    "inject-error": [error(1), error(2)],
    "set-state": [next(1), next(2)],
  };
  const blockdevs = [JSON.stringify({ driver: "raw", "node-name": "root", file: faulty })];
  await driver.start(machine(vm, 1, { ...disk, blockdevs }));
  await goesOn;
  const [first, ...rest] = heard;
  assert.deepEqual(first, {
    vm,
    incarnation: 1,
    condition: "stalled",
    detail: "Input/output error",
    connections: ["c1-9"],
  });
  assert.equal(rest.at(-1)?.condition, "running");
  const console = join(directory, "run", "vms", vm, "console.log");
  while (!(await readFile(console, "utf8").catch(() => "")).includes("U")) await sleep(20);
  await driver.stop(vm, 0);
  await driver.close();
});

test("whoever takes over a QEMU has its sockets, and nothing that we read or write, nor anything of another machine", async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const [one, two] = [uid("c1-21"), uid("c1-22")];
  try {
    for (const vm of [one, two]) await driver.start(machine(vm, 1, await sectorDisk(`${vm}.img`, idle)));
    const own = join(directory, "run", "vms", one);
    /** As the first machine's user. */
    const may = (script: string, ...args: readonly string[]): boolean => {
      const command = ["sh", "-c", script, "sh", ...args];
      return spawnSync("setpriv", [...setprivArguments(machineIdentity(one)), ...command]).status === 0;
    };
    assert.ok(may('test -S "$1" && ln -s /etc/passwd "$2"', join(own, "s", "qmp"), join(own, "s", "link")), "its own");
    assert.ok(may('head -c 1 "$1" >/dev/null', join(own, "seed.iso")));
    for (const name of await readdir(own)) {
      const path = join(own, name);
      if (name !== "s") assert.ok(!may('test -w "$1"', path), name);
      assert.ok(!may('mv "$1" "$1.old"', path), `${name} moved`);
    }
    assert.ok(!may('ln -s /etc/passwd "$1"', join(own, "record.json.new")));
    const others = join(directory, "run", "vms", two);
    assert.ok(!may('head -c 1 "$1" >/dev/null', join(others, "seed.iso")));
    assert.ok(!may('ls "$1"', join(others, "s")));
    const pid = (await driver.list()).find(({ vm }) => vm === two)?.pid;
    assert.ok(!may('kill -0 "$1"', String(pid)));
  } finally {
    for (const vm of [one, two]) await driver.stop(vm, 0);
    await driver.close();
  }
});

test("a machine that nothing was ever heard of is asked for a short time whether it powers off", {
  timeout: 120_000,
}, async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const told = endsOf(driver);
  const end = told.next();
  await driver.start(machine("c1-17", 1, await sectorDisk("nothing", idle)));
  // Its guest never answers. One that has an operating system would have ten minutes.
  await driver.stop(uid("c1-17"), 600_000);
  assert.equal((await end).ended, "stopped");
  assert.deepEqual(await driver.list(), []);
  await driver.close();
});

test("a QEMU that answers nothing holds nobody up who makes its disk grow or stops it", {
  timeout: 60_000,
}, async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const vm = uid("c1-18");
  const disk = await sectorDisk("silent", idle);
  await driver.start(machine(vm, 1, disk));
  const [found] = await driver.list();
  process.kill(found?.pid ?? 0, "SIGSTOP");
  await assert.rejects(driver.grow(vm, disk.node, 64), /QEMU has not answered within \d+ ms/);
  await driver.stop(vm, 300);
  assert.deepEqual(await driver.list(), []);
  await driver.close();
});

test("a start that fails says why and leaves nothing", async () => {
  const options = { runDirectory: join(directory, "run") };
  const driver = createQemuDriver(options);
  const disk = diskOf(join(directory, "missing.img"), "raw");
  await assert.rejects(driver.start(machine("c1-2", 1, disk)), /c1-2 did not start: .*No such file or directory/);
  assert.deepEqual(await driver.list(), []);
  assert.equal(existsSync(join(options.runDirectory, "vms", "c1-2")), false);
  await driver.close();
});

test("a start that fails and whose process does not end when killed is known as a machine that is ending, until it is gone", async () => {
  const runDirectory = join(directory, "run");
  const vm = uid("c1-7");
  const processes = stuckProcesses();
  // QEMU is given no time to answer.
  const driver = createQemuDriver({ runDirectory, processes, launchDeadlineMs: 0 });
  const disk = await sectorDisk("slow.img", idle);
  await assert.rejects(driver.start(machine("c1-7", 4, disk)), (error: Error) => {
    assert.match(error.message, /c1-7 did not start: .*its process \d+ does not end when killed/);
    return error instanceof NotConfirmedGone;
  });
  const [found] = await driver.list();
  assert.deepEqual(found, { vm, incarnation: 4, pid: found?.pid, ending: true });
  await assert.rejects(driver.start(machine("c1-7", 5, disk)), /incarnation 4 of c1-7 still runs/);
  await driver.close();

  const second = createQemuDriver({ runDirectory, processes });
  assert.deepEqual(await second.list(), [found], "also after a restart");
  await assert.rejects(second.stop(vm, 0), NotConfirmedGone);
  processes.stuck = false;
  await second.stop(vm, 0);
  assert.deepEqual(await second.list(), []);
  assert.equal(existsSync(join(runDirectory, "vms", vm)), false);
  await second.close();
});

test("a machine of which one thread alone is left, in the midst of a write, has not ended", async () => {
  const runDirectory = join(directory, "run");
  const files = machineFiles(join(runDirectory, "vms"), "c1-8");
  await mkdir(files.directory, { recursive: true });
  const { child, identity } = await startHalfGone("/");
  try {
    await writeFile(files.record, JSON.stringify({ incarnation: 2, process: identity, unfinished: false }));
    const processes = stuckProcesses();
    const driver = createQemuDriver({ runDirectory, processes });
    assert.deepEqual(await driver.list(), [{ vm: "c1-8", incarnation: 2, pid: identity.pid, ending: true }]);
    processes.stuck = false;
    await driver.stop(uid("c1-8"), 0);
    assert.equal(isAlive(identity), false);
    await driver.close();
  } finally {
    child.kill("SIGKILL");
  }
});

const cached = "/var/cache/cells/images/tiny";
test("a Linux guest is reached through a tap's descriptor and its agent, and powers off when asked", {
  skip: existsSync(join(cached, "manifest.json")) ? false : "the tiny image is not built: run image/build.ts",
}, async () => {
  const driver = createQemuDriver({ runDirectory: join(directory, "run") });
  const manifest = JSON.parse(await readFile(join(cached, "manifest.json"), "utf8")) as {
    readonly disk: string;
    readonly boot: { readonly kernel: string; readonly initrd: string; readonly commandLine: string };
  };
  const overlay = join(directory, "tiny.qcow2");
  const base = join(cached, manifest.disk);
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, overlay]);
  await chmod(overlay, 0o666);
  const boot = {
    kernel: join(cached, manifest.boot.kernel),
    initrd: join(cached, manifest.boot.initrd),
    commandLine: manifest.boot.commandLine,
  };
  const tap = `tq${process.pid}`.slice(0, 15);
  execFileSync("ip", ["tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr"]);
  try {
    const vm = uid("c1-3");
    const address: Ipv4 = ipv4("10.64.0.9");
    const told = endsOf(driver);
    await driver.start({
      ...machine(vm, 1, diskOf(overlay, "qcow2", boot), 128),
      interfaces: [
        {
          tap,
          desired: {
            uid: uid("c1-4"),
            path: "shop/nic" as never,
            mac: "52:54:00:00:00:09" as never,
            address,
            prefixLength: 24,
            gateway: ipv4("10.64.0.1"),
            nameServer: ipv4("10.64.0.1"),
            hostName: "web1",
            domain: "shop.cells.internal",
            identity: 1,
            vmIdentity: 2,
            subnetIdentity: 3,
            audience: [],
          },
        },
      ],
    });
    const result = await driver.exec(
      vm,
      ["/bin/sh", "-c", "cat /sys/class/net/eth0/address /data/data.json; echo oops >&2; exit 3"],
      90_000,
    );
    assert.equal(result.exitCode, 3);
    assert.match(result.stdout, /52:54:00:00:00:09/);
    assert.match(result.stdout, /"greeting": "hello"/);
    assert.equal(result.stderr, "oops\n");
    await assert.rejects(driver.exec(vm, ["/bin/sleep", "60"], 1500), /did not end within 1500 ms/);
    const stopped = told.next();
    await driver.stop(vm, 60_000);
    assert.equal(told.ends.length, 1);
    assert.equal((await stopped).ended, "stopped");
  } finally {
    await driver.stop(uid("c1-3"), 0);
    await driver.close();
    execFileSync("ip", ["tuntap", "del", "dev", tap, "mode", "tap"]);
  }
});
