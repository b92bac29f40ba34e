import type { Register } from "../context/register-type.ts";
import { putText } from "../output/put-text.ts";

/** `cells api openapi` and `cells api reference`: what comes of the table of routes. They ask no gateway; `cells api METHOD PATH` does. */
export const registerApi: Register = (program, context, withHelp) => {
  const api = withHelp(
    program
      .command("api")
      .description("ask the REST interface, or describe it")
      .argument("<method>", "GET, PUT, PATCH, POST or DELETE")
      .argument("<path>", "of the interface, with its query: /cells/shop/model?state=true")
      .option("--data <file>", "what to send, - for standard input")
      .option("--type <type>", "what that is", "application/json")
      .action(async (method, path, { data, type }) =>
        (await import("../commands/api.ts")).request(
          context(),
          method,
          path,
          data === undefined ? null : { file: data, type },
        ),
      ),
    ["cells api GET /status", "cells api PATCH /cells/shop/model --data patch.json --type application/json-patch+json"],
    "The answer's body is printed as it comes, also one that does not end (GET /events?follow=true).",
  );
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
