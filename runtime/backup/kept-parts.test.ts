import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { peerRequest, servePeers } from "../http/https.ts";
import { readAuthority, signCertificate } from "../identity/certificates.ts";
import { ownKey } from "../identity/own/keys.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { openStore } from "../process/store.ts";
import { answerKeptParts, keepPart, keptPartsDirectory, takeKeptPart } from "./kept-parts.ts";
import type { PartFile } from "./part.ts";
import { unconfirmedFile } from "./put-back.ts";
import type { UnpackedPart } from "./unpack.ts";

/** The authority's side and services without a store, over mutual TLS. */
let installation: TestInstallation;
let authority: ProcessConfiguration;
let stop: () => Promise<void>;
let peersFile = "";
/** By peer name, of which cell its enrolment says that it is. */
const enrolled = new Map<string, string>();
before(async () => {
  installation = await createTestInstallation("kept-parts");
  const { configuration } = await installation.configure(peerName("place-of-authority"));
  const signing = await readAuthority(join(installation.directory, "authority"));
  assert.ok(signing !== null);
  const { keys } = await ownKey(configuration.certificate.keyFile);
  const dates = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 3_600_000) };
  const content = {
    name: peerName("authority"),
    publicKey: keys.publicKey,
    addresses: ["127.0.0.1"],
    role: "authority",
  };
  await writeFile(configuration.certificate.certFile, await signCertificate(signing, { ...content, ...dates }));
  peersFile = join(configuration.directory, "peers.json");
  const { distributionPort, httpPort } = configuration;
  await writeFile(peersFile, JSON.stringify({ peers: { authority: `127.0.0.1:${distributionPort}:${httpPort}` } }));
  authority = { ...configuration, name: peerName("authority"), role: "authority" };
  stop = (
    await servePeers(
      authority,
      answerKeptParts(authority.directory, async ({ peer }) => enrolled.get(peer) ?? null),
    )
  ).stop;
});
after(async () => {
  await stop();
  await installation.remove();
});

/** Of a controller whose cell has this UID. */
const partOf = async (name: string, cellUid: string): Promise<UnpackedPart> => {
  const directory = join(installation.directory, `backup-of-${name}-${cellUid}`);
  await mkdir(directory);
  const store = openStore(join(directory, "state.sqlite"));
  store.commit(new Map([[cellUid === "" ? "own/model" : `own/element/${cellUid}-1`, { path: name }]]));
  store.close();
  await writeFile(join(directory, "root-secret"), "5".repeat(64));
  await writeFile(join(directory, "key.pem"), "of the machine that was lost");
  const described = async (path: string, kind: PartFile["kind"], file: string): Promise<PartFile> => {
    const bytes = await readFile(join(directory, file));
    return { path, kind, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
  };
  const files = [
    await described("state.sqlite", "store", "state.sqlite"),
    await described("root-secret", "file", "root-secret"),
    await described("identity/key.pem", "file", "key.pem"),
  ];
  const places = files.map(({ path }): [string, string] => [path, join(directory, path.replace("identity/", ""))]);
  const taken = "2026-11-22T17:20:10.902Z";
  const manifest = { format: 1, name, role: "controller", taken, history: null, files } as const;
  return { manifest, files: new Map(places) };
};
/** A service in a VM whose data volume is blank. */
const service = async (name: string, cellUid = "c-7"): Promise<ProcessConfiguration> => {
  const controller = {
    cell: name.slice("controller.".length),
    cellUid,
    cellNumber: 7,
    domain: "d",
    mac: "",
    credentialHashes: [],
  };
  const enrolment = { authority: "127.0.0.1:1", fingerprint: "" };
  enrolled.set(name, cellUid);
  const { configuration } = await installation.configure(peerName(name), {
    change: name.startsWith("controller.")
      ? { role: "controller", controller, enrolment, peersFile }
      : { enrolment, peersFile },
  });
  return configuration;
};
const takes = async (configuration: ProcessConfiguration): Promise<readonly string[]> => {
  const waits: string[] = [];
  await takeKeptPart(configuration, (_event, { why }) => waits.push(String(why)));
  return waits;
};
const storeOf = ({ directory }: ProcessConfiguration): string => join(directory, "state.sqlite");

test("a service without a store gets its own of the backup, and neither key nor certificate of the lost machine", async () => {
  await keepPart(await partOf("controller.shop", "c-7"), authority.directory);
  const shop = await service("controller.shop");
  assert.deepEqual(await takes(shop), []);
  const database = new DatabaseSync(storeOf(shop), { readOnly: true });
  const keys = [...database.prepare("SELECT key FROM entries").all()].map(({ key }) => key);
  const [note] = database.prepare("SELECT value FROM history WHERE key = 'history/restored'").all();
  database.close();
  assert.deepEqual(keys, ["own/element/c-7-1"]);
  assert.match(String(note?.value), /the backup of 2026-11-22T17:20:10\.902Z/);
  assert.equal(await readFile(join(shop.directory, "root-secret"), "utf8"), "5".repeat(64));
  assert.ok(!existsSync(join(shop.directory, "identity")));
  assert.ok(!existsSync(join(shop.directory, "put-back.new")));
  // What it has since is its own.
  const { mtimeMs } = await stat(storeOf(shop));
  await takes(shop);
  assert.equal((await stat(storeOf(shop))).mtimeMs, mtimeMs);
});

const takenBy = async (name: string): Promise<{ by: string; at: string }> => {
  const file = join(keptPartsDirectory(authority.directory), name, "taken.json");
  assert.ok(existsSync(file), "nobody has confirmed it");
  return JSON.parse(await readFile(file, "utf8"));
};

test("a part is given once: who loses its volume later begins as ever, and says that there was one", async () => {
  await keepPart(await partOf("controller.once", "c-7"), authority.directory);
  const once = await service("controller.once");
  assert.deepEqual(await takes(once), []);
  const { at } = await takenBy("controller.once");
  assert.deepEqual(await readdir(join(keptPartsDirectory(authority.directory), "controller.once")), ["taken.json"]);
  await rm(storeOf(once));
  const [why, ...others] = await takes(once);
  assert.ok(why?.includes(`put in on ${at}, and is given once`), why);
  assert.deepEqual(others, []);
  assert.ok(!existsSync(storeOf(once)));
  // Another restore has it again.
  await keepPart(await partOf("controller.once", "c-7b"), authority.directory);
  await takes(await service("controller.once", "c-7b"));
  assert.ok(existsSync(storeOf(once)));
});

test("a taker that died before its store was in place asks again, one that died later confirms it at its next start", async () => {
  await keepPart(await partOf("controller.crash", "c-7"), authority.directory);
  const crash = await service("controller.crash");
  const unconfirmed = join(crash.directory, unconfirmedFile);
  await mkdir(crash.directory, { recursive: true });
  await writeFile(unconfirmed, "of-a-taking-that-was-broken-off");
  assert.deepEqual(await takes(crash), []);
  assert.ok(existsSync(storeOf(crash)) && !existsSync(unconfirmed));
  const { by } = await takenBy("controller.crash");
  assert.notEqual(by, "of-a-taking-that-was-broken-off");
  // The answer was lost.
  await writeFile(unconfirmed, by);
  assert.deepEqual(await takes(crash), []);
  assert.ok(existsSync(storeOf(crash)) && !existsSync(unconfirmed));
  // Before the authority was told at all.
  await keepPart(await partOf("controller.crash", "c-7c"), authority.directory);
  enrolled.set("controller.crash", "c-7c");
  await writeFile(unconfirmed, "told-late");
  assert.deepEqual(await takes(crash), []);
  assert.equal((await takenBy("controller.crash")).by, "told-late");
  // Two that took the same: the second one does not run.
  await writeFile(unconfirmed, "of-another");
  const waits: string[] = [];
  let over = false;
  const taking = takeKeptPart(crash, (_event, { why }) => waits.push(String(why))).then(() => {
    over = true;
  });
  await eventually("it says why it waits", () => waits.length > 0);
  assert.match(waits[0] ?? "", /410: .*is given once/);
  assert.ok(!over);
  await writeFile(unconfirmed, "told-late");
  await taking;
});

test("whoever has none in the backup begins as ever", async () => {
  const mail = await service("controller.mail");
  assert.deepEqual(await takes(mail), []);
  assert.ok(!existsSync(storeOf(mail)));
  // A cell that was made anew under the name of one that is in the backup is another one.
  await keepPart(await partOf("controller.anew", "c-8"), authority.directory);
  const anew = await service("controller.anew", "c-9");
  await takes(anew);
  assert.ok(!existsSync(storeOf(anew)));
});

test("a controller gets nothing of a former cell of its name, whatever it asks, and nothing before it is known of which it is", async () => {
  await keepPart(await partOf("controller.heir", "c-8"), authority.directory);
  const heir = await service("controller.heir", "c-9");
  const status = async (path: string, method = "GET"): Promise<number> => {
    const answer = await peerRequest(heir, peerName("authority"), { method, path: `/put-back${path}` });
    await answer.text();
    return answer.status;
  };
  const all = async (): Promise<readonly number[]> => [
    await status(""),
    await status("/1"),
    await status("/some-taking", "DELETE"),
  ];
  assert.deepEqual(await all(), [404, 404, 404]);
  enrolled.delete("controller.heir");
  assert.deepEqual(await all(), [503, 503, 503]);
  enrolled.set("controller.heir", "c-8");
  assert.equal(await status("/1"), 200, "it was not ended by who has no right to it");
  // A store that names no cell is nobody's.
  await keepPart(await partOf("controller.heir", ""), authority.directory);
  assert.deepEqual(await all(), [410, 410, 410]);
});

test("nobody gets anything but its own, and nothing beside it", async () => {
  await keepPart(await partOf("controller.web", "c-7"), authority.directory);
  await writeFile(join(authority.directory, "secret"), "the authority's key");
  const web = await service("controller.web");
  const placer = await service("placer");
  const ask = async (from: ProcessConfiguration, path: string, method = "GET") => {
    const answer = await peerRequest(from, peerName("authority"), { method, path });
    return { status: answer.status, text: await answer.text() };
  };
  assert.match((await ask(web, "/put-back")).text, /"controller\.web"/);
  assert.equal((await ask(web, "/put-back/0")).status, 200);
  assert.equal((await ask(web, "/put-back/9")).status, 404);
  assert.equal((await ask(web, "/put-back", "POST")).status, 403);
  for (const path of [
    "/../../secret",
    "/x/../../../secret",
    "/0?/../../../secret",
    "/%2e%2e",
    "?/../../secret",
    "/../controller.shop/0",
  ]) {
    const { status, text } = await ask(web, `/put-back${path}`);
    assert.ok(status === 403 || status === 404, `${path}: ${status}`);
    assert.doesNotMatch(text, /the authority's key|SQLite/);
  }
  assert.equal((await ask(placer, "/put-back")).status, 403);
  assert.deepEqual(await takes(placer), [], "it asks for nothing");
});

test("a part that is damaged is not taken, and nothing begins without it", async () => {
  await keepPart(await partOf("controller.late", "c-7"), authority.directory);
  const late = await service("controller.late");
  const file = join(keptPartsDirectory(authority.directory), "controller.late", "1");
  const whole = await readFile(file);
  await writeFile(file, Buffer.concat([whole.subarray(0, -1), Buffer.of(1)]));
  const waits: string[] = [];
  let over = false;
  const taking = takeKeptPart(late, (_event, { why }) => waits.push(String(why))).then(() => {
    over = true;
  });
  await eventually("it says why it waits", () => waits.length > 0);
  assert.match(waits[0] ?? "", /"state\.sqlite" is not what its manifest says/);
  assert.ok(!over && !existsSync(storeOf(late)));
  await writeFile(file, whole);
  await taking;
  assert.ok(existsSync(storeOf(late)));
});
