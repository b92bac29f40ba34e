import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bootstrapModel } from "../../core/bootstrap/bootstrap-model.ts";
import { bundleMediaType } from "../../model/api.ts";
import { ipv4, peerName } from "../../model/cell/identifiers.ts";
import type { PartManifest } from "../../runtime/backup/part.ts";
import type { Unpacked, UnpackedPart } from "../../runtime/backup/unpack.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { readBundle, readRoot } from "./bootstrap.ts";
import { birthStores, placeBackupForBirth, placesIn, readRestoredBirth } from "./bootstrap-restored.ts";
import { birthConfigurations } from "./bootstrap-roles.ts";

/**
 * The process of a birth, with its real stores: once from nothing, and once on another machine from a copy of what the first
 * one had. Only the address is a loopback's.
 */
const skip = process.getuid?.() === 0 ? false : "its controller answers DNS at port 53";
const address = ipv4(`127.${10 + (process.pid % 200)}.0.31`);
const specificationFile = fileURLToPath(new URL("../../examples/root/small.sf", import.meta.url));
const program = fileURLToPath(new URL("../../runtime/service-vm/bootstrap-main.ts", import.meta.url));
const credential = "c".repeat(43);

let directory = "";
let child: ChildProcess | null = null;
let said = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-birth-"));
});
const end = async (): Promise<void> => {
  const ending = child;
  child = null;
  if (ending === null || ending.exitCode !== null) return;
  const over = new Promise((resolve) => ending.once("exit", resolve));
  ending.kill("SIGKILL");
  await over;
};
after(async () => {
  await end();
  await rm(directory, { recursive: true, force: true });
});

/** A Host Manager of this name, as far as a birth needs one. */
const machine = async (name: string, authorityDirectory: string): Promise<ProcessConfiguration> => {
  const own = join(directory, name);
  await mkdir(join(own, "run"), { recursive: true });
  await createAuthority(authorityDirectory);
  const { certFile, keyFile, caFile } = await issueCertificate(authorityDirectory, peerName("host.h1"), [address]);
  const credentialFile = join(own, "credential");
  await writeFile(credentialFile, credential);
  const peersFile = join(own, "peers.json");
  const bootstrap = {
    specificationFile,
    authorityDirectory,
    credentialFile,
    peers: { "host.h1": "127.0.0.1", "agent.s1": "127.0.0.1:1:1" },
  };
  await writeFile(peersFile, JSON.stringify({ peers: { "controller.root": `${address}:7100:7101` } }));
  const certificate = { certFile, keyFile, caFile };
  return {
    name: peerName("host.h1"),
    role: "host",
    address: ipv4("127.0.0.1"),
    directory: own,
    peersFile,
    certificate,
    runDirectory: join(own, "run"),
    bootstrap,
  };
};
const begin = async (configuration: ProcessConfiguration): Promise<void> => {
  const file = join(configuration.directory, "roles.json");
  await writeFile(file, JSON.stringify(await birthConfigurations(configuration, address)));
  said = "";
  const started = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, file], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  child = started;
  for (const stream of [started.stdout, started.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => (said += text));
  await new Promise<void>((resolve, reject) => {
    started.once("message", () => resolve());
    started.once("exit", (code) => reject(new Error(`it ended with ${code}:\n${said}`)));
  });
};
const model = async (configuration: ProcessConfiguration, method: string, body?: string): Promise<string> => {
  const headers = { authorization: `Bearer ${credential}`, "content-type": bundleMediaType };
  const asked = { method, path: "/cells/root/model", headers, ...(body === undefined ? {} : { body }) };
  const answer = await peerRequest(configuration, peerName("controller.root"), asked);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
};

/** As a backup has them: of each what is in its directory. */
const partOf = async (name: string, role: string, from: string): Promise<UnpackedPart> => {
  const files = new Map<string, string>();
  const described: PartManifest["files"][number][] = [];
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const path = file.slice(from.length + 1);
    if (!entry.isFile() || /-wal$|-shm$|lock$|reserve/.test(path)) continue;
    if (path.endsWith(".sqlite")) {
      const database = new DatabaseSync(file);
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      database.close();
    }
    files.set(path, file);
    const sha256 = createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
    described.push({ path, bytes: (await stat(file)).size, sha256, kind: path === "state.sqlite" ? "store" : "file" });
  }
  const manifest = {
    format: 1,
    name,
    role,
    taken: new Date(0).toISOString(),
    history: null,
    files: described,
  } as const;
  return { manifest, files };
};

test("a birth goes on from a backup: same authority, the whole model, its own VM anew", { skip }, async () => {
  const first = await machine("first", join(directory, "first-authority"));
  await begin(first);
  const bundle = await readBundle(specificationFile);
  await model(first, "PUT", JSON.stringify(bundle));
  const before = JSON.parse(await model(first, "GET"));
  await end();

  const stores = birthStores(first.directory);
  const parts = [
    await partOf("authority", "authority", join(stores, "authority")),
    await partOf("controller.root", "controller", join(stores, "controller")),
    await partOf("controller.shop", "controller", join(stores, "controller")),
    await partOf("placer", "placer", join(stores, "placer")),
  ];
  const unpacked: Unpacked = {
    issued: "2026-11-22T17:20:10.902Z",
    fingerprint: "",
    authority: "",
    parts,
    missing: [],
    remove: async () => undefined,
  };
  const wanted = bootstrapModel(readRoot(bundle));
  assert.ok(wanted.ok);
  const other = join(directory, "second");
  const elsewhere = { ...wanted.value, address: ipv4("10.0.0.99") };
  await assert.rejects(placeBackupForBirth(unpacked, other, elsewhere), /10\.0\.0\.31, and the root .* 10\.0\.0\.99/);
  const moved = { ...wanted.value, gateway: ipv4("10.0.0.98") };
  await assert.rejects(
    placeBackupForBirth(unpacked, other, moved),
    /gateway of the backup is at 10\.0\.0\.40.*10\.0\.0\.98/,
  );
  assert.equal(await readRestoredBirth(other), null);
  // Whoever had been let in, with its place, and whoever gave a part, or did not.
  const known = placesIn({ ...unpacked, missing: [{ name: "host.h9", why: "it was silent" }] });
  assert.equal(known.get("controller.root"), `${address}:7100:7101`);
  assert.equal(known.get("host.h9"), null);
  await assert.rejects(
    placeBackupForBirth({ ...unpacked, parts: parts.slice(1) }, other, wanted.value),
    /no part of "authority"/,
  );

  const { placed } = await placeBackupForBirth(unpacked, other, wanted.value);
  assert.deepEqual(placed, ["authority", "controller.root", "controller.shop"]);
  assert.deepEqual(await readRestoredBirth(other), {
    from: unpacked.issued,
    vm: wanted.value.vm,
    address: wanted.value.address,
  });
  assert.ok(existsSync(join(birthStores(other), "authority", "put-back", "controller.shop", "manifest.json")));
  assert.ok(!existsSync(join(birthStores(other), "placer")), "it begins blank");

  // The machine's own directory of the authority was put back likewise; without, the birth would make another.
  const second = await machine("second", join(directory, "first-authority"));
  await begin(second);
  assert.deepEqual(JSON.parse(await model(second, "GET")).root, before.root);
  assert.match(said, /"store\/restored"/);
  assert.match(said, /"volume\/anew".*core1\/data/);
  const lines = said.split("\n").filter((line) => /identity\/waiting|process\/failed/.test(line));
  assert.deepEqual(lines, [], said);
});
