import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Register } from "../context/register-type.ts";
import { moreOf } from "./assembled.ts";

/** `cells manual DIR`. */
export const manualCommand: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("manual")
      .description("write manual pages of all commands, for man(1)")
      .argument("<dir>", "where to; it is made if it is not there")
      .action(async (directory: string) => {
        const { manualPages } = await import("../output/manual.ts");
        const pages = manualPages(program, { version: program.version() ?? "", behind: moreOf });
        mkdirSync(directory, { recursive: true });
        for (const [name, text] of pages) writeFileSync(join(directory, name), text);
        context().terminal.print(`${pages.size} pages in ${directory}`);
      }),
    ["sudo cells manual /usr/local/share/man/man1", "man cells-apply"],
  );
};
