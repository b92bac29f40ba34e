import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { BootRecord } from "../../../core/documents/vocabulary.ts";
import { ipv4, peerName } from "../../../model/cell/identifiers.ts";
import { servePeers } from "../../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { BootCache } from "./boot-cache.ts";

/** A host, a storage server that hands out an image's kernel, and one that says another kernel is that image's. */
let installation: TestInstallation;
let host: ProcessConfiguration;
const closers: (() => Promise<void>)[] = [];
const ports = new Map<string, { readonly address: string; readonly port: number }>();
const asked: string[] = [];
const digest = "service-image";

before(async () => {
  installation = await createTestInstallation("boot-cache");
  for (const name of ["s1", "s9"]) {
    const { configuration } = await installation.configure(peerName(`agent.${name}`));
    const server = await servePeers(configuration, ({ url }, response) => {
      asked.push(`${name} ${url}`);
      response.end(`${url.split("/").at(-1)} of ${name}`);
    });
    ports.set(name, { address: configuration.address, port: server.port });
    closers.push(server.stop);
  }
  host = (await installation.configure(peerName("host.h1"))).configuration;
  await mkdir(host.directory, { recursive: true });
});
after(async () => {
  for (const close of closers) await close();
  await installation.remove();
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const recordOf = (server: string, hashes = true): BootRecord => {
  const { address, port } = ports.get(server) ?? assert.fail(server);
  const sums = { kernelSha256: sha256(`kernel of ${server}`), initrdSha256: sha256(`initrd of ${server}`) };
  return { digest, address: ipv4(address), port, commandLine: "", ...(hashes ? sums : {}) };
};
const kernelFor = async (cache: BootCache, boot: BootRecord): Promise<string> =>
  readFile((await cache.files(boot)).kernel, "utf8");

test("what one storage server hands out as another's image is no other machine's kernel", async () => {
  const cache = new BootCache(host);
  for (const hashes of [true, false]) {
    assert.equal(await kernelFor(cache, recordOf("s9", hashes)), "kernel of s9");
    assert.equal(await kernelFor(cache, recordOf("s1", hashes)), "kernel of s1");
  }
  const memory = { memoryMiB: 1, cpus: 1, memorySha256: sha256("memory of s9"), stateSha256: sha256("state of s9") };
  const theirs = { ...recordOf("s9"), saved: memory as never };
  const saved = await cache.saved(theirs, memory as never);
  assert.equal(await readFile(saved.state, "utf8"), "state of s9");
  // The same memory with another state.
  const own = { ...memory, stateSha256: sha256("state of s1") };
  await assert.rejects(cache.saved({ ...recordOf("s9"), saved: own as never }, own as never), /is not what its image/);
});

test("the same files are fetched once, by whoever and from whichever server", async () => {
  const cache = new BootCache(host);
  asked.length = 0;
  const boot = recordOf("s1");
  await Promise.all([cache.files(boot), cache.files(boot)]);
  await new BootCache(host).files({ ...boot, ...ports.get("s9"), address: ipv4(ports.get("s9")?.address ?? "") });
  assert.deepEqual(asked, []);
});

test("a file that is not what its image records is not kept", async () => {
  const cache = new BootCache(host);
  const before = await readdir(join(host.directory, "boot"));
  await assert.rejects(cache.files({ ...recordOf("s1"), kernelSha256: sha256("another") }), /SHA-256/);
  assert.deepEqual(await readdir(join(host.directory, "boot")), before);
});
