import { patchMediaType } from "../../../model/api.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import type { JsonPatchOperation } from "../../../model/json/patch.ts";
import { parseJson } from "../../../runtime/http/http.ts";
import { network } from "../../../runtime/installation.ts";
import { isCellName } from "../../requests/cell-names.ts";
import { RefusedError, refusalIn, refused } from "../../requests/refused.ts";
import type { Contract } from "../../shared/contract.ts";
import { pathOf, primaryCell } from "./layout.ts";
import type { Waiting } from "./waiting.ts";

/*
 * A volume of a cell becomes a persistent one (decision 142): a copy in the primary cell, and a grant in the volume's own that holds
 * the volume until the copy is made. What is done in somebody's cell is done by his own credential, so he must be allowed it there.
 */
export type Harvest = (of: {
  readonly cell: string;
  readonly path: string;
  /** Path of the copy. */
  readonly hold: string;
}) => Promise<{
  readonly reference: string;
  /** Null: it is not made yet. */
  readonly sizeMiB: number | null;
  /** `<cell>/<path>` of the grant. */
  readonly at: string;
  readonly grant: () => Promise<void>;
}>;
/**
 * Takes such a grant back, whose copy is there: who has the copy needs it no more, and nobody else was meant. It may be gone already.
 * Rejects where that is not known.
 */
export type Release = (of: { readonly at: string; readonly hold: string }) => Promise<void>;

/** Models of the cells of who asks, by the names of these. */
export type Users = () => Promise<ReadonlyMap<string, Json>>;

const volumeTypes: readonly Json[] = ["Volume", "VolumeCopy"];
/** So many cells of somebody are looked through for who uses a volume. */
const mostCells = 64;
const cellsAtOnce = 4;
/** For all of them together. */
const usersPatienceMs = 15_000;

/** @param headers by which who asks is known */
export function createHarvest(
  contract: Pick<Contract, "ask">,
  headers: Readonly<Record<string, string>>,
  waiting: Pick<Waiting, "take">,
): Harvest {
  const ask = async (method: string, path: string, body?: readonly JsonPatchOperation[]): Promise<Json> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const more =
      text === undefined ? {} : { "content-type": patchMediaType, "content-length": Buffer.byteLength(text) };
    const answer = await contract.ask({
      method,
      path,
      headers: { ...headers, ...more },
      ...(text === undefined ? {} : { body: text }),
    });
    if (answer.status !== 200) throw refusalIn(answer.status, answer.text, "controller", "the cell refuses it");
    const read = parseJson(answer.text);
    return read.ok ? read.value : null;
  };
  return async ({ cell, path, hold }) => {
    if (!isCellName(cell) || !path.split("/").every((part) => /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(part)))
      throw refused(400, "bad-request", "from names a cell, and the path of a volume there as its model has it");
    waiting.take();
    const model = `/cells/${encodeURIComponent(cell)}/model`;
    const element = await ask("GET", `${model}/${path.split("/").map(encodeURIComponent).join("/")}?state=true`);
    if (!isObject(element) || !volumeTypes.includes(element["x.type"] ?? null))
      throw refused(400, "bad-request", `${path} is no volume of the cell ${cell}`);
    const component = path.split("/")[0] ?? "";
    const grant: JsonObject = {
      "x.type": "VolumeGrant",
      "x.volume": `<ref:/${path}>`,
      "x.cell": `<ref://${primaryCell}.${network.domain}/>`,
      "x.grant": "copy",
      "x.hold": hold,
    };
    // A name that says of which copy it is: asked for again it is the same.
    const name = `harvest-${hold.split("/").slice(-2).join("-")}`;
    const operations: readonly JsonPatchOperation[] = [{ op: "add", path: `/${component}/${name}`, value: grant }];
    await ask("PATCH", `${model}?dryRun=true`, operations);
    return {
      sizeMiB: sizeIn(element),
      at: `${cell}/${component}/${name}`,
      reference: `<ref://${cell}.${network.domain}/${path}>`,
      grant: async () => {
        await ask("PATCH", model, operations);
      },
    };
  };
}

/** So long somebody who only looks at a volume waits for the cell that it was harvested from. */
const releasePatienceMs = 2000;
/** @param cells names of those that he may see: of others nothing is asked */
export function createRelease(
  contract: Pick<Contract, "ask">,
  headers: Readonly<Record<string, string>>,
  cells: ReadonlySet<string>,
  waiting: Pick<Waiting, "take">,
): Release {
  return async ({ at, hold }) => {
    const [cell = "", ...path] = at.split("/");
    if (!cells.has(cell)) throw refused(404, "not-found", `there is no cell "${cell}"`);
    waiting.take();
    const grant = `/${path.join("/")}`;
    const body = JSON.stringify([
      { op: "test", path: `${grant}/x.hold`, value: hold },
      { op: "remove", path: grant },
    ] satisfies readonly JsonPatchOperation[]);
    const { status, text } = await contract.ask({
      method: "PATCH",
      path: `/cells/${encodeURIComponent(cell)}/model`,
      body,
      headers: { ...headers, "content-type": patchMediaType, "content-length": Buffer.byteLength(body) },
      signal: AbortSignal.timeout(releasePatienceMs),
    });
    if (status === 200) return;
    const refusal = refusalIn(status, text, "controller", "the cell refuses it");
    if (!refusal.refusal.code.startsWith("patch/")) throw refusal;
  };
}

function sizeIn({ "x.size": wanted, $state: state }: JsonObject): number | null {
  const { sizeMiB: has } = isObject(state) ? state : {};
  const most = Math.max(typeof has === "number" ? has : 0, typeof wanted === "number" ? wanted : 0);
  return most === 0 ? null : most;
}

/** @param cells names of those that he may see */
export function createUsers(
  contract: Pick<Contract, "ask">,
  headers: Readonly<Record<string, string>>,
  cells: ReadonlySet<string>,
  waiting: Pick<Waiting, "take">,
): Users {
  const modelOf = async (cell: string, signal: AbortSignal): Promise<readonly (readonly [string, Json])[]> => {
    try {
      const { status, text } = await contract.ask({
        method: "GET",
        path: `/cells/${encodeURIComponent(cell)}/model`,
        headers,
        signal,
      });
      const read = status === 200 ? parseJson(text) : null;
      return read?.ok === true ? [[cell, read.value]] : [];
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      return [];
    }
  };
  return async () => {
    const names = [...cells].filter((cell) => cell !== primaryCell && cell !== "root").slice(0, mostCells);
    if (names.length === 0) return new Map();
    waiting.take();
    const signal = AbortSignal.timeout(usersPatienceMs);
    const found = new Map<string, Json>();
    const left = names.values();
    // The gateway gives one account few places, and refuses it what is more.
    const askSome = async (): Promise<void> => {
      for (const cell of left) for (const [name, model] of await modelOf(cell, signal)) found.set(name, model);
    };
    await Promise.all(Array.from({ length: cellsAtOnce }, askSome));
    return found;
  };
}

/** Elements of those models that name the volume, as `shop: shop/web/disk`. */
export function usersIn(models: ReadonlyMap<string, Json>, uid: string): readonly string[] {
  const named = `//${primaryCell}.${network.domain}/${pathOf(uid)}`;
  const found: string[] = [];
  const look = (cell: string, json: Json, path: string): void => {
    if (!isObject(json)) return;
    for (const [name, value] of Object.entries(json)) {
      const isNamed = typeof value === "string" && value.includes(`${named}/`);
      if (isNamed && (name === "x.image" || name === "x.volume")) found.push(`${cell}: ${path}`);
      else look(cell, value, path === "" ? name : `${path}/${name}`);
    }
  };
  for (const [cell, json] of models) look(cell, json, "");
  return found.sort();
}
