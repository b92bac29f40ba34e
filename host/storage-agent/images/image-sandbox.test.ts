import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "../../../runtime/installation.testing.ts";
import { cgroupRoots, makeCgroups, removeCgroups } from "../../../testbed/supervisor/cgroups.ts";
import type { ProcessOwner } from "../../drivers/unix-users.ts";
import { runSandboxed, type SandboxEnd, type SandboxLimits } from "./image-sandbox.ts";

/**
 * Programs of an attacker in the place of `qemu-img`. What each tries is first shown to work outside, so that nothing
 * fails for another reason; and a process in the sandbox is looked at from outside, wall by wall. Needs root.
 */
let base = "";
let input = "";
let output = "";
const secret = "in-a-file-that-everybody-may-read";
/** Of this run alone: its processes can be found by it, and limits per user are not shared with another run. */
const number = 1_000_000 + Math.floor(Math.random() * 1_000_000_000);
const owner: ProcessOwner = { uid: number, gid: number };
const limits: SandboxLimits = {
  cpuSeconds: 20,
  wallSeconds: 60,
  memoryMiB: 256,
  outputBytes: 2 ** 20,
  processes: 16,
};

before(async () => {
  base = await mkdtemp(join(tmpdir(), "sandbox-"));
  await chmod(base, 0o755);
  input = join(base, "input");
  output = join(base, "output");
  writeFileSync(input, "the input\n", { mode: 0o444 });
  writeFileSync(output, "");
  await chown(output, owner.uid, owner.gid);
  await chmod(output, 0o600);
  writeFileSync(join(base, "secret"), secret, { mode: 0o644 });
});
after(async () => {
  await rm(base, { recursive: true, force: true });
});

const inside = (
  command: readonly string[],
  further: Partial<SandboxLimits> = {},
  signal?: AbortSignal,
): Promise<SandboxEnd> =>
  runSandboxed(command, {
    ...(signal === undefined ? {} : { signal }),
    mountPoint: join(base, "root"),
    input,
    output,
    owner,
    limits: { ...limits, ...further },
  });
const perl = (program: string, ...args: readonly string[]): readonly string[] => ["perl", "-e", program, ...args];
const outside = (command: readonly string[]): string =>
  execFileSync(command[0] ?? "", command.slice(1), { encoding: "utf8" });

/** Processes of this run's sandboxes. */
const ours = (): readonly number[] =>
  readdirSync("/proc").flatMap((entry) => {
    try {
      const status = readFileSync(`/proc/${Number(entry)}/status`, "utf8");
      return new RegExp(`^Uid:\t${owner.uid}\t`, "m").test(status) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

/** One line each: what was tried, and `ok` or the error. Arguments: a path to read, one to write, a process to signal. */
const attempts = `
use strict;
my ($read, $write, $pid) = @ARGV;
sub tried { my ($what, $done) = @_; print "$what: ", ($done ? "ok" : $!), "\\n"; }
sub call { my ($what, @arguments) = @_; tried($what, syscall($arguments[0], @arguments[1..$#arguments]) >= 0); }
my ($buffer, $root, $none) = ("\\0" x 256, "/", 0);
tried("read", open(my $r, "<", $read));
tried("write", open(my $w, ">", $write));
tried("signal", kill(0, $pid));
call("inet socket", 41, 2, 1, 0);
call("netlink socket", 41, 16, 3, 0);
call("unix socket", 41, 1, 1, 0);
call("unshare", 272, 0x20000000);
call("chroot", 161, $root);
call("ptrace", 101, 16, $pid + 0, 0, 0);
call("read memory", 310, $pid + 0, $none, 0, $none, 0, 0);
call("key ring", 250, 0, -3, 1);
call("bpf", 321, 0, $buffer, 128);
call("io_uring", 425, 1, $buffer);
call("performance counters", 298, "\\1" . "\\0" x 127, 0, -1, -1, 0);
call("become root", 117, 0, 0, 0);
`;

describe("a program in the sandbox", { skip }, () => {
  test("reads its input, writes its output, starts processes of its own", async () => {
    const end = await inside(["sh", "-c", "cat /input | tr a-z A-Z > /output; echo done; exit 7"]);
    assert.deepEqual(end, { exitCode: 7, how: "exit", stdout: "done\n", stderr: "" });
    assert.equal(readFileSync(output, "utf8"), "THE INPUT\n");
  });

  test("reaches nothing else", async () => {
    const victim = spawn("sleep", ["1000"], { stdio: "ignore" });
    try {
      const lines = (text: string): readonly string[] => text.trim().split("\n");
      const answers = lines(outside(perl(attempts, join(base, "secret"), join(base, "new"), String(victim.pid))));
      assert.equal(answers.length, 15);
      assert.deepEqual(
        answers.filter((line) => !line.endsWith(": ok")).filter((line) => !/^(io_uring|bpf|perf|key)/.test(line)),
        [],
        "outside, as root, all of it is possible",
      );
      const end = await inside(perl(attempts, join(base, "secret"), "/usr/bin/new", String(victim.pid)));
      assert.equal(end.exitCode, 0, end.stderr);
      const denied = "Operation not permitted";
      const expected: Record<string, string> = {
        read: "No such file or directory",
        write: "Read-only file system",
        signal: "No such process",
      };
      for (const line of lines(end.stdout)) {
        const [what = "", error] = line.split(": ");
        assert.equal(error, expected[what] ?? denied, line);
      }
      assert.equal(lines(end.stdout).length, answers.length);
    } finally {
      victim.kill("SIGKILL");
    }
  });

  test("finds an empty machine", async () => {
    const places = [
      "/etc/shadow",
      "/proc/1/environ",
      "/sys",
      "/dev/mem",
      "/dev/kvm",
      "/old/etc",
      base,
      "/root",
      "/var",
      "/run",
    ];
    const end = await inside(["sh", "-c", `echo /*; for f in ${places.join(" ")}; do test ! -e $f || echo $f; done`]);
    assert.equal(end.stdout, "/bin /dev /input /lib /lib64 /old /output /usr\n");
    for (const path of ["/new", "/dev/new", "/old/new", "/usr/lib/new", "/input"]) {
      const { stderr } = await inside(["sh", "-c", `echo x > ${path}`]);
      assert.match(stderr, /Read-only file system/, path);
    }
    assert.equal(readFileSync(input, "utf8"), "the input\n");
    // What it writes cannot be run.
    const run = await inside(["sh", "-c", "cat /usr/bin/true > /output; exec /output"]);
    assert.match(run.stderr, /Permission denied/);
  });

  test("is, seen from outside, without rights, behind every wall", async () => {
    const stop = new AbortController();
    const running = inside(["sleep", "1000"], { wallSeconds: 1000 }, stop.signal);
    // The last step before the program is the filter, so the program's own name tells that all is done.
    const pid = await eventually("the sleeping process", () =>
      ours().find((each) => readFileSync(`/proc/${each}/comm`, "utf8") === "sleep\n"),
    );
    try {
      lookAt(pid);
    } finally {
      stop.abort();
      assert.equal((await running).how, "aborted");
    }
    await eventually("everything is gone", () => ours().length === 0);
  });

  const lookAt = (pid: number): void => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): string => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "";
    for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) assert.match(field(name), /^0+$/, name);
    assert.equal(field("NoNewPrivs"), "1");
    assert.equal(field("Seccomp"), "2");
    assert.deepEqual([...new Set(field("Uid").split("\t"))], [String(owner.uid)]);
    assert.equal(field("Groups").trim(), "");
    for (const kind of ["mnt", "net", "pid", "ipc", "uts"])
      assert.notEqual(readlinkSync(`/proc/${pid}/ns/${kind}`), readlinkSync(`/proc/self/ns/${kind}`), kind);
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trim().split("\n");
    assert.deepEqual(mounts.map((line) => line.split(" ")[4]).sort(), [
      "/",
      "/dev/null",
      "/input",
      "/output",
      "/usr/bin",
      "/usr/lib",
      "/usr/lib64",
    ]);
    const writable = mounts.filter((line) => line.split(" ")[5]?.startsWith("rw"));
    assert.deepEqual(writable.map((line) => line.split(" ")[4]).sort(), ["/dev/null", "/output"]);
    const devices = readFileSync(`/proc/${pid}/net/dev`, "utf8").trim().split("\n").slice(2);
    assert.deepEqual(
      devices.map((line) => line.trim().split(":")[0]),
      ["lo"],
    );
  };
});

describe("what a program may use", { skip }, () => {
  test("processor time", async () => {
    assert.equal((await inside(perl("1 for 1..1000; exit 0"), { cpuSeconds: 1 })).exitCode, 0);
    assert.equal((await inside(perl("1 while 1"), { cpuSeconds: 1 })).how, "cpu");
  });
  test("time, with all of its processes", async () => {
    const end = await inside(["sh", "-c", "sleep 1000 & sleep 1000"], { wallSeconds: 1 });
    assert.equal(end.how, "too-long");
    await eventually("everything is gone", () => ours().length === 0);
  });
  test("memory of one process", async () => {
    const take = (mebibytes: number): readonly string[] => perl(`my $x = "x" x (${mebibytes} << 20); print length($x)`);
    assert.equal((await inside(take(64))).stdout, String(64 << 20));
    const end = await inside(take(512));
    assert.equal(end.stdout, "");
    assert.notEqual(end.exitCode, 0);
  });
  test("room for its output", async () => {
    const write = (kibibytes: number): readonly string[] => [
      "sh",
      "-c",
      `head -c ${kibibytes}k /usr/bin/perl > /output`,
    ];
    const { outputBytes } = limits;
    assert.deepEqual([(await inside(write(512))).exitCode, readFileSync(output).length], [0, 512 * 1024]);
    const end = await inside(write(3000));
    assert.equal(end.how, "output", end.stderr);
    assert.equal(readFileSync(output).length, outputBytes);
  });
  test("processes", async () => {
    const bomb = perl(
      "my $n = 1; while (1) { my $p = fork; last unless defined $p; if (!$p) { sleep 5; exit } $n++ } print $n",
    );
    const end = await inside(bomb);
    assert.equal(end.stdout, String(limits.processes), end.stderr);
    await eventually("everything is gone", () => ours().length === 0);
  });
  test("words", async () => {
    const end = await inside(["sh", "-c", "head -c 100000 /usr/bin/perl; head -c 100000 /usr/bin/perl >&2"]);
    assert.equal(end.stdout.length, 16 * 1024);
    assert.equal(end.stderr.length, 16 * 1024);
  });

  test("memory of all its processes together, where there are control groups", async (t) => {
    const tag = `cells-sandbox-${owner.uid}`;
    const roots = cgroupRoots(tag);
    const cgroups = makeCgroups(roots, "s1").filter((each) => /memory|unified|cgroup\/[^/]*cells/.test(each));
    try {
      if (cgroups.length === 0) return t.diagnostic("no control group can be made here: nothing was tried");
      // One after the other takes its share and keeps it; who is still there at the end is counted.
      const many = perl(`
        for (1..6) {
          pipe(my $told, my $tell);
          my $child = fork;
          if (!$child) { my $x = "x" x (60 << 20); syswrite($tell, "y"); sleep 1000; exit }
          close $tell;
          sysread($told, my $byte, 1);
          push @children, $child;
        }
        for (@children) { print "held\\n" if waitpid($_, 1) == 0 }
        kill 9, @children;
      `);
      const run = (groups: readonly string[]): Promise<SandboxEnd> =>
        runSandboxed(many, {
          mountPoint: join(base, "root"),
          input,
          output,
          owner,
          cgroups: groups,
          limits: { ...limits, memoryMiB: 150 },
        });
      assert.equal((await run([])).stdout, "held\n".repeat(6), "without a group, each may take its share");
      const held = (await run(cgroups)).stdout.split("\n").length - 1;
      assert.ok(held < 6, `with one, not all of them may: ${held}`);
      for (const group of cgroups)
        assert.deepEqual(
          readdirSync(group).filter((name) => name.startsWith("image-")),
          [],
          "the group is gone",
        );
    } finally {
      for (const root of roots) removeCgroups(root);
    }
  });
});

test("a sandbox ends with the process that made it", { skip }, async () => {
  const program = `
    import { runSandboxed } from ${JSON.stringify(join(import.meta.dirname, "image-sandbox.ts"))};
    await runSandboxed(["sh", "-c", "sleep 1000 & sleep 1000"], ${JSON.stringify({
      mountPoint: join(base, "root"),
      input,
      output,
      owner,
      limits: { ...limits, wallSeconds: 1000 },
    })});`;
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "ignore" });
  try {
    await eventually("its processes", () => ours().length >= 2);
  } finally {
    child.kill("SIGKILL");
  }
  await eventually("everything is gone", () => ours().length === 0);
});
