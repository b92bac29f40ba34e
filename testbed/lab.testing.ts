import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ElementState } from "../model/api.ts";
import type { Ended } from "./command.ts";
import type { Testbed } from "./harness.ts";
import { execIn, stateOf } from "./tenants/questions.testing.ts";

export { stateOf };

/** A cell of two small machines and what tests of failures ask of it. */

export const machines = ["lab/one/vm", "lab/two/vm"] as const;
export type Machine = (typeof machines)[number];

/** `one` may ping `two`, and nothing else passes between them. Two empty volumes lie beside, for deletions. */
const specification = (more: string): string => `
Machine extends {
  bootvol extends VolumeCopy { x.image "<ref:/lab/golden>"; }
  vm extends VM { x.memory 128; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  subnet extends Subnet { x.size 16; }
  interface extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../subnet>"; }
}
lab extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  one extends Machine {}
  two extends Machine {}
  ping extends NetworkRule {
    x.address1 "<ref:/lab/one/interface>"; x.address2 "<ref:/lab/two/interface>"; x.protocol "icmp"; x.direction "1to2";
  }
  ${more}
}
`;

export const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};

/** Applies the cell with `more` elements in it. `wait` false: returns when the change is accepted. */
export const applyLab = async (t: Testbed, more = "", wait = true): Promise<void> => {
  const file = join(dirname(t.configFile), "lab.sf");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, specification(more));
  await cells(t, "apply", file, "--yes", ...(wait ? [] : ["--no-wait"]));
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks again and again; the last answer is in the failure. */
export const until = async <T>(
  what: string,
  ask: () => Promise<T>,
  holds: (answer: T) => boolean,
  seconds = 150,
): Promise<T> => {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    assert.ok(performance.now() < end, `still not so after ${seconds} s: ${what}; last: ${JSON.stringify(answer)}`);
    await pause(300);
  }
};

/** Until every service has heard that what the peer desires counts again: one that is away, or slow, is told when it answers. */
export const releaseOrphans = (t: Testbed, peer: string, seconds?: number): Promise<Ended> =>
  until(
    `all have heard that ${peer} counts`,
    () => t.cells(["orphans", "release", peer]),
    ({ code }) => code === 0,
    seconds,
  );

/** Until an element gives a reason that matches. */
export const untilSaid = (t: Testbed, path: string, pattern: RegExp): Promise<ElementState | null> =>
  until(
    `${path} says ${pattern}`,
    () => stateOf(t, path),
    (state) => pattern.test(state?.reason ?? ""),
  );

export const untilReady = (t: Testbed, path: string, incarnation = 1): Promise<ElementState | null> =>
  until(
    `${path} is ready with incarnation ${incarnation} or more`,
    () => stateOf(t, path),
    (state) => state?.phase === "ready" && state.reason === null && (state.incarnation ?? incarnation) >= incarnation,
  );

export const inGuest = (t: Testbed, vm: Machine, script: string): Promise<Ended> => execIn(t, vm, ["sh", "-c", script]);
export const untilInGuest = async (t: Testbed, vm: Machine, script: string, wanted: RegExp): Promise<string> => {
  const { stdout } = await until(
    `${vm}: \`${script}\` says ${wanted}`,
    () => inGuest(t, vm, script),
    ({ code, stdout }) => code === 0 && wanted.test(stdout),
  );
  return stdout;
};

/**
 * Writes one number after the other, each durable before it is called so, for as long as the guest lives. Started again,
 * it goes on from what the disk says.
 */
export const startWriting = async (t: Testbed, vm: Machine): Promise<void> => {
  const script = `n=$(tail -n 1 /root/log 2>/dev/null || echo 0)
while :; do n=$((n+1)); echo $n >> /root/log; sync && echo $n > /tmp/durable; sleep 0.2; done`;
  await startInGuest(t, vm, "write", script);
  await durable(t, vm);
};
/** Runs a script in the background of the guest, in a session of its own, once: it goes on when its starter has ended. */
export const startInGuest = async (t: Testbed, vm: Machine, name: string, script: string): Promise<void> => {
  // Once per boot: a file of an earlier one proves nothing.
  const start = `file=/tmp/${name}-$(cat /proc/sys/kernel/random/boot_id).sh
test -e $file || { cat > $file <<'END'
${script}
END
setsid sh $file >/dev/null 2>&1 </dev/null & }
echo started`;
  await untilInGuest(t, vm, start, /started/);
};
/** The newest number that was durable. */
export const durable = async (t: Testbed, vm: Machine): Promise<number> =>
  Number(await untilInGuest(t, vm, "cat /tmp/durable", /^\d+\n$/));
/** Every number from 1 up to at least `least` is on the disk, in order, and the writing goes on. */
export const assertWritten = async (t: Testbed, vm: Machine, least: number): Promise<void> => {
  const script = "cp /root/log /tmp/seen; n=$(grep -c . /tmp/seen); seq 1 $n | cmp - /tmp/seen && echo $n";
  const seen = Number(await untilInGuest(t, vm, script, /^\d+\n$/));
  assert.ok(seen >= least, `${seen} of ${least} durable lines are on the disk`);
  await until(
    `${vm} goes on writing`,
    () => durable(t, vm),
    (now) => now > seen,
  );
};

/**
 * Behind the end of a guest, however it came: every number that was called durable is on the disk, in order, before anything more is written,
 * since who goes on with a shorter log writes the missing numbers again, and nobody sees that they were lost. A number that was not durable
 * yet may be there in part: ext4 commits every five seconds that a file has grown, and does not wait for bytes in a block that the file had
 * before, so zeros may stand where the last line would. These are cut off, as whoever keeps a log does.
 */
export const writesOn = async (t: Testbed, vm: Machine, least: number): Promise<void> => {
  const script = `truncate -s $(tr -d '\\000' </root/log | wc -c) /root/log; n=$(grep -c . /root/log)
seq 1 $n | cmp - /root/log && echo $n`;
  const kept = Number(await untilInGuest(t, vm, script, /^\d+\n$/));
  assert.ok(kept >= least, `of ${least} lines that were durable ${kept} are on the disk`);
  await startWriting(t, vm);
  await assertWritten(t, vm, kept);
};

const scan = (condition: string, then: string): string =>
  `for p in /proc/[0-9]*; do if ${condition}; then ${then}; fi; done`;
const exportsOf = (server: string): string =>
  `case "$(readlink $p/cwd 2>/dev/null)" in /run/members/${server}/exports/*) true;; *) false;; esac`;
const qemuOf = (host: string): string =>
  `tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*/run/members/${host}/vms/'`;

/** Sends a signal to every export of a server, or to its export of one volume; returns how many got it. */
export const signalExports = async (t: Testbed, server: string, signal: string, volume = ""): Promise<number> => {
  const own = `${exportsOf(server)} && readlink $p/cwd | grep -q '/exports/${volume}'`;
  const { stdout } = await t.exec(server, ["sh", "-c", scan(own, `kill -${signal} $(basename $p) && echo sent`)]);
  return stdout.split("\n").filter((line) => line === "sent").length;
};
/** Kills every QEMU of a host, or the one of a VM; returns how many. */
export const killMachines = async (t: Testbed, host: string, vm = ""): Promise<number> => {
  const own = `${qemuOf(host)} && tr '\\0' ' ' <$p/cmdline | grep -q 'guest=cells-${vm}'`;
  const { stdout } = await t.exec(host, ["sh", "-c", scan(own, "kill -9 $(basename $p) && echo sent")]);
  return stdout.split("\n").filter((line) => line === "sent").length;
};

/**
 * The power of a host is off: its process, its machines, and whatever a machine forgets that has none. The supervisor that
 * ended it knows that for certain; nobody in the cloud does.
 */
export const cutPowerOf = async (t: Testbed, host: string): Promise<void> => {
  await t.kill(host);
  await t.stop(host);
  await killMachines(t, host);
  const forget = `for n in $(ls /sys/class/net); do test ! -e /sys/class/net/$n/tun_flags || ip link delete $n; done
run=/run/members/${host}
umount -l $run/bpf 2>/dev/null || true
rm -rf $run/vms $run/boot $run/bpf`;
  const { code, stderr } = await t.exec(host, ["sh", "-euc", forget]);
  assert.equal(code, 0, stderr);
  const left = await inventory(t, [host], []);
  assert.deepEqual([left[`${host} machines`], left[`${host} taps`]], [[], []]);
};

/** What runs and lies where: processes, taps, exports with their epochs, volumes, cgroups of machines. */
export const inventory = async (
  t: Testbed,
  hosts: readonly string[],
  servers: readonly string[],
): Promise<Readonly<Record<string, readonly string[]>>> => {
  const lines = async (member: string, script: string): Promise<readonly string[]> =>
    [...new Set((await t.exec(member, ["sh", "-c", script])).stdout.split("\n").filter((line) => line !== ""))].sort();
  const found: Record<string, readonly string[]> = {};
  for (const host of hosts) {
    const name = `tr '\\0' '\\n' <$p/cmdline | grep '^guest='`;
    found[`${host} machines`] = await lines(host, scan(qemuOf(host), name));
    found[`${host} taps`] = await lines(
      host,
      "ls /sys/class/net | while read n; do test -e /sys/class/net/$n/tun_flags && echo $n; done; true",
    );
    found[`${host} keys`] = await lines(host, `ls /run/members/${host}/credentials 2>/dev/null; true`);
  }
  for (const server of servers) {
    found[`${server} exports`] = await lines(server, scan(exportsOf(server), "readlink $p/cwd"));
    // The server's mark and its bin lie beside them.
    const files = await lines(server, `ls ${t.at.directory}/members/${server}/data/volumes`);
    found[`${server} volumes`] = files.filter((name) => name !== "bin" && name !== "mark.json");
  }
  return found;
};

/**
 * A shell's command that sends lines as an HTTPS request. It keeps its side open until it is answered, as clients do: Node's
 * server takes who has closed it for gone, and whether he still gets an answer is a race.
 * @param to socat's address behind `OPENSSL:`
 */
export const requestByTls = (lines: readonly string[], to: string): string =>
  `printf '${lines.join("\\r\\n")}' | socat -T20 -,ignoreeof OPENSSL:${to}`;
