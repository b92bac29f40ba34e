import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";

/** Commands that the script `cells` of a checkout carries out before this program begins: here is their help. */
const ofScript = [
  {
    name: "setup",
    operands: "",
    options: [],
    about: "install what is missing on this machine: Debian packages, Node 24, npm packages",
    examples: ["sudo ./cells setup"],
  },
  {
    name: "test",
    operands: "[files...]",
    options: [["--all", "what is slow and not needed each time, too: *.long.test.ts and every mutation"]],
    about: "run every test of this checkout, or these test files, with real machines on this one",
    examples: ["sudo ./cells test", "sudo ./cells test testbed/tenants/shop.test.ts", "sudo ./cells test --all"],
  },
  {
    name: "bench",
    operands: "[names...]",
    options: [],
    about: "measure on this machine, and print tables; without a name every bench",
    examples: ["sudo ./cells bench", "sudo ./cells bench rules"],
  },
] as const;

export const scriptCommands: Register = (program, _context, withHelp) => {
  for (const { name, operands, options, about, examples } of ofScript) {
    const command = program.command(name).description(about);
    if (operands !== "") command.argument(operands);
    for (const [flag, what] of options) command.option(flag, what);
    withHelp(command, examples).action(() => {
      throw usage(`\`cells ${name}\` is a command of a checkout: run ./cells ${name} there`);
    });
  }
};
