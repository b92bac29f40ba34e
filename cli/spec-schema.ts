import { writeFileSync } from "node:fs";
import type { Context } from "./context.ts";
import { usage } from "./failure.ts";
import type { Register } from "./register.ts";

/** Prints a text, or writes it to a file, which may be there already. */
const put = ({ terminal }: Context, text: string, file: string | undefined): void => {
  if (file === undefined) {
    terminal.print(text.replace(/\n$/, ""));
    return;
  }
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw usage(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};

/** `cells spec schema` and `cells spec reference`: what comes of the table of types and attributes. */
export const registerSpecSchema: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("schema")
      .description("print the JSON Schema of specifications, for editors of JSON and YAML")
      .argument("[file]", "write it there instead")
      .action(async (file) => {
        // Loaded only here: no other command needs them, and each begins sooner without.
        const { specificationSchema } = await import("../model/json-schema.ts");
        put(context(), `${JSON.stringify(specificationSchema(), null, 2)}\n`, file);
      }),
    ["cells spec schema cells.schema.json"],
  );
  withHelp(
    spec
      .command("reference")
      .description("print the reference of types and attributes, as Markdown")
      .argument("[file]", "write it there instead")
      .action(async (file) => put(context(), (await import("../model/reference-page.ts")).referencePage(), file)),
    ["cells spec reference", "cells spec reference reference.md"],
  );
};
