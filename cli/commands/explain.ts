import { diagnosticPages, exampleText, explanationOf, renderPage } from "../../model/diagnostics/diagnostic-codes.ts";
import { type Context, printJson } from "../context/context.ts";
import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";
import { table } from "../terminal/terminal.ts";

/**
 * `cells explain CODE`: the page of an error code; without a code all of them, a line each. Asks no gateway. An unknown
 * code is wrong usage, told with the closest one.
 */
export const explain = (context: Context, asked: string | undefined): void => {
  const { terminal } = context;
  if (asked === undefined) {
    const all = [...diagnosticPages].map(([code, { title }]) => ({ code, title }));
    if (context.json) printJson(context, all);
    else terminal.print(table(all.map(({ code, title }) => [terminal.paint("bold", code), title])).join("\n"));
    return;
  }
  const found = explanationOf(asked);
  if ("closest" in found)
    throw usage(
      `there is no error code \`${asked}\`: ${found.closest === undefined ? "`cells explain` lists all" : `did you mean \`${found.closest}\`?`}`,
    );
  const { code, page } = found;
  if (context.json) {
    const { title, why, wrong, right } = page;
    printJson(context, { code, title, why, wrong: exampleText(wrong), right: exampleText(right) });
  } else terminal.print(renderPage(code, page, (text) => terminal.paint("bold", text)));
};

export const registerExplain: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("explain")
      .description("say what an error code means, with a wrong and a right example")
      .argument("[code]", "as it stands in brackets behind an error; without it, all are listed")
      .action((code) => explain(context(), code)),
    ["cells explain schema/unknown-attribute", "cells explain"],
  );
};
