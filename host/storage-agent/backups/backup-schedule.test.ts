import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { signOrder } from "../../../runtime/backup/order.ts";
import { newRecipientKey } from "../../../runtime/backup/sealing.ts";
import { createBackupHandler } from "../../../runtime/backup/serve.ts";
import { unpackBackup } from "../../../runtime/backup/unpack.ts";
import { BackupSchedulerRun, type ScheduleContext, scheduleIn } from "../../../runtime/controller/backups/schedule.ts";
import { peerRequest, servePeers } from "../../../runtime/http/https.ts";
import { answerOrder } from "../../../runtime/identity/authority/backup-order.ts";
import { type Authority, readAuthority } from "../../../runtime/identity/certificates.ts";
import { createTestInstallation, type TestInstallation } from "../../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { openStore } from "../../../runtime/process/store.ts";
import { createBackupEdge } from "./backup-edge.ts";
import { BackupStore } from "./backup-store.ts";

/** The root cell's controller makes backups by its specification, over real mutual TLS, and storage servers keep them. */
let installation: TestInstallation;
let root: ProcessConfiguration;
let gateway: ProcessConfiguration;
let authority: Authority;
const closers: (() => Promise<void> | void)[] = [];
const stores: BackupStore[] = [];
const key = newRecipientKey();
const dayMs = 86_400_000;

before(async () => {
  installation = await createTestInstallation("schedule");
  ({ configuration: root } = await installation.configure(peerName("controller.root")));
  ({ configuration: gateway } = await installation.configure(peerName("gateway")));
  const signing = await readAuthority(join(installation.directory, "authority"));
  assert.ok(signing);
  authority = signing;
  const { configuration: placer } = await installation.configure(peerName("placer"));
  const store = openStore(join(placer.directory, "state.sqlite"));
  store.commit(new Map([["own/a", 1]]));
  closers.push(() => store.close());
  closers.push((await servePeers(placer, createBackupHandler(placer, store))).stop);
  for (const name of ["agent.s1", "agent.s2"]) {
    const { configuration: agent } = await installation.configure(peerName(name));
    const kept = new BackupStore(agent.directory);
    stores.push(kept);
    const edge = createBackupEdge(kept);
    const server = await servePeers(agent, async (request, response) => {
      if (!(await edge(request, response))) response.writeHead(404).end();
    });
    closers.push(server.stop);
  }
});
after(async () => {
  for (const close of closers.reverse()) await close();
  await installation.remove();
});

const logged: string[] = [];
const scheduler = (
  attributes: Readonly<Record<string, Json>>,
  nowMs: () => number,
  peers: readonly PeerName[] = [peerName("placer"), peerName("directory")],
  most: ScheduleContext["most"] = {},
): BackupSchedulerRun =>
  new BackupSchedulerRun({
    most,
    configuration: root,
    // As in examples/root: what the cell and others extend stands before it.
    model: async () => ({
      Service: { "x.type": "VM" },
      Primary: { "x.type": "Cell" },
      root: { "x.type": "Cell", ...attributes },
    }),
    order: (recipient) => signOrder(authority, { recipient, peers, nowMs: nowMs() }),
    log: (event, fields) => void logged.push(`${event} ${JSON.stringify(fields)}`),
    nowMs,
  });
const namesAt = async (): Promise<readonly (readonly string[])[]> =>
  Promise.all(stores.map(async (store) => (await store.list()).map(({ name }) => name)));

test("nothing is made where the specification says nothing of it", async () => {
  assert.equal(scheduleIn({ root: { "x.type": "Cell" } }), null);
  await scheduler({}, Date.now).look();
  assert.deepEqual(await namesAt(), [[], []]);
  assert.deepEqual(logged, []);
});

test("one is made when it is due, given to every server, and opened by the operator's key alone", async () => {
  let now = Date.now();
  const attributes = { "x.backup.publicKey": key.recipient, "x.backup.keep": 2 };
  const run = scheduler(attributes, () => now);
  await run.look();
  const [one, two] = await namesAt();
  assert.equal(one?.length, 1);
  assert.deepEqual(one, two);
  assert.match(logged.join("\n"), /^backup\/made .*"servers":2,"missing":1/);
  assert.match(logged.join("\n"), /directory is not in it/);
  now += dayMs - 120_000;
  await run.look();
  await scheduler(attributes, () => now).look();
  assert.deepEqual(await namesAt(), [one, one], "nor again after a restart");

  const get = async (path: string) => peerRequest(gateway, peerName("agent.s2"), { method: "GET", path });
  const file = join(installation.directory, "fetched");
  await writeFile(file, await buffer((await get(`/backups/${one[0]}`)).body));
  const opener = { passphrase: () => assert.fail("a key opens it"), privateKey: async () => key.privateKey };
  const unpacked = await unpackBackup(file, { authority: null }, opener);
  assert.deepEqual(
    unpacked.parts.map(({ manifest }) => manifest.name),
    ["placer"],
  );
  assert.deepEqual(
    unpacked.missing.map(({ name }) => name),
    ["directory"],
  );
  await unpacked.remove();
  const other = { ...opener, privateKey: async () => newRecipientKey().privateKey };
  await assert.rejects(unpackBackup(file, { authority: null }, other), /for another key/);

  for (let day = 1; day <= 3; day += 1) {
    now += dayMs;
    await run.look();
  }
  const names = await namesAt();
  assert.deepEqual(
    names.map((each) => each.length),
    [2, 2],
  );
  assert.ok(!names[0]?.includes(String(one[0])), "the oldest are removed");
  assert.deepEqual(
    (await readdir(root.directory)).filter((name) => name.startsWith("backup")),
    [],
  );
});

test("where it cannot be made, that is said, nothing is removed, and it is tried again later", async () => {
  const before = await namesAt();
  let now = Date.now() + 30 * dayMs;
  logged.length = 0;
  const run = scheduler({ "x.backup.publicKey": "mine", "x.backup.keep": 1 }, () => now);
  await run.look();
  await run.look();
  assert.deepEqual(logged, ['backup/failed {"why":"the recipient is no X25519 public key in base64url"}']);
  assert.deepEqual(await namesAt(), before);
  now += 16 * 60_000;
  await run.look();
  assert.equal(logged.length, 2);
});

test("where no storage server answers, that is said once, with what an operator can do", async () => {
  const book = JSON.parse(await readFile(root.peersFile, "utf8")) as {
    readonly peers: Readonly<Record<string, string>>;
  };
  const own = join(installation.directory, "silence");
  await mkdir(own);
  const configuration = { ...root, directory: own, peersFile: join(own, "peers.json") };
  let now = Date.now();
  const said: string[] = [];
  const run = new BackupSchedulerRun({
    configuration,
    model: async () => ({ root: { "x.type": "Cell", "x.backup.publicKey": key.recipient } }),
    order: (recipient) => signOrder(authority, { recipient, peers: [peerName("placer")], nowMs: now }),
    log: (event, fields) => void said.push(`${event} ${JSON.stringify(fields)}`),
    nowMs: () => now,
  });
  const lookWith = async (peers: Readonly<Record<string, string | undefined>>, times = 1): Promise<void> => {
    await writeFile(configuration.peersFile, JSON.stringify({ peers }));
    for (let time = 0; time < times; time += 1) await run.look();
  };
  await lookWith({ ...book.peers, "agent.s1": undefined, "agent.s2": undefined }, 2);
  assert.equal(said.length, 1);
  assert.match(String(said[0]), /^backup\/waits .*"servers":0,.*no storage server.*--agent.*cells management backup/);
  await lookWith(book.peers);
  assert.match(String(said[1]), /^backup\/made .*"servers":2/);
  now += dayMs;
  const away = { ...book.peers, "agent.s1": "127.0.0.1:1:1", "agent.s2": "127.0.0.1:1:1" };
  await lookWith(away, 3);
  assert.equal(said.length, 3, "said once for each silence");
  assert.match(String(said[2]), /^backup\/waits .*"servers":2,.*agent\.s1.*ECONNREFUSED.*cells management backup/);
  for (const server of stores) for (const { name } of await server.list()) await server.remove(name);
});

test("a server gives backups to nobody but the gateway and the root cell's controller, and takes them from the latter", async () => {
  const { configuration: tenant } = await installation.configure(peerName("controller.shop"));
  const ask = async (from: ProcessConfiguration, method: string, path: string): Promise<number> => {
    const body = method === "PUT" ? { body: "x", headers: { "content-length": 1 } } : {};
    const answer = await peerRequest(from, peerName("agent.s1"), { method, path, ...body });
    await answer.text();
    return answer.status;
  };
  const name = "/backups/20261122T172010Z";
  assert.deepEqual([await ask(tenant, "GET", "/backups"), await ask(tenant, "GET", name)], [403, 403]);
  assert.deepEqual([await ask(gateway, "PUT", name), await ask(gateway, "DELETE", name)], [403, 403]);
  assert.deepEqual([await ask(root, "PUT", name), await ask(gateway, "GET", name)], [200, 200]);
  assert.equal(await ask(root, "DELETE", name), 200);
  assert.equal(await ask(gateway, "GET", name), 404);
  assert.equal(await ask(root, "PUT", "/backups/..%2f..%2fvolumes"), 400);
});

test("a process that answers badly for days replaces no good copy of its part by ones without it", async () => {
  const { configuration } = await installation.configure(peerName("dns-manager"));
  const store = openStore(join(configuration.directory, "state.sqlite"));
  closers.push(() => store.close());
  let fails = false;
  const handler = createBackupHandler(configuration, store);
  const server = await servePeers(configuration, (request, response) =>
    fails ? void response.writeHead(500).end() : handler(request, response),
  );
  closers.push(server.stop);
  const peers = [peerName("placer"), peerName("dns-manager")];
  let now = Date.now() + 100 * dayMs;
  const run = scheduler({ "x.backup.publicKey": key.recipient, "x.backup.keep": 2 }, () => now, peers);
  await run.look();
  const good = (await namesAt())[0]?.at(-1);
  fails = true;
  for (let day = 1; day <= 4; day += 1) {
    now += dayMs;
    await run.look();
  }
  for (const names of await namesAt()) assert.deepEqual([names.length, names[0]], [3, good]);
  fails = false;
  now += dayMs;
  await run.look();
  for (const names of await namesAt()) assert.deepEqual([names.length, names.includes(String(good))], [2, false]);
});

test("one server that lies, and one process that takes for ever, hold up nobody's backups and remove none", async () => {
  const { configuration: liar } = await installation.configure(peerName("agent.s0"));
  let listed: string | null = null;
  const server = await servePeers(liar, ({ method }, response) => {
    if (method === "PUT" && listed === null) return void response.writeHead(200).write("no end");
    response.end(listed ?? "[]");
  });
  closers.push(server.stop);
  const { configuration: slow } = await installation.configure(peerName("address-manager"));
  const trickles = new Set<NodeJS.Timeout>();
  const trickling = await servePeers(slow, (_request, response) => {
    const timer = setInterval(() => response.write(Buffer.from([0])), 50);
    trickles.add(timer);
    response.once("close", () => clearInterval(timer));
  });
  closers.push(async () => {
    for (const timer of trickles) clearInterval(timer);
    await trickling.stop();
  });
  let now = Date.now() + 200 * dayMs;
  const attributes = { "x.backup.publicKey": key.recipient, "x.backup.keep": 2 };
  const at = (ms: number): string => `${new Date(ms).toISOString().replace(/[-:]/g, "").slice(0, 15)}Z`;
  const lists: (() => string)[] = [
    () => JSON.stringify([{ name: at(now), bytes: 1 }]),
    () => JSON.stringify([{ name: "20991231T000000Z", bytes: 1 }]),
    () => JSON.stringify([{ name: "20261399T999999Z", bytes: 1 }, { name: "x" }, null, { name: 7 }]),
    () => "{}",
    () => "null",
    () => "[",
    () => JSON.stringify("x".repeat(1_000_000)),
  ];
  for (const [index, list] of lists.entries()) {
    now += dayMs;
    listed = list();
    const before = (await namesAt())[0];
    const run = scheduler(attributes, () => now);
    if (index === 0) await rm(join(root.directory, "last-backup"));
    await run.look();
    const made = (await namesAt())[0];
    assert.equal(made?.at(-1), at(now), `made where it lists ${listed.slice(0, 60)}`);
    assert.deepEqual(made?.at(-2), before?.at(-1));
    now += 60_000;
    await run.look();
    await scheduler(attributes, () => now).look();
    assert.deepEqual(await namesAt(), [made, made], "and once");
  }
  now += dayMs;
  listed = null;
  logged.length = 0;
  const peers = [peerName("address-manager"), peerName("placer")];
  await scheduler(attributes, () => now, peers, { partMs: 1000, giveMs: 5000 }).look();
  assert.match(logged.join("\n"), /^backup\/made .*"servers":2,"missing":1/);
  assert.deepEqual(
    (await namesAt()).map((names) => names.at(-1)),
    [at(now), at(now)],
  );
});

test("what a server keeps is bounded, and a body of another length leaves nothing", async () => {
  const directory = join(installation.directory, "bounded");
  await mkdir(directory);
  const limits = { files: 2, fileBytes: 100, allBytes: 150, freeBytes: 0 };
  const store = new BackupStore(directory, limits);
  const keep = async (second: number, bytes: number, announced = bytes): Promise<string> => {
    const kept = await store.keep(`20261122T17201${second}Z`, announced, Readable.from([Buffer.alloc(bytes)]));
    return kept.ok ? "kept" : kept.error.code;
  };
  assert.equal(await keep(0, 101), "backup/size");
  assert.equal(await keep(0, 50, 60), "backup/size");
  assert.equal(await keep(0, 60, 50), "backup/size");
  assert.equal(await keep(0, 100), "kept");
  assert.equal(await keep(1, 100), "backup/full");
  assert.equal(await keep(1, 50), "kept");
  assert.equal(await keep(2, 1), "backup/full");
  assert.equal(await keep(1, 40), "kept", "in place of the one of that name");
  assert.equal((await store.keep("../x", 1, Readable.from([Buffer.alloc(1)]))).ok, false);
  assert.deepEqual((await readdir(join(directory, "backups"))).sort(), ["20261122T172010Z", "20261122T172011Z"]);
  const none = new BackupStore(directory, { ...limits, files: 9, allBytes: 999, freeBytes: 2 ** 60 });
  const full = await none.keep("20261122T172019Z", 1, Readable.from([Buffer.alloc(1)]));
  assert.ok(!full.ok && full.error.code === "backup/disk");
});

test("the authority signs an order for the root cell's controller alone, with everybody that keeps a store", async () => {
  const { configuration: at } = await installation.configure(peerName("directory"));
  const peers = { placer: "10.0.0.1", gateway: "10.0.0.2", "agent.s1": "10.0.0.3" };
  const server = await servePeers(at, answerOrder(authority, { request: async () => ({ peers }) as Json }));
  try {
    const ask = async (from: ProcessConfiguration, body: string) => {
      const asked = { method: "POST", path: "/backup-order", body };
      const answer = await peerRequest(from, peerName("directory"), asked);
      return { status: answer.status, body: JSON.parse(await answer.text()) as { text?: string } };
    };
    const desire = JSON.stringify({ recipient: key.recipient });
    assert.equal((await ask(gateway, desire)).status, 403);
    assert.equal((await ask(root, "{}")).status, 400);
    const { status, body } = await ask(root, desire);
    assert.equal(status, 200);
    assert.deepEqual((JSON.parse(body.text ?? "") as { peers: unknown }).peers, ["agent.s1", "placer"]);
  } finally {
    await server.stop();
  }
});
