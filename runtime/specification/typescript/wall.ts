import { realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fail, ok, type Result } from "../../../model/result.ts";

/*
 * The walls around the evaluating process, besides QuickJS in WebAssembly and Node's permission model (decisions/0026).
 * Node's permissions say nothing of sockets, so the kernel has to: a system call filter, which needs no rights, and where
 * we are root also namespaces of its own and a user without rights.
 */

/** Calls that answer EPERM (x86-64): sockets, other processes and their memory, the kernel's own machinery, identities. */
const refusedCalls: Readonly<Record<string, number>> = {
  socket: 41,
  connect: 42,
  accept: 43,
  sendto: 44,
  sendmsg: 46,
  bind: 49,
  listen: 50,
  socketpair: 53,
  accept4: 288,
  sendmmsg: 307,
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  kill: 62,
  tkill: 200,
  ptrace: 101,
  process_vm_readv: 310,
  process_vm_writev: 311,
  pidfd_open: 434,
  pidfd_getfd: 438,
  pidfd_send_signal: 424,
  kcmp: 312,
  fork: 57,
  vfork: 58,
  mount: 165,
  umount2: 166,
  pivot_root: 155,
  chroot: 161,
  unshare: 272,
  setns: 308,
  open_tree: 428,
  fsopen: 430,

  move_mount: 429,
  mount_setattr: 442,
  bpf: 321,
  perf_event_open: 298,
  userfaultfd: 323,
  keyctl: 250,
  add_key: 248,
  request_key: 249,
  init_module: 175,
  finit_module: 313,
  kexec_load: 246,
  reboot: 169,
  swapon: 167,
  setuid: 105,
  setgid: 106,
  setreuid: 113,
  setregid: 114,
  setgroups: 116,
  setresuid: 117,
  setresgid: 119,
  mq_open: 240,
  shmget: 29,
  msgget: 68,
  semget: 64,
  open_by_handle_at: 304,
  personality: 135,
  acct: 163,
};
const architecture = 0xc000003e;
const x32 = 0x40000000;
const verdicts = { allow: 0x7fff0000, kill: 0x80000000, notPermitted: 0x00050000 | 1 };
/** Codes of classic BPF: load a word, jump if equal or at least, return (Linux, seccomp_filter.rst). */
const code = { load: 0x20, jumpIfEqual: 0x15, jumpIfAtLeast: 0x35, answer: 0x06 };

/** An array of `struct sock_filter`, 8 bytes each. */
export function socketFilter(): Buffer {
  const numbers = Object.values(refusedCalls);
  const instruction = (what: number, k: number, whenTrue = 0, whenFalse = 0): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt16LE(what, 0);
    bytes.writeUInt8(whenTrue, 2);
    bytes.writeUInt8(whenFalse, 3);
    bytes.writeUInt32LE(k, 4);
    return bytes;
  };
  return Buffer.concat([
    instruction(code.load, 4),
    instruction(code.jumpIfEqual, architecture, 1, 0),
    instruction(code.answer, verdicts.kill),
    instruction(code.load, 0),
    instruction(code.jumpIfAtLeast, x32, 0, 1),
    instruction(code.answer, verdicts.kill),
    ...numbers.map((number, index) => instruction(code.jumpIfEqual, number, numbers.length - index, 0)),
    instruction(code.answer, verdicts.allow),
    instruction(code.answer, verdicts.notPermitted),
  ]);
}

/** prctl (157): PR_SET_NO_NEW_PRIVS (38), then PR_SET_SECCOMP (22) with a filter (2), given in hexadecimal. */
const applyFilter = `
my $filter = pack("H*", shift);
my $program = pack("S x6 P", length($filter) / 8, $filter);
syscall(157, 38, 1, 0, 0, 0) == 0 && syscall(157, 22, 2, $program) == 0 or die "cells: no system call filter: $!\\n";
exec { $ARGV[0] } @ARGV or die "cells: $ARGV[0]: $!\\n";
`;

/** A user of each evaluation alone, above all that systemd and containers hand out, and above those of images. */
const drawnUser = (): number => 1_900_100_000 + Math.floor(Math.random() * 65_536);

/** Whether everybody may read a file: then a user without rights can, too. */
function openToAll(file: string): boolean {
  if ((statSync(file).mode & 0o004) === 0) return false;
  for (let directory = dirname(file); ; directory = dirname(directory)) {
    if ((statSync(directory).mode & 0o001) === 0) return false;
    if (directory === dirname(directory)) return true;
  }
}

/** With which the walls are built: by everybody, and beside them by root. */
const programs = { filter: ["perl"], root: ["setpriv", "unshare", "prlimit", "sh"] } as const;

/**
 * The command inside the walls. `reads`: files that it must be able to read. As root it runs under a user of its own, unless
 * our own code lies where only root can read it (below `/root`, for instance): then as root without a capability.
 *
 * Where the walls cannot be built nothing is run: what is left would be WebAssembly alone between a stranger's program
 * and the key of the service that reads it. The error is a sentence that says what is missing.
 *
 * @param path directories of programs, as of `PATH`
 */
export function walled(
  command: readonly string[],
  reads: readonly string[],
  path = searchPath,
): Result<readonly string[], string> {
  if (process.platform !== "linux" || process.arch !== "x64")
    return fail(`the walls around it are of Linux on x86-64, and this is ${process.platform} on ${process.arch}`);
  const isRoot = process.getuid?.() === 0;
  const missing = [...programs.filter, ...(isRoot ? programs.root : [])].filter((name) => !isProgram(name, path));
  if (missing.length > 0)
    return fail(`the walls around it need ${missing.join(", ")}, which this machine does not have`);
  const filtered = ["perl", "-e", applyFilter, "--", socketFilter().toString("hex"), ...command];
  if (!isRoot) return ok(filtered);
  const user = drawnUser();
  const identity = reads.every((file) => openToAll(realpathSync(file)))
    ? [`--reuid=${user}`, `--regid=${user}`, "--clear-groups"]
    : [];
  return ok([
    // The whole tree ends with us: this one by its parent's death, the next by `--kill-child`, the rest with that. The
    // shell stays as process 1 for it, since a process that changes its user loses the signal at its parent's death.
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--net",
    "--ipc",
    "--uts",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "sh",
    "-c",
    '"$@"; exit $?',
    "sh",
    "setpriv",
    ...identity,
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--no-new-privs",
    "prlimit",
    "--core=0",
    "--nofile=64",
    "--msgqueue=0",
    "--memlock=0",
    "--",
    ...filtered,
  ]);
}

const isProgram = (name: string, path: string): boolean =>
  path.split(":").some((directory) => {
    const found = statSync(join(directory, name), { throwIfNoEntry: false });
    return found?.isFile() === true && (found.mode & 0o001) !== 0;
  });
export const searchPath = "/usr/sbin:/usr/bin:/sbin:/bin";
