import type { Register } from "../context/register-type.ts";
import { putText } from "../output/put-text.ts";

/** `cells api openapi` and `cells api reference`: what comes of the table of routes. They ask no gateway. */
export const registerApi: Register = (program, context, withHelp) => {
  const api = program.command("api").description("describe the REST interface");
  withHelp(
    api
      .command("openapi")
      .description("print the REST interface as an OpenAPI 3.1 document; the gateway has the same at /openapi.json")
      .argument("[file]", "write it there instead")
      .action(async (file) => {
        const { openApi } = await import("../../model/contract/openapi.ts");
        putText(context(), `${JSON.stringify(openApi(), null, 2)}\n`, file);
      }),
    ["cells api openapi cells.openapi.json"],
  );
  withHelp(
    api
      .command("reference")
      .description("print the reference of the REST interface, as Markdown")
      .argument("[file]", "write it there instead")
      .action(async (file) => putText(context(), (await import("../../model/contract/page.ts")).restPage(), file)),
    ["cells api reference", "cells api reference rest.md"],
  );
};
