import { readFile } from "node:fs/promises";
import { parseFaults, simulateMany, simulateSeed, simulateText } from "../../simulator/command.ts";
import { faultKinds, namedFaultKinds } from "../../simulator/histories/generate.ts";
import type { Context } from "../context/context.ts";
import type { Register } from "../context/register-type.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

interface Given {
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

const run = async (context: Context, given: Given): Promise<void> => {
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

/** `cells simulate`: the real services over virtual machines, disks, networks and time. */
export const simulateCommand: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("simulate")
      .description("run the real services in virtual time, with faults from a seed, and check the invariants")
      .option("--hosts <count>", "hosts of the installation", "10")
      .option("--cells <count>", "cells, each changing at random", "3")
      .option("--services <count>", "Placers, and Storage Managers (default: two with some seeds, one with the others)")
      .option("--ha", "an HA Manager (default: with every third seed)")
      .option("--no-ha", "none")
      .option("--seed <number>", "the same seed and commit give the same log to the byte", "1")
      .option("--minutes <count>", "virtual time with faults, before everything is healed", "1")
      .option("--faults <kinds>", `of ${[...faultKinds, ...namedFaultKinds].join(", ")}; or none`, faultKinds.join(","))
      .option("--history <file>", "play what a failing run printed, or a scenario's steps.txt, instead of a seed")
      .option("--log", "print the whole log")
      .option("--many", "seed after seed, until interrupted or one fails; prints the rate")
      .option("--until <count>", "with --many: so many seeds")
      .action((given: Given) => run(context(), given)),
    ["cells simulate --seed 7 --faults partition,crash", "cells simulate --many --until 100"],
  );
};
