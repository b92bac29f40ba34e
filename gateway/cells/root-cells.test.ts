import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import { readAnything, type Service } from "../../core/env.ts";
import type { CellSummary, Changed, InstallationStatus, NewCredential, Refusal } from "../../model/api.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AuditPart } from "../../model/contract/audit/audit.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import { openStore } from "../../runtime/process/store.ts";
import { createGateway } from "../gateway.ts";
import { usersMakeCells } from "./users-cells.testing.ts";

/*
 * Cells as elements of the root cell, with real processes on loopback: root controller, Cell Manager and the new cell's
 * controller; the gateway is in this one. Hosts and storage there are none: a controller's VM is started by the test, as a process, when its
 * element is in the root cell's model, and ended when it is not.
 */
const operator = "open-sesame";
let installation: TestInstallation;
let app: FastifyInstance;
let url = "";
let gateway: ProcessConfiguration;
let storage: RunningService;
const alive = new Map<PeerName, ChildProcess>();
let output = "";

/** In place of a Storage Manager: takes whatever is desired, says nothing of it, and has it no more when it is taken back. */
const takesAll: Service<null> = {
  restore: () => null,
  step: () => ({ state: null, effects: [] }),
  entitled: () => true,
  accepts: () => true,
  read: readAnything,
};

/** The controllers' name server needs port 53, so each process has an address of its own inside 127.0.0.0/8. */
const addressOf = (number: number): string => `127.${150 + (process.pid % 60)}.${(process.pid >> 6) % 250}.${number}`;

const start = async (name: string, change: Partial<ProcessConfiguration>): Promise<void> => {
  const { configuration, file } = await installation.configure(peerName(name), { change });
  // Without a store they would ask the authority first whether a backup that was restored has it.
  openStore(join(configuration.directory, "state.sqlite")).close();
  run(peerName(name), file);
};
const run = (name: PeerName, file: string): void => {
  const main = join(import.meta.dirname, "../../runtime/main.ts");
  const child = spawn(process.execPath, [main, file], { stdio: ["ignore", "pipe", "pipe"] });
  alive.set(name, child);
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
};
const end = async (name: PeerName): Promise<void> => {
  const child = alive.get(name);
  alive.delete(name);
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
};
/** Nobody listens there, and nobody needs to: all have certificates for good. */
const fingerprint = "ab".repeat(32);
const controller = (cell: string, cellNumber: number, more: object) => ({
  role: "controller" as const,
  enrolment: { authority: "127.0.0.1:1", fingerprint },
  address: addressOf(cellNumber),
  controller: {
    cell,
    cellUid: cell,
    cellNumber,
    domain: "cells.internal",
    mac: "02:00:00:00:00:01",
    cellManager: true as const,
    credentialHashes: [hashCredential(operator)],
    ...more,
  },
});

const specification = (...names: string[]): JsonObject => ({
  root: {
    "x.type": "Cell",
    images: { service: { "x.type": "Volume", "x.size": 64, "x.access": "ro", "x.import": "service" } },
    management: { "x.type": "Subnet", "x.cidr": "10.0.0.0/16" },
    ...Object.fromEntries(names.map((name) => [name, { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" }])),
  },
});
const shop = (...names: string[]): JsonObject => ({
  shop: {
    "x.type": "Cell",
    ...Object.fromEntries(names.map((name) => [name, { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" }])),
  },
});

const ask = async (method: string, path: string, body?: JsonObject, credential = operator, headers = {}) => {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as unknown };
};
const messageOf = ({ json }: { readonly json: unknown }): string => (json as Refusal).error.message;
const cells = async (): Promise<string[]> =>
  ((await ask("GET", "/cells")).json as CellSummary[]).map(({ cell, version }) => `${cell} ${version}`);

/** Of the controllers' components, by the root cell's model. */
const components = async (): Promise<Record<string, { vm?: JsonObject }>> => {
  const { json } = await ask("GET", "/cells/root/model?state=true");
  return ((json as { root?: { controllers?: object } }).root?.controllers ?? {}) as Record<string, { vm?: JsonObject }>;
};
/** What hosts would do: starts the controller whose VM is in the model, once. Returns its data. */
const startAsHostsWould = async (name: string): Promise<JsonObject> => {
  let vm: JsonObject | undefined;
  await eventually(`the VM of ${name} is in the model\n${output}`, async () => {
    vm = (await components())[name]?.vm;
    return vm !== undefined;
  });
  const { "x.data": shown } = vm ?? assert.fail("it was there");
  const data = (shown as unknown as { service: { roles: { controller: JsonObject } } }).service.roles.controller;
  const { cell, cellUid, cellNumber } = data;
  await start(`controller.${cell}`, controller(String(cell), Number(cellNumber), { cellUid }));
  return vm ?? {};
};

before(async () => {
  installation = await createTestInstallation("root-cells");
  const root = { management: "10.0.0.0/16", authority: { address: "10.0.0.31", fingerprint } };
  await start("controller.root", controller("root", 1, { root }));
  await start("cell-manager", { role: "cell-manager" });
  storage = await runService({
    configuration: (await installation.configure(peerName("storage-manager"))).configuration,
    service: takesAll,
  });
  gateway = (
    await installation.configure(peerName("gateway"), {
      change: { role: "gateway", gateway: { listenFd: -1, credentialHashes: [hashCredential(operator)] } },
    })
  ).configuration;
  app = createGateway(gateway);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(`the root cell has its model\n${output}`, async () => {
    const { status } = await ask("PUT", "/cells/root/model", specification("core1"));
    return status === 200;
  });
});
after(async () => {
  await app?.close();
  await storage?.stop();
  for (const name of [...alive.keys()]) await end(name);
  await installation?.remove();
});

test("a cell is made, changed and ended through the root cell, and nothing of it is left there", async () => {
  assert.deepEqual(await cells(), ["root 1"]);
  const planned = await ask("PUT", "/cells/shop/model?dryRun=true", shop("web"));
  assert.equal((planned.json as Changed).version, 0);
  assert.deepEqual(await components(), {});
  const [made, vm] = await Promise.all([
    ask("PUT", "/cells/shop/model", shop("web"), operator, { "if-match": '"0"' }),
    startAsHostsWould("shop"),
  ]);
  assert.equal(made.status, 200, JSON.stringify(made.json));
  assert.deepEqual(
    (made.json as Changed).plan.steps.map(({ action, path }) => `${action} ${path}`),
    ["create shop/web"],
  );
  assert.deepEqual([vm["x.memory"], vm["x.restartOnFailure"]], [160, true]);
  assert.deepEqual(await cells(), ["root 3", "shop 2"]);
  const again = await ask("PUT", "/cells/shop/model", shop("web", "app"), operator, { "if-match": '"2"' });
  assert.equal((again.json as Changed).version, 3);
  assert.equal((await ask("GET", "/cells/shop/model/shop/app")).status, 200);

  // The operator's specification again, as for an upgrade: the cell stays.
  assert.equal((await ask("PUT", "/cells/root/model", specification("core1", "core2"))).status, 200);
  assert.deepEqual(await cells(), ["root 4", "shop 3"]);

  // What the operator lets the cell have, as docs/operator.md says it.
  const limited = { "x.type": "Cell", "x.limits.vms": 2, "x.limits.vmStartsPerMinute": 600 };
  const limits = { "x.type": "CellController", "x.name": "shop", "x.cell": { shop: limited } };
  assert.equal((await ask("PUT", "/cells/root/model/root/cells/shop", limits)).status, 200);
  assert.deepEqual(await cells(), ["root 5", "shop 3"]);
  const beyond = await ask("PUT", "/cells/shop/model", shop("web", "app", "db"));
  assert.match(messageOf(beyond), /its parent root lets it have no more: it would have 3 VMs/);

  // The Cell Manager starts anew, and finds all as it should be.
  await end(peerName("cell-manager"));
  run(peerName("cell-manager"), join(installation.directory, "cell-manager", "configuration.json"));
  const unknown = await ask("GET", "/cells/shop/model", undefined, newCredential("shop").credential);
  assert.equal(unknown.status, 401);
  assert.match(messageOf(unknown), /ask its operator for one \(cells credential add shop\)/);
  const { json: added } = await ask("POST", "/cells/shop/credentials", { note: "for a test" });
  const own = (added as NewCredential).credential;
  assert.deepEqual((await ask("GET", "/cells", undefined, own)).json, [
    ...((await ask("GET", "/cells")).json as CellSummary[]).filter(({ cell }) => cell === "shop"),
  ]);
  assert.equal((await ask("PUT", "/cells/shop/model", shop("web"), own)).status, 200);
  const refused = await ask("PUT", "/cells/other/model", { other: { "x.type": "Cell" } }, own);
  assert.equal(refused.status, 403);
  await eventually("all that can be asked run", async () => {
    const { services } = (await ask("GET", "/status")).json as InstallationStatus;
    const running = services.filter((service) => service.running).map(({ name }) => name);
    return running.sort().join() === "cell-manager,controller.root,controller.shop,gateway";
  });

  assert.equal((await ask("DELETE", "/cells/shop/model")).status, 200);
  // The root cell is at 6, or already at 7, where the Cell Manager has taken the controller's VM away by now.
  assert.match((await cells()).join(), /^root [67]$/);
  await eventually(`its VM is taken away\n${output}`, async () => (await components()).shop === undefined);
  await end(peerName("controller.shop"));
  await installation.forget(peerName("controller.shop"));
  await eventually(`nothing of it is left\n${output}`, async () => {
    const { json } = await ask("GET", "/cells/root/model?state=true");
    return !/shop/.test(JSON.stringify(json));
  });
  assert.equal((await ask("GET", "/cells/shop/model")).status, 404);
});

test("a child cell is seen and changed under its whole name, and ends with its element", async () => {
  const kid = { "x.type": "Cell", web: { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" } };
  const controllerOfKid = { "x.type": "CellController", "x.name": "kid", "x.cell": { kid } };
  const [made] = await Promise.all([
    ask("PUT", "/cells/team/model", { team: { "x.type": "Cell", kid: controllerOfKid } }),
    startAsHostsWould("team"),
    startAsHostsWould("kid-team"),
  ]);
  assert.equal(made.status, 200, JSON.stringify(made.json));
  await eventually(`the child has its first model\n${output}`, async () => (await cells()).includes("kid.team 1"));
  assert.deepEqual((await cells()).slice(1), ["team 2", "kid.team 1"]);
  assert.equal((await ask("GET", "/cells/kid.team/model/kid/web")).status, 200);
  const more = { ...kid, app: { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" } };
  assert.equal(((await ask("PUT", "/cells/kid.team/model", { kid: more })).json as Changed).version, 2);
  const own = ((await ask("POST", "/cells/kid.team/credentials", { note: "" })).json as NewCredential).credential;
  const seen = (await ask("GET", "/cells", undefined, own)).json as CellSummary[];
  assert.deepEqual(
    seen.map(({ cell }) => cell),
    ["kid.team"],
  );
  assert.equal((await ask("GET", "/cells/team/model", undefined, own)).status, 403, "not its parent's");
  const sister = await ask("PUT", "/cells/sister.team/model", { sister: { "x.type": "Cell" } });
  assert.match(messageOf(sister), /there is no cell "sister\.team", and none is made here/);

  assert.equal((await ask("DELETE", "/cells/team/model")).status, 200);
  for (const [cell, component] of [
    ["kid.team", "kid-team"],
    ["team", "team"],
  ] as const) {
    await eventually(`${cell} is taken away\n${output}`, async () => (await components())[component] === undefined);
    await end(peerName(`controller.${cell}`));
    await installation.forget(peerName(`controller.${cell}`));
  }
  await eventually(`nothing is left\n${output}`, async () => !/team/.test((await cells()).join()));
});

test("the Cell Manager may change controllers of cells and nothing else of the root cell; others not even those", async () => {
  const manager = JSON.parse(
    await readFile(join(installation.directory, "cell-manager", "configuration.json"), "utf8"),
  ) as ProcessConfiguration;
  const placer = (await installation.configure(peerName("placer"))).configuration;
  const status = async (by: ProcessConfiguration, method: string, path: string): Promise<number> => {
    const body = method === "PUT" ? { body: JSON.stringify({ vm: { "x.type": "VM", "x.memory": 64 } }) } : {};
    const answer = await peerRequest(by, peerName("controller.root"), { method, path: `/cells/root/${path}`, ...body });
    answer.body.destroy();
    return answer.status;
  };
  assert.equal(await status(manager, "PUT", "model/root/controllers/probe"), 200);
  assert.equal(await status(manager, "GET", "model/root/controllers/probe"), 200);
  assert.equal(await status(manager, "GET", "model/root/controllers"), 200);
  assert.equal(await status(manager, "PUT", "model/root/controllers"), 403);
  assert.equal(await status(manager, "DELETE", "model/root/controllers"), 403);
  for (const path of ["model", "model/root", "model/root/cells/x", "model/root/core1", "events"]) {
    assert.equal(await status(manager, "GET", path), 403, path);
    assert.equal(await status(manager, "PUT", path), 403, path);
  }
  assert.equal(await status(manager, "POST", "credentials"), 403);
  assert.equal(await status(placer, "GET", "model/root/controllers/probe"), 403);
  assert.equal(await status(placer, "DELETE", "model/root/controllers/probe"), 403);
  assert.equal(await status(gateway, "GET", "model/root/controllers/probe"), 401, "the gateway needs a credential");
  assert.equal(await status(manager, "DELETE", "model/root/controllers/probe"), 200);
  assert.equal(await status(manager, "GET", "model/root/controllers/probe?state=true&until=gone"), 404);
});

test("the root cell is not deleted, and what is taken out of its model ends", async () => {
  assert.match(messageOf(await ask("DELETE", "/cells/root/model")), /take out of it what is not to run any more/);
  assert.equal((await ask("PUT", "/cells/root/model", specification("core1", "core2", "core3"))).status, 200);
  assert.equal((await ask("GET", "/cells/root/model/root/core3")).status, 200);
  assert.equal((await ask("PUT", "/cells/root/model", specification("core1", "core2"))).status, 200);
  await eventually("it is gone", async () => (await ask("GET", "/cells/root/model/root/core3")).status === 404);
});

test("what cannot be is refused: a cell like the root cell, the end of the root cell, a controller that was never there", async () => {
  assert.match(messageOf(await ask("DELETE", "/cells/root/model")), /the cloud itself runs in the root cell/);
  assert.match(messageOf(await ask("GET", "/cells/none/model")), /there is no cell "none"; there are: root/);
  const empty = await ask("PUT", "/cells/shop/model", { other: { "x.type": "Cell" } });
  assert.match(messageOf(empty), /the specification is of the cell "other"/);
  for (const name of ["primary", "controller"]) {
    const answer = await ask("PUT", `/cells/${name}/model`, { [name]: { "x.type": "Cell" } });
    assert.equal(answer.status, 409);
    assert.match(messageOf(answer), new RegExp(`no new cell can be called "${name}"`));
  }
  const dotted = await ask("PUT", "/cells/web.shop/model", { web: { "x.type": "Cell" } });
  assert.equal(dotted.status, 404);
  assert.match(
    messageOf(dotted),
    /no cell "web\.shop", and none is made here: a name with dots is that of a child cell/,
  );
  const stranger = await fetch(`${url}/cells/root/model`, {
    method: "PUT",
    headers: { authorization: "Bearer of-a-tenant", "content-type": "application/json" },
    body: JSON.stringify({ root: { "x.type": "Cell" } }),
  });
  assert.equal(stranger.status, 401, "a tenant's credential changes nothing of the root cell");
  assert.deepEqual(await cells(), [(await cells())[0]]);
});

test("a user makes a cell of his account, changes and ends it, and of others' cells nothing, whatever a gateway claims", () =>
  usersMakeCells({
    installation,
    gateway,
    operator,
    ask,
    cells,
    components,
    specification,
    shop,
    start,
    startAsHostsWould,
    end,
    said: () => output,
    url: () => url,
  }));

const at = "10.0.0.40";
/** The primary cell, with the gateway that the root cell lets it have. */
const primary = (more: JsonObject = {}): JsonObject => ({
  primary: {
    "x.type": "Cell",
    "x.limits.vms": 4,
    "x.limits.memory": 1024,
    "x.limits.cpus": 4,
    net: { "x.type": "Subnet", "x.addressRange": "management" },
    gateway: {
      "x.type": "VM",
      "x.memory": 160,
      "x.desiredState": "off",
      "x.data": { service: { roles: { gateway: {} } } },
    },
    card: {
      "x.type": "VirtualInterface",
      "x.vm": "<ref:../gateway>",
      "x.subnet": "<ref:../net>",
      "x.address": at,
    },
    ...more,
  },
});

test("the primary cell comes with the root cell, is the operator's to see and to change, and stays while it is the way in", async () => {
  const made = { "x.type": "CellController", "x.name": "primary", "x.gateway": at, "x.cell": primary() };
  const { root } = specification("core1");
  const whole = { root: { ...(root as JsonObject), cells: { primary: made } } };
  const put = await ask("PUT", "/cells/root/model", whole);
  assert.equal(put.status, 200, JSON.stringify(put.json));
  await startAsHostsWould("primary");
  await eventually(`it has the model that it was made with\n${output}`, async () =>
    (await cells()).includes("primary 1"),
  );
  const { json } = await ask("POST", "/cells/primary/credentials", { note: "for a test" });
  const seen = (await ask("GET", "/cells", undefined, (json as NewCredential).credential)).json as CellSummary[];
  assert.deepEqual(
    seen.map(({ cell }) => cell),
    ["primary"],
    "the root cell is the operator's alone",
  );

  assert.equal((await ask("PUT", "/cells/primary/model", primary({ "x.limits.vms": 3 }))).status, 200);
  const wrong: readonly (readonly [JsonObject, RegExp])[] = [
    [{ card: { "x.type": "VM", "x.memory": 64 } }, /has no gateway at 10\.0\.0\.40/],
    [
      { gateway: { "x.type": "VM", "x.memory": 64, "x.data": { service: { roles: { placer: {} } } } } },
      /gateway alone/,
    ],
  ];
  for (const [change, words] of wrong) {
    const refused = await ask("PUT", "/cells/primary/model", primary(change));
    assert.equal(refused.status, 400);
    assert.match(JSON.stringify(refused.json), words);
  }
  for (const path of ["/cells/primary/model", "/cells/root/model/root/cells/primary"]) {
    const refused = await ask("DELETE", path);
    assert.equal(refused.status, 409);
    assert.match(messageOf(refused), /is the way into this cloud, whose gateway is at 10\.0\.0\.40/);
  }
  // Neither the same specification nor one that does not name it takes it away.
  for (const again of [whole, specification("core1", "core2")])
    assert.equal((await ask("PUT", "/cells/root/model", again)).status, 200);
  assert.ok((await cells()).includes("primary 2"));
});

/** As after a loss; resolves with the store of before. */
const loseRootStore = async (): Promise<Buffer> => {
  await end(peerName("controller.root"));
  const directory = join(installation.directory, "controller.root");
  const file = join(directory, "state.sqlite");
  const store = openStore(file);
  const copy = join(installation.directory, "root.copy");
  await store.copyTo(copy);
  store.close();
  for (const ending of ["", "-wal", "-shm"]) await rm(`${file}${ending}`, { force: true });
  openStore(file).close();
  run(peerName("controller.root"), join(directory, "configuration.json"));
  return readFile(copy);
};

test("without the root controller's store cells are seen and changed as ever, and it takes a copy of that store while it runs", async () => {
  const before = await cells();
  const kept = before.filter((each) => !each.startsWith("root "));
  assert.deepEqual(kept, ["primary 2"]);
  const copy = await loseRootStore();
  await eventually(
    `the root controller is blank\n${output}`,
    async () => (await ask("GET", "/cells/root")).status === 200,
  );
  assert.deepEqual(await cells(), ["root 0", ...kept], "the other cells are in the book");
  const changed = await ask("PUT", "/cells/primary/model", primary({ "x.limits.vms": 2 }));
  assert.equal(changed.status, 200, JSON.stringify(changed.json));
  const release = await ask("POST", "/orphans/controller.root");
  assert.deepEqual([release.status, (release.json as Refusal).error.code], [409, "orphans/blank"]);

  const child = alive.get(peerName("controller.root")) ?? assert.fail("it runs");
  const ended = once(child, "exit");
  const give = async (cell: string): Promise<number> => {
    const headers = { authorization: `Bearer ${operator}`, "content-type": "application/octet-stream" };
    return (await fetch(`${url}/cells/${cell}/store`, { method: "PUT", headers, body: new Uint8Array(copy) })).status;
  };
  assert.equal(await give("primary"), 409, "nobody doubts the store of that one");
  // Once somebody has told it that it is blank.
  await eventually(`it takes the copy\n${output}`, async () => (await give("root")) === 200);
  assert.deepEqual(await ended, [0, null]);
  run(peerName("controller.root"), join(installation.directory, "controller.root", "configuration.json"));
  await eventually(`it knows the cells again\n${output}`, async () => {
    const now = await cells();
    return now.includes(before[0] ?? "") && now.includes("primary 3");
  });
  const { json } = await ask("GET", "/cells/root/audit?verb=returnStore");
  const { records } = json as AuditPart;
  assert.deepEqual(
    records.map(({ who, target, source }) => [who, target, source]),
    [["operator", "root", "127.0.0.1"]],
  );
});

test("the first plan of a cell names what the root cell lets it have open, and the root cell's plan whom it concerns", async () => {
  const { root } = (await ask("GET", "/cells/root/model")).json as { readonly root: JsonObject };
  const open = { root: { ...root, "x.defaults.internet": "out" } };
  const opened = async (path: string, json: JsonObject): Promise<unknown> =>
    ((await ask("PUT", `/cells/${path}/model?dryRun=true`, json)).json as Changed).opened;
  const shops: JsonObject = { later: { "x.type": "Cell" } };
  assert.equal(await opened("later", shops), undefined);
  const [concerned] = ((await opened("root", open)) ?? []) as NonNullable<Changed["opened"]>;
  assert.deepEqual([concerned?.of, concerned?.cells], ["children", ["primary"]]);
  assert.equal((await ask("PUT", "/cells/root/model", open)).status, 200);
  const own = { attribute: "x.policy.internet", from: "none", to: "out", of: "own", cells: ["later"] };
  assert.deepEqual(await opened("later", shops), [own]);
});
