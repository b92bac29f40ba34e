import type { Register } from "../context/register-type.ts";
import { putText } from "../output/put-text.ts";

/** `cells spec schema` and `cells spec reference`: what comes of the table of types and attributes. */
export const registerSpecSchema: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("schema")
      .description("print the JSON Schema of specifications, for editors of JSON and YAML")
      .argument("[file]", "write it there instead")
      .action(async (file) => {
        // Loaded only here: no other command needs them, and each begins sooner without.
        const { specificationSchema } = await import("../../model/reference/json-schema.ts");
        putText(context(), `${JSON.stringify(specificationSchema(), null, 2)}\n`, file);
      }),
    ["cells spec schema cells.schema.json"],
  );
  withHelp(
    spec
      .command("reference")
      .description("print the reference of types and attributes, as Markdown")
      .argument("[file]", "write it there instead")
      .action(async (file) =>
        putText(context(), (await import("../../model/reference/reference-page.ts")).referencePage(), file),
      ),
    ["cells spec reference", "cells spec reference reference.md"],
  );
};
