import { readFileSync, writeSync } from "node:fs";
import type { Bundle } from "../../../model/cell/cell.ts";
import { bounds } from "./bounds.ts";
import { evaluateTypeScript } from "./specification.ts";

/*
 * The process that evaluates one specification: a bundle comes in by standard input, the outcome leaves by standard output,
 * what the specification prints by standard error. `launch.ts` starts it, and says what it cannot do.
 */
const read = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");
const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const bundle = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Bundle;
chunks.length = 0;

let left: number = bounds.saidBytes;
const say = (text: string): void => {
  if (left <= 0) return;
  const line = Buffer.from(`${text}\n`).subarray(0, left);
  left -= line.length;
  const words = left > 0 ? line : Buffer.concat([line, Buffer.from("\n… (more is not shown)\n")]);
  // At once, so that it is seen of a specification that does not end; what finds no room now is written at the end.
  let written = 0;
  try {
    written = writeSync(2, words);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
  if (written < words.length) process.stderr.write(words.subarray(written));
};
const outcome = await evaluateTypeScript(bundle, { prelude: read("prelude.ts"), builder: read("builder.ts") }, say);
// Synchronously would fail on a full pipe; this ends the process when all is written.
process.stdout.write(JSON.stringify(outcome));
