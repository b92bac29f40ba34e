import { createReadStream } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { mayAsk } from "../../core/documents/permissions.ts";
import { savedParts } from "../../core/documents/saved-state.ts";
import type { InstallationStatus } from "../../model/api.ts";
import type { PeerHandler, PeerRequest } from "../../runtime/http/peer-handler.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { everyImage, type ImagePlaces } from "./images/images.ts";
import { MiB } from "./images/qcow2.ts";
import type { VolumeFiles } from "./volume-files.ts";

type ServerStatus = InstallationStatus["servers"][number];

/**
 * What an agent answers over HTTPS: `GET /boot/<digest>/{kernel,initrd,memory,state}` to hosts, `GET /status` (one entry of
 * `InstallationStatus.servers`) to the gateway. Everything else is refused with a sentence.
 */
export function createEdge(
  configuration: ProcessConfiguration,
  files: VolumeFiles,
  /** Each answers what is about images, backups or the bin, and says whether it did. */
  others: readonly ((request: PeerRequest, response: ServerResponse) => Promise<boolean>)[],
): PeerHandler {
  const agent = configuration.agent;
  if (agent === undefined) throw new Error("the configuration has no part `agent`");
  const places = { imagesDirectory: agent.imagesDirectory, directory: configuration.directory };
  return async (request, response) => {
    for (const answers of others) if (await answers(request, response)) return;
    const { peer, method, url } = request;
    if (method !== "GET") return refuse(response, 405, "only GET is answered here");
    const boot = /^\/boot\/([A-Za-z0-9_-]{1,128})\/(kernel|initrd|(?:memory|state)[0-9-]{0,20}(?:\.zst)?)$/.exec(url);
    if (boot !== null) {
      if (!mayAsk("agent", peer, method, url))
        return refuse(response, 403, `"${peer}" is no host: only hosts boot machines`);
      const path = await findBootFile(files, places, boot[1] ?? "", boot[2] ?? "");
      if (path === null) return refuse(response, 404, `no image with digest ${boot[1]} is on this server`);
      response.writeHead(200, {
        "content-type": "application/octet-stream",
        "content-length": (await stat(path)).size,
      });
      return pipeline(createReadStream(path), response);
    }
    if (url === "/status") {
      if (!mayAsk("agent", peer, method, url))
        return refuse(response, 403, `"${peer}" may not see this server's status`);
      const text = JSON.stringify(await status(configuration.address, agent.server, files));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(text);
      return;
    }
    refuse(
      response,
      404,
      "a storage agent answers /boot/<digest>/{kernel,initrd,memory,state}, /images, /backups, /bin and /status",
    );
  };
}

function refuse(response: ServerResponse, statusCode: number, message: string): void {
  response.writeHead(statusCode, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { code: "agent/refused", message } }));
}

/** Kept with the volumes made from it, or still among the images. */
async function findBootFile(
  files: VolumeFiles,
  places: ImagePlaces,
  digest: string,
  name: string,
): Promise<string | null> {
  const kept = join(files.bootDirectory, digest, name);
  if (await stat(kept).catch(() => null)) return kept;
  const image = (await everyImage(places)).find(({ manifest }) => manifest.digest === digest);
  const boot = image?.manifest.boot ?? null;
  if (image === undefined || boot === null) return null;
  if (name === "kernel" || name === "initrd") return join(image.directory, boot[name]);
  return savedParts(boot).some((part) => part.name === name) ? join(image.directory, name) : null;
}

async function status(address: string, server: string, files: VolumeFiles): Promise<ServerStatus> {
  const disk = await statfs(files.directory);
  const volumes = (await readdir(files.directory)).filter((name) => name.endsWith(".qcow2")).length;
  const bin = await files.bin.list();
  return {
    server,
    address,
    bin: { files: bin.length, usedMiB: bin.reduce((sum, { usedMiB }) => sum + usedMiB, 0) },
    totalMiB: Math.floor((disk.blocks * disk.bsize) / MiB),
    freeMiB: Math.floor((disk.bavail * disk.bsize) / MiB),
    volumes,
  };
}
