import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { BootRecord } from "../../../core/documents.ts";
import type { PeerBook, ProcessConfiguration } from "../../../runtime/installation.ts";

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
      await rename(fresh, directory);
      return files;
    } catch (error) {
      await rm(fresh, { recursive: true, force: true });
      throw error;
    }
  }

  async #fetch(boot: BootRecord, name: string, into: string, sha256: string | undefined): Promise<void> {
    const { certFile, keyFile, caFile } = this.#configuration.certificate;
    const [cert, key, ca] = await Promise.all([readFile(certFile), readFile(keyFile), readFile(caFile)]);
    const expected = await this.#agentAt(boot.address);
    const path = `/boot/${boot.digest}/${name}`;
    await new Promise<void>((resolve, reject) => {
      const outgoing = request(
        {
          host: boot.address,
          port: boot.port,
          path,
          cert,
          key,
          ca,
          minVersion: "TLSv1.3",
          // A peer is known by the common name of its certificate, wherever it listens.
          checkServerIdentity: (_host, found) =>
            found.subject.CN === expected
              ? undefined
              : new Error(`${boot.address} is ${found.subject.CN}, expected ${expected}`),
        },
        (answer) => {
          if (answer.statusCode !== 200) {
            answer.resume();
            reject(new Error(`${expected} answered ${answer.statusCode} for ${path}: does it still have that image?`));
            return;
          }
          pipeline(answer, createWriteStream(into, { mode: 0o644 })).then(resolve, reject);
        },
      );
      outgoing.setTimeout(60_000, () => outgoing.destroy(new Error(`${expected} went silent while sending ${path}`)));
      outgoing.on("error", reject);
      outgoing.end();
    });
    if (sha256 === undefined) return;
    const hash = createHash("sha256");
    await pipeline(createReadStream(into), hash);
    if (hash.digest("hex") !== sha256.toLowerCase())
      throw new Error(`${path} of ${expected} is not what its image records`);
  }

  async #agentAt(address: string): Promise<string> {
    const book = JSON.parse(await readFile(this.#configuration.peersFile, "utf8")) as PeerBook;
    const found = Object.entries(book.peers).find(([name, at]) => at === address && name.startsWith("agent."));
    if (found === undefined) throw new Error(`no storage agent is known at ${address}`);
    return found[0];
  }
}
