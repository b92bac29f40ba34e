import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { emulatedProcessor } from "../../host/drivers/hypervisor/process/arguments.ts";
import { type MachineImage, makeFileSystem } from "../../image/machine.ts";
import { type Ended, runCommand } from "../command.ts";
import { endHolder, startHolder } from "./machines.testing.ts";

/**
 * Machines as an operator has them, whole: each a QEMU with a Debian in it, systemd and all, two network cards, and a copy
 * of this repository in /opt/cells. `eth0` is in an office, by which one reaches the machine (ssh); `eth1` is the underlay
 * and nothing else. Both are bridges in a network namespace of their own, where the operator sits as well.
 */
const run = promisify(execFile);
const repository = join(import.meta.dirname, "../..");
const patienceMs = 600_000;

export interface Site {
  machine(options: MachineOptions): Promise<RealMachine>;
  /** A command where the operator sits: in reach of both nets, with files of the machine that runs all this. */
  here(command: readonly string[], environment?: Readonly<Record<string, string>>, input?: string): Promise<Ended>;
  /** A directory that goes with the site. */
  readonly directory: string;
  /** Ends all, and everything in them. */
  remove(): Promise<void>;
}
export interface MachineOptions {
  readonly name: string;
  /** Last number of its addresses: 192.168.70.N in the office, 10.0.1.N on the underlay. */
  readonly number: number;
  readonly memoryMiB: number;
  /** Who gives its cards their addresses. */
  readonly network: "ifupdown" | "networkd";
}
export interface RealMachine {
  readonly name: string;
  /** On the underlay. */
  readonly address: string;
  /** A shell's script in it, as root, to its end. */
  run(script: string, input?: string): Promise<Ended>;
  /** The same, line by line as they come; its code. */
  follow(script: string, onLine: (line: string) => void): Promise<number>;
  /** Until somebody may log in and the machine was started since; how often that was asked does not count. */
  untilUp(): Promise<void>;
  /** As a person does it, by `systemctl reboot`; resolves when it is up again. */
  reboot(): Promise<void>;
  /** The cable of `eth1` is pulled, or put in again. */
  cable(connected: boolean): Promise<void>;
  /** Last lines that the machine wrote on its serial line. */
  console(): Promise<string>;
}

const office = (number: number): string => `192.168.70.${number}`;
const underlay = (number: number): string => `10.0.1.${number}`;

const nets = `
ip link set lo up
for net in office underlay; do ip link add $net type bridge forward_delay 0 mcast_snooping 0; ip link set $net up; done
ip address add 192.168.70.254/24 dev office
ip address add 10.0.250.1/16 dev underlay
echo ready
exec cat
`;

/** Lays the nets and writes the disk that every machine has a copy of. */
export const makeSite = async (image: MachineImage, images: string): Promise<Site> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-site-"));
  const holder = await startHolder(["--net", "sh", "-euc", nets]);
  const enter = [`--net=/proc/${holder.init}/ns/net`, "--"];
  const here: Site["here"] = (command, environment = {}, input = "") =>
    runCommand("nsenter", [...enter, ...command], { environment, input });
  const ends: (() => Promise<void>)[] = [];
  const remove = async (): Promise<void> => {
    await Promise.all(ends.map((end) => end()));
    await endHolder(holder.outer);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const key = join(directory, "key");
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    const checkout = join(directory, "checkout.raw");
    await writeCheckout(join(directory, "opt"), checkout, images);
    const machine = async (options: MachineOptions): Promise<RealMachine> => {
      const own = join(directory, options.name);
      await mkdir(own);
      const taps = ["office", "underlay"].map((net) => ({ net, tap: `${net.slice(0, 1)}-${options.name}` }));
      for (const { net, tap } of taps) {
        const make = `ip tuntap add ${tap} mode tap; ip link set ${tap} master ${net} up`;
        const made = await here(["sh", "-euc", make]);
        if (made.code !== 0) throw new Error(made.stderr);
      }
      await writeSeed(own, options, await readFile(`${key}.pub`, "utf8"));
      const disks = { root: image.disk, checkout };
      for (const [name, backing] of Object.entries(disks)) {
        const format = backing.endsWith(".raw") ? "raw" : "qcow2";
        await run("qemu-img", ["create", "-q", "-f", "qcow2", "-F", format, "-b", backing, join(own, name)]);
      }
      const args = qemuArguments(
        own,
        options,
        image,
        taps.map(({ tap }) => tap),
      );
      // It ends with us, however we end.
      const qemu = spawn("nsenter", [...enter, "setpriv", "--pdeathsig=KILL", ...args], { stdio: "ignore" });
      ends.push(() => endHolder(qemu));
      return reach(options, key, own, enter, here);
    };
    return { machine, here, directory, remove };
  } catch (error) {
    await remove();
    throw error;
  }
};

const qemuArguments = (
  own: string,
  { name, number, memoryMiB }: MachineOptions,
  { kernel, initrd }: MachineImage,
  taps: readonly string[],
): readonly string[] => {
  const disk = (file: string, format: string, serial: string): readonly string[] => [
    "-drive",
    `file=${join(own, file)},format=${format},if=none,id=${serial},cache=unsafe,discard=unmap`,
    "-device",
    `virtio-blk-pci,drive=${serial},serial=${serial}`,
  ];
  const card = (tap: string, index: number): readonly string[] => [
    "-netdev",
    `tap,id=net${index},ifname=${tap},script=no,downscript=no`,
    "-device",
    `virtio-net-pci,netdev=net${index},mac=52:54:00:70:0${index}:${String(number).padStart(2, "0")}`,
  ];
  return [
    // One processor: with two, QEMU 7.2 has been seen to run V8 into its own checks. `max` has AMD's virtualisation, too, so
    // that the machines in it are emulated but once: what runs them there is KVM.

    "qemu-system-x86_64",
    "-name",
    name,
    "-machine",
    "q35",
    "-accel",
    "tcg,thread=multi",
    "-cpu",
    emulatedProcessor,
    "-m",
    String(memoryMiB),
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-kernel",
    kernel,
    "-initrd",
    initrd,
    // The clock: a busy host makes the kernel mistake the time-stamp counter of an emulated processor (image/service.ts).
    "-append",
    "root=LABEL=machine ro console=ttyS0 net.ifnames=0 tsc=unstable clocksource=hpet",
    "-monitor",
    `unix:${join(own, "monitor")},server=on,wait=off`,
    "-serial",
    `file:${join(own, "console")}`,
    "-device",
    "virtio-rng-pci",
    ...disk("root", "qcow2", "root"),
    ...disk("checkout", "qcow2", "checkout"),
    ...disk("seed", "raw", "seed"),
    ...taps.flatMap(card),
  ];
};

/** `/opt/cells`, as `git clone` and `cells setup` make it, and `/opt/images`, which were built elsewhere. */
const writeCheckout = async (directory: string, disk: string, images: string): Promise<void> => {
  const to = join(directory, "cells");
  await mkdir(to, { recursive: true });
  const { stdout } = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: repository,
    maxBuffer: 16 * 1024 * 1024,
  });
  for (const name of stdout.split("\0").filter((each) => each !== "" && existsSync(join(repository, each)))) {
    await mkdir(dirname(join(to, name)), { recursive: true });
    await cp(join(repository, name), join(to, name), { verbatimSymlinks: true });
  }
  // What formats and checks this code is of no use there, and a third of all.
  const modules = `${repository}/node_modules/.`;
  await mkdir(join(to, "node_modules"));
  await run("cp", ["-a", modules, join(to, "node_modules")]);
  for (const name of ["@biomejs", "@typescript", "typescript"])
    await rm(join(to, "node_modules", name), { recursive: true, force: true });
  await cp(join(repository, "package-lock.json"), join(to, "node_modules/.cells-lock"));
  await mkdir(join(directory, "images"));
  for (const name of ["service", "tiny"])
    await run("cp", ["-rL", "--sparse=always", join(images, name), join(directory, "images", name)]);
  await makeFileSystem(directory, disk, "cells", 2048);
  await rm(directory, { recursive: true });
};

/** What the machine has of its own, as a tar. */
const writeSeed = async (own: string, { name, number, network }: MachineOptions, publicKey: string): Promise<void> => {
  const cards = [
    { device: "eth0", address: office(number), prefixLength: 24 },
    { device: "eth1", address: underlay(number), prefixLength: 16 },
  ];
  const files: Record<string, string> = {
    "etc/hostname": `${name}\n`,
    "etc/hosts": `127.0.0.1 localhost\n127.0.1.1 ${name}\n`,
    "root/.ssh/authorized_keys": publicKey,
  };
  for (const { device, address, prefixLength } of cards)
    if (network === "networkd")
      files[`etc/systemd/network/${device}.network`] =
        `[Match]\nName=${device}\n[Network]\nAddress=${address}/${prefixLength}\n`;
    else
      files[`etc/network/interfaces.d/${device}`] =
        `auto ${device}\niface ${device} inet static\n  address ${address}/${prefixLength}\n`;
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(own, "tree", dirname(file)), { recursive: true });
    await writeFile(join(own, "tree", file), text);
  }
  await run("chmod", ["-R", "go-w", join(own, "tree")]);
  await run("chmod", ["700", join(own, "tree/root"), join(own, "tree/root/.ssh")]);
  const tar = ["--owner=0", "--group=0", "-cf", join(own, "seed"), "-C", join(own, "tree"), "."];
  await run("tar", tar);
};

const reach = (
  { name, number }: MachineOptions,
  key: string,
  own: string,
  enter: readonly string[],
  here: Site["here"],
): RealMachine => {
  const options = {
    BatchMode: "yes",
    StrictHostKeyChecking: "no",
    UserKnownHostsFile: "/dev/null",
    LogLevel: "ERROR",
    ConnectTimeout: "20",
    ServerAliveInterval: "10",
    ServerAliveCountMax: "6",
    IdentitiesOnly: "yes",
  };
  const ssh = [
    "ssh",
    "-F",
    "/dev/null",
    "-i",
    key,
    ...Object.entries(options).flatMap(([option, value]) => ["-o", `${option}=${value}`]),
    `root@${office(number)}`,
  ];
  // What is sent goes through the shell of who logs in: the script is one word of it.
  const quoted = (script: string): string => `sh -uc '${script.replaceAll("'", "'\\''")}'`;
  const inside: RealMachine["run"] = (script, input) => here([...ssh, quoted(script)], {}, input);
  const bootOf = async (): Promise<string | null> => {
    const { code, stdout } = await inside(
      "systemctl is-system-running --wait >&2; cat /proc/sys/kernel/random/boot_id",
    );
    return code === 0 ? stdout.trim() : null;
  };
  const text = async (): Promise<string> =>
    (await readFile(join(own, "console"), "utf8").catch(() => "")).split("\n").slice(-25).join("\n");
  let boot: string | null = null;
  const untilUp = async (): Promise<void> => {
    for (const end = performance.now() + patienceMs; ; ) {
      const found = await bootOf();
      if (found !== null && found !== boot) {
        boot = found;
        return;
      }
      if (performance.now() > end) throw new Error(`${name} does not come up:\n${await text()}`);
      await sleep(1000);
    }
  };
  return {
    name,
    address: underlay(number),
    run: inside,
    untilUp,
    reboot: async () => {
      await inside("systemctl reboot");
      await untilUp();
    },
    follow: (script, onLine) => follow("nsenter", [...enter, ...ssh, quoted(`{ ${script}; } 2>&1`)], onLine),
    cable: (connected) => tellMonitor(join(own, "monitor"), `set_link net1 ${connected ? "on" : "off"}`),
    console: text,
  };
};

/** One command to QEMU's monitor. */
const tellMonitor = (socket: string, command: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let answer = "";
    const connection = connect(socket).setEncoding("latin1");
    connection.once("error", reject).once("close", resolve);
    connection.on("data", (text: string) => {
      answer += text;
      // It prompts once before and once after the command.
      if (answer.split("(qemu)").length > 2) connection.destroy();
    });
    connection.write(`${command}\n`);
  });

const follow = (command: string, args: readonly string[], onLine: (line: string) => void): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { stdio: ["ignore", "pipe", "inherit"] });
    createInterface({ input: child.stdout }).on("line", onLine);
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 255));
  });
