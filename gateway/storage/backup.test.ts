import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import type { BackupList } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { registerBackup } from "./backup.ts";

/** The gateway, and storage servers that list what they are told to. */
let installation: TestInstallation;
let app: FastifyInstance;
const closers: (() => Promise<void>)[] = [];
const good = { name: "20261122T060001Z", bytes: 98 };
let lie: unknown = [];

before(async () => {
  installation = await createTestInstallation("gateway-backup");
  for (const [name, list] of [
    ["agent.s1", () => [good]],
    ["agent.s2", () => lie],
  ] as const) {
    const { configuration } = await installation.configure(peerName(name));
    const server = await servePeers(configuration, (_request, response) => void response.end(JSON.stringify(list())));
    closers.push(server.stop);
  }
  app = fastify();
  registerBackup(app, (await installation.configure(peerName("gateway"))).configuration, null);
});
after(async () => {
  await app.close();
  for (const close of closers) await close();
  await installation.remove();
});

test("a storage server that lists nonsense hides no backup of the others", async () => {
  const list = async (): Promise<BackupList> => {
    const answer = await app.inject({ method: "GET", url: "/management/backups" });
    assert.equal(answer.statusCode, 200, answer.body);
    return JSON.parse(answer.body) as BackupList;
  };
  for (lie of [
    [
      { name: 7, bytes: 1 },
      { name: "x", bytes: 1 },
    ],
    [{ ...good, bytes: "x" }, null],
    [1, [], "x"],
  ])
    assert.deepEqual(await list(), { backups: [{ ...good, servers: ["s1"] }], missing: [] });
  for (lie of [null, {}, "x"]) {
    const { backups, missing } = await list();
    assert.deepEqual([backups, missing.map(({ server }) => server)], [[{ ...good, servers: ["s1"] }], ["s2"]]);
  }
  lie = [good];
  assert.deepEqual((await list()).backups, [{ ...good, servers: ["s1", "s2"] }]);
});

test("backups come in pages for whoever asks so, and no other list's cursor leads on", async () => {
  const later = { name: "20261123T060001Z", bytes: 99 };
  lie = [later, { name: "20261121T060001Z", bytes: 97 }];
  const seen: string[] = [];
  for (let after = ""; ; ) {
    const answer = await app.inject({ method: "GET", url: `/management/backups?limit=2${after}` });
    const { backups } = JSON.parse(answer.body) as BackupList;
    seen.push(...backups.map(({ name }) => name));
    const next = answer.headers["cells-next"];
    if (next === undefined) break;
    assert.equal(backups.length, 2);
    after = `&after=${next}`;
  }
  assert.deepEqual(seen, ["20261121T060001Z", good.name, later.name]);
  assert.equal((await app.inject({ method: "GET", url: "/management/backups?after=00" })).statusCode, 400);
});
