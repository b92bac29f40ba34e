import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createBinEdge } from "../../host/storage-agent/bin/bin-edge.ts";
import { BinFiles } from "../../host/storage-agent/bin/bin-files.ts";
import type { BinEntry, BinList, Refusal } from "../../model/api.ts";
import { cellName, elementPath, peerName, uid } from "../../model/cell/identifiers.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerBin } from "./bin.ts";

/** The gateway and the edge of an agent, with real files; what the agent's service would say stands in. */
let root = "";
let app: FastifyInstance;
let server: PeerServer;
let bin: BinFiles;
const kept: { file: string; why: string }[] = [];
let reported = 0;
const recorded: string[] = [];

async function configure(name: string, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
  return {
    name: peerName(name),
    role,
    address: "127.0.0.1",
    distributionPort: 0,
    httpPort: 0,
    directory: root,
    runDirectory: root,
    peersFile: join(root, "peers.json"),
    certificate: await issueCertificate(join(root, "ca"), peerName(name), ["127.0.0.1"]),
  };
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gateway-bin-"));
  await mkdir(join(root, "ca"));
  await createAuthority(join(root, "ca"));
  await mkdir(join(root, "volumes"));
  bin = new BinFiles(join(root, "volumes"));
  await bin.prepare();
  const executor = {
    reportBin: async () => {
      reported += 1;
    },
    emptyBin: async (files) => {
      const empty = files.filter((file) => !kept.some((each) => each.file === file));
      for (const file of empty) await bin.empty(file);
      return { empty, kept: kept.filter(({ file }) => files.includes(file)) };
    },
  } satisfies Parameters<typeof createBinEdge>[1];
  const edge = createBinEdge(bin, executor, async ({ verb, target, source }) => {
    // It is there still: the record comes first.
    const isThere = (await bin.list()).some(({ file }) => file === target);
    recorded.push(`${verb} ${isThere ? "before" : "too late"} ${source}`);
  });
  server = await servePeers(await configure("agent.s1", "agent"), async (request, response) => {
    if (!(await edge(request, response))) response.writeHead(404).end("{}");
  });
  const peers = { "agent.s1": `127.0.0.1:1:${server.port}`, "agent.s2": "127.0.0.1:1:1" };
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers }));
  app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof RefusedError) reply.code(error.statusCode).send({ error: error.refusal });
    else reply.code(500).send({ error: { code: "internal", message: String(error) } });
  });
  registerBin(app, await configure("gateway", "gateway"));
});
after(async () => {
  await app.close();
  await server.stop();
  await rm(root, { recursive: true, force: true });
});

const ask = async <T>(method: "GET" | "POST" | "DELETE", url: string) => {
  const answer = await app.inject({ method, url });
  return { status: answer.statusCode, body: JSON.parse(answer.body) as T & Refusal };
};

test("an operator sees what is in the bins, brings back and empties, and is told what does not answer", async () => {
  const about = { cell: cellName("shop"), path: elementPath("shop/data"), origin: null };
  for (const name of ["shop-1", "shop-2"]) {
    await writeFile(join(root, "volumes", name), "bytes");
    await bin.take(uid(name), join(root, "volumes", name), { about, overlay: false, manager: null });
  }
  const { body } = await ask<BinList>("GET", "/bin");
  assert.deepEqual(body.files.map(({ server, file, path }) => `${server}/${file} ${path}`).sort(), [
    "s1/shop-1.1 shop/data",
    "s1/shop-2.1 shop/data",
  ]);
  assert.deepEqual(
    body.missing.map(({ server }) => server),
    ["s2"],
  );
  const paged: string[] = [];
  for (let after = ""; ; ) {
    const answer = await app.inject({ method: "GET", url: `/bin?limit=1${after}` });
    const page = JSON.parse(answer.body) as BinList;
    assert.deepEqual([page.files.length, page.missing.length], [1, 1]);
    paged.push(...page.files.map(({ file }) => file));
    const next = answer.headers["cells-next"];
    if (next === undefined) break;
    after = `&after=${next}`;
  }
  assert.deepEqual(paged.sort(), ["shop-1.1", "shop-2.1"]);

  const restored = await ask<BinEntry>("POST", "/bin/s1/shop-1.1");
  assert.deepEqual([restored.status, restored.body.server, restored.body.offered, reported], [200, "s1", true, 1]);
  assert.equal((await ask("DELETE", "/bin/s1/shop-2.1")).status, 200);
  kept.push({ file: "shop-1.1", why: "a copy needs it" });
  const refusal = await ask("DELETE", "/bin/s1/shop-1.1");
  assert.deepEqual([refusal.status, refusal.body.error.message], [409, "shop-1.1 stays: a copy needs it"]);
  assert.deepEqual(
    (await bin.list()).map(({ file }) => file),
    ["shop-1.1"],
  );
  assert.deepEqual(recorded, [
    "restoreFromBin before 127.0.0.1",
    "emptyBin before 127.0.0.1",
    "emptyBin before 127.0.0.1",
  ]);
});

test("what is not there is refused with a sentence", async () => {
  for (const [method, url, status, message] of [
    ["POST", "/bin/s1/shop-9.1", 404, /there is no shop-9\.1 in the bin/],
    ["POST", "/bin/s1/..%2Fshop", 404, /names no file of a bin/],
    ["DELETE", "/bin/s9/shop-9.1", 404, /no storage server "s9"; there are s1, s2/],
    ["DELETE", "/bin/s2/shop-9.1", 503, /s2 does not answer/],
  ] as const) {
    const answer = await ask(method, url);
    assert.equal(answer.status, status, url);
    assert.match(answer.body.error.message, message);
  }
});
