import { execFile } from "node:child_process";
import { cp, lstat, mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Name and exact version of a Debian package, as the machine's own package sources offer it now. */
export interface PackageVersion {
  readonly name: string;
  readonly version: string;
}

/** Packages that are never part of an image: they only matter where a package manager runs. */
const withoutContent = /^(init-system-helpers|usrmerge|usr-is-merged|perl|dpkg|tar|debconf|gcc-\d+-base)/;

/**
 * The named packages with all that they need at run time, versions included, sorted.
 * Rejects with apt's own words when a package is unknown to the machine's sources.
 */
export async function resolvePackages(names: readonly string[]): Promise<readonly PackageVersion[]> {
  const flags = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"].map((kind) => `--no-${kind}`);
  const { stdout } = await run("apt-cache", ["depends", "--recurse", ...flags, ...names], { maxBuffer: 64 << 20 });
  const closure = [...new Set(stdout.split("\n").filter((line) => /^[a-z0-9]/.test(line)))]
    .map((line) => line.replace(/:.*$/, ""))
    .filter((name) => !withoutContent.test(name) || names.includes(name));
  const shown = await run("apt-cache", ["show", "--no-all-versions", ...closure], { maxBuffer: 64 << 20 });
  const versions = new Map<string, string>();
  for (const stanza of shown.stdout.split("\n\n")) {
    const name = /^Package: (\S+)$/m.exec(stanza)?.[1];
    const version = /^Version: (\S+)$/m.exec(stanza)?.[1];
    if (name !== undefined && version !== undefined && !versions.has(name)) versions.set(name, version);
  }
  return [...versions].map(([name, version]) => ({ name, version })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The kernel package that a kernel metapackage stands for now, e.g. `linux-image-6.1.0-56-cloud-amd64`. */
export async function kernelPackage(metapackage: string): Promise<string> {
  const { stdout } = await run("apt-cache", ["depends", metapackage]);
  const name = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
  if (name === undefined) throw new Error(`${metapackage} names no kernel package; run \`apt-get update\` first`);
  return name;
}

/** Downloads packages into `directory` (nothing is installed) and unpacks them below `target`. */
export async function unpackPackages(
  packages: readonly PackageVersion[],
  directory: string,
  target: string,
): Promise<void> {
  await run(
    "apt-get",
    ["download", "-qq", "-o", "APT::Sandbox::User=root", ...packages.map(({ name, version }) => `${name}=${version}`)],
    { cwd: directory, maxBuffer: 64 << 20 },
  );
  for (const file of (await readdir(directory)).filter((name) => name.endsWith(".deb")))
    await run("dpkg-deb", ["-x", join(directory, file), target]);
  await mergeUsr(target);
}

/**
 * Makes `/bin`, `/sbin`, `/lib` and `/lib64` links into `/usr`, with what they held. Debian 12's packages still use both
 * places, Debian 13's only `/usr`: afterwards either path finds a file, whichever release it came from.
 */
export async function mergeUsr(root: string): Promise<void> {
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    const [plain, merged] = [join(root, name), join(root, "usr", name)];
    await mkdir(merged, { recursive: true });
    const there = await lstat(plain).catch(() => null);
    if (there?.isSymbolicLink()) continue;
    if (there !== null) {
      await cp(plain, merged, { recursive: true, verbatimSymlinks: true });
      await rm(plain, { recursive: true });
    }
    await symlink(join("usr", name), plain);
  }
}
