import { relative, resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";

/**
 * A reporter for `node --test`: `MILLISECONDS<tab>FILE<tab>passed` or `failed`, a line for each file, its path relative to
 * the working directory.
 */
async function* files(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== "test:complete" || event.data.file === undefined) continue;
    const { name, file, details } = event.data;
    // The test that has its file's name, as it was given, is the file's process.
    if (resolve(name) !== file) continue;
    const ended = details.passed ? "passed" : "failed";
    yield `${Math.round(details.duration_ms ?? 0)}\t${relative(process.cwd(), file)}\t${ended}\n`;
  }
}

export { files as default };
