import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import fastify from "fastify";
import { World } from "../../core/controller/world.testing.ts";
import type { PoolAsked, PoolHostGiven } from "../../core/documents/pools.ts";
import { toJson } from "../../core/outbox.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { noUsage, type Usage } from "../../model/check/check-limits.ts";
import { isObject, type Json, type JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import type { CellSource } from "../requests/cell-source.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerPools } from "./pools.ts";

const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as Usage;
const cellManager = peerName("cell-manager");
const empty: JsonObject = {
  shop: { "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" } },
};

/** The controller of a cell of an account, and of the installation around it how many hosts of a flavour are free. */
class Cell {
  readonly world = new World({ child: true });
  readonly given = new Map<string, PoolHostGiven>();
  /** Where VMs stand, by the UID of the PoolHost. */
  readonly vms = new Map<string, readonly string[]>();
  free = 2;

  constructor() {
    this.#hears();
    this.world.settle();
  }
  /** What it asks for is answered as the root controller does. */
  answers(): void {
    if (!this.isHeard) return;
    const said = this.world.effects.findLast((effect) => effect.kind === "publish" && effect.key.endsWith("/life"));
    const life = said?.kind === "publish" ? (said.value as { readonly pools?: readonly PoolAsked[] } | null) : null;
    const asked = life?.pools ?? [];
    const all = new Set<string>(asked.flatMap(({ hosts }) => hosts.map(({ uid }) => uid)));
    for (const uid of this.given.keys())
      if (!all.has(uid)) {
        if (this.given.get(uid)?.reason === null) this.free += 1;
        this.given.delete(uid);
      }
    for (const { hosts } of asked)
      for (const { uid, flavor } of hosts) {
        if (this.given.get(uid)?.reason !== null) this.given.delete(uid);
        if (!this.given.has(uid) && this.free > 0) {
          this.free -= 1;
          this.given.set(uid, { uid, reason: null, vms: [] });
        } else if (!this.given.has(uid)) this.given.set(uid, { uid, reason: `no host of ${flavor} is free`, vms: [] });
      }
    this.#hears();
  }
  #hears(): void {
    const grant = { amount: room, serial: 1, answered: 0, refusal: null };
    const pools = [...this.given.values()].map((each) => ({ ...each, vms: this.vms.get(each.uid) ?? [] }));
    const life = { uid: "root-1", model: empty, grant, ending: false, ...(pools.length === 0 ? {} : { pools }) };
    this.world.step({ kind: "desired", from: cellManager, key: "life", value: toJson(life) });
  }
  document = (): Json => this.world.ask({ method: "GET", path: "" }).body;
  /** False: nobody answers what it asks for. */
  isHeard = true;
  /** What a second cell answers to everything; null: there is none. */
  others: RefusedError | null = null;
  /** Requests to it, in order. */
  readonly asked: string[] = [];
  source: CellSource = {
    cells: async () =>
      new Map([["shop", "ROOT/acme/dev"], ...(this.others === null ? [] : ([["bank", "ROOT/acme"]] as const))]),
    ask: async (cell, { method, path, body, version }) => {
      this.asked.push(`${method} ${cell}`);
      if (cell !== "shop") throw this.others;
      const [at = "", query = ""] = path.replace(/^model\/?/, "").split("?");
      const answer = this.world.ask({
        method,
        path: decodeURIComponent(at),
        state: query === "state=true",
        ...(body === undefined ? {} : { json: body }),
        ...(version === undefined ? {} : { ifMatch: Number(version.replaceAll('"', "")) }),
      });
      this.world.settle();
      this.answers();
      if (answer.status === 200) return { json: answer.body, version: `"${answer.version}"` };
      const { error } = answer.body as unknown as { error: RefusedError["refusal"] };
      throw new RefusedError(answer.status, error);
    },
    holdings: async () => ({
      flavors: [{ name: "large", description: "32 processors", units: 4, free: this.free }],
      dedications: [{ of: "z1/p1", level: "pod", to: { kind: "domain", path: "ROOT/acme" } }],
    }),
  };
}

type Ask = (
  method: "GET" | "POST" | "PUT" | "DELETE",
  url: string,
  body?: JsonObject,
) => Promise<{ readonly status: number; readonly body: Json }>;
/** The requests of pools, served for one cell. */
async function served(t: TestContext, cell: Cell): Promise<{ readonly url: string; readonly ask: Ask }> {
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) => {
    if (!(error instanceof RefusedError)) throw error;
    return reply.code(error.statusCode).send({ error: error.refusal });
  });
  registerPools(app, () => cell.source);
  await app.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => app.close());
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const ask: Ask = async (method, path, body) => {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const answer = await fetch(`${url}${path}`, { method, ...init });
    return { status: answer.status, body: (await answer.json()) as Json };
  };
  return { url, ask };
}
/** `cells …` against it; what it prints. */
async function command(url: string, words: readonly string[]): Promise<string> {
  const programs = join(import.meta.dirname, "../../cli");
  const load = async (name: string) =>
    (await import(pathToFileURL(join(programs, name)).href)) as Record<string, never>;
  const { createProgram } = (await load("program/program.ts")) as unknown as {
    createProgram(context: (output: string) => object): {
      parseAsync(words: readonly string[], from: object): Promise<unknown>;
    };
  };
  const { createContext } = (await load("context/context.ts")) as unknown as {
    createContext(output: string, client: () => unknown): { readonly terminal: object };
  };
  const { Client } = (await load("connection/client.ts")) as unknown as { Client: new (options: object) => unknown };
  const printed: string[] = [];
  const program = createProgram((output) => {
    const context = createContext(output, () => new Client({ url, credential: "secret" }));
    return {
      ...context,
      terminal: { ...context.terminal, live: false, print: (line: string) => void printed.push(line) },
    };
  });
  await program.parseAsync(words, { from: "user" });
  return printed.join("\n");
}
const inShop = (inside: JsonObject): JsonObject => ({ shop: { ...(empty.shop as JsonObject), ...inside } });
const uidOf = (body: Json): string => (isObject(body) ? String(body.uid) : "");

test("a text, requests and commands make the same document", async (t) => {
  const [byText, byRequests, byCommands] = [new Cell(), new Cell(), new Cell()];
  const racks: JsonObject = {
    "x.type": "Pool",
    "x.authorised": ["ROOT/acme/dev", "ROOT/acme/ops"],
    "x.cpuRatio": 2,
    "x.memoryPercent": 80,
    "x.fill": "pack",
    "x.offerings": ["small", "large"],
    "x.images": ["debian"],
    rack1: { "x.type": "PoolHost", "x.pool": "<ref:..>", "x.flavor": "large", "x.enabled": true },
    rack2: { "x.type": "PoolHost", "x.pool": "<ref:..>", "x.flavor": "large", "x.zone": "z1" },
  };
  assert.equal(byText.world.ask({ method: "PUT", path: "", json: inShop({ racks }) }).status, 200);

  const { ask } = await served(t, byRequests);
  const made = await ask("POST", "/pools", {
    cell: "shop",
    name: "racks",
    cpuRatio: 2,
    memoryPercent: 80,
    fill: "pack",
    offerings: ["small", "large"],
    images: ["debian"],
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const at = `/pools/${uidOf(made.body)}`;
  assert.equal((await ask("PUT", `${at}/authorised`, { authorised: ["ROOT/acme/dev", "ROOT/acme/ops"] })).status, 200);
  const first = await ask("POST", `${at}/hosts`, { name: "rack1", flavor: "large" });
  assert.equal(first.status, 201, JSON.stringify(first.body));
  assert.equal((await ask("PUT", `${at}/hosts/rack1`, { enabled: true })).status, 200);
  assert.equal((await ask("POST", `${at}/hosts`, { name: "rack2", flavor: "large", zone: "z1" })).status, 201);

  const { url } = await served(t, byCommands);
  for (const words of [
    "pool create shop/racks --cpu-ratio 2 --memory-percent 80 --fill pack --offerings small large --images debian",
    "pool authorise shop/racks acme/dev acme/ops",
    "pool add shop/racks rack1 --flavor large",
    "pool enable racks rack1",
    "pool add racks rack2 --flavor large --zone z1",
  ])
    await command(url, words.split(" "));
  assert.deepEqual(byRequests.document(), byText.document());
  assert.deepEqual(byCommands.document(), byText.document());

  const { body } = await ask("GET", at);
  assert.deepEqual(body, {
    uid: uidOf(made.body),
    cell: "shop",
    path: "shop/racks",
    name: "racks",
    account: "ROOT/acme/dev",
    hosts: 2,
    authorised: ["ROOT/acme/dev", "ROOT/acme/ops"],
    cpuRatio: 2,
    memoryPercent: 80,
    fill: "pack",
    offerings: ["small", "large"],
    images: ["debian"],
  });
  assert.match(
    await command(url, ["pool", "list"]),
    /^shop\/racks +\S+ +2 hosts +2 virtual processors each; 80 % of memory; packs; of small, large; from debian; for ROOT\/acme\/dev, ROOT\/acme\/ops$/,
  );
  assert.match(
    await command(url, ["pool", "show", "racks"]),
    /rack1 +large +enabled +no VMs\nrack2 +large +z1 +disabled +no VMs$/,
  );
  assert.match(await command(url, ["pool", "flavors"]), /^large +4 units +0 free +32 processors$/);
});

test("a host of which none is free is refused by a request, and nothing stays, and waits in a text", async (t) => {
  const cell = new Cell();
  cell.free = 0;
  const { ask } = await served(t, cell);
  const at = `/pools/${uidOf((await ask("POST", "/pools", { cell: "shop", name: "racks" })).body)}`;
  const before = cell.document();
  const refused = await ask("POST", `${at}/hosts`, { name: "rack1", flavor: "large" });
  assert.deepEqual(
    [refused.status, refused.body],
    [409, { error: { code: "conflict", message: "no host of large is free" } }],
  );
  assert.deepEqual(cell.document(), before);
  cell.world.ask({
    method: "PUT",
    path: "shop/racks/rack1",
    json: { "x.type": "PoolHost", "x.pool": "<ref:/shop/racks>", "x.flavor": "large" },
  });
  cell.world.settle();
  cell.answers();
  const [host] = (await ask("GET", `${at}/hosts`)).body as unknown as readonly JsonObject[];
  assert.deepEqual([host?.phase, host?.reason], ["waiting", "no host of large is free"]);
});

test("what stands against a request is said, and nothing is touched", async (t) => {
  const cell = new Cell();
  const { ask } = await served(t, cell);
  const at = `/pools/${uidOf((await ask("POST", "/pools", { cell: "shop", name: "racks" })).body)}`;
  const { body: rack } = await ask("POST", `${at}/hosts`, { name: "rack1", flavor: "large" });
  await ask("PUT", `${at}/hosts/rack1`, { enabled: true });
  cell.vms.set(uidOf(rack), ["c9-1"]);
  cell.answers();
  const before = cell.document();
  const refusals: readonly (readonly [Parameters<Ask>, number, RegExp])[] = [
    [["POST", "/pools", { cell: "bank", name: "racks" }], 404, /there is no cell \\"bank\\"/],
    [["POST", "/pools", { cell: "shop", name: "vm" }], 409, /there is shop\/vm already/],
    [["POST", "/pools", { cell: "shop", name: "Racks" }], 400, /at name/],
    [["POST", "/pools", { cell: "shop", name: "more", cpuRatio: 0 }], 400, /at cpuRatio/],
    [["POST", "/pools", { cell: "shop", name: "more", memoryPercent: 101 }], 400, /at memoryPercent/],
    [["GET", "/pools/c9-9"], 404, /there is no pool c9-9/],
    [["DELETE", at], 409, /the pool racks has hosts: rack1/],
    [["POST", `${at}/hosts`, { name: "rack1", flavor: "large" }], 409, /has a host rack1 already/],
    [["POST", `${at}/hosts`, { name: "rack2", flavor: "huge" }], 400, /there is no host flavour huge: there are large/],
    [["PUT", `${at}/hosts/rack9`, { enabled: true }], 404, /there is no host rack9 in the pool racks: it has rack1/],
    [
      ["DELETE", `${at}/hosts/rack1`],
      400,
      /is enabled and has the VMs c9-1, and leaves its pool only disabled and empty/,
    ],
    [["PUT", `${at}/authorised`, { authorised: ["acme"] }], 400, /is no path of an account/],
  ];
  for (const [request, status, says] of refusals) {
    const answer = await ask(...request);
    assert.equal(answer.status, status, `${request[0]} ${request[1]} ${JSON.stringify(answer.body)}`);
    assert.match(JSON.stringify(answer.body), says);
  }
  assert.deepEqual(cell.document(), before);
  const [shown] = (await ask("GET", `${at}/hosts`)).body as unknown as readonly JsonObject[];
  assert.deepEqual(shown?.vms, ["c9-1"]);
  // What was said to do is done.
  const { body: other } = await ask("POST", "/pools", { cell: "shop", name: "another" });
  assert.equal((await ask("DELETE", `/pools/${uidOf(other)}`)).status, 200);
  assert.equal((await ask("POST", `${at}/hosts`, { name: "rack2", flavor: "large" })).status, 201);
  assert.equal((await ask("DELETE", `${at}/hosts/rack2`)).status, 200);
  cell.vms.clear();
  cell.answers();
  await ask("PUT", `${at}/hosts/rack1`, { enabled: false });
  assert.equal((await ask("DELETE", `${at}/hosts/rack1`)).status, 200);
  cell.answers();
  assert.equal((await ask("DELETE", at)).status, 200);
  assert.deepEqual(cell.document(), empty);
});

test("a pool whose path has signs of an address is the one that is changed, and no other element", async (t) => {
  const cell = new Cell();
  const racks: JsonObject = { "x.type": "Pool" };
  const json = inShop({ "vm?x": { racks }, "vm#y": { racks }, "vm%3F": { racks } });
  const put = cell.world.ask({ method: "PUT", path: "", json });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  cell.world.settle();
  const { ask } = await served(t, cell);
  for (const path of ["shop/vm?x/racks", "shop/vm#y/racks", "shop/vm%3F/racks"]) {
    const all = (await ask("GET", "/pools")).body as unknown as readonly JsonObject[];
    const at = `/pools/${all.find((each) => each.path === path)?.uid}`;
    const changed = await ask("PUT", at, { fill: "pack" });
    assert.deepEqual([changed.status, (changed.body as JsonObject).path], [200, path], JSON.stringify(changed.body));
    const added = await ask("POST", `${at}/hosts`, { name: "rack1", flavor: "large" });
    assert.deepEqual([added.status, (added.body as JsonObject).path], [201, `${path}/rack1`]);
    assert.equal((await ask("PUT", `${at}/hosts/rack1`, { enabled: false })).status, 200);
    assert.equal((await ask("DELETE", `${at}/hosts/rack1`)).status, 200);
    cell.answers();
    assert.equal((await ask("DELETE", at)).status, 200);
    cell.answers();
  }
  assert.deepEqual((cell.document() as { shop: JsonObject }).shop.vm, (empty.shop as JsonObject).vm);
});

test("a host is written over nothing that stands in its pool", async (t) => {
  const cell = new Cell();
  const { ask } = await served(t, cell);
  const at = `/pools/${uidOf((await ask("POST", "/pools", { cell: "shop", name: "racks" })).body)}`;
  const put = cell.world.ask({ method: "PUT", path: "shop/racks/disk", json: { inside: {} } });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  cell.world.settle();
  const before = cell.document();
  const refused = await ask("POST", `${at}/hosts`, { name: "disk", flavor: "large" });
  assert.equal(refused.status, 409);
  assert.match(JSON.stringify(refused.body), /there is shop\/racks\/disk already: give the host another name/);
  assert.deepEqual(cell.document(), before);
  assert.equal((await ask("POST", `${at}/hosts`, { name: "disk2", flavor: "large" })).status, 201);
});

test("a cell that whoever asks may not read has no pools for him, and one that is silent is named", async (t) => {
  const cell = new Cell();
  const { ask } = await served(t, cell);
  for (const [status, missing] of [
    [403, 404],
    [404, 404],
    [502, 503],
  ] as const) {
    cell.others = new RefusedError(status, { code: "forbidden", message: "not for you" });
    assert.equal((await ask("GET", "/pools/c9-9")).status, missing, String(status));
  }
});

test("each list comes in pages for whoever asks for that, and as a whole for others", async (t) => {
  const cell = new Cell();
  const { url, ask } = await served(t, cell);
  for (const name of ["c", "a", "b"]) await ask("POST", "/pools", { cell: "shop", name });
  const pages = async (path: string, limit = 1): Promise<readonly JsonObject[]> => {
    const seen: JsonObject[] = [];
    for (let after = ""; ; ) {
      const answer = await fetch(`${url}${path}?limit=${limit}${after === "" ? "" : `&after=${after}`}`);
      const items = (await answer.json()) as readonly JsonObject[];
      assert.ok(items.length <= limit);
      seen.push(...items);
      after = answer.headers.get("cells-next") ?? "";
      if (after === "") return seen;
    }
  };
  const byName = (all: Json) => (all as readonly JsonObject[]).map(({ name }) => String(name)).sort();
  const whole = await ask("GET", "/pools");
  assert.deepEqual(byName(await pages("/pools")), byName(whole.body));
  assert.deepEqual(byName(whole.body), ["a", "b", "c"]);
  const [first] = whole.body as readonly JsonObject[];
  const at = `/pools/${first?.uid}/hosts`;
  for (const name of ["y", "x"]) assert.equal((await ask("POST", at, { name, flavor: "large" })).status, 201);
  assert.deepEqual(byName(await pages(at)), ["x", "y"]);
  for (const path of ["/flavors", "/dedications"])
    assert.deepEqual(await pages(path), (await ask("GET", path)).body, path);
  assert.equal((await ask("GET", "/flavors?after=0000000000006c")).status, 400);
});

test("whoever waits for a host has its cell alone asked, and leaves nothing when he goes", async (t) => {
  const cell = new Cell();
  const { url, ask } = await served(t, cell);
  const at = `/pools/${uidOf((await ask("POST", "/pools", { cell: "shop", name: "racks" })).body)}`;
  const before = cell.document();
  cell.others = new RefusedError(403, { code: "forbidden", message: "not for you" });
  cell.isHeard = false;
  const left = new AbortController();
  const waits = fetch(`${url}${at}/hosts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    signal: left.signal,
    body: JSON.stringify({ name: "rack1", flavor: "large" }),
  });
  const waiting = assert.rejects(waits, { name: "AbortError" });
  const after = (count: number) => async () => cell.asked.slice(cell.asked.indexOf("PUT shop") + 1).length >= count;
  cell.asked.length = 0;
  await eventually("it is looked at", async () => cell.asked.includes("PUT shop") && (await after(3)()));
  assert.ok(!cell.asked.slice(cell.asked.indexOf("PUT shop")).includes("GET bank"));
  cell.asked.length = 0;
  left.abort();
  await waiting;
  await eventually("it is taken back", async () => cell.asked.at(-1) === "DELETE shop");
  assert.ok(cell.asked.length < 20, `and nothing is asked for nobody: ${cell.asked.length} requests`);
  assert.deepEqual(cell.document(), before);
});

test("every command about pools of the page for tenants does what it says there", async (t) => {
  const cell = new Cell();
  const { url } = await served(t, cell);
  const page = readFileSync(join(import.meta.dirname, "../../docs/tenants.md"), "utf8");
  const lines = [...page.matchAll(/^cells (pool .*?)(?: +#.*)?$/gm)].map(([, words = ""]) => words);
  assert.ok(lines.length >= 10, `${lines.length} commands were found`);
  const printed: string[] = [];
  for (const line of lines) {
    printed.push(await command(url, line.split(" ")));
    cell.world.settle();
    cell.answers();
  }
  const all = printed.join("\n");
  for (const says of [
    /^large +4 units +2 free/m,
    /^the pool shop\/racks is there; VMs of other cells ask for it by \S+$/m,
    /^shop\/racks has the host rack1, disabled/m,
    /^rack1 +large +enabled +no VMs$/m,
    /^shop\/racks is for ROOT\/acme\/dev, ROOT\/acme\/test$/m,
    /^rack1 leaves shop\/racks$/m,
    /^the pool shop\/racks is deleted$/m,
  ])
    assert.match(all, says);
  assert.deepEqual(cell.document(), empty);
});
