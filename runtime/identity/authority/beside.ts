import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AuthorityAnswer, Beside } from "../../../core/identity/authority/requests.ts";
import { isObject } from "../../../core/outbox.ts";
import type { Json } from "../../../model/json/json.ts";
import { replaceFile } from "../../process/replace-file.ts";

/** The file beside the authority's key by which it knows that its store was lost, and with which it goes on (`core/identity/authority/beside.ts`). */
export const besideFile = (directory: string): string => join(directory, "records.json");

/**
 * Undefined: there is no such file. One that cannot be read is a mark all the same: the store was lost if it is blank, and
 * nothing of it is known.
 */
export const readBeside = async (directory: string): Promise<Beside | undefined> => {
  const text = await readFile(besideFile(directory), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const nothing: Beside = { records: {}, peers: {} };
  try {
    const read = JSON.parse(text) as Json;
    return isObject(read) && isObject(read.records) && isObject(read.peers) ? (read as unknown as Beside) : nothing;
  } catch {
    return nothing;
  }
};

/**
 * Writes it wherever it has changed. What this returns resolves when all that the service knew at the call is on the disk; those
 * who call meanwhile share one file.
 */
export const keepBeside = (directory: string, request: (asked: Json) => Promise<Json>): (() => Promise<void>) => {
  let written = "";
  let next: Promise<void> | null = null;
  let last: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    next = null;
    const answer = (await request({ kind: "beside" })) as unknown as AuthorityAnswer;
    const text = answer.kind === "beside" ? `${JSON.stringify(answer.beside)}\n` : written;
    if (text === written) return;
    await replaceFile(besideFile(directory), text);
    written = text;
  };
  return () => {
    if (next === null) {
      next = last.then(write);
      // A failure is for who asked; the following one is tried.
      last = next.catch(() => undefined);
    }
    return next;
  };
};
