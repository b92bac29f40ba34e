import { readFile } from "node:fs/promises";
import { parseFaults, simulateMany, simulateSeed, simulateText } from "../../simulator/command.ts";
import type { Context } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

/** What stood on the command line. */
export interface Given {
  readonly hosts: string;
  readonly cells: string;
  readonly services?: string;
  readonly ha?: boolean;
  readonly seed: string;
  readonly minutes: string;
  readonly faults: string;
  readonly history?: string;
  readonly many?: boolean;
  readonly until?: string;
  readonly log?: boolean;
}

const positive = (name: string, text: string): number => {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new CommandFailure(exitCodes.usage, `--${name} is "${text}"; it would be a number above 0`);
};

/** The real services over virtual machines, disks, networks and time. */
export const simulate = async (context: Context, given: Given): Promise<void> => {
  const print = (line: string): void => context.terminal.print(line);
  const hosts = positive("hosts", given.hosts);
  const cells = positive("cells", given.cells);
  const seed = positive("seed", given.seed);
  const minutes = positive("minutes", given.minutes);
  const log = given.log === true;
  const services = given.services === undefined ? {} : { services: positive("services", given.services) };
  const ha = given.ha === undefined ? {} : { ha: given.ha };
  const wanted = { hosts, cells, seed, minutes, faults: faultsOf(given.faults), ...services, ...ha };
  const isWell =
    given.history !== undefined
      ? await simulateText(await readFile(given.history, "utf8"), log, print)
      : given.many === true
        ? await many(wanted, given.until === undefined ? null : positive("until", given.until), print)
        : await simulateSeed({ ...wanted, log }, print);
  if (!isWell) throw new CommandFailure(exitCodes.notAsDeclared, "an invariant was violated, or never tried");
};

const faultsOf = (text: string): ReturnType<typeof parseFaults> => {
  try {
    return parseFaults(text);
  } catch (error) {
    throw new CommandFailure(exitCodes.usage, (error as Error).message);
  }
};

const many = async (
  wanted: Omit<Parameters<typeof simulateMany>[0], "until" | "isOver" | "nowMs">,
  until: number | null,
  print: (line: string) => void,
): Promise<boolean> => {
  let isOver = false;
  const stop = (): void => {
    isOver = true;
  };
  process.once("SIGINT", stop);
  const isWell = await simulateMany({ ...wanted, until, isOver: () => isOver, nowMs: () => performance.now() }, print);
  process.removeListener("SIGINT", stop);
  return isWell;
};
