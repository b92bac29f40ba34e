import { mkdir, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { createImageEdge } from "../../host/storage-agent/images/image-edge.ts";
import { inspectImage } from "../../host/storage-agent/images/image-header.ts";
import { ImageStore, type ImageStoreOptions } from "../../host/storage-agent/images/image-store.ts";
import { listImages } from "../../host/storage-agent/images/images.ts";
import { MiB } from "../../host/storage-agent/images/qcow2.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { PeerRequest } from "../../runtime/http/peer-handler.ts";
import type { ImageManifest } from "../../runtime/installation.ts";
import type { Installation } from "../world/installation.ts";
import { golden, type ServerMachine } from "../world/server-machine.ts";

/**
 * Images of a simulated storage server: the real store, which takes them in, keeps what broke off and refuses what is not to be. It looks at what
 * came as a real one does first. No tool converts it behind walls, which takes root, and nothing of its bytes is kept: a simulated volume has none.
 */
export interface ServedImages {
  /** Whether it was about images. */
  readonly answer: (request: PeerRequest, response: ServerResponse) => Promise<boolean>;
  readonly close: () => Promise<void>;
}
const uploadMiB = 1024;

export const serverOf = ({ servers }: Installation, name: PeerName): ServerMachine | undefined =>
  [...servers.values()].find(({ server }) => name === `agent.${server}`);

/** @param directory of the process */
export function imagesAt(installation: Installation, name: PeerName, directory: string): ServedImages {
  const places = { directory, imagesDirectory: join(directory, "provided") };
  const store = new ImageStore({
    ...places,
    limits: { uploadMiB },
    convert: lookedAt,
    log: () => undefined,
    changed: () => void tell().catch(() => undefined),
  });
  const tell = async (): Promise<void> => {
    const server = serverOf(installation, name);
    if (server === undefined) return;
    const brought = (await listImages(places)).filter(({ provided }) => !provided);
    server.brought = brought.map(({ manifest: { name: its, digest, sizeMiB } }) => ({ name: its, digest, sizeMiB }));
    await installation.executors.get(name)?.reportImages();
  };
  const prepared = (async () => {
    await provide(places.imagesDirectory);
    await store.prepare();
  })();
  // Whoever asks is told, and nobody has to.
  prepared.catch(() => undefined);
  const edge = createImageEdge(places, store, async () => undefined);
  return {
    answer: async (request, response) => {
      await prepared;
      return edge(request, response);
    },
    close: async () => {
      await prepared.catch(() => undefined);
      await store.close();
    },
  };
}

/** What every simulated server has from the beginning. */
async function provide(imagesDirectory: string): Promise<void> {
  const { name, digest, sizeMiB } = golden;
  const manifest: ImageManifest = { name, digest, disk: "disk.qcow2", sizeMiB, boot: null };
  await mkdir(join(imagesDirectory, name), { recursive: true });
  await writeFile(join(imagesDirectory, name, "manifest.json"), JSON.stringify(manifest));
}

const lookedAt: NonNullable<ImageStoreOptions["convert"]> = async ({ directory, upload, result, format, limits }) => {
  const shape = await inspectImage(join(directory, upload), format, { virtualBytes: limits.virtualMiB * MiB });
  await writeFile(join(directory, result), "");
  return shape;
};
