import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What `run-tests` noted, each as its lines' columns. */
export interface Notes {
  /** Seconds, title, and how much of all processors' time was used, in percent. */
  readonly stages: readonly (readonly string[])[];
  /** See `files.reporter.ts`. A file that ran twice is in it twice. */
  readonly files: readonly (readonly string[])[];
  /** File, clouds, guests. */
  readonly boots: readonly (readonly string[])[];
}

const shownFiles = 10;

/** Sums of the numbers in some columns, by what stands in another. */
const sums = (rows: readonly (readonly string[])[], by: number, column: number): ReadonlyMap<string, number> => {
  const found = new Map<string, number>();
  for (const row of rows) {
    const key = row[by] ?? "";
    found.set(key, (found.get(key) ?? 0) + Number(row[column] ?? 0));
  }
  return found;
};

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? "" : "s"}`;

/** The last lines of a run: minutes of each stage and of all, how busy the processors were, and the slowest files with what they booted. */
export const suiteReport = ({ stages, files, boots }: Notes): readonly string[] => {
  const minutes = (seconds: number): string => (seconds / 60).toFixed(1).padStart(6);
  const all = stages.reduce((sum, [seconds]) => sum + Number(seconds), 0);
  const [clouds, guests] = [sums(boots, 0, 1), sums(boots, 0, 2)];
  const slowest = [...sums(files, 1, 0)].sort(([, one], [, other]) => other - one).slice(0, shownFiles);
  const booted = (file: string): string =>
    clouds.has(file) ? `: ${count(clouds.get(file) ?? 0, "cloud")}, ${count(guests.get(file) ?? 0, "guest")}` : "";
  return [
    "== minutes per stage",
    ...stages.map(
      ([seconds, title, busy]) =>
        `${minutes(Number(seconds))} ${title}${busy === undefined ? "" : ` (${busy} % of the processors)`}`,
    ),
    `${minutes(all)} all`,
    ...(slowest.length === 0 ? [] : ["== the slowest files, in seconds, and what their testbeds booted"]),
    ...slowest.map(([file, ms]) => `${(ms / 1000).toFixed(0).padStart(6)} ${file}${booted(file)}`),
  ];
};

const rowsOf = (path: string): readonly (readonly string[])[] =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.split("\t"))
    : [];

const [directory] = process.argv.slice(2);
if (import.meta.main && directory !== undefined) {
  const files = readdirSync(directory)
    .filter((name) => name.startsWith("files."))
    .flatMap((name) => rowsOf(join(directory, name)));
  const notes = { stages: rowsOf(join(directory, "stages")), files, boots: rowsOf(join(directory, "boots")) };
  for (const line of suiteReport(notes)) console.log(line);
}
