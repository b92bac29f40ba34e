import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { BootRecord } from "../../../core/documents.ts";
import type { PeerName } from "../../../model/identifiers.ts";
import { peerRequest } from "../../../runtime/https.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { synchronize } from "../../synchronize.ts";
import { agentAt } from "./servers.ts";

export interface BootFiles {
  readonly kernel: string;
  readonly initrd: string;
}

/**
 * The kernels of images, kept by digest under `<directory>/boot/<digest>/`. A directory appears whole or not at all, so
 * that a crash while fetching leaves nothing that looks like a kernel.
 */
export class BootCache {
  readonly #configuration: ProcessConfiguration;
  readonly #underWay = new Map<string, Promise<BootFiles>>();

  constructor(configuration: ProcessConfiguration) {
    this.#configuration = configuration;
  }

  /** Local paths of both files, fetched from the storage agent if need be. Rejects with a sentence. */
  async files(boot: BootRecord): Promise<BootFiles> {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(boot.digest)) throw new Error(`"${boot.digest}" is no digest of an image`);
    let fetching = this.#underWay.get(boot.digest);
    if (fetching === undefined) {
      fetching = this.#find(boot).finally(() => this.#underWay.delete(boot.digest));
      this.#underWay.set(boot.digest, fetching);
    }
    return fetching;
  }

  async #find(boot: BootRecord): Promise<BootFiles> {
    const parent = join(this.#configuration.directory, "boot");
    const directory = join(parent, boot.digest);
    const files = { kernel: join(directory, "kernel"), initrd: join(directory, "initrd") };
    if (await stat(directory).catch(() => null)) return files;
    const fresh = join(parent, `.new-${randomBytes(6).toString("hex")}`);
    await mkdir(fresh, { recursive: true, mode: 0o755 });
    try {
      await this.#fetch(boot, "kernel", join(fresh, "kernel"), boot.kernelSha256);
      await this.#fetch(boot, "initrd", join(fresh, "initrd"), boot.initrdSha256);
      // Or a power cut could leave an empty kernel under a digest that is never fetched again.
      for (const path of [join(fresh, "kernel"), join(fresh, "initrd"), fresh]) await synchronize(path);
      await rename(fresh, directory);
      return files;
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

/** What a refusal of a peer says, in its own words. */
function messageIn(body: string): string {
  try {
    const message: unknown = JSON.parse(body)?.error?.message;
    return typeof message === "string" ? message : "it did not say why";
  } catch {
    return "it did not say why";
  }
}
