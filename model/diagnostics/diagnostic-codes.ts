import { closestName } from "./closest-name.ts";
import type { DiagnosticPage, Example } from "./diagnostic-page.ts";
import { cellPages, requestPages, schemaPages } from "./pages/cell.ts";
import { functionPages } from "./pages/functions.ts";
import { limitPages } from "./pages/limits.ts";
import { imagePages, refusalPages } from "./pages/refusals.ts";
import { resolutionPages } from "./pages/resolution.ts";
import { supplyPages } from "./pages/supply.ts";
import { syntaxPages } from "./pages/syntax.ts";
import { typescriptPages } from "./pages/typescript.ts";
import { yamlPages } from "./pages/yaml.ts";

/*
 * Every code that a specification or a request can be refused with, by a cell's controller, by the gateway, and for an
 * image by a storage server. A code and its page are one entry in `pages/`. Codes are stable: people search for them and
 * programs compare them, so one that is out of use is removed, never reused. A test reads the sources and fails for a
 * code without a page as for a page without a code; another runs the examples.
 */
export const diagnosticPages: ReadonlyMap<string, DiagnosticPage> = new Map(
  [
    syntaxPages,
    resolutionPages,
    functionPages,
    schemaPages,
    cellPages,
    supplyPages,
    limitPages,
    requestPages,
    typescriptPages,
    yamlPages,
    refusalPages,
    imagePages,
  ].flatMap((pages) => Object.entries(pages)),
);

/** The page of a code, in any case and also by its last part alone where that is unambiguous; or the closest code. */
export function explanationOf(
  asked: string,
): { readonly code: string; readonly page: DiagnosticPage } | { readonly closest: string | undefined } {
  const wanted = asked
    .trim()
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1");
  const codes = [...diagnosticPages.keys()];
  const same = codes.filter((code) => code === wanted);
  const found = same.length > 0 ? same : codes.filter((code) => code.endsWith(`/${wanted}`));
  const [code] = found;
  const page = code === undefined ? undefined : diagnosticPages.get(code);
  if (code !== undefined && page && found.length === 1) return { code, page };
  return {
    closest: code ?? closestName(wanted, codes) ?? codes.find((known) => wanted !== "" && known.includes(wanted)),
  };
}

/** An example as text. Of several files each begins with a comment line that names it. */
export function exampleText(example: Example): string {
  if (example.kind !== "bundle") return example.shown;
  const files = Object.entries(example.bundle.files);
  if (files.length === 1) return (files[0]?.[1] ?? "").trimEnd();
  return files.map(([name, text]) => `// ${name}\n${text.trimEnd()}`).join("\n\n");
}

/** A page as a person reads it; `heading` marks the lines that are one. */
export function renderPage(code: string, page: DiagnosticPage, heading: (text: string) => string): string {
  const indented = (text: string): string => text.replace(/^(?=.)/gm, "    ");
  return [
    heading(`${code}: ${page.title}`),
    "",
    wrapped(page.why, 100),
    "",
    heading("Wrong"),
    "",
    indented(exampleText(page.wrong)),
    "",
    heading("Right"),
    "",
    indented(exampleText(page.right)),
  ].join("\n");
}

function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
