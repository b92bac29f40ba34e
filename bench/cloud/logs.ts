import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One line of a service's log. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly event: string;
  readonly fields: { readonly [key: string]: unknown };
}

/** Everything that the testbed's services have logged since then, in order. */
export function linesSince(logs: string, since: number): readonly Line[] {
  return readdirSync(logs)
    .filter((name) => name.endsWith(".log"))
    .flatMap((name) => readFileSync(join(logs, name), "utf8").split("\n"))
    .flatMap((text): readonly Line[] => {
      try {
        const { time, event, fields } = JSON.parse(text) as { time: string; event: string; fields: Line["fields"] };
        const at = Date.parse(time);
        return at >= since && typeof event === "string" && typeof fields === "object" ? [{ at, event, fields }] : [];
      } catch {
        return [];
      }
    })
    .toSorted((a, b) => a.at - b.at);
}
