import type { Argument, Command, Option } from "commander";

/** What may stand where a word is being typed. */
export interface Candidate {
  readonly value: string;
  /** For people; may be empty. */
  readonly what: string;
}
/** A name of the cloud, or of a file here. */
export type Kind = "cell" | "element" | "vm" | "host" | "image" | "file";
/** `names`: of that kind may stand there as well as the candidates. */
export interface Offer {
  readonly candidates: readonly Candidate[];
  readonly names: Kind | null;
  /** What stands there has parts, which are known elsewhere (`parts.ts`). Absent: it has none. */
  readonly parts?: Parts;
}
export type Parts =
  /** Of `cells list`; `before` is what is not part of the value. */
  | { readonly kind: "columns" | "sort" | "filter"; readonly typed: string; readonly before: string }
  | { readonly kind: "method"; readonly typed: string }
  | { readonly kind: "path"; readonly method: string; readonly typed: string };

const isFile = (name: string): boolean => name === "file" || name === "dir";

/** What an argument is by how it is called; `command` is its command with the parents' names. */
const kindOf = (command: string, argument: string): Kind | null => {
  if (argument === "vm" || argument === "cell") return argument;
  if (isFile(argument)) return "file";
  if (argument === "path" && ["get", "delete"].includes(command)) return "element";
  if (argument === "what" && command === "why") return "element";
  if (argument === "name" && command.startsWith("host ")) return "host";
  if (argument === "name" && command === "image delete") return "image";
  return null;
};

const chosen = (choices: readonly string[] | undefined, typed: string, before = ""): readonly Candidate[] =>
  (choices ?? [])
    .filter((choice) => choice.startsWith(typed))
    .map((choice) => ({ value: `${before}${choice}`, what: "" }));

const offeredValues = (option: Option, typed: string, before = ""): Offer => {
  const [, name = ""] = /[<[]([a-z]+)/.exec(option.flags) ?? [];
  const isPlain = before === "" && option.argChoices === undefined;
  return {
    candidates: chosen(option.argChoices, typed, before),
    names: !isPlain ? null : isFile(name) ? "file" : name === "host" || name === "cell" ? name : null,
  };
};
/** Of `cells list`. */
const partsOf = (command: string, option: Option, typed: string, before = ""): Offer | null => {
  const kind = (["columns", "sort", "filter"] as const).find((each) => option.long === `--${each}`);
  if (command !== "list" || kind === undefined) return null;
  return { candidates: [], names: null, parts: { kind, typed, before } };
};
const takesValue = (option: Option): boolean => option.required || option.optional;

/** Where a command line has come to before the last of its words. */
interface Place {
  readonly command: Command;
  /** The command's name with its parents', without the program's. */
  readonly name: string;
  readonly positional: number;
  /** What stands before in place of arguments. */
  readonly given: readonly string[];
  /** Whose value is typed. */
  readonly option: Option | null;
  /** After `--` nothing is an option. */
  readonly isPast: boolean;
}
const optionsOf = (command: Command): readonly Option[] => command.createHelp().visibleOptions(command);
const optionOf = (command: Command, word: string): Option | null =>
  optionsOf(command).find(({ long, short }) => word === long || word === short) ?? null;

const walk = (place: Place, word: string): Place => {
  const { command, name, positional, given, option, isPast } = place;
  const taken = { ...place, positional: positional + 1, given: [...given, word] };
  // bash takes `--output=json` for three words.
  if (option !== null && word === "=") return place;
  if (option !== null) return { ...place, option: null };
  if (isPast) return taken;
  if (word === "--") return { ...place, isPast: true };
  if (word.startsWith("-")) {
    const found = word.includes("=") ? null : optionOf(command, word);
    return found !== null && takesValue(found) ? { ...place, option: found } : place;
  }
  const below = positional === 0 ? command.commands.find((each) => each.name() === word) : undefined;
  if (below === undefined) return taken;
  return { ...place, command: below, name: [name, word].filter(Boolean).join(" ") };
};

const argumentAt = ({ registeredArguments }: Command, position: number): Argument | undefined => {
  const last = registeredArguments.at(-1);
  return registeredArguments[position] ?? (last?.variadic === true ? last : undefined);
};

/** What may stand where the last of `words` is typed; the others stand before it, without the program's own name. */
export const offerOf = (program: Command, words: readonly string[]): Offer => {
  const start: Place = { command: program, name: "", positional: 0, given: [], option: null, isPast: false };
  const { command, name, positional, given: before, option, isPast } = words.slice(0, -1).reduce(walk, start);
  const last = words.at(-1) ?? "";
  const typed = option !== null && last === "=" ? "" : last;
  if (option !== null) return partsOf(name, option, typed) ?? offeredValues(option, typed);
  if (!isPast && typed.startsWith("-")) {
    const [, long = "", value = ""] = /^(--[^=]+)=(.*)$/s.exec(typed) ?? [];
    const given = long === "" ? null : optionOf(command, long);
    if (given !== null) return partsOf(name, given, value, `${long}=`) ?? offeredValues(given, value, `${long}=`);
    const candidates = optionsOf(command).flatMap(({ long: value, description }) =>
      value?.startsWith(typed) === true ? [{ value, what: description }] : [],
    );
    return { candidates, names: null };
  }
  if (name === "api" && positional === 0) return { candidates: [], names: null, parts: { kind: "method", typed } };
  if (name === "api" && positional === 1)
    return { candidates: [], names: null, parts: { kind: "path", method: before[0] ?? "", typed } };
  const below = positional === 0 && !isPast ? command.createHelp().visibleCommands(command) : [];
  const argument = argumentAt(command, positional);
  return {
    candidates: [
      ...below
        .filter((each) => each.name().startsWith(typed))
        .map((each) => ({ value: each.name(), what: each.description() })),
      ...chosen(argument?.argChoices, typed),
    ],
    names: argument === undefined ? null : kindOf(name, argument.name()),
  };
};
