import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BootRecord } from "../../core/documents.ts";
import type { Ipv4 } from "../../model/identifiers.ts";
import type { ImageManifest } from "../../runtime/installation.ts";

export interface FoundImage {
  readonly directory: string;
  readonly manifest: ImageManifest;
}

/** One image by name; throws a sentence when it is not there or its record cannot be read. */
export async function readImage(imagesDirectory: string, name: string): Promise<FoundImage> {
  const directory = join(imagesDirectory, name);
  let text: string;
  try {
    text = await readFile(join(directory, "manifest.json"), "utf8");
  } catch {
    throw new Error(`this server has no image "${name}": ${directory}/manifest.json is not there`);
  }
  return { directory, manifest: JSON.parse(text) as ImageManifest };
}

/** Every image whose record can be read; a directory that is being filled is passed over. */
export async function listImages(imagesDirectory: string): Promise<readonly FoundImage[]> {
  const names = await readdir(imagesDirectory).catch(() => []);
  const found = await Promise.allSettled(names.map((name) => readImage(imagesDirectory, name)));
  return found.flatMap((image) => (image.status === "fulfilled" ? [image.value] : []));
}

/** What a host needs to boot a volume of this image directly; null: it has its own boot loader. */
export function bootRecord({ manifest }: FoundImage, address: Ipv4, port: number): BootRecord | null {
  if (manifest.boot === null) return null;
  const { commandLine, kernelSha256, initrdSha256 } = manifest.boot;
  return {
    digest: manifest.digest,
    address,
    port,
    commandLine,
    ...(kernelSha256 === undefined ? {} : { kernelSha256 }),
    ...(initrdSha256 === undefined ? {} : { initrdSha256 }),
  };
}
