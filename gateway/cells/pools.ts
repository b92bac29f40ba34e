import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { poolHostWaits } from "../../core/documents/pools.ts";
import type { ElementState } from "../../model/api.ts";
import { whyNot } from "../../model/contract/actions/actions.ts";
import { leadsTo } from "../../model/contract/follow/leads-to.ts";
import type {
  Authorised,
  NewPool,
  NewPoolHost,
  PoolHostSummary,
  PoolSummary,
  PoolUse,
} from "../../model/contract/tenancy/pools.ts";
import { isObject, type Json, type JsonObject } from "../../model/json/json.ts";
import { type CellSource, changing, modelAt } from "../requests/cell-source.ts";
import { pageFor } from "../requests/paging.ts";
import { refused } from "../requests/refused.ts";
import { leaves, serveRoute } from "../requests/serve.ts";
import { usableBy } from "../requests/whole-hosts.ts";

/*
 * Pools by requests: each is read off the documents of the cells that whoever asks may see, and each change is one of a document, by his own
 * credential. So a pool is the same whoever has made it, and what somebody may is decided where it always is, by the cell's controller.
 *
 * A host is asked for by writing its element and looking what becomes of it: a specification would wait, a request is refused and leaves nothing.
 */
interface PoolHostThere extends PoolHostSummary {
  readonly document: JsonObject;
}
interface PoolThere {
  readonly summary: PoolSummary;
  readonly hosts: readonly PoolHostThere[];
  /** Names of all that stands in it, hosts or not. */
  readonly inside: ReadonlySet<string>;
  /** As it is written, without states. */
  readonly document: JsonObject;
  /** Of the cell's model. */
  readonly version: string;
}
interface Element {
  readonly path: string;
  readonly json: JsonObject;
  readonly state: ElementState | null;
}

/** All below it, in the order of the document. */
function* elementsIn(json: JsonObject, path: string): Generator<Element> {
  const { $state: state } = json;
  if (typeof json["x.type"] === "string")
    yield { path, json, state: isObject(state) ? (state as unknown as ElementState) : null };
  for (const [name, value] of Object.entries(json))
    if (isObject(value) && name !== "$state" && !name.startsWith("x."))
      yield* elementsIn(value, path === "" ? name : `${path}/${name}`);
}
const textIn = (json: JsonObject, name: string): string | null => {
  const value = json[name];
  return typeof value === "string" ? value : null;
};
const textsIn = (json: JsonObject, name: string): readonly string[] | null => {
  const value = json[name];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : null;
};
/** Without what is in it, and without its state. */
const attributesOf = (json: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(json).filter(([name]) => name.startsWith("x.")));
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

function poolsIn(cell: string, account: string | undefined, json: Json, version: string): readonly PoolThere[] {
  if (!isObject(json)) return [];
  const all = [...elementsIn(json, "")];
  const hostsOf = Map.groupBy(
    all.filter(({ json: element, state }) => element["x.type"] === "PoolHost" && state !== null),
    ({ path, json: written }) => leadsTo(json, { path, written }, "x.pool"),
  );
  return all.flatMap((pool): readonly PoolThere[] => {
    const { path, json: document, state } = pool;
    if (document["x.type"] !== "Pool" || state === null || state.phase === "deleting") return [];
    const hosts = (hostsOf.get(path) ?? []).flatMap((each) => (each.state === null ? [] : [hostOf(each, each.state)]));
    const { "x.cpuRatio": cpuRatio, "x.memoryPercent": memoryPercent } = document;
    const fill = textIn(document, "x.fill");
    const [offerings, images] = [textsIn(document, "x.offerings"), textsIn(document, "x.images")];
    const summary: PoolSummary = {
      uid: state.uid,
      cell,
      path,
      name: nameOf(path),
      account: account ?? null,
      hosts: hosts.length,
      authorised: textsIn(document, "x.authorised"),
      ...(typeof cpuRatio === "number" ? { cpuRatio } : {}),
      ...(typeof memoryPercent === "number" ? { memoryPercent } : {}),
      ...(fill === "spread" || fill === "pack" ? { fill } : {}),
      ...(offerings === null ? {} : { offerings }),
      ...(images === null ? {} : { images }),
    };
    const inside = new Set(Object.keys(document));
    return [{ summary, hosts, inside, document: attributesOf(document), version }];
  });
}
const hostOf = ({ path, json }: Element, { uid, phase, reason, vms = [] }: ElementState): PoolHostThere => ({
  uid,
  path,
  name: nameOf(path),
  phase,
  reason,
  vms,
  flavor: textIn(json, "x.flavor") ?? "",
  zone: textIn(json, "x.zone"),
  enabled: json["x.enabled"] === true,
  document: attributesOf(json),
});
const shownOf = ({ document: _document, ...host }: PoolHostThere): PoolHostSummary => host;

async function poolsOfCell(source: CellSource, cell: string, account?: string): Promise<readonly PoolThere[]> {
  const { json, version } = await source.ask(cell, { method: "GET", path: "model?state=true" });
  return poolsIn(cell, account, json, version);
}
/** `missing`: cells that do not answer. */
export async function listPools(
  source: CellSource,
): Promise<{ readonly pools: readonly PoolThere[]; readonly missing: readonly string[] }> {
  const missing: string[] = [];
  const left = [...(await source.cells())].sort(([one], [other]) => (one < other ? -1 : 1));
  const pools: PoolThere[] = [];
  while (left.length > 0) {
    const found = await Promise.all(
      left.splice(0, mostAtOnce).map(async ([cell, account]) => {
        try {
          return await poolsOfCell(source, cell, account);
        } catch (error) {
          // One that has no model yet has no pools, and neither has one that whoever asks may not read: not for him.
          if (!noneThere.has((error as { statusCode?: number }).statusCode)) missing.push(cell);
          return [];
        }
      }),
    );
    pools.push(...found.flat());
  }
  return { pools, missing };
}
const mostAtOnce = 16;
const noneThere: ReadonlySet<number | undefined> = new Set([403, 404]);

async function poolOf(source: CellSource, uid: string): Promise<PoolThere> {
  const { pools, missing } = await listPools(source);
  const found = pools.find(({ summary }) => summary.uid === uid);
  if (found !== undefined) return found;
  if (missing.length > 0)
    throw refused(
      503,
      "busy",
      `there is no pool ${uid} in cells that answer; these do not: ${missing.slice(0, 10).join(", ")}`,
    );
  throw refused(404, "not-found", `there is no pool ${uid}: \`GET /pools\` lists those that there are`);
}
function memberOf({ hosts, summary }: PoolThere, name: string): PoolHostThere {
  const found = hosts.find((each) => each.name === name);
  if (found !== undefined) return found;
  const all = hosts.map((each) => each.name).sort();
  const has = all.length === 0 ? "it has none" : `it has ${all.join(", ")}`;
  throw refused(404, "not-found", `there is no host ${name} in the pool ${summary.name}: ${has}`);
}

const put = (
  source: CellSource,
  { summary: { cell }, version }: Pick<PoolThere, "version"> & { readonly summary: { readonly cell: string } },
  path: string,
  body: JsonObject,
): Promise<unknown> => source.ask(cell, { method: "PUT", path: modelAt(path), body, version });

const useOf = ({ cpuRatio, memoryPercent, fill, offerings, images }: PoolUse): JsonObject => ({
  ...(cpuRatio === undefined ? {} : { "x.cpuRatio": cpuRatio }),
  ...(memoryPercent === undefined ? {} : { "x.memoryPercent": memoryPercent }),
  ...(fill === undefined ? {} : { "x.fill": fill }),
  ...(offerings === undefined ? {} : { "x.offerings": [...offerings] }),
  ...(images === undefined ? {} : { "x.images": [...images] }),
});

export const addPool = (source: CellSource, { cell, name, ...use }: NewPool): Promise<PoolSummary> =>
  changing(async () => {
    const cells = await source.cells();
    if (!cells.has(cell)) throw refused(404, "not-found", `there is no cell "${cell}"`);
    const { json, version } = await source.ask(cell, { method: "GET", path: "model" });
    const [component] = isObject(json) ? Object.keys(json).filter((key) => !key.startsWith("$")) : [];
    const path = `${component}/${name}`;
    if (isObject(json) && isObject(json[component ?? ""]) && Object.hasOwn(json[component ?? ""] as JsonObject, name))
      throw refused(409, "conflict", `there is ${path} already: give the pool another name`);
    await put(source, { summary: { cell }, version }, path, { "x.type": "Pool", ...useOf(use) });
    const made = (await poolsOfCell(source, cell, cells.get(cell))).find(({ summary }) => summary.path === path);
    if (made === undefined) throw refused(409, "conflict", `${path} was taken away meanwhile`);
    return made.summary;
  });

export const readPool = async (source: CellSource, uid: string): Promise<PoolSummary> =>
  (await poolOf(source, uid)).summary;
export const listPoolHosts = async (source: CellSource, uid: string): Promise<readonly PoolHostSummary[]> =>
  (await poolOf(source, uid)).hosts.map(shownOf);

/** With what else is in it: hosts may stand inside of their pool. */
async function rewrite(source: CellSource, pool: PoolThere, document: JsonObject): Promise<void> {
  const { path, cell } = pool.summary;
  const { json } = await source.ask(cell, { method: "GET", path: modelAt(path) });
  const inside = Object.entries(isObject(json) ? json : {}).filter(([name]) => !name.startsWith("x."));
  await put(source, pool, path, { ...document, ...Object.fromEntries(inside) });
}
const useAttributes: ReadonlySet<string> = new Set(
  ["cpuRatio", "memoryPercent", "fill", "offerings", "images"].map((name) => `x.${name}`),
);
export const changePool = async (source: CellSource, uid: string, use: PoolUse): Promise<PoolSummary> => {
  await changing(async () => {
    const pool = await poolOf(source, uid);
    const kept = Object.entries(pool.document).filter(([name]) => !useAttributes.has(name));
    await rewrite(source, pool, { ...Object.fromEntries(kept), ...useOf(use) });
  });
  return await readPool(source, uid);
};
export const setAuthorised = async (
  source: CellSource,
  uid: string,
  { authorised }: Authorised,
): Promise<Authorised> => {
  await changing(async () => {
    const pool = await poolOf(source, uid);
    const { "x.authorised": _before, ...kept } = pool.document;
    await rewrite(source, pool, { ...kept, ...(authorised === null ? {} : { "x.authorised": [...authorised] }) });
  });
  return { authorised: (await readPool(source, uid)).authorised };
};
export const deletePool = (source: CellSource, uid: string): Promise<{ readonly removed: string }> =>
  changing(async () => {
    const { summary, hosts, version } = await poolOf(source, uid);
    const against = whyNot("deletePool", null, { pool: summary.name, hosts: hosts.map(({ name }) => name) });
    if (against !== null) throw refused(409, "conflict", against.why);
    await source.ask(summary.cell, { method: "DELETE", path: modelAt(summary.path), version });
    return { removed: summary.name };
  });

interface AddLimits {
  /** Within which it has to be said whether there is one. */
  readonly longestMs: number;
  /** Whoever asks has left. */
  readonly signal: AbortSignal;
}
export async function addPoolHost(
  source: CellSource,
  uid: string,
  { name, flavor, zone }: NewPoolHost,
  { longestMs = 30_000, signal }: Partial<AddLimits> = {},
): Promise<PoolHostSummary> {
  const { cell, path } = await changing(async () => {
    const pool = await poolOf(source, uid);
    const inPool = `${pool.summary.path}/${name}`;
    if (pool.hosts.some((each) => each.name === name))
      throw refused(409, "conflict", `the pool ${pool.summary.name} has a host ${name} already: give it another name`);
    if (pool.inside.has(name)) throw refused(409, "conflict", `there is ${inPool} already: give the host another name`);
    const { flavors } = await source.holdings();
    if (!flavors.some((each) => each.name === flavor)) {
      const all = flavors.map((each) => each.name).join(", ");
      const there = all === "" ? "the operator has defined none" : `there are ${all}`;
      throw refused(400, "bad-request", `there is no host flavour ${flavor}: ${there}`);
    }
    const element = { "x.type": "PoolHost", "x.pool": "<ref:..>", "x.flavor": flavor };
    await put(source, pool, inPool, { ...element, ...(zone === undefined ? {} : { "x.zone": zone }) });
    return { cell: pool.summary.cell, path: inPool };
  });
  for (let waitedMs = 0; ; waitedMs += lookAgainMs) {
    const pool = (await poolsOfCell(source, cell)).find(({ summary }) => summary.uid === uid);
    const host = pool?.hosts.find((each) => each.path === path);
    if (host === undefined) throw refused(409, "conflict", `${path} was taken away meanwhile`);
    if (host.phase === "ready") return shownOf(host);
    const isOver = waitedMs >= longestMs || signal?.aborted === true;
    if (isOver || (host.reason !== null && host.reason !== poolHostWaits)) {
      await changing(() => source.ask(cell, { method: "DELETE", path: modelAt(path) }));
      if (isOver)
        throw refused(503, "busy", `nobody has said in time whether a host of ${flavor} is free; nothing was kept`);
      throw refused(409, "conflict", host.reason ?? "");
    }
    await sleep(lookAgainMs);
  }
}
const lookAgainMs = 100;

export const changePoolHost = async (
  source: CellSource,
  uid: string,
  name: string,
  { enabled }: { readonly enabled: boolean },
): Promise<PoolHostSummary> => {
  await changing(async () => {
    const pool = await poolOf(source, uid);
    const { path, document } = memberOf(pool, name);
    const { "x.enabled": _before, ...kept } = document;
    await put(source, pool, path, { ...kept, ...(enabled ? { "x.enabled": true } : {}) });
  });
  return shownOf(memberOf(await poolOf(source, uid), name));
};
export const removePoolHost = (source: CellSource, uid: string, name: string): Promise<{ readonly removed: string }> =>
  changing(async () => {
    const pool = await poolOf(source, uid);
    const { path } = memberOf(pool, name);
    await source.ask(pool.summary.cell, { method: "DELETE", path: modelAt(path), version: pool.version });
    return { removed: name };
  });

export function registerPools(app: FastifyInstance, sourceOf: (request: FastifyRequest) => CellSource): void {
  serveRoute(app, "listFlavors", async ({ request, query }, reply) =>
    pageFor("listFlavors", (await sourceOf(request).holdings()).flavors, query, reply),
  );
  serveRoute(app, "listDedications", async ({ request, query }, reply) =>
    pageFor(
      "listDedications",
      query.cell === undefined
        ? (await sourceOf(request).holdings()).dedications
        : await usableBy(sourceOf(request), query.cell),
      query,
      reply,
    ),
  );
  serveRoute(app, "listPools", async ({ request, query }, reply) => {
    const { pools, missing } = await listPools(sourceOf(request));
    if (missing.length > 0) reply.header("cells-missing", missing.slice(0, 50).join(","));
    const all = pools.map(({ summary }) => summary);
    return pageFor("listPools", all, query, reply);
  });
  serveRoute(app, "addPool", async ({ request, body }, reply) => {
    reply.code(201);
    return await addPool(sourceOf(request), body as NewPool);
  });
  serveRoute(app, "readPool", ({ request, parameters: { uid } }) => readPool(sourceOf(request), uid));
  serveRoute(app, "changePool", ({ request, parameters: { uid }, body }) =>
    changePool(sourceOf(request), uid, body as PoolUse),
  );
  serveRoute(app, "deletePool", ({ request, parameters: { uid } }) => deletePool(sourceOf(request), uid));
  serveRoute(app, "listPoolHosts", async ({ request, parameters: { uid }, query }, reply) =>
    pageFor("listPoolHosts", await listPoolHosts(sourceOf(request), uid), query, reply),
  );
  serveRoute(app, "addPoolHost", async ({ request, parameters: { uid }, body }, reply) => {
    reply.code(201);
    return await addPoolHost(sourceOf(request), uid, body as NewPoolHost, { signal: leaves(reply) });
  });
  serveRoute(app, "changePoolHost", ({ request, parameters: { uid, name }, body }) =>
    changePoolHost(sourceOf(request), uid, name, body as { readonly enabled: boolean }),
  );
  serveRoute(app, "removePoolHost", ({ request, parameters: { uid, name } }) =>
    removePoolHost(sourceOf(request), uid, name),
  );
  serveRoute(app, "readAuthorised", async ({ request, parameters: { uid } }) => {
    const { authorised } = await readPool(sourceOf(request), uid);
    return { authorised };
  });
  serveRoute(app, "setAuthorised", ({ request, parameters: { uid }, body }) =>
    setAuthorised(sourceOf(request), uid, body as Authorised),
  );
}
