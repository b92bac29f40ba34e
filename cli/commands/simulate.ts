import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseFaults, simulateMany, simulateSeed, simulateText } from "../../simulator/command.ts";
import type { Context } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { untilInterrupted } from "../terminal/interrupted.ts";

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
  readonly serve?: boolean;
  readonly machines: string;
  readonly port: string;
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
  if (given.serve === true) {
    const port = Number(given.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535)
      throw new CommandFailure(exitCodes.usage, `--port is "${given.port}"; it would be a number from 0 to 65535`);
    await serve(context, { hosts, machines: positive("machines", given.machines), seed, port });
    return;
  }
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

/** The page over a simulated cloud, until it is interrupted. */
const serve = async (
  { terminal }: Context,
  options: { readonly hosts: number; readonly machines: number; readonly seed: number; readonly port: number },
): Promise<void> => {
  const [{ buildPage }, { serveSimulation }, { createFaults, faultKeys }] = await Promise.all([
    import("../../web/build.ts"),
    import("../../simulator/serve/served.ts"),
    import("../../simulator/serve/faults.ts"),
  ]);
  const page = await mkdtemp(join(tmpdir(), "cells-page-"));
  try {
    await buildPage(page);
    const served = await serveSimulation({ ...options, page, volumes: true });
    try {
      terminal.print(`${served.url}/ui/#code=${await served.code()}`);
      terminal.print("The address signs you in once, within a minute; with the credential as often as you like:");
      terminal.print(served.credential);
      const faults = createFaults(served, options.seed);
      for (const [key, { says }] of faultKeys) terminal.print(`${key}  ${says}`);
      await untilLeft((key) => {
        const done = faults(key);
        if (done !== null) terminal.print(done);
      });
    } finally {
      await served.stop();
    }
  } finally {
    await rm(page, { recursive: true, force: true });
  }
};
/** Keys one by one, where somebody sits there; until Ctrl-C, `q`, or a signal. */
const untilLeft = async (press: (key: string) => void): Promise<void> => {
  const { stdin } = process;
  const isPerson = stdin.isTTY === true;
  await new Promise<void>((resolve) => {
    void untilInterrupted().then(resolve);
    if (!isPerson) return;
    stdin.setRawMode(true);
    stdin.setEncoding("utf8").on("data", (text: string) => {
      if (text === "q" || text === "\u0003") resolve();
      else press(text);
    });
  });
  if (isPerson) stdin.setRawMode(false);
  stdin.pause();
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
