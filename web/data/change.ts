import type { Changed } from "../../model/api.ts";
import { bundleMediaType, patchMediaType } from "../../model/api.ts";
import type { ElementChange } from "../../model/editor/patches/patches.ts";
import { operationsOf, whyBeside } from "../state/cell/changes/change.ts";
import { ask, askOnce, Refused } from "./api.ts";

/** A change of a cell's document as it would be put: what the plan was made of is what is put. */
export interface Prepared {
  readonly version: number;
  /** Of the text that is changed, its name; null: the change goes beside it. */
  readonly main: string | null;
  /** Why beside it, a sentence; null: it goes into the text. */
  readonly beside: string | null;
  readonly method: "PUT" | "PATCH";
  readonly body: string;
  readonly type: string;
}

/** Rejects with `Refused`. */
export async function prepared(cell: string, changes: readonly ElementChange[]): Promise<Prepared> {
  const path = `/cells/${encodeURIComponent(cell)}`;
  const model = await ask("readModel", "GET", `${path}/model`);
  const version = model.version ?? 0;
  // Before the text: what stands there already is no reason to write it beside the text, over what is there.
  const operations = operationsOf(model.value, changes);
  if (!operations.ok) throw new Refused(0, { code: "exists", message: operations.error });
  const source = await ask("readSource", "GET", `${path}/source`).then(
    ({ value }) => value,
    (error: unknown) => {
      if (error instanceof Refused && error.status === 404) return null;
      throw error;
    },
  );
  let beside = whyBeside(source, version);
  if (source !== null && beside === null) {
    // The language comes when it is needed for the first time.
    const { patchTexts } = await import("../../model/editor/patches/patches.ts");
    const { main, files } = source;
    const after = patchTexts({ main, files }, changes);
    if (after.ok) {
      const body = JSON.stringify({ main, files: after.value.files });
      return { version, main, beside: null, method: "PUT", body, type: bundleMediaType };
    }
    beside = after.error;
  }
  const body = JSON.stringify(operations.value);
  return { version, main: null, beside, method: "PATCH", body, type: patchMediaType };
}

/** Rejects with `Refused`: also where the model has another version by now. */
export async function put(cell: string, change: Prepared, query: URLSearchParams): Promise<Changed> {
  const { method, body, type, version } = change;
  const address = `/cells/${encodeURIComponent(cell)}/model?${query}`;
  const asked = { body, type, headers: { "if-match": `"${version}"` } };
  const isDry = query.get("dryRun") === "true";
  if (method === "PUT") return (await (isDry ? ask : askOnce)("putModel", "PUT", address, asked)).value;
  return (await (isDry ? ask : askOnce)("patchModel", "PATCH", address, asked)).value;
}
