import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { BootRecord } from "../../../core/documents/vocabulary.ts";
import type { Ipv4 } from "../../../model/cell/identifiers.ts";
import { isImageName } from "../../../model/cell/image-name.ts";
import type { ImageManifest } from "../../../runtime/installation.ts";

/** Where a server's images are: those that come with the installation, and those that were uploaded to this server. */
export interface ImagePlaces {
  /** Read only, and perhaps shared with others: `<name>/manifest.json`. */
  readonly imagesDirectory: string;
  /** This server's own durable directory; uploads are in `images/<name>/manifest.json` below it. */
  readonly directory: string;
}
export interface FoundImage {
  readonly directory: string;
  readonly manifest: ImageManifest;
  /** Comes with the installation: it can be neither replaced nor deleted. */
  readonly provided: boolean;
}

export const uploadedImages = ({ directory }: ImagePlaces): string => join(directory, "images");

const readAt = async (directory: string, provided: boolean): Promise<FoundImage | null> => {
  try {
    const manifest = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8")) as ImageManifest;
    return { directory, manifest, provided };
  } catch {
    return null;
  }
};

/** One image by name, null when it is not there or its record cannot be read. Names of the installation come first. */
export async function findImage(places: ImagePlaces, name: string): Promise<FoundImage | null> {
  if (!isImageName(name)) return null;
  return (
    (await readAt(join(places.imagesDirectory, name), true)) ??
    (await readAt(join(uploadedImages(places), name), false))
  );
}

/** The image of a new volume is not there, or not what its record says: only who adds or replaces it changes that. */
export class ImageFault extends Error {}

/** One image by name; throws a sentence when it is not there or its record cannot be read. */
export async function readImage(places: ImagePlaces, name: string): Promise<FoundImage> {
  const found = await findImage(places, name);
  if (found === null) throw new ImageFault(`this server has no image "${name}"`);
  return found;
}

/** Every image whose record can be read, by name; a directory that is being filled is passed over. */
export async function listImages(places: ImagePlaces): Promise<readonly FoundImage[]> {
  const found = new Map<string, FoundImage>();
  for (const image of await everyImage(places)) {
    const { name } = image.manifest;
    // The cache keeps older builds beside the current one, under other directory names.
    if (basename(image.directory) === name && !found.has(name)) found.set(name, image);
  }
  return [...found.values()];
}

/** Older builds too, whose kernels somebody may still ask for. */
export async function everyImage(places: ImagePlaces): Promise<readonly FoundImage[]> {
  const below = async (directory: string, provided: boolean): Promise<readonly (FoundImage | null)[]> => {
    const names = await readdir(directory).catch(() => []);
    return Promise.all(names.map((name) => readAt(join(directory, name), provided)));
  };
  const found = [...(await below(places.imagesDirectory, true)), ...(await below(uploadedImages(places), false))];
  return found.filter((image) => image !== null);
}

/** What a host needs to boot a volume of this image directly; null: it has its own boot loader. */
export function bootRecord({ manifest }: FoundImage, address: Ipv4, port: number): BootRecord | null {
  if (manifest.boot === null) return null;
  const { commandLine, kernelSha256, initrdSha256, agent, saved, savedSizes } = manifest.boot;
  return {
    digest: manifest.digest,
    address,
    port,
    commandLine,
    ...(kernelSha256 === undefined ? {} : { kernelSha256 }),
    ...(initrdSha256 === undefined ? {} : { initrdSha256 }),
    ...(agent === undefined ? {} : { agent }),
    ...(saved === undefined ? {} : { saved }),
    ...(savedSizes === undefined ? {} : { savedSizes }),
  };
}
