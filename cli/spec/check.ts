import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import { printableLines } from "../../model/diagnostics/render-diagnostic.ts";
import { fail } from "../../model/result.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "../../runtime/specification/evaluate.ts";
import { compilerFor, typeFaults } from "../../runtime/specification/typescript/compiler.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { readBundle } from "./bundle.ts";
import { opened, rendered } from "./diagnostics.ts";

/**
 * `cells spec check FILE`: all that is wrong with a specification, without a gateway. Exit code 0 if nothing is, else 1.
 * With `--output json`: `{ok, cell?, elements?, diagnostics}`. Files are named from the working directory in both. What only an installation knows (hosts, quotas,
 * addresses) is not checked.
 */
export const check = async (context: Context, file: string): Promise<void> => {
  const { terminal } = context;
  const bundle = readBundle(file, "leave-out");
  const evaluated = await evaluate(bundle, { said: (text) => process.stderr.write(printableLines(text)) });
  const meant = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  const compiler = file.endsWith(".ts") ? compilerFor(file) : null;
  const types = compiler === null ? [] : await typeFaults(compiler, file);
  const read = types.length === 0 ? meant : fail(withTypes(types, meant.ok ? [] : meant.error));
  if (context.json) {
    const cell = read.ok ? { cell: read.value.name, elements: read.value.elements.size } : {};
    printJson(context, {
      ok: read.ok,
      ...cell,
      diagnostics: read.ok ? [] : opened(file, bundle, read.error).diagnostics,
    });
    if (!read.ok) process.exitCode = exitCodes.refused;
    return;
  }
  if (read.ok) {
    const { name, elements } = read.value;
    terminal.print(`${file}: the cell ${name}, ${elements.size} element${elements.size === 1 ? "" : "s"}: no errors`);
    return;
  }
  const faults = rendered(file, bundle, read.error, terminal.colour);
  const codes = [...new Set(read.error.map(({ code }) => code))];
  const count = `${faults.length} error${faults.length === 1 ? "" : "s"}`;
  throw new CommandFailure(
    exitCodes.refused,
    [...faults, `${count}; \`cells explain ${codes[0]}\` says more${codes.length > 1 ? " of the first" : ""}`].join(
      "\n\n",
    ),
  );
};

/** What the compiler found comes first; what the checks say of the same line is mostly the same again. */
const withTypes = (types: readonly Diagnostic[], others: readonly Diagnostic[]): readonly Diagnostic[] => {
  const lineOf = ({ position }: Diagnostic): string => `${position?.file}:${position?.line}`;
  const told = new Set(types.map(lineOf));
  return [...types, ...others.filter((each) => !told.has(lineOf(each)))];
};
