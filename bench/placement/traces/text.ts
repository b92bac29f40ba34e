import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";

/** The first bytes of a file. */
export async function beginOf(file: string, count: number): Promise<Buffer> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(count), 0, count, 0);
  return buffer.subarray(0, bytesRead);
}

/** What is read goes to whoever reads the lines, an error as well. */
const nobodyElse = (): void => undefined;

/** A line of it in memory at a time, also of a file that gzip has packed, as Azure's tables are published. */
export async function* textLines(file: string): AsyncGenerator<string> {
  const isPacked = (await beginOf(file, 2)).toString("hex") === "1f8b";
  const bytes = createReadStream(file);
  const input: AsyncIterable<Buffer> = isPacked ? pipeline(bytes, createGunzip(), nobodyElse) : bytes;
  const decoder = new TextDecoder();
  let begun = "";
  for await (const chunk of input) {
    const lines = (begun + decoder.decode(chunk, { stream: true })).split("\n");
    begun = lines.pop() ?? "";
    yield* lines;
  }
  if (begun !== "") yield begun;
}
