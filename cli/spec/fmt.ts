import { chmodSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { extname } from "node:path";
import { renderDiagnostic } from "../../model/diagnostics/render-diagnostic.ts";
import { formatSmartFrog } from "../../model/smartfrog-format/format.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { textOf } from "./bundle.ts";

interface FormatOptions {
  /** Say which files are not formatted, and write nothing. */
  readonly check: boolean;
  /** Into the files instead of to standard output. */
  readonly write: boolean;
}

const standardInput = "-";

/** What formats other languages than SmartFrog; their editors bring it along. */
const otherFormatters: Readonly<Record<string, string>> = {
  ".json": "for JSON use `jq . FILE`, or your editor's formatter",
  ".yaml": "for YAML use `prettier --write FILE`, or your editor's formatter",
  ".yml": "for YAML use `prettier --write FILE`, or your editor's formatter",
  ".ts": "for TypeScript use the formatter of your project",
};

const read = (file: string): string => {
  if (file !== standardInput && !file.endsWith(".sf")) {
    const other = otherFormatters[extname(file)];
    throw usage(`${file}: only \`.sf\` files (SmartFrog) are formatted${other === undefined ? "" : `; ${other}`}`);
  }
  try {
    // What is not UTF-8 would be written back as something else.
    return textOf(readFileSync(file === standardInput ? 0 : file), file === standardInput ? "the input" : file);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    throw usage(`cannot read ${file}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`);
  }
};

/** All of the new text or all of the old one, also if the disk is full in between. */
const replace = (file: string, text: string): void => {
  const real = realpathSync(file);
  const next = `${real}.${process.pid}.new`;
  try {
    writeFileSync(next, text, { flag: "wx" });
    chmodSync(next, statSync(real).mode & 0o7777);
    renameSync(next, real);
  } catch (error) {
    rmSync(next, { force: true });
    throw usage(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
};

/**
 * `cells spec fmt FILE…`: SmartFrog texts in their one form, comments kept, to standard output or with `write` in place.
 * Files with syntax errors are left as they are and make exit code 1, as do those that `check` finds.
 */
export const format = (context: Context, files: readonly string[], { check, write }: FormatOptions): void => {
  const { terminal } = context;
  if (check && write) throw usage("--check writes nothing: leave out one of --check and --write");
  if (write && files.includes(standardInput)) throw usage("standard input cannot be written in place");
  const texts = files.map((file) => ({ file, text: read(file) }));
  const changed: string[] = [];
  const faults: string[] = [];
  const outputs: string[] = [];
  for (const { file, text } of texts) {
    const formatted = formatSmartFrog(file, text);
    if (!formatted.ok) {
      for (const fault of formatted.error) faults.push(renderDiagnostic(fault, { [file]: text }, terminal.colour));
      continue;
    }
    outputs.push(formatted.value);
    if (formatted.value === text) continue;
    changed.push(file);
    if (write) replace(file, formatted.value);
  }
  if (context.json)
    printJson(context, { ok: faults.length === 0, changed, ...(check || write ? {} : { texts: outputs }) });
  else if (check || write) for (const file of changed) terminal.print(file);
  else if (outputs.join("") !== "") terminal.print(outputs.join("").replace(/\n$/, ""));
  if (faults.length > 0) throw new CommandFailure(exitCodes.refused, faults.join("\n\n"));
  if (check && changed.length > 0) process.exitCode = exitCodes.refused;
};
