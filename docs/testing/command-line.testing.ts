import type { Command } from "commander";
import type { Client } from "../../cli/connection/client.ts";
import type { Context } from "../../cli/context/context.ts";
import { createProgram } from "../../cli/program/program.ts";
import { readBundle } from "../../cli/spec/bundle.ts";
import { CommandFailure } from "../../cli/terminal/failure.ts";
import type { Bundle, Cell } from "../../model/cell/cell.ts";
import { planChange } from "../../model/plan/plan.ts";
import { readSpecification } from "../../model/specification/specification.ts";

/** The command line without a cloud: what it can say by itself, it says here as well. */

/** Commands of the script `cells` itself, which sets up the machine. */
export const scriptCommands: readonly string[] = ["setup", "test", "bench"];

/** What is wrong with a call of `cells`, or null; `whole`: with all of its arguments. */
export function callFault(words: readonly string[], whole: boolean): string | null {
  let command: Command = createProgram();
  let at = 0;
  for (; at < words.length && command.commands.length > 0; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("-")) break;
    if (at === 0 && scriptCommands.includes(word)) return null;
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined)
      return word === "help" ? null : `there is no command \`cells ${words.slice(0, at + 1).join(" ")}\``;
    command = next;
  }
  let operands = 0;
  const options = [...command.options, ...createProgram().options];
  for (; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "--") {
      operands += words.length - at - 1;
      break;
    }
    if (!/^-./.test(word) || word === "->") {
      operands++;
      continue;
    }
    const [name, value] = word.split("=", 2);
    if (name === "--help" || name === "-h") return null;
    const option = options.find(({ long, short }) => long === name || short === name);
    if (option === undefined) return `\`${command.name()}\` has no option ${name}`;
    if (option.required && value === undefined) at++;
  }
  const wanted = command.registeredArguments;
  if (!wanted.some(({ variadic }) => variadic) && operands > wanted.length)
    return `\`${command.name()}\` takes ${wanted.length} arguments, not ${operands}`;
  if (whole && operands < wanted.filter(({ required }) => required).length)
    return `\`${command.name()}\` needs ${wanted.filter(({ required }) => required).map((each) => each.name())}`;
  return null;
}

/** Ends a command where only a cloud could go on. */
class NeedsCloud extends Error {}

const read = (bundle: Bundle): Cell => {
  const cell = readSpecification(bundle);
  if (cell.ok) return cell.value;
  throw new Error(`${bundle.main} has errors`);
};

/** Of a specification without errors. */
export const cellOf = (file: string): Cell => read(readBundle(file));

export interface Printed {
  readonly lines: readonly string[];
  /** Nothing follows in reality either. */
  readonly whole: boolean;
}

/**
 * What `cells` prints in the working directory if the installation has the cell `before` and no other; null: if it has
 * none. Up to where a running cloud would be needed.
 */
export async function printedBy(words: readonly string[], before: Cell | null): Promise<Printed> {
  const lines: string[] = [];
  const print = (text: string): void => void lines.push(...text.split("\n"));
  const needsCloud = (): never => {
    throw new NeedsCloud();
  };
  const client = {
    cells: async () => (before === null ? [] : [{ cell: before.name, version: 1, elements: before.elements.size }]),
    apply: async (_cell: string, bundle: Bundle, dryRun: boolean) =>
      dryRun ? { plan: planChange(before, read(bundle)), version: 1, dryRun } : needsCloud(),
    delete: async (cell: string, path: string, dryRun: boolean) =>
      dryRun && path === "" && before?.name === cell
        ? { plan: planChange(before, null), version: 1, dryRun }
        : needsCloud(),
  };
  const context = (output: string): Context => ({
    json: output === "json",
    client: () =>
      new Proxy(client, { get: (known, name) => Reflect.get(known, name) ?? needsCloud }) as unknown as Client,
    terminal: {
      paint: (_colour, text) => text,
      colour: false,
      live: false,
      columns: 100,
      canAsk: false,
      print,
      warn: print,
      draw: () => undefined,
      settle: () => undefined,
      ask: async () => false,
    },
  });
  const exitCode = process.exitCode;
  try {
    await createProgram(context).parseAsync(words, { from: "user" });
  } catch (error) {
    if (error instanceof NeedsCloud) return { lines, whole: false };
    if (!(error instanceof CommandFailure)) throw error;
    print(error.message);
  } finally {
    process.exitCode = exitCode;
  }
  return { lines, whole: true };
}
