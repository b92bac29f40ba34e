import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import type { ImageAdded, ImageSummary, Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerImages } from "./images.ts";

/**
 * What becomes of one upload at several storage servers. The servers are stand-ins that keep what they are told in memory;
 * what a real one makes of the bytes is tested beside it (`host/storage-agent/`), and all of it in `testbed/`.
 */
interface StandIn {
  readonly name: string;
  readonly images: Map<string, { digest: string; provided: boolean }>;
  readonly staged: Map<string, string>;
  readonly asked: string[];
  /** Answers this to an upload, at once or when the body has come. */
  refuses: { readonly status: number; readonly message: string; readonly early: boolean } | null;
  received: number;
  broken: number;
}
let root = "";
let app: FastifyInstance;
let port = 0;
const servers: PeerServer[] = [];
const standIns: StandIn[] = [];
const peers: Record<string, string> = {};

const configure = async (name: string): Promise<ProcessConfiguration> => ({
  name: peerName(name),
  role: name === "gateway" ? "gateway" : "agent",
  address: "127.0.0.1",
  directory: root,
  runDirectory: root,
  certificate: await issueCertificate(join(root, "ca"), peerName(name), ["127.0.0.1"]),
  peersFile: join(root, "peers.json"),
  httpPort: 0,
});
const writePeers = (): Promise<void> => writeFile(join(root, "peers.json"), JSON.stringify({ peers }));

async function startServer(name: string): Promise<void> {
  const own: StandIn = {
    name,
    images: new Map(),
    staged: new Map(),
    asked: [],
    refuses: null,
    received: 0,
    broken: 0,
  };
  const server = await servePeers(await configure(`agent.${name}`), async ({ method, url, body }, response) => {
    const answer = (status: number, value: unknown) => response.writeHead(status).end(JSON.stringify(value));
    const refuse = (status: number, message: string) => answer(status, { error: { code: "image/refused", message } });
    const { pathname, searchParams } = new URL(url, "https://agent");
    const image = pathname.split("/")[2] ?? "";
    const id = searchParams.get("staged");
    own.asked.push(`${method} ${url}`);
    if (method === "GET") {
      const list = [...own.images].map(([each, what]) => ({ name: each, sizeMiB: 1, ...what }));
      return void answer(200, list);
    }
    if (method === "PUT") {
      if (own.refuses?.early) return void refuse(own.refuses.status, own.refuses.message);
      try {
        own.received = (await buffer(body)).length;
      } catch {
        own.broken += 1;
        return;
      }
      if (own.refuses !== null) return void refuse(own.refuses.status, own.refuses.message);
      own.staged.set(`${name}-1`, image);
      return void answer(200, { id: `${name}-1`, name: image, digest: "d", sizeMiB: 1 });
    }
    if (method === "POST") own.images.set(own.staged.get(id ?? "") ?? "", { digest: "d", provided: false });
    if (id !== null) own.staged.delete(id);
    else if (!own.images.delete(image))
      return void answer(404, { error: { code: "image/unknown", message: `there is no image "${image}"` } });
    answer(200, { id, name: image, digest: "d", sizeMiB: 1 });
  });
  servers.push(server);
  standIns.push(own);
  peers[`agent.${name}`] = `127.0.0.1:1:${server.port}`;
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gateway-images-"));
  await mkdir(join(root, "ca"));
  await createAuthority(join(root, "ca"));
  await startServer("s1");
  await startServer("s2");
  await writePeers();
  app = fastify({ forceCloseConnections: true });
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof RefusedError) reply.code(error.statusCode).send({ error: error.refusal });
    else reply.code(500).send({ error: { code: "internal", message: String(error) } });
  });
  registerImages(app, await configure("gateway"));
  await app.listen({ host: "127.0.0.1", port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
after(async () => {
  await app.close();
  await Promise.all(servers.map((server) => server.stop()));
  await rm(root, { recursive: true, force: true });
});

const [s1, s2] = [0, 1].map((index) => (): StandIn => standIns[index] ?? assert.fail()) as [
  () => StandIn,
  () => StandIn,
];

async function ask<T>(method: string, path: string, body?: Buffer): Promise<{ status: number; body: T & Refusal }> {
  const outgoing = request({ host: "127.0.0.1", port, method, path, agent: false });
  outgoing.setHeader("connection", "keep-alive");
  if (body !== undefined) outgoing.setHeader("content-length", body.length);
  // An answer may come before the whole body went out; then the rest is of no use.
  outgoing.on("error", () => undefined);
  outgoing.end(body);
  const [response] = await once(outgoing, "response");
  const text = (await buffer(response)).toString();
  return { status: response.statusCode, body: JSON.parse(text) };
}
const bytes = Buffer.alloc(3 * 2 ** 20, 7);

test("an image comes to every server, and goes from every server", async () => {
  const added = await ask<ImageAdded>("PUT", "/images/one?format=raw", bytes);
  assert.equal(added.status, 200);
  assert.deepEqual(added.body, { name: "one", digest: "d", sizeMiB: 1, servers: ["s1", "s2"], missing: [] });
  assert.deepEqual([s1().received, s2().received], [bytes.length, bytes.length]);
  const list = await ask<readonly ImageSummary[]>("GET", "/images");
  assert.deepEqual(list.body, [{ name: "one", digest: "d", sizeMiB: 1, provided: false, servers: ["s1", "s2"] }]);
  const there = await ask("PUT", "/images/one?format=raw", bytes);
  assert.equal(there.status, 409);
  assert.match(there.body.error.message, /already; choose another name, or replace it \(--replace\)/);
  assert.equal((await ask("PUT", "/images/one?format=raw&replace=true", bytes)).status, 200);
  assert.equal((await ask("PUT", "/images/another?format=raw", bytes)).status, 200);
  await ask("DELETE", "/images/another");
  assert.deepEqual((await ask("DELETE", "/images/one")).body, { name: "one", servers: ["s1", "s2"], missing: [] });
  assert.deepEqual((await ask("DELETE", "/images/one")).body.error.message, 'there is no image "one"');
  assert.deepEqual((await ask("GET", "/images")).body, []);
});

test("an image of the installation is not replaced, and one of another name stands beside it", async () => {
  s1().images.set("tiny", { digest: "t", provided: true });
  for (const replace of ["", "&replace=true"]) {
    const { status, body } = await ask("PUT", `/images/tiny?format=raw${replace}`, bytes);
    assert.equal(status, 409);
    assert.match(body.error.message, /cannot be replaced; choose another name/);
  }
  assert.equal((await ask("PUT", "/images/tiny-2?format=raw", bytes)).status, 200);
  await ask("DELETE", "/images/tiny-2");
  s1().images.delete("tiny");
});

test("what one server refuses, none accepts, however early it says so", async () => {
  for (const early of [true, false]) {
    s2().refuses = { status: 400, message: "it names a backing file", early };
    const { status, body } = await ask("PUT", "/images/evil?format=qcow2", bytes);
    assert.deepEqual([status, body.error.message], [400, "it names a backing file"]);
    assert.deepEqual([s1().images.size, s1().staged.size], [0, 0], "what the other had staged is discarded");
  }
  s1().refuses = { status: 507, message: "no space", early: true };
  const both = await ask("PUT", "/images/evil?format=qcow2", bytes);
  assert.equal(both.body.error.message, "no space");
  s1().refuses = { status: 507, message: "no space", early: false };
  const late = await ask("PUT", "/images/evil?format=qcow2", bytes);
  assert.equal(late.body.error.message, "s1: no space; s2: it names a backing file");
  s1().refuses = null;
  s2().refuses = null;
  assert.equal((await ask("PUT", "/images/good?format=qcow2", bytes)).status, 200);
  await ask("DELETE", "/images/good");
});

test("a server that is away is left out and named; nothing is replaced without it", async () => {
  peers["agent.s3"] = "127.0.0.1:1:1";
  await writePeers();
  const { body } = await ask<ImageAdded>("PUT", "/images/part?format=raw", bytes);
  assert.deepEqual(body.servers, ["s1", "s2"]);
  assert.match(body.missing[0]?.why ?? "", /s3 does not answer/);
  const replacing = await ask("PUT", "/images/part?format=raw&replace=true", bytes);
  assert.equal(replacing.status, 503);
  assert.match(replacing.body.error.message, /every storage server must be there, and s3 does not answer/);
  // One that lacks it takes it, though the others have it.
  s2().images.delete("part");
  delete peers["agent.s3"];
  await writePeers();
  assert.equal((await ask("PUT", "/images/part?format=raw", bytes)).status, 200);
  await ask("DELETE", "/images/part");
});

test("names, formats and lengths are looked at before anybody is asked", async () => {
  const before = s1().asked.length;
  for (const path of ["/images/..%2fx?format=raw", "/images/.x?format=raw", "/images/x", "/images/x?format=vmdk"]) {
    const { status, body } = await ask("PUT", path, bytes.subarray(0, 10));
    assert.equal(status, 400, path);
    assert.match(body.error.message, /use letters, digits|must be declared/);
  }
  const chunked = request({ host: "127.0.0.1", port, method: "PUT", path: "/images/x?format=raw", agent: false });
  chunked.write("bytes");
  const [response] = await once(chunked, "response");
  assert.equal(response.statusCode, 411);
  chunked.destroy();
  assert.equal(s1().asked.length, before);
});

test("an upload that is cut off reaches nobody as a whole, and the next one does", async () => {
  const broken = s1().broken;
  const socket = connect(port, "127.0.0.1");
  socket.write(`PUT /images/half?format=raw HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes.length}\r\n\r\n`);
  socket.write(bytes.subarray(0, 2 ** 20));
  while (!s1().asked.some((each) => each.startsWith("PUT /images/half")))
    await new Promise((next) => setTimeout(next, 5));
  socket.destroy();
  while (s1().broken === broken) await new Promise((next) => setTimeout(next, 5));
  assert.deepEqual([s1().staged.size, s1().images.size], [0, 0]);
  assert.equal((await ask("PUT", "/images/half?format=raw", bytes)).status, 200);
  await ask("DELETE", "/images/half");
});

test("no more than a few images are uploaded at a time, and the next one once one of them is done", async () => {
  const begun = Array.from({ length: 4 }, (_, at) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(`PUT /images/slow${at}?format=raw HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes.length}\r\n\r\n`);
    socket.write(bytes.subarray(0, 2 ** 20));
    return socket;
  });
  try {
    const isUnderWay = (at: number): boolean => s1().asked.some((each) => each.startsWith(`PUT /images/slow${at}`));
    while (!begun.every((_, at) => isUnderWay(at))) await new Promise((next) => setTimeout(next, 5));
    const { status, body } = await ask("PUT", "/images/more?format=raw", bytes);
    assert.equal(status, 503);
    assert.match(body.error.message, /^4 images are being uploaded already; try again when one is done$/);
    const [first] = begun;
    const answered = first && once(first, "data");
    first?.write(bytes.subarray(2 ** 20));
    assert.match(String((await answered)?.[0]), /^HTTP\/1\.1 200 /);
    assert.equal((await ask("PUT", "/images/more?format=raw", bytes)).status, 200);
  } finally {
    for (const socket of begun) socket.destroy();
  }
  for (const name of ["slow0", "more"]) await ask("DELETE", `/images/${name}`);
});
