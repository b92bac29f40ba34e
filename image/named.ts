import { constants } from "node:fs";
import { cp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ImageManifest } from "../runtime/installation.ts";
import { textOf } from "./parts.ts";

/** Of the services' images: `service`, and those that an operator brings in beside it for an upgrade. */
export const isServiceImageName = (name: string): boolean => /^service(?:-[a-z0-9][a-z0-9.-]{0,40})?$/.test(name);

/**
 * The image in `current` under a name of its own, beside it. `service` is another image with every build, and an upgrade
 * needs the old one until the new one has proved itself: under a name of its own it stays what it is. Rejects with a
 * sentence where another image has that name.
 * @returns the directory of the named image
 */
export async function nameImage(current: string, name: string): Promise<string> {
  const target = join(dirname(current), name);
  const manifest = JSON.parse(await readFile(join(current, "manifest.json"), "utf8")) as ImageManifest;
  const there = await textOf(join(target, "manifest.json"));
  if (there !== null) {
    if ((JSON.parse(there) as ImageManifest).digest === manifest.digest) return target;
    throw new Error(
      `there is another image "${name}" already, which volumes may have been made from: take another name`,
    );
  }
  const partial = join(dirname(current), `.${name}-${process.pid}`);
  try {
    await cp(await realpath(current), partial, { recursive: true, mode: constants.COPYFILE_FICLONE });
    // That which the builder knows `service` by.
    await rm(join(partial, "inputs"), { force: true });
    await writeFile(join(partial, "manifest.json"), `${JSON.stringify({ ...manifest, name }, null, 2)}\n`);
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return target;
}
