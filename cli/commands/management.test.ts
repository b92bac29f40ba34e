import assert from "node:assert/strict";
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { peerName } from "../../model/cell/identifiers.ts";
import { collectBackup } from "../../runtime/backup/collect.ts";
import { hashOfOrder, openOrder, readSignedOrder, type SignedOrder, signOrder } from "../../runtime/backup/order.ts";
import { type PartManifest, writePart } from "../../runtime/backup/part.ts";
import { createAuthority, issueCertificate, readAuthority } from "../../runtime/identity/certificates.ts";
import { type Ended, runCommand } from "../../testbed/command.ts";

/**
 * `cells management …` as a person runs it, against a gateway that has an authority, two processes and what the schedule has
 * left on two storage servers.
 */
const cli = fileURLToPath(new URL("../main.ts", import.meta.url));
const passphrase = "four words make one";
const names = ["controller.shop", "placer"];
let directory = "";
let url = "";
/** What `GET /management/backups/<name>` answers with. */
let kept = Buffer.alloc(0);
/** What a controller was given as its store. */
let given = Buffer.alloc(0);
const server = createServer((incoming, response) => void answer(incoming, response));
const at = (name: string): string => join(directory, name);

const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
  const json = (status: number, body: unknown): void =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const { method, url: path = "" } = incoming;
  if (method === "PUT" && path === "/cells/shop/store") {
    given = Buffer.concat(await incoming.toArray());
    return json(200, { returned: "c1" });
  }
  const body = await text(incoming);
  if (path === "/management/orders")
    return json(200, await ordered((JSON.parse(body) as { recipient: string }).recipient));
  if (path.startsWith("/management/parts/"))
    return pipeline(await partOf(path.slice("/management/parts/".length), readSignedOrder(JSON.parse(body))), response);
  const one = { name: "20261122T120001Z", bytes: kept.length, servers: ["s1", "s2"] };
  if (method === "GET" && path === "/management/backups")
    return json(200, { backups: [one], missing: [{ server: "s3", why: "it does not answer" }] });
  if (path === `/management/backups/${one.name}`) return void response.writeHead(200).end(kept);
  json(404, { error: { code: "not-found", message: `no storage server that answers has a backup "${path}"` } });
};
const ordered = async (recipient: string): Promise<SignedOrder> => {
  const authority = await readAuthority(at("authority"));
  assert.ok(authority !== null);
  return signOrder(authority, { recipient, peers: names, nowMs: Date.now() });
};
const partOf = async (name: string, signed: SignedOrder): Promise<Readable> => {
  const { certFile, keyFile } = await issueCertificate(at("authority"), peerName(name), ["127.0.0.1"]);
  const file = at(`${name}.secret`);
  await writeFile(file, `what ${name} keeps`);
  const sha256 = createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
  const secret = { path: "root-secret", kind: "file", bytes: (await stat(file)).size, sha256 } as const;
  const store = name === "controller.shop" ? await storeOf(name) : null;
  const files = store === null ? [secret] : [secret, store.described];
  const own = { name, role: name.split(".")[0] ?? "" };
  const manifest: PartManifest = { format: 1, ...own, taken: new Date().toISOString(), history: null, files };
  const order = openOrder(signed, new X509Certificate(signed.authority), null);
  const [certificate, privateKey] = [await readFile(certFile, "utf8"), createPrivateKey(await readFile(keyFile))];
  const sealed = { order, orderHash: hashOfOrder(signed), certificate, privateKey };
  return Readable.from(
    writePart({ ...own, ...sealed, manifest, files: [file, ...(store === null ? [] : [store.file])] }),
  );
};
const storeOf = async (name: string) => {
  const file = at(`${name}.sqlite`);
  await rm(file, { force: true });
  const database = new DatabaseSync(file);
  database.exec("CREATE TABLE entries (key TEXT, value TEXT)");
  database.close();
  const bytes = await readFile(file);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { file, described: { path: "state.sqlite", kind: "store", bytes: bytes.length, sha256 } as const };
};

const cells = (...args: readonly string[]): Promise<Ended> =>
  runCommand(process.execPath, [cli, "management", ...args], {
    environment: { CELLS_CONFIG: at("client.json"), CELLS_HOME: at("home"), NO_COLOR: "1" },
  });
const done = async (...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await cells(...args);
  assert.equal(code, 0, `cells management ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const refused = async (pattern: RegExp, ...args: readonly string[]): Promise<void> => {
  const { code, stdout, stderr } = await cells(...args);
  assert.notEqual(code, 0, stdout);
  assert.match(stderr, pattern);
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-management-"));
  for (const name of ["authority", "foreign"]) await createAuthority(at(name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writeFile(at("client.json"), JSON.stringify({ url, credential: "c".repeat(43) }), { mode: 0o600 });
  await writeFile(at("passphrase"), `${passphrase}\n`, { mode: 0o600 });
  await writeFile(at("wrong"), "four words make two\n", { mode: 0o600 });
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});
const opening = (): readonly string[] => ["--passphrase-file", at("passphrase")];

test("by hand: made with a passphrase, verified with it and with the authority that one has kept", async () => {
  const file = at("cells.backup");
  const said = await done("backup", file, ...opening());
  for (const name of names) assert.match(said, new RegExp(`^  ${name.replace(".", "\\.")}: \\d+ KiB$`, "m"));
  assert.equal((await stat(file)).mode & 0o077, 0, "nobody else reads it");
  const authority = join(at("authority"), "authority.pem");
  assert.match(await done("verify", file, ...opening(), "--authority", authority), /every seal, signature, digest/);
  const foreign = join(at("foreign"), "authority.pem");
  await refused(
    /is not signed by the authority of this installation/,
    "verify",
    file,
    ...opening(),
    "--authority",
    foreign,
  );
  await refused(/not the passphrase with which it was locked/, "verify", file, "--passphrase-file", at("wrong"));
  await refused(/cannot be read|ENOENT/, "verify", file, ...opening(), "--authority", at("none.pem"));
  // Without a testbed there is nothing to put it into, and nothing of it is made.
  await refused(/./, "restore", file, ...opening(), "--yes", "--only", "nobody");
  await refused(/nothing was restored; --yes does not ask/, "restore", file, ...opening());
  assert.ok(!existsSync(at("home")));
});

test("by the schedule: a key of one's own, what servers have, and what the key opens", async () => {
  const key = at("operator.key");
  const publicKey = (await done("key", key, ...opening())).trim();
  assert.match(publicKey, /^[A-Za-z0-9_-]{43}$/);
  assert.equal((await stat(key)).mode & 0o077, 0);
  await refused(/is there already: backups may be sealed to it/, "key", key, ...opening());

  const whole = at("scheduled");
  const order = await ordered(publicKey);
  const sealing = { order, key: null, authority: null, mostBytes: 2 ** 20, mostPartBytes: 2 ** 20 };
  await collectBackup(whole, { ...sealing, ask: (name: string) => partOf(name, order) });
  kept = await readFile(whole);

  const { code, stdout, stderr } = await cells("list");
  assert.equal(code, 0);
  assert.match(stdout, /^20261122T120001Z {2}\d+ KiB {2}on s1, s2$/m);
  assert.match(stderr, /not known of s3: it does not answer/);
  assert.equal(JSON.parse(await done("list", "--output", "json")).backups[0].name, "20261122T120001Z");

  const file = at("fetched.backup");
  await done("fetch", "20261122T120001Z", file);
  assert.deepEqual(await readFile(file), kept);
  await refused(/EEXIST|is there|no storage server/, "fetch", "20261122T120002Z", at("none.backup"));
  assert.ok(!existsSync(at("none.backup")));

  assert.match(
    await done("verify", file, "--key", key, ...opening()),
    /every seal, signature, digest and database of 2 parts/,
  );
  await refused(/sealed to an operator's key: name its file with --key/, "verify", file, ...opening());
  await refused(/not the passphrase/, "verify", file, "--key", key, "--passphrase-file", at("wrong"));
  await done("key", at("other.key"), ...opening());
  await refused(/is sealed to the key .* and .*other\.key is/, "verify", file, "--key", at("other.key"), ...opening());
});

test("a controller that has lost its store is given the one of a backup, and nothing else is given to anybody", async () => {
  const file = at("returned.backup");
  await done("backup", file, ...opening());
  await refused(/"placer" is no cell's controller/, "return", file, "placer", ...opening(), "--yes");
  await refused(/has no store of controller\.other/, "return", file, "controller.other", ...opening(), "--yes");
  await refused(/nothing was given back; --yes does not ask/, "return", file, "controller.shop", ...opening());
  assert.equal(given.length, 0);
  const said = await done("return", file, "controller.shop", ...opening(), "--yes");
  assert.match(said, /controller\.shop starts again with its store of .*cells orphans release controller\.shop/);
  assert.deepEqual(given, await readFile(at("controller.shop.sqlite")));
});
