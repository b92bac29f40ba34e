import type { Register } from "../context/register-type.ts";
import { putText } from "../output/put-text.ts";

/* What a command does is loaded when it is asked for (see `program.ts`): an editor runs `cells spec check` at every save. */

/** `cells spec …`: work on specifications as texts. None of these commands asks a gateway. */
export const specCommands: Register = (program, context, withHelp) => {
  const spec = program.command("spec").description("check, format and look at specifications, without a gateway");
  for (const register of [
    registerSpecCheck,
    registerSpecFmt,
    registerSpecSchema,
    registerSpecTree,
    registerSpecServe,
    registerSpecTypes,
  ])
    register(spec, context, withHelp);
};

const registerSpecCheck: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("check")
      .description("check a specification here, without a gateway, and show all of its errors")
      .argument("<file>", "a specification; what it includes is read with it")
      .action(async (file) => (await import("../spec/check.ts")).check(context(), file)),
    ["cells spec check shop.sf", "cells spec check shop.sf --output json"],
  );
};

const registerSpecFmt: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("fmt")
      .description("put SmartFrog texts into their one form; comments stay, and so does what they mean")
      .argument("<file...>", "`.sf` files, or - for standard input")
      .option("-w, --write", "change the files instead of printing; those that changed are listed")
      .option("--check", "change nothing; list what is not formatted and end with 1 if there is any")
      .action(async (files, options) =>
        (await import("../spec/fmt.ts")).format(context(), files, {
          check: options.check === true,
          write: options.write === true,
        }),
      ),
    ["cells spec fmt shop.sf", "cells spec fmt --write *.sf", "cells spec fmt --check *.sf"],
  );
};

const registerSpecSchema: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("schema")
      .description("print the JSON Schema of specifications, for editors of JSON and YAML")
      .argument("[file]", "write it there instead")
      .action(async (file) => {
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

const registerSpecTree: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("tree")
      .description("show what SmartFrog makes of a file, as JSON: its `sfConfig`, or the phase that refused it")
      .argument("<file>", "a SmartFrog file; what it includes is read with it")
      .action(async (file) => (await import("../spec/tree.ts")).printTree(context(), file)),
    ["cells spec tree tree.sf"],
  );
};

const registerSpecServe: Register = (spec, _context, withHelp) => {
  withHelp(
    spec
      .command("serve")
      .description("be the language server of an editor, over standard input and output (cli/editors/README.md)")
      // Editors add it to say what is the only way here.
      .option("--stdio", "as without it")
      .action(async () => (await import("../language-server/serve.ts")).serve(process.stdin, process.stdout)),
    ["cells spec serve"],
  );
};

const registerSpecTypes: Register = (spec, context, withHelp) => {
  withHelp(
    spec
      .command("types")
      .description("write the types that specifications in TypeScript are checked with")
      .option("--out <file>", "write them there, instead of printing them")
      .action(async ({ out }: { readonly out?: string }) => (await import("../spec/types.ts")).types(context(), out)),
    ["cells spec types --out cells-model.d.ts"],
  );
};
