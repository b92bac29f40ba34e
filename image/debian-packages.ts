import { spawn } from "node:child_process";
import { access } from "node:fs/promises";

/** What the images that are made of Debian's packages have in common. */
const suite = "bookworm";
const mirrors = [
  `deb http://deb.debian.org/debian ${suite} main`,
  `deb http://deb.debian.org/debian-security ${suite}-security main`,
];

/** This file, for digests of what an image is made of. */
export const unpackedBy = import.meta.filename;

/** Fills the directory `root` with Debian 12, these packages and what they need, without manuals and translations. */
export async function unpackDebian(root: string, packages: readonly string[]): Promise<void> {
  const left = ["man", "locale", "doc", "info"].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
  const what = ["--quiet", "--variant=minbase", "--mode=root", `--include=${packages.join(",")}`, ...left];
  const words = await new Promise<string | null>((resolve, reject) => {
    // Nobody can be asked: package scripts that try must find no one to wait for.
    const child = spawn("mmdebstrap", [...what, suite, root, ...mirrors], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = `${said}${text}`.slice(-4000);
    });
    child.once("error", reject);
    child.once("close", (code) => resolve(code === 0 ? null : said.trim().split("\n").slice(-6).join("; ")));
  });
  if (words !== null) throw new Error(`Debian's packages could not be had: ${words}`);
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
