import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { network } from "../../runtime/installation.ts";
import { hostBridge, outside, resolver, underlayDevice } from "../configuration.ts";
import { memberDirectory, memberRunDirectory, type Places } from "../places.ts";
import { type Member, macOf } from "./members.ts";

/**
 * Namespaces of the testbed, made from inside its private ones. Each member has a network namespace with `eth0` on the
 * bridge `underlay`, and a mount namespace in which the other members' directories are not there. An idle holder keeps
 * the mounts, so a member's process may die and find them (pinned maps!) again. A bound file would keep them without a
 * process, but Linux 6.18 refuses to bind a new mount namespace at random: its loop check compares identifiers that are
 * handed out per CPU.
 */
const networkNamespaces = "/run/netns";
/** Files with the holders' process numbers. */
const holders = "/run/holders";
/** Supervisor's own address: it knocks at the members' ports from here. */
const supervisorAddress = "10.0.0.1";
const prefixLength = network.underlay.split("/")[1];
const bridge = "underlay";

/**
 * Process 1. A shell, because Node as process 1 leaves zombies. Arguments: run directory, Node, supervisor's file, instructions.
 * The run directory is reached through the working directory once the machine's `/run` is covered.
 */
export const firstProcessScript = `
set -eu
run=$1 node=$2 supervisor=$3 instructions=$4
mount --make-rprivate /
mount -t proc proc /proc
cd "$run"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p "$run"
mount --no-canonicalize --bind . "$run"
cd /
"$node" "$supervisor" "$instructions" &
child=$! code=0
trap 'kill -TERM $child 2>/dev/null || :' TERM INT
set +e
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
exit $code
`;

/** Runs to its end. Rejects with what it wrote to standard error. */
export const run = (command: string, args: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(output.stdout);
      else reject(new Error(`${command} ended with ${code ?? signal}: ${output.stderr.trim()}`));
    });
  });

const shell = (script: string, ...args: readonly string[]): Promise<string> =>
  run("sh", ["-euc", script, "cells-set-up", ...args]);

/** IPv6 is off until it is designed; bridged frames must not meet the machine's packet filter. */
const quiet = `
for way in all default; do echo 1 > /proc/sys/net/ipv6/conf/$way/disable_ipv6 2>/dev/null || :; done
for table in iptables ip6tables arptables; do echo 0 > /proc/sys/net/bridge/bridge-nf-call-$table 2>/dev/null || :; done
`;

/** Once per start: loopback and the bridge that is the underlay. */
export const makeUnderlay = async (): Promise<void> => {
  mkdirSync(networkNamespaces, { recursive: true });
  mkdirSync(holders, { recursive: true });
  await shell(
    `${quiet}
ip link set lo up
ip link add "$1" address 02:00:0a:00:00:01 type bridge forward_delay 0 mcast_snooping 0
ip address add "$2" dev "$1"
ip link set "$1" up
`,
    bridge,
    `${supervisorAddress}/${prefixLength}`,
  );
  const { namespace, router, prefix, somebody } = outside;
  await shell(makeOutside, namespace, `${router}/${prefix}`, somebody, network.externalPool);
  const at = `${resolver.address}/${prefixLength}`;
  await shell(makeNetwork, resolver.namespace, "v-resolver", resolver.device, macOf(resolver.address), at, bridge);
};

/**
 * The network outside of the installation: a namespace whose bridge is the upstream router, with somebody behind it whom
 * external addresses can speak with. Hosts have a device of their own there.
 */
const makeOutside = `${quiet}
namespace=$1 router=$2 somebody=$3 pool=$4
ip netns add "$namespace"
nsenter --net="/run/netns/$namespace" -- sh -euc '${quiet}
ip link set lo up
ip address add "$2/32" dev lo
ip link add router address 02:00:c0:00:02:01 type bridge forward_delay 0 mcast_snooping 0
ip address add "$1" dev router
ip link set router up
ip route add "$3" dev router src "$2"' set-up "$router" "$somebody" "$pool"
`;
const joinOutside = `
member=$1 port=$2 device=$3 address=$4 namespace=$5
ip link add "$device" netns "$member" type veth peer name "$port" netns "$namespace"
ip -n "$namespace" link set "$port" master router up
ip -n "$member" address add "$address" dev "$device"
ip -n "$member" link set "$device" up
`;

/** A device name has at most 15 characters: the last two bytes of the address are enough. */
const bridgePort = (member: Member): string => `v-${member.address.split(".").slice(2).join("-")}`;

const makeNetwork = `${quiet}
member=$1 port=$2 device=$3 mac=$4 address=$5 bridge=$6
ip netns add "$member"
ip link add "$port" type veth peer name "$device" address "$mac" netns "$member"
ip link set "$port" master "$bridge" up
nsenter --net="/run/netns/$member" -- sh -euc '${quiet}
ip link set lo up
ip address add "$2" dev "$1"
ip link set "$1" up' set-up "$device" "$address"
`;

/** A host's own bridge: its address is there, its device on the underlay is a port, and so are VMs' taps of the management network. */
const makeHostBridge = `
device=$1 address=$2 mac=$3 bridge=$4
ip address flush dev "$device"
ip link add "$bridge" address "$mac" type bridge forward_delay 0 mcast_snooping 0
ip link set "$device" master "$bridge"
ip address add "$address" dev "$bridge"
ip link set "$bridge" up
`;

/**
 * In the member's new mount namespace: what is not its own disappears under an empty file system. Arguments: the
 * testbed's directory, own directory, shared directory, own run directory, the cache, then own further directories.
 */
const hideOthers = `
directory=$1 own=$2 shared=$3 ownRun=$4 cache=$5
shift 5
keep() { mkdir -p "$stage$1"; mount --bind "$1" "$stage$1"; }
stage=/run/stage
mkdir -p "$stage"
mount -t tmpfs -o mode=755 tmpfs "$stage"
for path in "$own" "$shared" "$ownRun" "$@"; do keep "$path"; done
mount -o remount,bind,ro "$stage$shared"
mkdir -p "$stage/run/lock" "$stage$cache" "$stage$directory"
mkdir -p /run/cgroups
mount --rbind /sys/fs/cgroup /run/cgroups
mount -t sysfs sysfs /sys
mount --rbind /run/cgroups /sys/fs/cgroup
test ! -d "$cache" || mount --rbind "$stage$cache" "$cache"
mount --rbind "$stage$directory" "$directory"
mount --rbind "$stage/run" /run
echo hidden
exec sleep infinity
`;

/** Makes the member's namespaces. `further`: directories of others that it may see (images, the supervisor's socket). */
export const makeMember = async (
  at: Places,
  cache: string,
  member: Member,
  further: readonly string[],
): Promise<void> => {
  const address = `${member.address}/${prefixLength}`;
  await shell(makeNetwork, member.name, bridgePort(member), underlayDevice, macOf(member.address), address, bridge);
  if (member.role === "host") {
    const bridged = [
      "sh",
      "-euc",
      makeHostBridge,
      "set-up",
      underlayDevice,
      address,
      macOf(member.address),
      hostBridge,
    ];
    await run("nsenter", [`--net=${networkNamespaces}/${member.name}`, "--", ...bridged]);
    const { device, namespace, host, prefix } = outside;
    await shell(joinOutside, member.name, `o-${member.number}`, device, `${host(member.number)}/${prefix}`, namespace);
  }
  if (member.role === "controller") {
    for (const pool of [network.internalPool, network.externalPool]) {
      // The controller's machine is on the underlay and asks there for VMs' addresses: their hosts answer.
      await run("ip", ["-n", member.name, "route", "add", pool, "dev", underlayDevice, "scope", "link"]);
    }
  }
  const ownRun = memberRunDirectory(member.name);
  mkdirSync(ownRun, { recursive: true, mode: 0o755 });
  await hold(member, [at.directory, memberDirectory(at, member.name), at.shared, ownRun, cache, ...further]);
};

/** Starts the holder; resolves when the member's mounts are as they shall be. */
const hold = (member: Member, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const inside = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", hideOthers, "cells-hide", ...args];
    const child = spawn("nsenter", [`--net=${networkNamespaces}/${member.name}`, "--", ...inside], {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: "/",
    });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`no mount namespace for ${member.name} (${code}): ${errors.trim()}`)),
    );
    child.stdout.once("data", () => {
      writeFileSync(holderFile(member.name), String(child.pid));
      resolve();
    });
  });

const holderFile = (member: string): string => `${holders}/${member}`;

export const removeMember = async (member: Member): Promise<void> => {
  process.kill(Number(readFileSync(holderFile(member.name), "utf8")), "SIGKILL");
  rmSync(holderFile(member.name));
  await run("ip", ["netns", "delete", member.name]);
};

/** The same for the network outside, and for the operator's resolver. */
export const enterOutside: readonly string[] = ["nsenter", `--net=${networkNamespaces}/${outside.namespace}`, "--"];
export const enterResolver: readonly string[] = ["nsenter", `--net=${networkNamespaces}/${resolver.namespace}`, "--"];

/** A command line that puts the command appended to it into the member's namespaces and replaces itself by it. */
export const enterMember = (member: string): readonly string[] => [
  "sh",
  "-euc",
  'holder=$(cat "$1"); shift; exec nsenter --mount="/proc/$holder/ns/mnt" "$@"',
  "cells-enter",
  holderFile(member),
  `--net=${networkNamespaces}/${member}`,
  "--",
];
