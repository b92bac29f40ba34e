import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { hashCredential } from "../http/bearer.ts";
import { createAuthority, issueCertificate } from "./certificates.ts";

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-certificates-${process.pid}-`));
});
after(() => rm(directory, { recursive: true, force: true }));

const read = async (file: string): Promise<X509Certificate> => new X509Certificate(await readFile(file));

test("an authority is made once, however often and at once it is asked for", async () => {
  const where = join(directory, "once");
  const made = await Promise.all([1, 2, 3].map(() => createAuthority(where)));
  const { caFile } = made[0] ?? assert.fail();
  const first = await readFile(caFile, "utf8");
  await createAuthority(where);
  assert.equal(await readFile(caFile, "utf8"), first);
  assert.ok((await read(caFile)).ca);
});

test("a certificate names the peer, is good for both ends for a year, and its files are private", async () => {
  const where = join(directory, "issue");
  await createAuthority(where);
  const files = await issueCertificate(where, peerName("host.h1"), ["10.0.1.1", "h1.example"]);
  const certificate = await read(files.certFile);
  assert.equal(certificate.subject, "CN=host.h1");
  assert.equal(certificate.subjectAltName, "IP Address:10.0.1.1, DNS:h1.example");
  assert.deepEqual([...(certificate.keyUsage ?? [])].sort(), ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  assert.ok(certificate.verify((await read(files.caFile)).publicKey));
  assert.equal(certificate.ca, false);
  const days = (certificate.validToDate.getTime() - certificate.validFromDate.getTime()) / 86_400_000;
  assert.ok(days > 364 && days < 366, `${days} days`);
  for (const file of Object.values(files)) assert.equal((await stat(file)).mode & 0o777, 0o600, file);
  const again = await read((await issueCertificate(where, peerName("host.h1"), [])).certFile);
  assert.notEqual(again.serialNumber, certificate.serialNumber);
});

test("what cannot be issued says why", async () => {
  const where = join(directory, "none");
  await assert.rejects(issueCertificate(where, peerName("a"), []), /create it first/);
  await createAuthority(where);
  await assert.rejects(issueCertificate(where, peerName("authority"), []), /the authority itself/);
  for (const name of ["", "../x", "a/b", "a b", "x".repeat(65)]) {
    await assert.rejects(issueCertificate(where, peerName(name), []), /cannot be a peer's name/);
  }
});

test("a credential's hash is SHA-256 in hexadecimal", () => {
  assert.equal(hashCredential("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
