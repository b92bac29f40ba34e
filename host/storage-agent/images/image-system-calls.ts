/**
 * The system calls that remain to a program that reads an uploaded image: files that are open to it, memory, threads,
 * clocks. A list of what is allowed, since a list of what is not ages badly. What is left out answers EPERM, so that a
 * library which only tries something (io_uring, extended scheduling) goes on without it: no socket, no trace of another
 * process, no mount, no namespace, no key ring, no bpf, no identity change.
 *
 * Classic BPF for seccomp (Linux, Documentation/userspace-api/seccomp_filter.rst) on x86-64; another architecture's entry,
 * and the x32 one, end the process.
 */
const allowed: Readonly<Record<string, number>> = {
  // Files that are open, or lie in the small file system.
  read: 0,
  write: 1,
  open: 2,
  close: 3,
  stat: 4,
  fstat: 5,
  lstat: 6,
  lseek: 8,
  pread64: 17,
  pwrite64: 18,
  readv: 19,
  writev: 20,
  access: 21,
  pipe: 22,
  dup: 32,
  dup2: 33,
  fcntl: 72,
  flock: 73,
  fsync: 74,
  fdatasync: 75,
  ftruncate: 77,
  getdents: 78,
  getcwd: 79,
  chdir: 80,
  readlink: 89,
  statfs: 137,
  fstatfs: 138,
  getdents64: 217,
  fadvise64: 221,
  openat: 257,
  newfstatat: 262,
  readlinkat: 267,
  faccessat: 269,
  fallocate: 285,
  dup3: 292,
  pipe2: 293,
  preadv: 295,
  pwritev: 296,
  preadv2: 327,
  pwritev2: 328,
  copy_file_range: 326,
  statx: 332,
  faccessat2: 439,
  umask: 95,
  ioctl: 16,
  // Memory.
  mmap: 9,
  mprotect: 10,
  munmap: 11,
  brk: 12,
  mremap: 25,
  msync: 26,
  madvise: 28,
  set_mempolicy: 238,
  get_mempolicy: 239,
  // Waiting and clocks.
  poll: 7,
  select: 23,
  pselect6: 270,
  ppoll: 271,
  epoll_create: 213,
  epoll_wait: 232,
  epoll_ctl: 233,
  epoll_pwait: 281,
  epoll_create1: 291,
  eventfd2: 290,
  signalfd4: 289,
  timerfd_create: 283,
  timerfd_settime: 286,
  timerfd_gettime: 287,
  nanosleep: 35,
  clock_nanosleep: 230,
  clock_gettime: 228,
  clock_getres: 229,
  gettimeofday: 96,
  time: 201,
  alarm: 37,
  pause: 34,
  restart_syscall: 219,
  // Signals, and threads of its own. `kill` reaches only its own process namespace.
  rt_sigaction: 13,
  rt_sigprocmask: 14,
  rt_sigreturn: 15,
  rt_sigpending: 127,
  rt_sigtimedwait: 128,
  rt_sigsuspend: 130,
  sigaltstack: 131,
  kill: 62,
  tgkill: 234,
  futex: 202,
  set_robust_list: 273,
  get_robust_list: 274,
  rseq: 334,
  membarrier: 324,
  sched_yield: 24,
  sched_getaffinity: 204,
  set_tid_address: 218,
  gettid: 186,
  arch_prctl: 158,
  prctl: 157,
  fork: 57,
  vfork: 58,
  execve: 59,
  exit: 60,
  wait4: 61,
  waitid: 247,
  exit_group: 231,
  // What it is and what it may.
  getpid: 39,
  getppid: 110,
  getpgrp: 111,
  setpgid: 109,
  getuid: 102,
  getgid: 104,
  geteuid: 107,
  getegid: 108,
  getgroups: 115,
  getresuid: 118,
  getresgid: 120,
  uname: 63,
  sysinfo: 99,
  getrlimit: 97,
  getrusage: 98,
  times: 100,
  prlimit64: 302,
  getrandom: 318,
  getcpu: 309,
};
const clone = 56;
const clone3 = 435;
/** Every CLONE_NEW… flag of `clone`. `clone3` has its flags in memory, out of a filter's sight, so it is not there. */
const newNamespaces = 0x7e020000;

const architecture = 0xc000003e;
const x32 = 0x40000000;
const verdicts = { allow: 0x7fff0000, kill: 0x80000000, notPermitted: 0x00050000 | 1, notThere: 0x00050000 | 38 };

/** `struct seccomp_data`: call number, architecture, instruction pointer (8 bytes), six arguments (8 bytes each). */
const field = { number: 0, architecture: 4, firstArgument: 16 };
const code = { load: 0x20, jumpIfEqual: 0x15, jumpIfAtLeast: 0x35, jumpIfAnyBit: 0x45, answer: 0x06 };

/** An array of `struct sock_filter`, 8 bytes each, as the kernel takes it. */
export function systemCallFilter(): Buffer {
  const program: Buffer[] = [];
  const add = (what: number, k: number, whenTrue = 0, whenFalse = 0): void => {
    const instruction = Buffer.alloc(8);
    instruction.writeUInt16LE(what, 0);
    instruction.writeUInt8(whenTrue, 2);
    instruction.writeUInt8(whenFalse, 3);
    instruction.writeUInt32LE(k, 4);
    program.push(instruction);
  };
  add(code.load, field.architecture);
  add(code.jumpIfEqual, architecture, 1, 0);
  add(code.answer, verdicts.kill);
  add(code.load, field.number);
  add(code.jumpIfAtLeast, x32, 0, 1);
  add(code.answer, verdicts.kill);
  add(code.jumpIfEqual, clone3, 0, 1);
  add(code.answer, verdicts.notThere);
  add(code.jumpIfEqual, clone, 0, 4);
  add(code.load, field.firstArgument);
  add(code.jumpIfAnyBit, newNamespaces, 0, 1);
  add(code.answer, verdicts.notPermitted);
  add(code.answer, verdicts.allow);
  const numbers = Object.values(allowed);
  numbers.forEach((number, index) => {
    add(code.jumpIfEqual, number, numbers.length - index, 0);
  });
  add(code.answer, verdicts.notPermitted);
  add(code.answer, verdicts.allow);
  return Buffer.concat(program);
}
