import "reflect-metadata";
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as x509 from "@peculiar/x509";
import { peerName } from "../../model/cell/identifiers.ts";
import { type Authority, createAuthority, readAuthority, signCertificate } from "../identity/certificates.ts";
import { type OwnKey, ownKey } from "../identity/own/keys.ts";
import { fingerprintOf, fingerprintOfCertificate } from "./fingerprint.ts";
import { presented, readPins } from "./judge.ts";

/** Certificates that a hostile peer could show, made with every means that it has. */
let directory = "";
let authority: Authority;
let foreign: Authority;
let key: OwnKey;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-judge-${process.pid}-`));
  const make = async (name: string): Promise<Authority> => {
    await createAuthority(join(directory, name));
    return (await readAuthority(join(directory, name))) ?? assert.fail();
  };
  [authority, foreign] = [await make("own"), await make("foreign")];
  key = await ownKey(join(directory, "key.pem"));
});
after(() => rm(directory, { recursive: true, force: true }));

const dates = { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 60_000) };
const show = (certificate: string) =>
  presented(new X509Certificate(certificate), new X509Certificate(authority.certificate.toString("pem")));
const both = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth]);
const forge = async (
  signer: Authority,
  issuer: string,
  subject: string,
  extensions: readonly x509.Extension[],
): Promise<string> =>
  (
    await x509.X509CertificateGenerator.create({
      subject,
      issuer,
      ...dates,
      serialNumber: "01",
      publicKey: key.keys.publicKey,
      extensions: [...extensions],
      signingKey: signer.key,
      signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    })
  ).toString("pem");

test("what the authority issued says whose it is, and its key", async () => {
  const content = { name: peerName("host.h1"), publicKey: key.keys.publicKey, addresses: [], ...dates };
  const pem = await signCertificate(authority, { ...content, cell: "root", role: "host" });
  const shown = show(pem);
  assert.deepEqual([shown?.name, shown?.signed, shown?.key], ["host.h1", true, key.fingerprint]);
  assert.equal(fingerprintOfCertificate(pem), fingerprintOf(new X509Certificate(pem).publicKey));
  assert.equal(presented(undefined, new X509Certificate(pem)), null);
  const strange = await signCertificate(foreign, content);
  assert.deepEqual([show(strange)?.signed, show(strange)?.name], [false, null]);
});

test("who only writes the authority's name into a certificate, or has one for something else, is not signed", async () => {
  const { subject } = authority.certificate;
  const good = await forge(authority, subject, "CN=host.h1", [both]);
  assert.deepEqual([show(good)?.signed, show(good)?.name], [true, "host.h1"], "the forge itself is right");
  for (const [what, pem] of [
    ["another's signature under the authority's name", await forge(foreign, subject, "CN=host.h1", [both])],
    ["another authority's name", await forge(authority, foreign.certificate.subject, "CN=host.h1", [both])],
    [
      "a certificate that may sign",
      await forge(authority, subject, "CN=host.h1", [both, new x509.BasicConstraintsExtension(true)]),
    ],
    ["for no use", await forge(authority, subject, "CN=host.h1", [])],
    [
      "for servers alone",
      await forge(authority, subject, "CN=host.h1", [
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      ]),
    ],
    ["the authority itself", authority.certificate.toString("pem")],
  ] as const)
    assert.deepEqual([show(pem)?.signed, show(pem)?.key], [false, ""], what);
  for (const subjectName of ["CN=host.h1, CN=host.h2", "O=host.h1"]) {
    const pem = await forge(authority, subject, subjectName, [both]);
    assert.deepEqual([show(pem)?.signed, show(pem)?.name], [true, null], subjectName);
  }
});

test("a file of pins that is missing or damaged pins nobody", async () => {
  const file = join(directory, "pins.json");
  assert.equal(readPins(undefined).size, 0);
  assert.equal(readPins(file).size, 0);
  for (const text of ["", "{}", "[", '{"pins":null}']) {
    await writeFile(file, text);
    assert.equal(readPins(file).size, 0, text);
  }
  await writeFile(file, JSON.stringify({ pins: { "host.h1": "k" } }));
  assert.deepEqual([...readPins(file)], [["host.h1", "k"]]);
});
