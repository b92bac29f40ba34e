import { Option } from "commander";
import { secondsOf } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";

/* Options that several commands have. */

/** Of an option that is given several times: all of its values. */
export const several = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

export const wholeNumber = (text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw usage(`\`${text}\` is no whole number`);
  return Number(text);
};

export const timeoutOption = (seconds = 300) =>
  new Option("--timeout <seconds>", "how long to wait").default(seconds).argParser(secondsOf);

export const allowDestroyOption = () =>
  new Option(
    "--allow-destroy <paths>",
    "volumes whose data may be lost, by their paths with commas in between; can be repeated",
  )
    .default([] as readonly string[], "none")
    .argParser(several);
