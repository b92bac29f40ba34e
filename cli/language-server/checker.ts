import { Worker } from "node:worker_threads";
import type { Bundle } from "../../model/cell/cell.ts";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import type { CheckAnswer, CheckRequest } from "./check-worker.ts";

/**
 * Checks texts in a thread of its own: reading a large cell takes long enough that an author who goes on writing would
 * wait for it.
 */
export class Checker {
  #worker: Worker | null = null;
  #last = 0;
  readonly #waiting = new Map<
    number,
    { resolve: (found: readonly Diagnostic[]) => void; reject: (why: Error) => void }
  >();

  /** What is wrong with a specification. Rejects if the thread dies, of memory for example; the next check has another. */
  check(bundle: Bundle): Promise<readonly Diagnostic[]> {
    const id = ++this.#last;
    const worker = this.#running();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, bundle } satisfies CheckRequest);
    });
  }
  stop(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }

  #running(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./check-worker.ts", import.meta.url), { stdout: true });
    worker.on("message", ({ id, faults }: CheckAnswer) => {
      this.#waiting.get(id)?.resolve(faults);
      this.#waiting.delete(id);
    });
    const lost = (why: Error): void => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(why);
      this.#waiting.clear();
    };
    worker.on("error", (error) => lost(error instanceof Error ? error : new Error(String(error))));
    worker.on("exit", () => lost(new Error("the check was ended")));
    this.#worker = worker;
    return worker;
  }
}
