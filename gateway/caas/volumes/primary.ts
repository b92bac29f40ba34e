import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { patchMediaType } from "../../../model/api.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import type { JsonPatchOperation } from "../../../model/json/patch.ts";
import { parseJson } from "../../../runtime/http/http.ts";
import { RefusedError, refusalIn, refused } from "../../requests/refused.ts";
import type { Contract } from "../../shared/contract.ts";
import { lastChange, pathOf, primaryCell, volumesPath } from "./layout.ts";

/** The part of the primary cell that is CaaS' own, by its credential of just that part. */
export interface Primary {
  /** What stands at the path below `primary/volumes`, with states; null: nothing. "": all of it. */
  read(uid: string): Promise<{ readonly json: Json | null; readonly version: string }>;
  /**
   * Which state of the model the next answer is of, or null where there is nothing yet: its version, and the change of CaaS that was
   * the last. A cell that is put back from a backup counts on from an earlier version, and has the later numbers once more.
   */
  version(): Promise<string | null>;
  /** False: a `test` failed, or what a pointer names is not there. Rejects with the controller's refusal. */
  patch(operations: readonly JsonPatchOperation[], allowDestroy?: readonly string[]): Promise<boolean>;
}

/** Its credential, where it is written; the file may come later than this process. */
export const credentialIn =
  (file: string | undefined): (() => string) =>
  () => {
    try {
      return readFileSync(file ?? "", "utf8").trim();
    } catch {
      throw refused(503, "busy", "CaaS has no credential of its part of the primary cell yet");
    }
  };

/** Headers that say for whom the request is that is under way: the primary cell's record has them beside the credential of CaaS. */
export const forWhom = new AsyncLocalStorage<Readonly<Record<string, string>>>();

/** Of all volumes in one answer: some 100,000 of them. */
const mostOfAll = 256 * 1024 * 1024;
const model = `/cells/${primaryCell}/model`;
export function createPrimary(contract: Pick<Contract, "ask">, credential: () => string): Primary {
  const ask = async (method: string, path: string, body?: string, most?: number) => {
    try {
      const type =
        body === undefined ? {} : { "content-type": patchMediaType, "content-length": Buffer.byteLength(body) };
      return await contract.ask({
        method,
        path,
        headers: { ...forWhom.getStore(), authorization: `Bearer ${credential()}`, ...type },
        ...(body === undefined ? {} : { body }),
        ...(most === undefined ? {} : { most }),
      });
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      throw refused(
        502,
        "controller-unreachable",
        "the primary cell, which has the persistent volumes, does not answer",
      );
    }
  };
  const unlike = (status: number, text: string): RefusedError => {
    if (status !== 401 && status !== 403) return refusalIn(status, text, "controller", "the primary cell refuses it");
    return refused(502, "controller-unreachable", "the primary cell does not know the credential of CaaS");
  };
  const patch = async (
    operations: readonly JsonPatchOperation[],
    allowDestroy: readonly string[] = [],
  ): Promise<boolean> => {
    const query = new URLSearchParams();
    for (const each of allowDestroy) query.append("allowDestroy", each);
    const path = query.size === 0 ? model : `${model}?${query}`;
    const answer = await ask("PATCH", path, JSON.stringify(operations));
    if (answer.status === 200) return true;
    const refusal = unlike(answer.status, answer.text);
    // A pointer into what is there no more is a test that failed as well: it is looked at anew.
    if (answer.status === 412 || refusal.refusal.code.startsWith("patch/")) return false;
    throw refusal;
  };
  let hasHome = false;
  /** The group of all of them is made with the first one. */
  const makeHome = async (): Promise<void> => {
    if (hasHome) return;
    const { status, text } = await ask("GET", `${model}/${volumesPath}`);
    if (status === 404) await patch([{ op: "add", path: `/${volumesPath}`, value: {} }]);
    else if (status !== 200) throw unlike(status, text);
    hasHome = true;
  };
  return {
    version: async () => {
      const { status, text, headers } = await ask("GET", `${model}/${lastChange}`);
      if (status !== 200 && status !== 404) throw unlike(status, text);
      return headers.etag === undefined ? null : `${headers.etag} ${status === 200 ? text : ""}`;
    },
    read: async (uid) => {
      const { status, text, headers } = await ask(
        "GET",
        `${model}/${uid === "" ? volumesPath : pathOf(uid)}?state=true`,
        undefined,
        uid === "" ? mostOfAll : undefined,
      );
      if (status === 404) return { json: null, version: "" };
      if (status !== 200) throw unlike(status, text);
      const read = parseJson(text);
      return { json: read.ok && isObject(read.value) ? read.value : null, version: headers.etag ?? "" };
    },
    patch: async (operations, allowDestroy) => {
      if (operations.length === 0) return true;
      await makeHome();
      return patch([...operations, { op: "add", path: `/${lastChange}`, value: randomUUID() }], allowDestroy);
    },
  };
}
