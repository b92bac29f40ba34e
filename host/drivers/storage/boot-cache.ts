import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { type SavedState, savedPart } from "../../../core/documents/saved-state.ts";
import type { BootRecord } from "../../../core/documents/vocabulary.ts";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import { peerRequest } from "../../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { renameDurably, synchronize } from "../../../runtime/process/durable-files.ts";
import type { SavedFiles } from "./driver.ts";
import { unpackMemory } from "./packed-memory.ts";
import { agentAt } from "./servers.ts";

export interface BootFiles {
  readonly kernel: string;
  readonly initrd: string;
}

const run = promisify(execFile);

interface Part {
  readonly name: string;
  readonly sha256: string | undefined;
  /** Of a packed memory; it then lies beside as `memory`. */
  readonly unpackedBytes?: number;
}

/**
 * The kernels of images, kept under `<directory>/boot/<digest>-<files>/`, and their saved states under
 * `<digest>-saved-<files>/`. A directory appears whole or not at all, so that a crash while fetching leaves nothing that looks
 * like a kernel.
 *
 * `files` says which hashes the files have, or who handed them out where the image's record has none. The digest alone is
 * what one storage server says of its own image: one in somebody else's hands could name another image's, with a kernel of its
 * own, and every machine of that image on this host would boot it from then on.
 */
export class BootCache {
  readonly #configuration: ProcessConfiguration;
  readonly #underWay = new Map<string, Promise<string>>();

  constructor(configuration: ProcessConfiguration) {
    this.#configuration = configuration;
  }

  /** Local paths of both files, fetched from the storage agent if need be. Rejects with a sentence. */
  async files(boot: BootRecord): Promise<BootFiles> {
    const directory = await this.#find(boot, "", [
      { name: "kernel", sha256: boot.kernelSha256 },
      { name: "initrd", sha256: boot.initrdSha256 },
    ]);
    return { kernel: join(directory, "kernel"), initrd: join(directory, "initrd") };
  }

  /** The same of the saved state of that image. */
  async saved(boot: BootRecord, state: SavedState): Promise<SavedFiles> {
    const { memorySha256, stateSha256, memoryMiB } = state;
    if (boot.saved !== undefined) {
      const directory = await this.#find(boot, "-saved", [
        { name: "memory", sha256: memorySha256 },
        { name: "state", sha256: stateSha256 },
      ]);
      return { memory: join(directory, "memory"), state: join(directory, "state") };
    }
    const name = savedPart("state", state);
    // The same image has another one where QEMU became another.
    const directory = await this.#find(boot, "-saved", [
      { name: savedPart("memory", state), sha256: memorySha256, unpackedBytes: memoryMiB * 1024 * 1024 },
      { name, sha256: stateSha256 },
    ]);
    return { memory: join(directory, "memory"), state: join(directory, name) };
  }

  /** The directory with these files, from which whoever asks at the same time gets the same answer. */
  #find(boot: BootRecord, what: string, parts: readonly Part[]): Promise<string> {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(boot.digest))
      return Promise.reject(new Error(`"${boot.digest}" is no digest of an image`));
    const name = `${boot.digest}${what}-${whoseFiles(boot, parts)}`;
    let fetching = this.#underWay.get(name);
    if (fetching === undefined) {
      fetching = this.#make(boot, name, parts).finally(() => this.#underWay.delete(name));
      this.#underWay.set(name, fetching);
    }
    return fetching;
  }

  async #make(boot: BootRecord, name: string, parts: readonly Part[]): Promise<string> {
    const parent = join(this.#configuration.directory, "boot");
    const directory = join(parent, name);
    if (await stat(directory).catch(() => null)) return directory;
    const fresh = join(parent, `.new-${randomBytes(6).toString("hex")}`);
    await mkdir(fresh, { recursive: true, mode: 0o755 });
    try {
      for (const part of parts) {
        const path = join(fresh, part.name);
        await this.#fetch(boot, part.name, path, part.sha256);
        // Most of a saved memory is zero. Where the file system knows no holes it takes its whole size.
        if (part.name === "memory") await run("fallocate", ["--dig-holes", path]).catch(() => undefined);
        const kept = part.unpackedBytes === undefined ? path : join(fresh, "memory");
        if (part.unpackedBytes !== undefined) {
          await unpackMemory(path, kept, part.unpackedBytes);
          await rm(path);
        }
        // Or a power cut could leave an empty kernel under a digest that is never fetched again.
        await synchronize(kept);
      }
      await synchronize(fresh);
      await renameDurably(fresh, directory);
      return directory;
    } catch (error) {
      await rm(fresh, { recursive: true, force: true });
      throw error;
    }
  }

  async #fetch(boot: BootRecord, name: string, into: string, sha256: string | undefined): Promise<void> {
    const agent = await this.#agentAt(boot);
    const path = `/boot/${boot.digest}/${name}`;
    const server = `storage server ${agent.slice("agent.".length)}`;
    const answer = await peerRequest(this.#configuration, agent, { method: "GET", path }).catch((error: Error) => {
      throw new Error(`${server} did not hand out the ${name} of its disk's image: ${error.message}`);
    });
    if (answer.status !== 200) {
      const said = await answer.text().catch(() => "");
      throw new Error(`${server} has no ${name} for its disk's image (${answer.status}): ${messageIn(said)}`);
    }
    await pipeline(answer.body, createWriteStream(into, { mode: 0o644 }));
    if (sha256 === undefined) return;
    const hash = createHash("sha256");
    await pipeline(createReadStream(into), hash);
    if (hash.digest("hex") !== sha256.toLowerCase())
      throw new Error(`the ${name} at ${server} is not what its image records (SHA-256): put the right file there`);
  }

  /** Address and port are in the record, the name that its certificate must bear in the peers file. */
  async #agentAt(boot: BootRecord): Promise<PeerName> {
    const agent = await agentAt(this.#configuration.peersFile, boot.address, boot.port);
    if (agent !== null) return agent;
    throw new Error(`no storage agent is known at ${boot.address}:${boot.port}, where a kernel is to be fetched`);
  }
}

/** The same for the same files alone. */
function whoseFiles({ address, port }: BootRecord, parts: readonly Part[]): string {
  const all = parts.map(({ name, sha256 }) => `${name} ${sha256?.toLowerCase() ?? `of ${address}:${port}`}`);
  return createHash("sha256").update(all.join("\n")).digest("hex").slice(0, 32);
}

/** What a refusal of a peer says, in its own words. */
function messageIn(body: string): string {
  try {
    const message: unknown = JSON.parse(body)?.error?.message;
    return typeof message === "string" ? message : "it did not say why";
  } catch {
    return "it did not say why";
  }
}
