import type { FastifyInstance, FastifyRequest } from "fastify";
import {
  dedicate,
  type Guest,
  groupOf,
  mayUse,
  type Owner,
  ownerIn,
  upFrom,
} from "../../model/cell/tenants/dedication/dedication.ts";
import {
  accountOf,
  dedicationElement,
  freeName,
  type Written,
  writtenIn,
} from "../../model/cell/tenants/dedication/written.ts";
import { elementsOf } from "../../model/contract/follow/rows.ts";
import type {
  Dedicated,
  ListedDedication,
  ListedFlavor,
  NewDedication,
  NewFlavor,
} from "../../model/contract/tenancy/pools.ts";
import { isObject, type Json } from "../../model/json/json.ts";
import { type CellSource, changing, modelAt } from "./cell-source.ts";
import { refused } from "./refused.ts";
import { serveRoute } from "./serve.ts";

/*
 * Host flavours and dedications by requests of the operator. Each is an element of the root cell, as a specification or a command writes it, and the
 * root controller decides. What it cannot see, whose VMs run there, is looked at here.
 */
const root = "root";

async function rootModel(source: CellSource): Promise<{ readonly json: Json; readonly version: string }> {
  return await source.ask(root, { method: "GET", path: "model?state=true" });
}
const within = (json: Json, ...names: readonly string[]): Json =>
  names.reduce<Json>((at, name) => (isObject(at) ? (at[name] ?? null) : null), json);

export const addFlavor = (source: CellSource, { name, description, units }: NewFlavor): Promise<ListedFlavor> =>
  changing(async () => {
    const { json, version } = await rootModel(source);
    if (within(json, root, "flavors", name) !== null)
      throw refused(409, "conflict", `there is a host flavour ${name} already: give this one another name`);
    const element = { "x.type": "HostFlavor", "x.units": units };
    const body = { ...element, ...(description === undefined ? {} : { "x.description": description }) };
    await source.ask(root, { method: "PUT", path: modelAt(`root/flavors/${name}`), body, version });
    return { name, description: description ?? "", units, free: 0, hosts: [] };
  });

export const removeFlavor = (source: CellSource, name: string): Promise<{ readonly removed: string }> =>
  changing(async () => {
    const { json, version } = await rootModel(source);
    const flavors = within(json, root, "flavors");
    if (within(flavors, name) === null) {
      const all = Object.keys(isObject(flavors) ? flavors : {}).filter((each) => !each.startsWith("$"));
      const there = all.length === 0 ? "none is defined" : `there are ${all.sort().join(", ")}`;
      throw refused(404, "not-found", `there is no host flavour ${name}: ${there}`);
    }
    await source.ask(root, { method: "DELETE", path: modelAt(`root/flavors/${name}`), version });
    return { removed: name };
  });

/** VMs of accounts at hosts in a resource. Of a cell that does not answer nobody knows, so nothing is given away meanwhile. */
async function guestsIn(source: CellSource, written: Written, of: string): Promise<readonly Guest[]> {
  const guests: Guest[] = [];
  for (const cell of (await source.cells()).keys()) {
    if (cell === root) continue;
    const model = await source.ask(cell, { method: "GET", path: "model?state=true" }).catch((error: unknown) => {
      // One that has no model yet has no VMs.
      if ((error as { statusCode?: number }).statusCode === 404) return null;
      throw error;
    });
    if (model === null) continue;
    const account = accountOf(written, cell);
    for (const { path, type, state } of elementsOf(model.json, "")) {
      const host = state.host ?? null;
      if (type !== "VM" || host === null || ![...upFrom(written.tree, host)].includes(of)) continue;
      guests.push({ vm: [cell, ...path.split("/").slice(1)].join("/"), host, account });
    }
  }
  return guests;
}

/** Of what whoever asks is told, that which machines of the cell may ask for. */
export async function usableBy(source: CellSource, cell: string): Promise<readonly ListedDedication[]> {
  const cells = await source.cells();
  if (!cells.has(cell)) throw refused(404, "not-found", `there is no cell "${cell}"`);
  const account = cells.get(cell) ?? accountOf(writtenIn((await rootModel(source)).json), cell);
  return (await source.holdings()).dedications.filter(({ to }) => mayUse(to, account));
}

/** Rejects with a refusal where there is no such domain or account. */
export type OwnerThere = (owner: Owner) => Promise<void>;

export const addDedication = (
  source: CellSource,
  { of, domain, account }: NewDedication,
  isThere: OwnerThere,
): Promise<Dedicated> =>
  changing(async () => {
    const to = ownerIn(domain, account);
    await isThere(to);
    const { json, version } = await rootModel(source);
    const written = writtenIn(json);
    const guests = written.tree.has(of) ? await guestsIn(source, written, of) : [];
    const outcome = dedicate(written.tree, written.dedications, of, to, guests);
    if (!outcome.ok) {
      const { kind, why, hint } = outcome.refused;
      throw refused(kind === "invalid" ? 400 : 409, kind === "invalid" ? "bad-request" : "conflict", `${why}. ${hint}`);
    }
    const name = freeName(of, written);
    await source.ask(root, {
      method: "PUT",
      path: modelAt(`root/dedications/${name}`),
      body: dedicationElement(of, to),
      version,
    });
    const made = within((await rootModel(source)).json, root, "dedications", name, "$state", "uid");
    return {
      ...(typeof made === "string" ? { uid: made } : {}),
      of,
      level: written.tree.get(of)?.level ?? "host",
      to,
      group: groupOf(to),
      released: outcome.released,
    };
  });

export const releaseDedication = (source: CellSource, uid: string): Promise<{ readonly removed: string }> =>
  changing(async () => {
    const { json, version } = await rootModel(source);
    const all = within(json, root, "dedications");
    const [name, element] =
      Object.entries(isObject(all) ? all : {}).find(([, each]) => within(each, "$state", "uid") === uid) ?? [];
    if (name === undefined)
      throw refused(404, "not-found", `there is no dedication ${uid}: GET /dedications lists them, each with its uid`);
    await source.ask(root, { method: "DELETE", path: modelAt(`root/dedications/${name}`), version });
    return { removed: String(within(element ?? null, "x.of") ?? name) };
  });

export function registerWholeHosts(
  app: FastifyInstance,
  sourceOf: (request: FastifyRequest) => CellSource,
  ownerThere: (request: FastifyRequest) => OwnerThere,
): void {
  serveRoute(app, "addFlavor", async ({ request, body }, reply) => {
    reply.code(201);
    return await addFlavor(sourceOf(request), body as NewFlavor);
  });
  serveRoute(app, "removeFlavor", ({ request, parameters: { name } }) => removeFlavor(sourceOf(request), name));
  serveRoute(app, "addDedication", async ({ request, body }, reply) => {
    reply.code(201);
    return await addDedication(sourceOf(request), body as NewDedication, ownerThere(request));
  });
  serveRoute(app, "releaseDedication", ({ request, parameters: { uid } }) => releaseDedication(sourceOf(request), uid));
}
