import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

/**
 * A reporter for `node --test`: `MILLISECONDS<tab>FILE<tab>passed` or `failed`, a line for each file, its path relative to
 * the working directory.
 */
async function* files(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    // The test that has its file's name is the file's process.
    if (event.type !== "test:complete" || event.data.name !== event.data.file) continue;
    const { file, details } = event.data;
    const ended = details.passed ? "passed" : "failed";
    yield `${Math.round(details.duration_ms ?? 0)}\t${relative(process.cwd(), file)}\t${ended}\n`;
  }
}

export { files as default };
