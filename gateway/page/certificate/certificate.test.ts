import "reflect-metadata";
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import * as x509 from "@peculiar/x509";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../../model/cell/identifiers.ts";
import { createTestInstallation, type TestInstallation } from "../../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { ownNames } from "../../edge/own-names.ts";
import { createGateway } from "../../gateway.ts";
import { listenAt, overTls } from "../../shared/listen.ts";
import { longestChain } from "./chain.ts";
import { openOwnCertificate } from "./kept.ts";

/** A real gateway over TLS, and an authority of somebody else that answers its requests. */
x509.cryptoProvider.set(webcrypto);
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const weak = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 1024,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
} as const;
const hourMs = 60 * 60 * 1000;
const credential = "operator-secret";
const name = "cells.example.com";

let installation: TestInstallation;
let configuration: ProcessConfiguration;
let app: FastifyInstance;
let port = 0;
let nowMs = Date.now();

const start = async (): Promise<void> => {
  const own = openOwnCertificate(configuration.directory, ownNames(configuration), () => nowMs);
  app = createGateway(configuration, undefined, {
    serve: overTls(configuration, own.contextFor),
    certificate: own,
  });
  await listenAt(app, { listen: { address: "127.0.0.1", port: 0 } });
  ({ port } = app.server.address() as AddressInfo);
};
before(async () => {
  installation = await createTestInstallation("certificate");
  const hash = createHash("sha256").update(credential).digest("hex");
  const gateway = { listenFd: -1, supervisorSocket: "/nobody", credentialHashes: [hash] };
  ({ configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } }));
  await start();
});
after(async () => {
  await app?.close();
  await installation?.remove();
});

const ask = async (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: object, shown = credential) => {
  const headers = { authorization: `Bearer ${shown}`, host: "127.0.0.1", "content-type": "application/json" };
  const asking = { method, url: `/page/certificate${path}`, headers };
  const answer = await app.inject(payload === undefined ? asking : { ...asking, payload: JSON.stringify(payload) });
  return { status: answer.statusCode, body: answer.json() };
};
const requested = async (...names: string[]): Promise<string> => {
  const { status, body } = await ask("POST", "/request", { names });
  assert.equal(status, 200, JSON.stringify(body));
  return body.request;
};
const refusedBy = async (chain: string): Promise<string> => {
  const { status, body } = await ask("PUT", "", { chain });
  assert.ok(status === 409 || status === 400, `${status}`);
  return body.error.message;
};
/** Whose certificate who comes with this name is shown, and whether this authority is to be believed. */
const shownTo = async (servername: string | undefined, ca: string): Promise<{ cn: string; why: string | null }> => {
  const options = { host: "127.0.0.1", port, ca, rejectUnauthorized: false };
  const socket = connect(servername === undefined ? options : { ...options, servername });
  await once(socket, "secureConnect");
  const cn = String(socket.getPeerCertificate().subject.CN);
  const why = socket.authorized ? null : String(socket.authorizationError);
  socket.destroy();
  return { cn, why };
};

interface Signer {
  readonly certificate: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly signs: typeof algorithm | typeof weak;
}
let serial = 1;
const signer = async (
  subject: string,
  by: Signer | null,
  isAuthority = true,
  signs: Signer["signs"] = algorithm,
): Promise<Signer> => {
  const keys = await webcrypto.subtle.generateKey(signs, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: String(++serial).padStart(4, "0"),
    subject,
    issuer: by?.certificate.subject ?? subject,
    notBefore: new Date(Date.now() - hourMs),
    notAfter: new Date(Date.now() + 1000 * hourMs),
    signingKey: (by?.keys ?? keys).privateKey,
    publicKey: keys.publicKey,
    signingAlgorithm: by?.signs ?? signs,
    extensions: [new x509.BasicConstraintsExtension(isAuthority, undefined, true)],
  });
  return { certificate, keys, signs };
};
interface Answer {
  readonly names?: readonly string[];
  readonly fromMs?: number;
  readonly untilMs?: number;
  readonly uses?: readonly string[];
  readonly isAuthority?: boolean;
}
const answered = async (pem: string, by: Signer, answer: Answer = {}): Promise<string> => {
  const request = new x509.Pkcs10CertificateRequest(pem);
  assert.ok(await request.verify(), "whoever asks has the key");
  const asked = request.extensions.find((each) => each instanceof x509.SubjectAlternativeNameExtension);
  const names = answer.names ?? asked?.names.items.map(({ value }) => value) ?? [];
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: String(++serial).padStart(4, "0"),
    subject: request.subject,
    issuer: by.certificate.subject,
    notBefore: new Date(answer.fromMs ?? Date.now() - hourMs),
    notAfter: new Date(answer.untilMs ?? Date.now() + 100 * hourMs),
    signingKey: by.keys.privateKey,
    publicKey: await request.publicKey.export(algorithm, ["verify"]),
    signingAlgorithm: by.signs,
    extensions: [
      new x509.BasicConstraintsExtension(answer.isAuthority === true, undefined, true),
      new x509.ExtendedKeyUsageExtension([...(answer.uses ?? [x509.ExtendedKeyUsage.serverAuth])]),
      ...(names.length === 0
        ? []
        : [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value }) as const))]),
    ],
  });
  return certificate.toString("pem");
};
const pemOf = ({ certificate }: Signer): string => certificate.toString("pem");
const chained = (...parts: string[]): string => `${parts.join("\n")}\n`;

test("a request is answered by an authority of one's own, and browsers see the answer at once; who knows the installation sees no change", async () => {
  const root = await signer("CN=Example Root", null);
  const middle = await signer("CN=Example Web", root);
  const own = readFileSync(configuration.certificate.caFile, "utf8");
  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: "gateway", why: "SELF_SIGNED_CERT_IN_CHAIN" });

  const request = await requested(name, "cloud.example.com");
  assert.equal(await requested(name, "cloud.example.com").then((again) => keyOf(again)), keyOf(request));
  assert.equal(keyOf(await requested("cloud.example.com", name)), keyOf(request), "in whichever order");
  assert.deepEqual((await ask("GET", "")).body, { certificate: null, asked: [name, "cloud.example.com"] });
  const page = () => app.inject({ url: "/ui/", headers: { host: `${name}:8443` } });
  assert.equal((await page()).json().error.code, "not-found", "no page is in this test");
  const put = await ask("PUT", "", { chain: chained(await answered(request, middle), pemOf(middle)) });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  const { names, issuer, chain } = put.body.certificate;
  assert.deepEqual([names, issuer, chain, put.body.asked], [[name, "cloud.example.com"], "CN=Example Web", 2, null]);

  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: name, why: null });
  assert.deepEqual(await shownTo("cloud.example.com", pemOf(root)), { cn: name, why: null });
  for (const servername of [undefined, "elsewhere.example.com"]) {
    const { cn } = await shownTo(servername, own);
    assert.equal(cn, "gateway", "by an address, or a name that it is not for");
  }
  assert.equal((await shownTo(undefined, own)).why, null, "the pinned authority vouches for what it did before");

  await app.close();
  await start();
  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: name, why: null }, "also after it began anew");
  const renewed = chained(await answered(request, middle, { untilMs: Date.now() + 500 * hourMs }), pemOf(middle));
  assert.equal((await ask("PUT", "", { chain: renewed })).status, 200, "over the same key, without a request");
  const next = await requested(name);
  assert.notEqual(keyOf(next), keyOf(request));
  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: name, why: null }, "while the next is asked for");
  assert.equal((await ask("DELETE", "")).body.certificate, null);
  assert.equal((await shownTo(name, pemOf(root))).cn, "gateway");
});
const keyOf = (pem: string): string =>
  createHash("sha256")
    .update(new Uint8Array(new x509.Pkcs10CertificateRequest(pem).publicKey.rawData))
    .digest("hex");

test("what browsers would refuse is not put in force, and what was in force stays", async () => {
  const root = await signer("CN=Example Root", null);
  const middle = await signer("CN=Example Web", root);
  assert.match(await refusedBy(chained(pemOf(root))), /asked for no certificate, so it has no key/);
  const request = await requested(name);
  const right = await answered(request, middle);
  assert.equal((await ask("PUT", "", { chain: chained(right, pemOf(middle)) })).status, 200);
  const later = await requested(name, "cloud.example.com");
  const stranger = await signer("CN=Example Web", root);
  const noAuthority = await signer("CN=Example Web", root, false);
  const short = await signer("CN=Example Old", null, true, weak);
  const cases: readonly (readonly [string, RegExp])[] = [
    ["no certificate", /has no certificate in it/],
    [`${"x".repeat(longestChain)}`, /no certificate in it/],
    [chained(right, pemOf(middle)).replace("MII", "AAA"), /certificate 1 of the file cannot be read/],
    ["-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----", /private key in it/],
    [later, /a block "CERTIFICATE REQUEST"/],
    [chained(...Array(9).fill(pemOf(middle))), /9 certificates, and a chain has at most 8/],
    [chained(pemOf(middle), right), /is an authority's: the page's own comes first/],
    [chained(pemOf(await signer("CN=other", root, false)), pemOf(root)), /not over the key that the gateway has/],
    [
      chained(await answered(later, middle, { names: [name] }), pemOf(middle)),
      /not for cloud\.example\.com, which it was asked for, but for cells\.example\.com/,
    ],
    [chained(await answered(later, middle, { names: [] }), pemOf(middle)), /is not for .*, but for no name/],
    [
      chained(await answered(later, middle, { untilMs: nowMs - 1000 }), pemOf(middle)),
      /has expired on .*by the gateway's clock/,
    ],
    [chained(await answered(later, middle, { fromMs: nowMs + hourMs }), pemOf(middle)), /is valid from .* on only/],
    [
      chained(await answered(later, middle, { uses: [x509.ExtendedKeyUsage.clientAuth] }), pemOf(middle)),
      /for no server/,
    ],
    [await answered(later, middle), /nobody vouches for it/],
    [chained(await answered(later, middle), pemOf(root)), /not signed by "CN=Example Root"/],
    [chained(await answered(later, middle), pemOf(stranger)), /not signed by "CN=Example Web"/],
    [chained(await answered(later, noAuthority), pemOf(noAuthority)), /certificate 2 of the chain, is no authority's/],
    [chained(await answered(later, short), pemOf(short)), /is not put in: TLS does not take it: ca key too small/],
  ];
  for (const [chain, why] of cases) assert.match(await refusedBy(chain), why);
  assert.equal((await ask("PUT", "", { chain: "x".repeat(longestChain + 1) })).status, 400);
  const { body } = await ask("GET", "");
  assert.deepEqual([body.certificate.names, body.asked], [[name], [name, "cloud.example.com"]]);
  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: name, why: null });
  assert.equal((await ask("PUT", "", { chain: chained(await answered(later, middle), pemOf(middle)) })).status, 200);
});

test("names that clients know the gateway by, names that are none, and who is no operator are refused", async () => {
  for (const names of [
    [],
    ["localhost"],
    ["10.0.0.2"],
    ["*.example.com"],
    ["Cells.example.com"],
    ["-a.example.com"],
    ["a b.example"],
  ])
    assert.equal((await ask("POST", "/request", { names })).status, 400, String(names));
  const root = await signer("CN=Example Root", null);
  const right = chained(await answered(await requested(name), root), pemOf(root));
  assert.equal((await ask("PUT", "", { chain: right })).status, 200);
  const taken = openOwnCertificate(configuration.directory, (each) => each === name);
  await assert.rejects(
    taken.request([name]),
    /clients know the gateway as cells\.example\.com by the installation's own/,
  );
  assert.equal(taken.contextFor(name), null, "theirs goes on to be shown, though the other is for it");
  assert.equal((await ask("GET", "", undefined, "somebody")).status, 401);
  const plain = createGateway({ ...configuration, httpPort: 0 });
  try {
    const headers = { authorization: `Bearer ${credential}`, host: "127.0.0.1" };
    const answer = await plain.inject({ url: "/page/certificate", headers });
    assert.match(answer.json().error.message, /speaks no TLS/);
  } finally {
    await plain.close();
  }
});

test("of an answer and a request at once none takes away what the other has kept, nor does a crash behind an answer leave its request", async () => {
  const { configuration: another } = await installation.configure(peerName("presence"), {});
  const root = await signer("CN=Example Root", null);
  const open = () => openOwnCertificate(another.directory, () => false);
  const own = open();
  const { request } = await own.request([name]);
  const chain = chained(await answered(request, root), pemOf(root));
  const asked = readFileSync(join(another.directory, "page-request.json"), "utf8");
  const [, next] = await Promise.all([own.install(chain), own.request(["cloud.example.com"])]);
  for (const each of [own, open()]) assert.deepEqual(each.state().asked, ["cloud.example.com"]);
  const later = chained(await answered(next.request, root), pemOf(root));
  await Promise.all([own.install(later), own.forget()]);
  for (const each of [own, open()]) assert.deepEqual(each.state(), { certificate: null, asked: null });

  writeFileSync(join(another.directory, "page-request.json"), asked);
  await open().install(chain);
  writeFileSync(join(another.directory, "page-request.json"), asked);
  assert.deepEqual([open().state().asked, open().isFor(name)], [null, true], "its answer is in force");
});

test("where what was kept is lost or damaged the installation's certificate is shown, why is said, and a new request mends it", async () => {
  const root = await signer("CN=Example Root", null);
  const file = join(configuration.directory, "page-certificate.pem");
  const whole = readFileSync(file, "utf8");
  for (const [text, why] of [
    [whole.slice(0, 100), /cannot be read/],
    [whole.replace(/MII.{20}/, "AAAA"), /cannot be read/],
    ["", /cannot be read/],
  ] as const) {
    writeFileSync(file, text);
    await app.close();
    await start();
    assert.match((await ask("GET", "")).body.fault, why);
    assert.equal((await shownTo(name, pemOf(root))).cn, "gateway");
  }
  await rm(file);
  await app.close();
  await start();
  assert.deepEqual((await ask("GET", "")).body, { certificate: null, asked: null });
  writeFileSync(join(configuration.directory, "page-request.json"), '{"names": 1');
  await app.close();
  await start();
  const request = await requested(name);
  assert.equal((await ask("PUT", "", { chain: chained(await answered(request, root), pemOf(root)) })).status, 200);
  assert.deepEqual(await shownTo(name, pemOf(root)), { cn: name, why: null });
  nowMs = Date.now();
});
