import { readFileSync } from "node:fs";
import { Command } from "commander";
import type { Context } from "../context/context.ts";
import { exitCodesHelp, usage } from "../terminal/failure.ts";

/** What a command's help and its manual page say behind its options. */
export interface More {
  readonly examples: readonly string[];
  /** Sentences on more than one option; may be empty. */
  readonly remark: string;
}
const more = new WeakMap<Command, More>();
export const moreOf = (command: Command): More => more.get(command) ?? { examples: [], remark: "" };

/** A command whose help ends with a remark, examples and the exit codes. */
export const withHelp = (command: Command, examples: readonly string[], remark = ""): Command => {
  more.set(command, { examples, remark });
  const said = remark === "" ? "" : `\n${remark}\n`;
  const shown = examples.map((each) => `  $ ${each}`).join("\n");
  return command.addHelpText(
    "after",
    `${said}\n${examples.length > 1 ? "Examples" : "Example"}:\n${shown}\n${exitCodesHelp}`,
  );
};

const versionText = (): string => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  };
  return `cells ${version}`;
};

/** What somebody else may read of a command is no place for a secret, so no command takes one there, and nothing says it again. */
const secretOption = /unknown option '--((?:[a-z]+-)*(?:password|secret|code))(?:=.*)?'/s;
const withoutSecret = (error: string): string => {
  const [, name] = secretOption.exec(error) ?? [];
  return name === undefined
    ? error
    : `error: a ${name.replaceAll("-", " ")} is no argument, which everybody on this machine can read: leave it out and it is asked for where one is needed, or write it into a file and say --${name}-file FILE\n`;
};

/** What one command alone prints beside text and JSON. */
const furtherOutputs = [
  { command: "get", format: "yaml" },
  { command: "list", format: "csv" },
] as const;

/** The command line with what `register` puts into it. */
export const assembled = (
  makeContext: (output: string) => Context,
  register: (program: Command, context: () => Context) => void,
): Command => {
  const program = new Command("cells")
    .description("a small self-hosting private cloud")
    .option("-o, --output <format>", "text or json", "text")
    .version(versionText(), "-V, --version", "what this is")
    .helpCommand(true)
    .configureOutput({ outputError: (error, write) => write(withoutSecret(error)) })
    .showHelpAfterError("(`--help` shows what is possible)")
    .exitOverride();
  register(program, () => makeContext(String(program.opts().output)));
  for (const command of program.commands.flatMap((each) => [each, ...each.commands])) {
    // `--output` is accepted behind the command, where people write it.
    const further = furtherOutputs.find(({ command: name }) => name === command.name());
    const formats = further === undefined ? "text or json" : `text, json or ${further.format}`;
    command.exitOverride().option("-o, --output <format>", formats);
    command.hook("preAction", (_program, action) => {
      const chosen: unknown = action.opts().output;
      if (typeof chosen === "string") program.setOptionValue("output", chosen);
      const others = furtherOutputs.find((each) => each !== further && each.format === program.opts().output);
      if (others !== undefined)
        throw usage(`--output is ${formats}; only \`cells ${others.command}\` prints ${others.format.toUpperCase()}`);
    });
  }
  return withHelp(program, ["sudo cells demo", "cells apply examples/shop/shop.sf"]);
};
