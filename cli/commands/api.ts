import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

const methods = ["GET", "PUT", "PATCH", "POST", "DELETE"];

const read = async (file: string): Promise<Buffer> => {
  try {
    return file === "-" ? await buffer(process.stdin) : await readFile(file);
  } catch (error) {
    throw usage(`${file} cannot be read: ${(error as Error).message}`);
  }
};

/** `cells api METHOD PATH`: one request with the credential that every command has; what comes back is printed as it is. */
export const request = async (
  context: Context,
  method: string,
  path: string,
  sent: { readonly file: string; readonly type: string } | null,
): Promise<void> => {
  if (!methods.includes(method)) throw usage(`\`${method}\` is no method of the REST interface: ${methods.join(", ")}`);
  if (sent !== null && method === "GET") throw usage("a GET sends nothing: leave out --data");
  const body = sent === null ? null : new Blob([new Uint8Array(await read(sent.file))]);
  const answer = await context.client().raw(method, path, body, sent?.type ?? "");
  if (answer.body === null) return;
  await pipeline(Readable.fromWeb(answer.body as never), process.stdout, { end: false });
  if (process.stdout.isTTY) process.stdout.write("\n");
};
