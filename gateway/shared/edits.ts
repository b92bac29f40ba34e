import type { Json } from "../../model/json/json.ts";
import type { JsonPatchOperation } from "../../model/json/patch.ts";

/**
 * A change as every personality makes it: what is there is read, a pure function makes a JSON Patch of it whose `test` operations
 * are what it rests on, and where somebody else was faster with just that, it is read anew. Whoever changes something beside it is
 * never in the way.
 */
export type Edit = (found: Json) => readonly JsonPatchOperation[];

/** Where the document is, as far as one edit needs it. Both reject with a refusal of their own. */
export interface EditedDocument {
  read(): Promise<Json>;
  /** False: a test failed, or what a pointer names is not there any more. */
  patch(operations: readonly JsonPatchOperation[]): Promise<boolean>;
}
const tries = 5;

/** @returns false: others were faster five times in a row */
export async function applyEdit({ read, patch }: EditedDocument, edit: Edit): Promise<boolean> {
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const operations = edit(await read());
    if (operations.length === 0 || (await patch(operations))) return true;
  }
  return false;
}
