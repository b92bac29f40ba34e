import type { Command } from "commander";
import { exitCodesHelp } from "../terminal/failure.ts";

/**
 * Manual pages, made of the commands themselves: `cells.1` with all of them, and `cells-<command>.1` for each with what is below it. They are
 * written in the macros of man(7).
 */

/** What stands behind a command's options in its help. */
export interface Behind {
  readonly examples: readonly string[];
  readonly remark: string;
}
interface About {
  readonly version: string;
  readonly behind: (command: Command) => Behind;
}

/** Text that troff shows as it is: no line of it is a request, no hyphen of an option becomes a dash. */
const shown = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/[^\0-\x7f]/gu, (found) => `\\[u${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}]`)
    .replace(/^([.'])/gm, "\\&$1");
const quoted = (text: string): string => `"${shown(text).replaceAll('"', "\\(dq")}"`;
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;

const optionsOf = (command: Command): readonly string[] =>
  command
    .createHelp()
    .visibleOptions(command)
    .flatMap((option) => {
      const choices = option.argChoices === undefined ? "" : ` One of ${option.argChoices.join(", ")}.`;
      const variable = option.envVar === undefined ? "" : ` Also by the variable ${option.envVar}.`;
      const given: unknown = option.defaultValueDescription ?? option.defaultValue;
      const preset = given === undefined || typeof given === "object" ? "" : ` If it is left out: ${String(given)}.`;
      return [
        ".TP",
        `.B ${quoted(option.flags)}`,
        shown(`${sentence(option.description)}${choices}${preset}${variable}`),
      ];
    });

const argumentsOf = ({ registeredArguments }: Command): readonly string[] =>
  registeredArguments.flatMap((argument) =>
    argument.description === "" && argument.argChoices === undefined
      ? []
      : [
          ".TP",
          `.I ${quoted(argument.name())}`,
          shown(
            [
              argument.description === "" ? "" : sentence(argument.description),
              argument.argChoices === undefined ? "" : `One of ${argument.argChoices.join(", ")}.`,
            ]
              .filter(Boolean)
              .join(" "),
          ),
        ],
  );

const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
const belowOf = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== "help");

const synopsis = (command: Command): readonly string[] => [
  ".PP",
  `.B ${quoted(nameOf(command))}`,
  shown(command.usage()),
];
const examples = ({ examples: all }: Behind): readonly string[] =>
  all.length === 0 ? [] : [".PP", ".nf", ...all.map((each) => `.B ${quoted(each)}`), ".fi"];

/** A command and all below it, the outermost first. */
const family = (command: Command): readonly Command[] => [command, ...belowOf(command).flatMap(family)];

const page = (command: Command, { version, behind }: About): string => {
  const members = family(command).filter((each) => belowOf(each).length === 0);
  const several = members.length > 1 || members[0] !== command;
  const exits = exitCodesHelp.trim().replace("Exit codes: ", "");
  return [
    `.TH ${quoted(nameOf(command).replaceAll(" ", "-").toUpperCase())} 1 "" ${quoted(version)} "Cells"`,
    ".SH NAME",
    shown(`${nameOf(command).replaceAll(" ", "-")} - ${command.description()}`).replace("\\- ", "\\- "),
    ".SH SYNOPSIS",
    ...members.flatMap(synopsis),
    ...(several ? [".SH COMMANDS"] : [".SH DESCRIPTION"]),
    ...members.flatMap((each) => {
      const told = behind(each);
      return [
        ...(several ? [`.SS ${quoted(nameOf(each))}`] : []),
        shown(sentence(each.description())),
        ...argumentsOf(each),
        ...optionsOf(each),
        ...(told.remark === "" ? [] : [".PP", shown(told.remark)]),
        ...examples(told),
      ];
    }),
    ".SH EXIT STATUS",
    shown(sentence(exits)),
    ".SH SEE ALSO",
    ".BR cells (1)",
    "",
  ].join("\n");
};

const overview = (program: Command, { version, behind }: About): string =>
  [
    `.TH CELLS 1 "" ${quoted(version)} "Cells"`,
    ".SH NAME",
    shown(`cells - ${program.description()}`),
    ".SH SYNOPSIS",
    ".B cells",
    '.RI [ options ] " command " ...',
    ".SH OPTIONS",
    ...optionsOf(program),
    ".SH COMMANDS",
    ...belowOf(program).flatMap((command) => [
      ".TP",
      `.BR cells\\-${shown(command.name())} (1)`,
      shown(sentence(command.description())),
    ]),
    ".SH EXAMPLES",
    ...examples(behind(program)),
    ".SH FILES",
    ".TP",
    ".I ~/.config/cells/config.json",
    "Which cloud is asked, and as whom; CELLS_CONFIG names another file.",
    ".SH EXIT STATUS",
    shown(sentence(exitCodesHelp.trim().replace("Exit codes: ", ""))),
    "",
  ].join("\n");

/** @returns the pages by their files' names */
export const manualPages = (program: Command, about: About): ReadonlyMap<string, string> =>
  new Map([
    ["cells.1", overview(program, about)],
    ...belowOf(program).map((command): [string, string] => [`cells-${command.name()}.1`, page(command, about)]),
  ]);
