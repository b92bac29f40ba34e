import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { servePeers } from "../../http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { readAuthority, signCertificate } from "../certificates.ts";
import { ownKey } from "./keys.ts";
import { keepPeers } from "./peers-follow.ts";

/** One follower of an authority that says whatever a test wants. */
let installation: TestInstallation;
let authority: ProcessConfiguration;
let directory = "";
const closing: (() => Promise<unknown>)[] = [];
type Asked = { readonly known: number; readonly port: number; readonly response: ServerResponse };
const asked: Asked[] = [];
let respond = (_asked: Asked): void => undefined;

before(async () => {
  installation = await createTestInstallation("peers-keep");
  directory = await mkdtemp(join(tmpdir(), `cells-keep-${process.pid}-`));
  const { configuration } = await installation.configure(peerName("place"));
  const [certFile, keyFile] = [join(directory, "certificate.pem"), join(directory, "key.pem")];
  const signing = await readAuthority(join(installation.directory, "authority"));
  assert.ok(signing);
  const { publicKey } = (await ownKey(keyFile)).keys;
  const dates = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 600_000) };
  const content = { name: peerName("authority"), publicKey, addresses: ["127.0.0.1"], cell: "root", role: "authority" };
  await writeFile(certFile, await signCertificate(signing, { ...content, ...dates }));
  const certificate = { ...configuration.certificate, certFile, keyFile };
  authority = { ...configuration, name: peerName("authority"), certificate };
  const server = await servePeers(authority, ({ url, raw }, response) => {
    const known = Number(new URLSearchParams(url.split("?")[1]).get("known"));
    asked.push({ known, port: raw.socket.remotePort ?? 0, response });
    respond({ known, port: raw.socket.remotePort ?? 0, response });
  });
  closing.push(server.stop);
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await rm(directory, { recursive: true, force: true });
  await installation.remove();
});

const place = (): string => [authority.address, authority.distributionPort, authority.httpPort].join(":");
let number = 0;
const follower = async (content: string | null) => {
  number += 1;
  const peersFile = join(directory, `peers-${number}.json`);
  if (content !== null) await writeFile(peersFile, content);
  const { configuration } = await installation.configure(peerName(`host.h${number}`), { change: { peersFile } });
  const logs: { readonly event: string; readonly why: unknown }[] = [];
  const log = (event: string, fields: object): void => void logs.push({ event, why: Reflect.get(fields, "why") });
  const book = async (): Promise<object> => JSON.parse(await readFile(peersFile, "utf8"));
  return { configuration, logs, book, observer: { log } };
};
const says = (response: ServerResponse, status: number, body?: object): void => {
  response.writeHead(status).end(body === undefined ? undefined : JSON.stringify(body));
};

test("books are taken one after the other over one connection, and where the authority is stays known", async () => {
  const { configuration, observer, book, logs } = await follower(
    JSON.stringify({ peers: { authority: place(), placer: "10.0.0.1" } }),
  );
  asked.length = 0;
  respond = ({ known, response }) => {
    if (known < 3)
      says(response, 200, { version: known < 0 ? 1 : known + 1, peers: { placer: `10.0.1.${known + 2}` } });
  };
  const stop = await keepPeers(configuration, observer);
  closing.push(stop);
  await eventually("it waits for the fourth", () => asked.length === 4);
  assert.deepEqual(
    asked.map(({ known }) => known),
    [-1, 1, 2, 3],
  );
  assert.equal(new Set(asked.map(({ port }) => port)).size, 1);
  assert.deepEqual(await book(), { peers: { authority: place(), placer: "10.0.1.4" } });
  assert.equal((await stat(configuration.peersFile)).mode & 0o777, 0o600);
  assert.deepEqual(
    logs.map(({ event }) => event),
    ["peers/changed", "peers/changed", "peers/changed"],
  );
  await stop();
});

test("what is no book, an error, and news that are none are attempts in vain and change nothing", async () => {
  const { configuration, observer, book, logs } = await follower(JSON.stringify({ peers: { authority: place() } }));
  const answers: ((response: ServerResponse) => void)[] = [
    (response) => says(response, 204),
    (response) => says(response, 503),
    (response) => says(response, 200, {}),
    (response) => says(response, 200, { version: 7, peers: { placer: "no:address" } }),
    (response) => response.destroy(),
    (response) => says(response, 200, { version: 9, peers: { authority: place(), placer: "10.0.1.9" } }),
  ];
  respond = ({ response }) => answers.shift()?.(response);
  const stop = await keepPeers(configuration, observer);
  closing.push(stop);
  await eventually("there is a book at last", async () => JSON.stringify(await book()).includes("10.0.1.9"));
  assert.deepEqual(await book(), { peers: { authority: place(), placer: "10.0.1.9" } });
  const whys = logs.filter(({ event }) => event === "peers/waiting").map(({ why }) => String(why));
  assert.match(whys.join("\n"), /^it says too often[^\n]*\n[^\n]*answered 503[^\n]*\n[^\n]*malformed/);
  assert.equal(whys.length, 3, "the first, second and fourth time");
  await stop();
});

test("which key a name has stays known when an older book comes, or one of the previous version", async () => {
  const { configuration, observer, book, logs } = await follower(JSON.stringify({ peers: { authority: place() } }));
  const [older, newer] = [1, 2].map((key) => ({ key: `${key}`.repeat(64), sinceMs: Date.now() - 3000 + key }));
  const peers = { authority: place(), placer: "10.0.1.9" };
  const h1 = (keys: unknown) => ({ "host.h1": keys });
  const books = [h1(older), h1(newer), h1(older), undefined, { "host.h1": "no key" }, h1(newer)];
  let version = 0;
  respond = ({ response }) => {
    if (version < books.length) says(response, 200, { version: version + 1, peers, keys: books[version] });
    version += 1;
  };
  const stop = await keepPeers(configuration, observer);
  closing.push(stop);
  await eventually("it waits for another", () => version > books.length);
  assert.deepEqual(await book(), { peers, keys: h1(newer) });
  const events = logs.map(({ event }) => event);
  assert.deepEqual(
    events,
    ["peers/changed", "peers/changed", "peers/waiting"],
    "the one that is none counts as an error",
  );
  await stop();
});

test("who has no file, or half of one, begins with the authority that it enrols at, or says what is missing", async () => {
  respond = () => undefined;
  for (const content of [null, '{"peers": {"auth']) {
    const { configuration, observer, book } = await follower(content);
    await assert.rejects(keepPeers(configuration, observer), /does not say where the peer "authority" is/);
    const enrolment = { authority: "127.0.0.1:1", fingerprint: "" };
    const stop = await keepPeers({ ...configuration, enrolment }, observer);
    assert.deepEqual(await book(), { peers: { authority: "127.0.0.1:7124:7125" } });
    await stop();
  }
  const { configuration, observer, book } = await follower(null);
  await (await keepPeers({ ...configuration, name: peerName("authority") }, observer))();
  assert.deepEqual(await book(), { peers: {} }, "the authority asks nobody");
});
