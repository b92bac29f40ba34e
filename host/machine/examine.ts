import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { promisify } from "node:util";
import { parseIpv4, parseNetwork } from "../../model/addresses/addresses.ts";
import { network } from "../../runtime/installation.ts";
import { places } from "./configuration.ts";

/** What a machine is, as far as it matters to a host. Whatever cannot be mended here is refused with a sentence. */
const run = promisify(execFile);

export interface Examined {
  readonly address: string;
  readonly prefixLength: number;
  readonly mac: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cgroups: readonly string[];
  /** What works, and could be better; a sentence each. */
  readonly warnings: readonly string[];
}

const leastMemoryMiB = 1024;
/** Where `packaging/machines.sh` has the machines' groups. */
const machinesGroup = "/sys/fs/cgroup/system.slice/cells-machines.service/vms";

interface Link {
  readonly ifname: string;
  readonly address?: string;
  readonly addr_info?: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly dynamic?: boolean;
  }[];
}
const linkOf = async (device: string): Promise<Link | null> => {
  try {
    const { stdout } = await run("ip", ["-j", "address", "show", "dev", device]);
    return (JSON.parse(stdout) as readonly Link[]).find(({ ifname }) => ifname === device) ?? null;
  } catch {
    return null;
  }
};

const onUnderlay = async (device: string, wanted: string | undefined) => {
  const link = await linkOf(device);
  if (link?.address === undefined) {
    const { stdout } = await run("ip", ["-j", "link", "show"]);
    const others = (JSON.parse(stdout) as readonly Link[]).map(({ ifname }) => ifname).filter((name) => name !== "lo");
    throw new Error(
      `there is no interface ${device} on this machine; there are: ${others.join(", ") || "none"} (--interface NAME)`,
    );
  }
  // Once the bridge is there, it has the addresses.
  const bridge = await linkOf(places.bridge);
  const addresses = [link, bridge]
    .flatMap((each) => each?.addr_info ?? [])
    .filter(({ family, scope, prefixlen }) => family === "inet" && scope === "global" && prefixlen < 32);
  const found = wanted === undefined ? addresses[0] : addresses.find(({ local }) => local === wanted);
  const all = addresses.map(({ local }) => local).join(", ") || "no IPv4 address";
  if (found === undefined)
    throw new Error(
      wanted === undefined
        ? `${device} has no IPv4 address: give this machine a fixed one on the underlay first`
        : `${device} has ${all}, and not ${wanted}, which this machine is to have: another --interface, or a token for another --address`,
    );
  if (wanted === undefined && addresses.length > 1)
    throw new Error(`${device} has ${all}: say with --address which one is this machine's on the underlay`);
  if (found.dynamic === true)
    throw new Error(
      `${found.local} of ${device} comes from DHCP and may change: a host is known by its address, so give this machine a fixed one`,
    );
  return { address: found.local, prefixLength: found.prefixlen, mac: link.address };
};

const availableMiB = async (): Promise<{ readonly total: number; readonly free: number }> => {
  const text = await readFile("/proc/meminfo", "utf8");
  const of = (name: string): number =>
    Math.floor(Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1]) / 1024);
  return { total: of("MemTotal"), free: of("MemAvailable") };
};

/**
 * Looks at this machine. Rejects with a sentence where it cannot be a host.
 * @param device on the underlay
 * @param address that it is to have; undefined: the one that it has
 */
export const examine = async (device: string, address: string | undefined): Promise<Examined> => {
  if (process.getuid?.() !== 0) throw new Error("only root can make this machine a host: run the command with `sudo`");
  if (!/^[A-Za-z0-9._-]{1,15}$/.test(device)) throw new Error(`\`${device}\` cannot name a network interface`);
  const found = await onUnderlay(device, address);
  const memory = await availableMiB();
  if (memory.total < leastMemoryMiB)
    throw new Error(`this machine has ${memory.total} MiB of memory; a host needs ${leastMemoryMiB} MiB at least`);
  const warnings: string[] = [];
  if (!existsSync("/dev/kvm"))
    warnings.push(
      "there is no /dev/kvm: machines will run on an emulated CPU, some ten times slower. Switch on virtualisation in the firmware (VT-x, AMD-V), or nested virtualisation where this is itself a virtual machine, and load kvm_intel or kvm_amd",
    );
  if (memory.free < memory.total / 2)
    warnings.push(
      `${memory.free} of ${memory.total} MiB of memory are free: what else runs here competes with the machines, which are promised nearly all of it`,
    );
  const limits = systemdRuns() && existsSync("/sys/fs/cgroup/cgroup.controllers");
  if (!limits) warnings.push("no unified control groups under systemd: machines will run without limits");
  return {
    ...found,
    memoryMiB: memory.total,
    cpus: cpus().length,
    cgroups: limits ? [machinesGroup] : [],
    warnings,
  };
};

/** Throws a sentence where the machine's address is not one that every host would find on its own segment. */
export const requireUnderlay = ({ address, prefixLength }: Examined): void => {
  const underlay = parseNetwork(network.underlay);
  const number = parseIpv4(address) ?? -1;
  const inside = underlay !== null && number > underlay.first && number < underlay.last;
  if (!inside || prefixLength !== underlay.prefixLength)
    throw new Error(
      `this machine is ${address}/${prefixLength}; the underlay is ${network.underlay}, and every host has a fixed address of it with that prefix`,
    );
};

/** As sd_booted(3) finds out. */
export const systemdRuns = (): boolean => existsSync("/run/systemd/system");
