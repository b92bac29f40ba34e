import { createInterface } from "node:readline";

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}
/** Answers calls that arrive as lines of JSON on the standard input. */
export function serve(handle: (method: string, args: readonly unknown[]) => unknown): void {
  createInterface({ input: process.stdin }).on("line", async (line) => {
    const { id, method, args } = JSON.parse(line) as Call;
    let answer: { id: number; value?: unknown; error?: string };
    try {
      answer = { id, value: (await handle(method, args)) ?? null };
    } catch (problem) {
      answer = { id, error: problem instanceof Error ? (problem.stack ?? problem.message) : String(problem) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
  process.stdin.on("end", () => process.exit(0));
}
