import { stat } from "node:fs/promises";
import type { ImageFormat } from "../connection/image-format.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

/* A file with a disk's bytes that is sent: what is asked of it before, and what is shown meanwhile. */

const MiB = 1024 * 1024;
const drawEveryMs = 200;

/** Of `--format`; undefined: what the file is. */
export function formatIn(written: string | undefined): ImageFormat | undefined {
  if (written === undefined || written === "raw" || written === "qcow2") return written;
  throw usage(`--format is raw or qcow2, not \`${written}\``);
}

/** How many bytes it has. @param what it is needed for: "an image is a file" */
export async function bytesOf(file: string, what: string): Promise<number> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    throw usage(`cannot read ${file}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`);
  });
  if (!found.isFile()) throw usage(`${file} is no regular file; ${what} with the disk's bytes`);
  return found.size;
}

/** Shows, where somebody looks, how much of it is sent. */
export async function showingSent<T>(
  { terminal, json }: Pick<Context, "terminal" | "json">,
  bytes: number,
  send: (onProgress: (sentBytes: number) => void) => Promise<T>,
): Promise<T> {
  const live = terminal.live && !json;
  let drawnAt = 0;
  const done = await send((sent) => {
    const now = performance.now();
    if (!live || (sent < bytes && now - drawnAt < drawEveryMs)) return;
    drawnAt = now;
    const doing = sent < bytes ? "sending" : "sent; it is checked and converted now";
    terminal.draw([`${(sent / MiB).toFixed(1)} of ${(bytes / MiB).toFixed(1)} MiB ${doing}`]);
  });
  if (live) terminal.draw([]);
  return done;
}
