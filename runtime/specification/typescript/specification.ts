import { stripTypeScriptTypes } from "node:module";
import type { Bundle } from "../../../model/cell/cell.ts";
import type { Evaluated } from "../../../model/cell/evaluated.ts";
import { elementTypes } from "../../../model/cell/schema.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { limits } from "../../../model/limits.ts";
import { builderFunctions, nestedAttributes } from "../../../model/reference/typescript-declarations.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { bounds } from "./bounds.ts";
import type { BuilderFault, BuilderResult, BuilderTable } from "./builder.ts";
import { builderModule, resolveImport } from "./modules.ts";
import { Places } from "./places.ts";
import { type Run, runModules } from "./quickjs.ts";
import { scan } from "./scan.ts";

/*
 * Evaluates a bundle in this process: strips the types, runs the modules in QuickJS, and reads what the builder wrote.
 * Only `process.ts` calls it, in a process that can do nothing else.
 */
const table: BuilderTable = {
  functions: builderFunctions,
  nested: Object.fromEntries((["Cell", ...elementTypes] as const).map((type) => [type, nestedAttributes(type)])),
  limits: { nesting: limits.nesting - 4, attributes: limits.attributes, diagnostics: limits.diagnostics },
};
const functionNames: ReadonlySet<string> = new Set(["cell", ...Object.values(builderFunctions)]);
const internal = "cells:builder";

/** `own`: texts of the prelude and the builder, as they lie beside this file. `say` gets what the specification prints. */
export async function evaluateTypeScript(
  { main, files }: Bundle,
  own: { readonly prelude: string; readonly builder: string },
  say: (text: string) => void,
): Promise<Result<Evaluated, readonly Diagnostic[]>> {
  const places = new Places(files, functionNames);
  const read = readTexts(main, files, places);
  if (!read.ok) return read;
  const strip = (text: string): string => stripTypeScriptTypes(text, { mode: "strip" });
  const facade = [
    `import { createBuilder } from ${JSON.stringify(internal)};`,
    `export const { element, cell, ref, finish } = createBuilder(${JSON.stringify(table)});`,
  ].join("\n");
  const exported = [
    'import { element, cell, ref } from "cells:facade";',
    ...Object.entries(builderFunctions).map(
      ([type, name]) => `export const ${name} = Object.freeze(element(${JSON.stringify(type)}));`,
    ),
    "export { cell, ref };",
  ].join("\n");
  const texts = new Map([
    ...read.value,
    [internal, strip(own.builder)],
    ["cells:facade", facade],
    [builderModule, exported],
  ]);
  const entry = `import { finish } from "cells:facade";
    import * as main from ${JSON.stringify(`./${main}`)};
    export const result = finish(main);`;
  const run = await runModules(
    strip(own.prelude),
    entry,
    {
      text: (name) => texts.get(name),
      resolve: (base, specifier) => {
        if (base.startsWith("cells:") || base === builderModule) return specifier.replace(/^\.\//, "");
        const found = resolveImport(base, specifier, (name) => Object.hasOwn(files, name));
        if (found.kind === "fault") return { refused: `${found.message}. ${found.hint}` };
        return found.kind === "builder" ? builderModule : found.name;
      },
    },
    say,
  );
  return run.kind === "result" ? documentOf(run.text, main, places) : fail([faultOf(run, main, places)]);
}

/** Texts of all that `main` imports, without types; with every fault that can be seen without running them. */
function readTexts(
  main: string,
  files: Readonly<Record<string, string>>,
  places: Places,
): Result<ReadonlyMap<string, string>, readonly Diagnostic[]> {
  const texts = new Map<string, string>();
  const faults: Diagnostic[] = [];
  const open = [main];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const text = files[name];
    if (texts.has(name) || text === undefined) continue;
    const read = name.endsWith(".json") ? jsonModule(name, text) : withoutTypes(name, text);
    if (!read.ok) {
      faults.push(read.error);
      texts.set(name, "");
      continue;
    }
    texts.set(name, read.value);
    if (name.endsWith(".json")) continue;
    for (const { specifier, start, end } of scan(read.value, functionNames).imports) {
      const found = resolveImport(name, specifier, (each) => Object.hasOwn(files, each));
      if (found.kind === "file") open.push(found.name);
      if (found.kind !== "fault") continue;
      const position = places.textPosition(name, start, end);
      faults.push({
        code: "typescript/import",
        message: found.message,
        hint: found.hint,
        ...(position ? { position } : {}),
      });
    }
  }
  return faults.length === 0 ? ok(texts) : fail(faults.slice(0, limits.diagnostics));
}

function jsonModule(name: string, text: string): Result<string, Diagnostic> {
  try {
    JSON.parse(text);
    return ok(`export default JSON.parse(${JSON.stringify(text)});`);
  } catch (error) {
    const position = { file: name, line: 1, column: 1, length: 1 };
    const message = `This is not JSON: ${(error as Error).message}`;
    return fail({ code: "typescript/import", message, hint: "A `.json` file holds one JSON value.", position });
  }
}

function withoutTypes(name: string, text: string): Result<string, Diagnostic> {
  try {
    return ok(stripTypeScriptTypes(text, { mode: "strip" }));
  } catch (error) {
    const { message, stack = "", code } = error as Error & { readonly code?: string };
    // Node shows the place as a line number, the line (sometimes behind an empty one), and carets below it.
    const [, line, carets] = /^[^\n]*:(\d+)\n[^^]*?\n([ \t]*\^+)(?:\n|$)/.exec(stack.slice(0, 20_000)) ?? [];
    const position = caretPosition(name, Number(line ?? 1), carets ?? "^");
    const unsupported = code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX";
    const deep = code === "ERR_INTERNAL_ASSERTION";
    return fail({
      code: unsupported ? "typescript/unsupported" : "typescript/syntax",
      message: deep ? `\`${name}\` is nested too deep to be read` : `${message.split("\n")[0]}`,
      hint: unsupported
        ? "Types are only left out, so what makes code of its own is not there: write a plain object, constant or module instead."
        : deep
          ? "Give inner parts names of their own."
          : "An editor with TypeScript shows what it expects.",
      position,
    });
  }
}

const caretPosition = (file: string, line: number, carets: string) => ({
  file,
  line,
  column: carets.indexOf("^") + 1,
  length: carets.length - carets.indexOf("^"),
});

function documentOf(text: string, main: string, places: Places): Result<Evaluated, readonly Diagnostic[]> {
  if (text.length > bounds.resultLength)
    return fail([
      {
        code: "typescript/too-large",
        message: `The cell is larger than ${bounds.resultLength / 1024 / 1024} MiB as JSON`,
        hint: "Split it into several cells.",
        position: { file: main, line: 1, column: 1, length: 1 },
      },
    ]);
  const { document, sites, faults } = JSON.parse(text) as BuilderResult;
  if (faults.length > 0) {
    const written = places.of(document, sites);
    return fail(faults.map((fault) => diagnosticOf(fault, written, main, places)));
  }
  return ok({ document: document as JsonObject, files: places.files, places: places.of(document, sites) });
}

function diagnosticOf(fault: BuilderFault, written: Evaluated["places"], main: string, places: Places): Diagnostic {
  const { code, message, hint, path, stack, related } = fault;
  const place = written[fault.pointer];
  const file = place && places.files[place[0]];
  const [frame] = places.frames(stack);
  const position =
    place && file !== undefined
      ? { file, line: place[1], column: place[2], length: place[3] }
      : ((frame && places.position(frame)) ?? { file: main, line: 1, column: 1, length: 1 });
  const other = related && places.callPosition(related.stack, related.function);
  return {
    code,
    message,
    hint,
    position,
    ...(path === "" ? {} : { path }),
    ...(related && other ? { related: [{ message: related.message, position: other }] } : {}),
  };
}

const shortened = (text: string): string => (text.length > 2000 ? `${text.slice(0, 2000)} …` : text);

function wordsOf(run: Exclude<Run, { kind: "result" }>): { code: string; message: string; hint: string } {
  switch (run.kind) {
    case "steps":
      return {
        code: "typescript/steps",
        message: "The specification runs too long: it was stopped here",
        hint: "Look for a loop that does not end. What a cell of ten thousand elements takes is far below the bound.",
      };
    case "stack":
      return {
        code: "typescript/recursion",
        message: "Functions call one another too deep",
        hint: "Look for a function that calls itself without an end.",
      };
    case "memory":
      return {
        code: "typescript/memory",
        message: `The specification takes more than ${bounds.quickJsBytes / 1024 / 1024} MiB of memory`,
        hint: "Look for a list or a text that grows without an end.",
      };
    case "pending":
      return {
        code: "typescript/awaits",
        message: "The specification awaits something that never comes",
        hint: "Nothing happens outside of it: there is nothing to wait for but its own promises.",
      };
    case "thrown":
      return thrownWords(run);
  }
}

function thrownWords({ name, message }: Extract<Run, { kind: "thrown" }>) {
  if (name === "NotHere")
    return {
      code: "typescript/not-here",
      message: shortened(message),
      hint: "Write the value itself, or a parameter.",
    };
  if (name === "ImportFault")
    return {
      code: "typescript/import",
      message: shortened(message),
      hint: "Name the file itself, so that it can be found.",
    };
  if (name === "Misuse")
    return {
      code: "typescript/misuse",
      message: shortened(message),
      hint: "`cells spec types` writes the types that an editor shows.",
    };
  if (name === "SyntaxError")
    return {
      code: "typescript/syntax",
      message: shortened(message),
      hint: "An editor with TypeScript shows what it expects.",
    };
  return {
    code: "typescript/thrown",
    message: `The specification threw ${name === "" ? "" : `${shortened(name)}: `}${shortened(message) || "something without a message"}`,
    hint: "The places below are the calls that led there.",
  };
}

function faultOf(run: Exclude<Run, { kind: "result" }>, main: string, places: Places): Diagnostic {
  const [first, ...outer] = places.frames(run.stack);
  const position = (first && places.position(first)) ?? { file: main, line: 1, column: 1, length: 1 };
  const related = run.kind === "stack" ? [] : places.chain(outer);
  const words = wordsOf(run);
  if (words.code === "typescript/thrown" && related.length === 0) words.hint = "It was thrown here.";
  return { ...words, position, ...(related.length === 0 ? {} : { related }) };
}
