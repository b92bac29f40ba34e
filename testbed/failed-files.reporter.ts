import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

/** A reporter for `node --test`: the path of each file with a failure, once, relative to the working directory, one a line. */
async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const seen = new Set<string>();
  for await (const event of events) {
    if (event.type !== "test:fail") continue;
    const name = relative(process.cwd(), event.data.file ?? event.data.name);
    if (!seen.has(name)) yield `${name}\n`;
    seen.add(name);
  }
}

export { failedFiles as default };
