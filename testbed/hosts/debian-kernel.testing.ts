import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { emulatedProcessor } from "../../host/drivers/hypervisor/process/arguments.ts";

/** Kernels of Debian, and guests that have nothing but one and what a test puts beside it. */
export interface DebianKernel {
  readonly image: string;
  /** Its modules, `lib/modules/<release>/kernel`. */
  readonly modules: string;
}

/** The suite's newest, by sources and lists of its own: the machine's are left alone. @param flavour `amd64`, or for virtual machines `cloud-amd64` */
export function fetchKernel(work: string, suite: string, flavour: "amd64" | "cloud-amd64"): DebianKernel {
  const lists = join(work, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  mkdirSync(join(work, "archives/partial"), { recursive: true });
  const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
  const sources = join(work, "sources.list");
  writeFileSync(sources, `deb [signed-by=${keyring}] http://deb.debian.org/debian ${suite} main\n`);
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    "Dir::Etc::sourceparts=/dev/null",
    `Dir::State::lists=${lists}`,
    `Dir::Cache=${work}`,
    "APT::Sandbox::User=root",
  ].flatMap((option) => ["-o", option]);
  const run = (program: string, ...args: readonly string[]): string =>
    execFileSync(program, [...options, ...args], { cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  run("apt-get", "-qq", "update");
  const found = /Depends: (linux-image-\S+)/.exec(run("apt-cache", "depends", `linux-image-${flavour}`))?.[1];
  assert.ok(found !== undefined, `${suite} has no kernel`);
  run("apt-get", "-qq", "download", found);
  const [file] = globSync("*.deb", { cwd: work });
  execFileSync("dpkg-deb", ["-x", join(work, file ?? ""), join(work, "kernel")]);
  const one = (pattern: string): string =>
    join(work, "kernel", globSync(pattern, { cwd: join(work, "kernel") })[0] ?? assert.fail(`there is no ${pattern}`));
  return { image: one("boot/vmlinuz-*"), modules: one("{usr/,}lib/modules/*/kernel") };
}

/** @param programs each with the libraries that it needs, by where they are on this machine; `files`: whence, to where there */
export function makeInitramfs(
  work: string,
  init: string,
  programs: readonly string[],
  files: Readonly<Record<string, string>>,
): string {
  const root = join(work, "root");
  const put = (from: string, to: string): void => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    cpSync(realpathSync(from), join(root, to), { recursive: true });
  };
  for (const directory of ["proc", "sys", "dev"]) mkdirSync(join(root, directory), { recursive: true });
  put("/bin/busybox", "bin/busybox");
  for (const program of programs) {
    put(program, join("bin", program.slice(program.lastIndexOf("/") + 1)));
    for (const [library] of execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(/\/\S+/g))
      put(library, library);
  }
  for (const [from, to] of Object.entries(files)) put(from, to);
  writeFileSync(join(root, "init"), init, { mode: 0o755 });
  const file = join(work, "initrd");
  execFileSync("sh", ["-c", `find . | cpio --quiet -o -H newc -R 0:0 | gzip -1 >"$0"`, file], { cwd: root });
  return file;
}

/** What QEMU is started with for a guest that says what it does on its serial line, and ends with its power. */
export const guestOptions = (image: string, initrd: string, memoryMiB: number, words = ""): readonly string[] => [
  "-nodefaults",
  "-no-reboot",
  "-display",
  "none",
  "-serial",
  "stdio",
  "-m",
  String(memoryMiB),
  "-accel",
  "tcg",
  "-cpu",
  emulatedProcessor,
  "-kernel",
  image,
  "-initrd",
  initrd,
  "-append",
  `console=ttyS0 quiet panic=-1 random.trust_cpu=on ${words}`,
];
