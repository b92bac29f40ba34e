import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { type ProcessOwner, setprivArguments } from "../../drivers/unix-users.ts";
import { createImageCgroup } from "./image-cgroup.ts";
import { systemCallFilter } from "./image-system-calls.ts";

/**
 * A place in which a program reads bytes of a stranger and may turn against us. What it has: two files, `/input` to read
 * and `/output` to write, and the machine's programs and libraries, read-only. What it has not: a network, other
 * processes, other files, a user with rights, a capability, a way to get one, and more time, memory or room than it was
 * given. Each wall stands for itself, so that a hole in one opens nothing:
 *
 * - own mount, network, process, IPC and host name namespaces; a root that is an empty read-only file system (pivot_root,
 *   the old one unmounted), without /proc, /etc and any device but the null one;
 * - a user that owns only `/output`, no groups, no capabilities, no-new-privileges;
 * - a list of allowed system calls (`image-system-calls.ts`);
 * - limits per process (CPU, address space, file size, number of processes), a control group for all together where one
 *   is given, and a time after which everything in it is killed. With the agent's death it ends as well.
 *
 * One output file instead of a directory, so that the limit of a file's size bounds all that can be written.
 */
export interface SandboxLimits {
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
  /** Address space of each process; of all together in the control group. */
  readonly memoryMiB: number;
  readonly outputBytes: number;
  readonly processes: number;
}
export interface SandboxOptions {
  /** Made if it is not there; the sandbox's root is mounted over it, in its own namespace only. */
  readonly mountPoint: string;
  /** Read-only inside; must be readable by `owner`. */
  readonly input: string;
  /** There, and writable by `owner`. */
  readonly output: string;
  readonly limits: SandboxLimits;
  readonly owner: ProcessOwner;
  /** Parent control groups (v1: one per controller; v2: one); none: only the limits per process hold. */
  readonly cgroups?: readonly string[];
  readonly signal?: AbortSignal;
}
export interface SandboxEnd {
  /** Null when it was ended from outside. */
  readonly exitCode: number | null;
  /** What a signal says of a limit, `too-long` and `aborted`: ended from outside. */
  readonly how: "exit" | "cpu" | "output" | "memory-or-fault" | "too-long" | "aborted";
  /** The first 16 KiB each. */
  readonly stdout: string;
  readonly stderr: string;
}

const outputLimit = 16 * 1024;

/**
 * Arguments: the root, input, output, the number of control groups, these, then the command. The shell stays as process 1,
 * since with it everything in its namespace ends: the signal at a parent's death, which \`unshare\` sets for it, is lost by
 * a process that changes its user. An end by a signal becomes 128 and its number.
 */
const makeRoot = `
root=$1 input=$2 output=$3 groups=$4
shift 4
while [ "$groups" -gt 0 ]; do echo 0 > "$1/cgroup.procs"; shift; groups=$((groups - 1)); done
mount -t tmpfs -o mode=755,size=64k,nosuid,nodev,noexec cells-image "$root"
cd "$root"
mkdir -p usr/bin usr/lib usr/lib64 dev old
ln -s usr/bin bin
ln -s usr/lib lib
ln -s usr/lib64 lib64
: > input
: > output
: > dev/null
show() { mount --bind "$1" "$2"; mount -o "remount,bind,nosuid,nodev,$3" "$2"; }
for part in usr/bin usr/lib usr/lib64; do test ! -d "/$part" || show "/$part" "$part" ro; done
show "$input" input ro,noexec
show "$output" output noexec
mount --bind /dev/null dev/null
mount -o remount,bind,nosuid,noexec dev/null
mount -o remount,ro,nosuid,nodev,noexec .
set +e
"$@"
exit $?
`;

/** The new root becomes the only one: pivot_root (155) and umount2 (166) with MNT_DETACH; \`umount\` would want /proc. */
const enterRoot = `
my ($here, $old, $gone) = (".", "old", "/old");
syscall(155, $here, $old) == 0 && chdir("/") && syscall(166, $gone, 2) == 0 or die "cells: no root of its own: $!\\n";
exec { $ARGV[0] } @ARGV or die "cells: $ARGV[0]: $!\\n";
`;

/** prctl (157), PR_SET_SECCOMP (22), SECCOMP_MODE_FILTER (2); the first argument is the filter in hexadecimal. */
const applyFilter = `
my $filter = pack("H*", shift);
my $program = pack("S x6 P", length($filter) / 8, $filter);
syscall(157, 22, 2, $program) == 0 or die "cells: no system call filter: $!\\n";
exec { $ARGV[0] } @ARGV or die "cells: $ARGV[0]: $!\\n";
`;

function launchArguments(command: readonly string[], options: SandboxOptions, groups: readonly string[]): string[] {
  const { limits } = options;
  const bytes = limits.memoryMiB * 1024 * 1024;
  return [
    // The whole tree ends with the agent: this one by its parent's death, the next by `--kill-child`, the rest with that.
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--net",
    "--pid",
    "--ipc",
    "--uts",
    "--fork",
    "--kill-child=KILL",
    "--propagation",
    "private",
    "sh",
    "-euc",
    makeRoot,
    "cells-image",
    options.mountPoint,
    options.input,
    options.output,
    String(groups.length),
    ...groups,
    "perl",
    "-e",
    enterRoot,
    "--",
    "setpriv",
    ...setprivArguments(options.owner),

    "prlimit",
    `--cpu=${limits.cpuSeconds}:${limits.cpuSeconds + 1}`,
    `--as=${bytes}`,
    `--fsize=${limits.outputBytes}`,
    // Small stacks: a pool of threads takes as much address space as there is load, and that counts.
    "--stack=2097152",
    `--nproc=${limits.processes}`,
    "--nofile=64",
    "--core=0",
    "--memlock=0",
    "--msgqueue=0",
    "--",
    "perl",
    "-e",
    applyFilter,
    "--",
    systemCallFilter().toString("hex"),
    ...command,
  ];
}

/** Runs a command in a sandbox of its own to its end. Rejects only when the sandbox cannot be made at all. */
export async function runSandboxed(command: readonly string[], options: SandboxOptions): Promise<SandboxEnd> {
  await mkdir(options.mountPoint, { recursive: true, mode: 0o700 });
  const group = await createImageCgroup(options.cgroups ?? [], options.limits);
  try {
    return await launch(launchArguments(command, options, group.directories), options);
  } finally {
    await group.remove();
  }
}

/** Signals 24 and 25 are SIGXCPU and SIGXFSZ (signal(7), x86). */
function endBy(exitCode: number | null): SandboxEnd["how"] {
  if (exitCode === 128 + 24) return "cpu";
  if (exitCode === 128 + 25) return "output";
  return exitCode === null || exitCode > 128 ? "memory-or-fault" : "exit";
}

function launch(parameters: readonly string[], options: SandboxOptions): Promise<SandboxEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn("setpriv", parameters, {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", MALLOC_ARENA_MAX: "2" },
    });
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("latin1").on("data", (text: string) => {
        said[name] = (said[name] + text).slice(0, outputLimit);
      });
    let how: SandboxEnd["how"] = "exit";
    const kill = (why: SandboxEnd["how"]): void => {
      if (how === "exit") how = why;
      child.kill("SIGKILL");
    };
    const timer = setTimeout(() => kill("too-long"), options.limits.wallSeconds * 1000);
    const abort = (): void => kill("aborted");
    options.signal?.addEventListener("abort", abort, { once: true });
    if (options.signal?.aborted) abort();
    const settled = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", abort);
    };
    child.once("error", (error) => {
      settled();
      reject(new Error(`cannot make a sandbox: ${error.message}; is util-linux installed?`));
    });
    child.once("close", (exitCode) => {
      settled();
      if (how === "exit") how = endBy(exitCode);
      if (how === "exit" && /^(cells: no |cells-image: |mount: |unshare: |setpriv: |prlimit: )/m.test(said.stderr))
        reject(new Error(`cannot make a sandbox: ${said.stderr.trim()}`));
      else resolve({ exitCode, how, ...said });
    });
  });
}
