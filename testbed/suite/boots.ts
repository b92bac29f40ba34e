import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { EventName } from "../../core/telemetry/event-names.ts";

/** What a testbed started, whoever asked for it. */
export interface Boots {
  /** Starts of the whole testbed. */
  readonly clouds: number;
  /** Incarnations that its hosts started or resumed. */
  readonly guests: number;
}
interface Line {
  readonly event?: EventName;
  readonly fields?: { readonly vm?: string; readonly incarnation?: number };
}

/** A line that the log's bound has cut is no event. */
const parsed = (line: string): readonly Line[] => {
  try {
    return [JSON.parse(line) as Line];
  } catch {
    return [];
  }
};

/** From the logs that a testbed has left in this directory. */
export const bootsIn = (logs: string): Boots => {
  const lines = readdirSync(logs)
    .flatMap((file) => readFileSync(join(logs, file), "utf8").split("\n"))
    .filter((line) => line.includes('"machine/stage"') || line.includes('"supervisor/started"'))
    .flatMap(parsed);
  const incarnations = lines.flatMap(({ event, fields }) =>
    event === "machine/stage" && fields?.incarnation !== undefined ? [`${fields.vm} ${fields.incarnation}`] : [],
  );
  return {
    clouds: lines.filter(({ event }) => event === "supervisor/started").length,
    guests: new Set(incarnations).size,
  };
};

/**
 * Adds a line `FILE<tab>CLOUDS<tab>GUESTS` to the file that `run-tests` names, for the program that runs. Without one, or
 * without logs, there is nothing to be counted.
 */
export const noteBoots = (logs: string): void => {
  const notes = process.env.CELLS_TEST_BOOTS;
  if (notes === undefined) return;
  try {
    const { clouds, guests } = bootsIn(logs);
    appendFileSync(notes, `${relative(process.cwd(), process.argv[1] ?? "")}\t${clouds}\t${guests}\n`);
  } catch {
    // The testbed was never up.
  }
};
