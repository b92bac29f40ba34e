import { parentPort } from "node:worker_threads";
import type { Bundle } from "../../model/cell/cell.ts";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "../../runtime/specification/evaluate.ts";

/** What the thread is asked, and what it answers. */
export interface CheckRequest {
  readonly id: number;
  readonly bundle: Bundle;
}
export interface CheckAnswer {
  readonly id: number;
  readonly faults: readonly Diagnostic[];
}

const port = parentPort;
if (port === null) throw new Error("this is a thread of the language server");
port.on("message", async ({ id, bundle }: CheckRequest) => {
  const evaluated = await evaluate(bundle);
  const read = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  port.postMessage({ id, faults: read.ok ? [] : read.error } satisfies CheckAnswer);
});
