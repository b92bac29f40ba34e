import { basename } from "node:path";
import type { Arrival } from "./arrival.ts";
import { type Machine, packingTrace } from "./azure-packing.ts";
import { azureTable } from "./azure-table.ts";
import type { BadLines } from "./bad-lines.ts";
import { linesTrace } from "./lines.ts";
import { seededArrivals } from "./seeded.ts";
import { beginOf, textLines } from "./text.ts";

/** Instead of a file: so many VMs as they might have come. */
const seededForm = /^seeded:(\d+)$/;
export const seeded = (count: number): string => `seeded:${count}`;

type Format = "packing" | "table" | "lines";
/** By what stands in its beginning: the tables have no header, and the first line may be a bad one. */
async function formatOf(file: string): Promise<Format> {
  if ((await beginOf(file, 16)).toString("latin1") === "SQLite format 3\0") return "packing";
  let looked = 0;
  for await (const line of textLines(file)) {
    if (/^\d+ [^ ]*$/.test(line.trimEnd())) return "lines";
    if (!line.includes(" ") && line.split(",").length === 11) return "table";
    looked += 1;
    if (looked === 10) break;
  }
  throw new Error(
    `${basename(file)}: in its first lines there is neither "seconds flavour,flavour,|,…" nor a row of Azure's vmtable.csv (11 values with commas), ` +
      "and it is no database of SQLite",
  );
}

/**
 * The VMs of a trace in order of time.
 *
 * @param machine what a host offers, of which the packing trace says shares
 */
export async function* arrivalsFrom(file: string, machine: Machine, bad: BadLines): AsyncGenerator<Arrival> {
  const [, count] = seededForm.exec(file) ?? [];
  if (count !== undefined) return yield* seededArrivals(Number(count), 19);
  const format = await formatOf(file);
  if (format === "packing") yield* packingTrace(file, machine, bad);
  else if (format === "table") yield* azureTable(file, bad);
  else yield* linesTrace(file, bad);
}
