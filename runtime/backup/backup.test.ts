import assert from "node:assert/strict";
import { createHash, createPrivateKey, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";

import { type Effect, readAnything, type Service } from "../../core/env.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest, servePeers } from "../http/https.ts";
import { readAuthority } from "../identity/certificates.ts";
import { createTestInstallation, type TestInstallation } from "../installation.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { createObserver, observed } from "../observation/observer.ts";
import { runService } from "../process/process.ts";
import { openStore } from "../process/store.ts";
import { type Collected, collectBackup } from "./collect.ts";
import type { Opener } from "./container.ts";
import { BackupFault, ByteReader } from "./frames.ts";
import { hashOfOrder, openOrder, type SignedOrder, signOrder } from "./order.ts";
import { nextPart, type PartManifest, readPart, writePart } from "./part.ts";
import { type LockedKey, lockKey, newRecipientKey, type RecipientKey, unlockKey } from "./sealing.ts";
import { unpackBackup } from "./unpack.ts";

/** Two services over real mutual TLS, whose stores are copied while they commit. */
const passphrase = "correct horse battery staple";
const secret = "a-lease-that-nobody-outside-may-read";
const names = ["directory", "placer"].map(peerName);

let installation: TestInstallation;
let gateway: ProcessConfiguration;
const closers: (() => Promise<void>)[] = [];
let key: RecipientKey;
let locked: LockedKey;
let order: SignedOrder;
let file = "";
let collected: Collected;
let stop = false;

/** Commits something at every tick: a copy is taken while a store changes. */
const counting = (): Service<{ n: number }> => ({
  restore: ({ records }) => ({ n: Number(records.get("n") ?? 0) }),
  entitled: () => false,
  accepts: () => false,
  read: readAnything,
  step: (state, input) => {
    if (input.kind !== "start" && input.kind !== "timer") return { state, effects: [] };
    const n = state.n + 1;
    const write = (key: string, value: Json): Effect => ({ kind: "write", key, value });
    const row = write(`row/${n % 200}`, { n, padding: "x".repeat(2000) });
    const again: readonly Effect[] = stop ? [] : [{ kind: "timer", name: "tick", afterMs: 1 }];
    return { state: { n }, effects: [write("n", n), write("secret", secret), row, ...again] };
  },
});

const opener: Opener = {
  passphrase: async () => passphrase,
  privateKey: () => assert.fail("a passphrase opens it"),
};
const withKey: Opener = {
  passphrase: () => assert.fail("the operator's key opens it"),
  privateKey: async () => key.privateKey,
};
const askOf =
  (from: ProcessConfiguration, signed: SignedOrder) =>
  async (name: string): Promise<AsyncIterable<Uint8Array>> => {
    const path = "/backup";
    const answer = await peerRequest(from, peerName(name), { method: "POST", path, body: JSON.stringify(signed) });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return answer.body;
  };
const authorityDirectory = (): string => join(installation.directory, "authority");
const ordered = async (
  peers: readonly PeerName[],
  recipient: string,
  directory = authorityDirectory(),
  nowMs = Date.now(),
) => {
  const authority = await readAuthority(directory);
  assert.ok(authority);
  return signOrder(authority, { recipient, peers, nowMs });
};

before(async () => {
  installation = await createTestInstallation("backup");
  ({ configuration: gateway } = await installation.configure(peerName("gateway")));
  for (const name of names) {
    const { configuration } = await installation.configure(name);
    await writeFile(join(configuration.directory, "root-secret"), `${"ab".repeat(32)}\n`);
    const observer = createObserver(name, () => undefined);
    const server = await servePeers(configuration, observed(observer));
    closers.push(server.stop);
    const running = await runService({ configuration, service: counting(), observer });
    closers.push(() => running.stop());
  }
  key = newRecipientKey();
  locked = await lockKey(key, passphrase);
  order = await ordered([...names, peerName("dns-manager")], key.recipient);
  file = join(installation.directory, "cells.backup");
  const collecting = { order, key: locked, authority: null, mostBytes: 2 ** 28, ask: askOf(gateway, order) };
  collected = await collectBackup(file, collecting);
});
after(async () => {
  stop = true;
  for (const close of closers.reverse()) await close();
  await installation.remove();
});

const unpack = (path: string, authority: string | null = null, open = opener) =>
  unpackBackup(path, { authority }, open);

test("stores that change all the time come out whole, with what lies beside them; who did not answer is named", async () => {
  assert.deepEqual(collected.names, ["directory", "placer"]);
  assert.deepEqual(
    collected.missing.map(({ name }) => name),
    ["dns-manager"],
  );
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const unpacked = await unpack(file);
  try {
    assert.deepEqual(
      unpacked.missing.map(({ name }) => name),
      ["dns-manager"],
    );
    assert.match(unpacked.missing[0]?.why ?? "", /does not name "dns-manager"/);
    for (const { manifest, files } of unpacked.parts) {
      assert.deepEqual(
        manifest.files.map(({ path }) => path),
        ["state.sqlite", "root-secret"],
      );
      assert.equal(await readFile(files.get("root-secret") ?? "", "utf8"), `${"ab".repeat(32)}\n`);
      const store = openStore(files.get("state.sqlite") ?? "");
      const n = Number(store.load().get("own/n"));
      store.close();
      // The copy's history is as far as the copy: one commit for each number, and one when the service was made.
      assert.ok(
        manifest.history !== null && Math.abs(manifest.history.count - n) <= 2,
        JSON.stringify(manifest.history),
      );
    }
  } finally {
    await unpacked.remove();
  }
});

test("nobody who carries it sees what is in it, and no copy stays behind", async () => {
  assert.equal((await readFile(file)).includes(secret), false);
  for (const name of names)
    assert.deepEqual(
      (await readdir(join(installation.directory, name))).filter((entry) => /backup/.test(entry)),
      [],
    );
  assert.deepEqual(
    (await readdir(installation.directory)).filter((entry) => entry.startsWith(".")),
    [],
  );
});

test("a process follows no order but its authority's, and only from who may pass one on", async () => {
  const { configuration: tenant } = await installation.configure(peerName("controller.shop"));
  const refusals: readonly (readonly [ProcessConfiguration, SignedOrder, RegExp])[] = [
    [tenant, order, /403 .*only the gateway/],
    [gateway, await ordered(names, key.recipient, installation.foreignAuthority), /400 .*not signed by the authority/],
    // The recipient is the one thing that a gateway would like to change.
    [gateway, { ...order, text: order.text.replace(key.recipient, newRecipientKey().recipient) }, /not signed/],
    [gateway, await ordered([peerName("placer")], key.recipient), /does not ask .*directory/],
    [gateway, await ordered(names, key.recipient, authorityDirectory(), Date.now() - 7_200_000), /the order ended at/],
  ];
  for (const [from, signed, why] of refusals) await assert.rejects(askOf(from, signed)("directory"), why);
});

test("every changed byte is found, and every cut", async () => {
  // Why somebody's part is missing is for people alone, and could be changed: here nobody's is.
  const complete = await ordered(names, key.recipient);
  const all = join(installation.directory, "complete.backup");
  const collecting = { order: complete, key: null, authority: null, mostBytes: 2 ** 28 };
  await collectBackup(all, { ...collecting, ask: askOf(gateway, complete) });
  await (await unpack(all, null, withKey)).remove();
  const whole = await readFile(all);
  const changed = join(installation.directory, "changed.backup");
  const fails = async (bytes: Buffer, what: string): Promise<void> => {
    await writeFile(changed, bytes);
    const outcome = await unpack(changed, null, withKey).then(
      async (unpacked) => {
        await unpacked.remove();
        return "it was taken";
      },
      (error: unknown) => (error instanceof BackupFault ? null : String(error)),
    );
    assert.equal(outcome, null, what);
  };
  const step = Math.ceil(whole.length / 40);
  for (let at = 0; at < whole.length; at += step) {
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 0x20;
    await fails(bytes, `byte ${at} of ${whole.length}`);
    await fails(whole.subarray(0, at), `cut at ${at}`);
  }
  await fails(Buffer.concat([whole, Buffer.of(0)]), "one byte more");
});

test("hostile lengths are refused before anything of that length is held, with the place", async () => {
  const hostile = join(installation.directory, "hostile.backup");
  const magic = Buffer.from("cells backup 1\n");
  await writeFile(hostile, Buffer.concat([magic, Buffer.from("ffffffff", "hex"), Buffer.alloc(64)]));
  await assert.rejects(unpack(hostile), /at byte 15: the header would have 4294967295 bytes, and has at most/);
  await writeFile(hostile, magic);
  await assert.rejects(unpack(hostile), /at byte 15: it ends within the length of the header/);
  await writeFile(hostile, "SQLite format 3");
  await assert.rejects(unpack(hostile), /at byte 0: this is no backup/);
  await rm(hostile);
});

test("another authority's backup is refused where the operator's own is known", async () => {
  const foreign = await readFile(join(installation.foreignAuthority, "authority.pem"), "utf8");
  await assert.rejects(unpack(file, foreign), /not signed by the authority of this installation/);
  const own = await readFile(join(authorityDirectory(), "authority.pem"), "utf8");
  await (await unpack(file, own)).remove();
});

test("a part of another backup, and a part in another's name, are not taken", async () => {
  const again = await ordered(names, key.recipient);
  const other = join(installation.directory, "other.backup");
  const swapped = async (name: string) => askOf(gateway, again)(name === "placer" ? "directory" : "placer");
  const collecting = { order: again, key: locked, authority: null, mostBytes: 2 ** 28 };
  await assert.rejects(collectBackup(other, { ...collecting, ask: swapped }), /answered with the part of/);
  await assert.rejects(
    collectBackup(other, { ...collecting, ask: askOf(gateway, order) }),
    /belongs to another backup/,
  );
  assert.equal(await stat(other).catch(() => null), null);
});

test("nobody can write a part in another's name, with its own certificate or with the other's", async () => {
  const orderOf = await ordered(names, key.recipient);
  const authority = new X509Certificate(await readFile(join(authorityDirectory(), "authority.pem"), "utf8"));
  const certificateOf = (name: string): Promise<string> =>
    readFile(join(authorityDirectory(), `${name}.cert.pem`), "utf8");
  const keyOf = async (name: string) => createPrivateKey(await readFile(join(authorityDirectory(), `${name}.key.pem`)));
  const opened = openOrder(orderOf, authority, null);
  const trust = { authority, order: opened, orderHash: hashOfOrder(orderOf), privateKey: key.privateKey };
  const sink = { begin: async () => undefined, write: async () => undefined };
  const readBack = async (name: string, certificate: string, privateKey: KeyObject): Promise<unknown> => {
    const own = { name, role: "directory" };
    const manifest = { format: 1, ...own, taken: "2026-11-22T00:00:00.000Z", history: null, files: [] } as const;
    const part = writePart({
      ...own,
      order: opened,
      orderHash: trust.orderHash,
      certificate,
      privateKey,
      manifest,
      files: [],
    });
    const reader = new ByteReader(Readable.from(part));
    return readPart(reader, (await nextPart(reader)) ?? Buffer.alloc(0), trust, sink);
  };
  await readBack("directory", await certificateOf("directory"), await keyOf("directory"));
  const placer = [await certificateOf("placer"), await keyOf("placer")] as const;
  await assert.rejects(readBack("directory", ...placer), /is not that of "directory" in this installation/);
  await assert.rejects(
    readBack("directory", await certificateOf("directory"), placer[1]),
    /is not signed by "directory"/,
  );
  await assert.rejects(readBack("supervisor", ...placer), /is not of this installation's authority/);
  const stranger = [await certificateOf("gateway"), await keyOf("gateway")] as const;
  await assert.rejects(readBack("gateway", ...stranger), /the order of this backup does not name "gateway"/);
});

test("what is too large is not gathered, and a file that was there stays", async () => {
  const before = await readFile(file);
  const collecting = { order, key: locked, authority: null, mostBytes: 1000, ask: askOf(gateway, order) };
  await assert.rejects(collectBackup(file, collecting), /would be larger than 1000 bytes/);
  assert.deepEqual(await readFile(file), before);
});

test("a process that pads its part loses that one, and keeps no other out", async () => {
  const name = peerName("dns-manager");
  const { configuration } = await installation.configure(name);
  const padding = join(configuration.directory, "padding");
  const bytes = randomBytes(400_000);
  await writeFile(padding, bytes);
  const padded = await ordered([...names, name], key.recipient);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const manifest: PartManifest = {
    format: 1,
    name,
    role: "dns-manager",
    taken: new Date().toISOString(),
    history: null,
    files: [{ path: "padding", bytes: bytes.length, sha256, kind: "file" }],
  };
  const source = {
    name,
    role: "dns-manager",
    order: openOrder(padded, new X509Certificate(padded.authority), null),
    orderHash: hashOfOrder(padded),
    certificate: await readFile(configuration.certificate.certFile, "utf8"),
    privateKey: createPrivateKey(await readFile(configuration.certificate.keyFile)),
    manifest,
    files: [padding],
  };
  const ask = async (asked: string): Promise<AsyncIterable<Uint8Array>> =>
    asked === name ? writePart(source) : askOf(gateway, padded)(asked);
  const to = join(installation.directory, "padded.backup");
  const gather = (bounds: { readonly mostBytes: number; readonly mostPartBytes?: number }) =>
    collectBackup(to, { order: padded, key: locked, authority: null, ask, ...bounds });
  for (const bounds of [{ mostBytes: 402_000 }, { mostBytes: 2 ** 28, mostPartBytes: 399_000 }]) {
    const gathered = await gather(bounds);
    assert.deepEqual(gathered.names, ["directory", "placer"]);
    assert.deepEqual(
      gathered.missing.map((each) => each.name),
      [name],
    );
    assert.match(gathered.missing[0]?.why ?? "", /would be larger than (402000|399000) bytes/);
  }
  assert.deepEqual((await gather({ mostBytes: 2 ** 28 })).names, ["directory", name, "placer"]);
});

test("a key is opened by its passphrase alone, and none that costs too much to try", async () => {
  assert.equal((await unlockKey(locked, passphrase)).recipient, key.recipient);
  await assert.rejects(unlockKey(locked, `${passphrase}!`), /not the passphrase/);
  await assert.rejects(
    unlockKey({ ...locked, recipient: newRecipientKey().recipient }, passphrase),
    /not the passphrase/,
  );
  const dear = join(installation.directory, "dear.backup");
  await mkdir(installation.directory, { recursive: true });
  await appendFile(dear, "");
  const text = (await readFile(file)).toString("latin1");
  await writeFile(dear, Buffer.from(text.replace('"logN":17', '"logN":30'), "latin1"));
  await assert.rejects(unpack(dear), /another cost of scrypt/);
});
