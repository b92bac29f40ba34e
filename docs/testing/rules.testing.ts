import { dirname, join, normalize } from "node:path";
import type { Bundle, Cell } from "../../model/cell/cell.ts";
import { attributeNames, attributeSchema, elementTypes } from "../../model/cell/schema.ts";
import { diagnosticPages, explanationOf } from "../../model/diagnostics/diagnostic-codes.ts";
import { planChange } from "../../model/plan/plan.ts";
import { formatSmartFrog } from "../../model/smartfrog-format/format.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { callFault } from "./command-line.testing.ts";
import { anchorsOf, blocksOf, type Document, entriesOf, inlineCodeOf, linksOf, wordsOf } from "./documents.testing.ts";

/** What is wrong with the documents, a line for each fault. All rules are about texts; what exists is told to them. */
export interface Library {
  readonly documents: readonly Document[];
  /** Specifications and what they include. */
  readonly sources: readonly Document[];
  /** Every file and folder of the repository, and what documents may already lead to. */
  readonly exists: (path: string) => boolean;
}

const at = ({ path }: Document, line: number): string => `${path}:${line}`;
const isSmartFrog = ({ path }: Document): boolean => path.endsWith(".sf");

const includedBy = (source: Document): readonly string[] =>
  [...source.text.matchAll(/^#include "([^"]+)"/gm)].map(([, name]) =>
    normalize(join(dirname(source.path), name ?? "")),
  );

const bundleOf = ({ path }: Document, sources: readonly Document[]): Bundle => {
  const folder = dirname(path);
  const files = sources.filter((source) => source.path.startsWith(`${folder}/`));
  return {
    main: path.slice(folder.length + 1),
    files: Object.fromEntries(files.map((source) => [source.path.slice(folder.length + 1), source.text])),
  };
};

/** Whole specifications: what no other one includes. */
const wholesOf = (sources: readonly Document[]): readonly Document[] => {
  const parts = new Set(sources.filter(isSmartFrog).flatMap(includedBy));
  return sources.filter(({ path }) => !parts.has(path));
};

export function specificationFaults({ sources }: Library): readonly string[] {
  return wholesOf(sources).flatMap((source) => {
    const read = readSpecification(bundleOf(source, sources));
    return read.ok ? [] : read.error.map(({ code, message }) => `${source.path}: ${code}: ${message}`);
  });
}

const isFormatted = (name: string, text: string): boolean => {
  const formatted = formatSmartFrog(name, text);
  return formatted.ok && formatted.value === text;
};

export function formatFaults({ sources }: Library): readonly string[] {
  return sources.flatMap((source) =>
    !isSmartFrog(source) || isFormatted(source.path, source.text)
      ? []
      : [`${source.path}: not as \`cells spec fmt\` writes it`],
  );
}

/** Where a specification stands there in two languages, it is the same cell. */
export function languageFaults({ sources }: Library): readonly string[] {
  const cellOf = (source: Document): Cell | null => {
    const read = readSpecification(bundleOf(source, sources));
    return read.ok ? read.value : null;
  };
  return wholesOf(sources).flatMap((source) => {
    const twin = sources.find(({ path }) => path === source.path.replace(/\.\w+$/, ".sf"));
    if (twin === undefined || twin === source) return [];
    const [cell, other] = [cellOf(source), cellOf(twin)];
    const same =
      cell !== null && other !== null && planChange(other, cell).steps.every(({ action }) => action === "none");
    return same ? [] : [`${source.path} and ${twin.path} are not the same cell`];
  });
}

const languages = ["sf", "json", "console", "sh", "text", "hcl", "yaml", "ts", "http"];

/** Lines of `part` one after another in `whole`, however far indented. */
const isPart = (part: string, whole: string): boolean => {
  const flat = (text: string): string => `\n${text.trim().replace(/\n[ \t]*/g, "\n")}\n`;
  return flat(whole).includes(flat(part));
};

function sourceBlockFault(
  { language, note, text }: ReturnType<typeof blocksOf>[number],
  { sources }: Library,
): string | null {
  const name = `shop.${language}`;
  const part = /^from=(\S+)$/.exec(note)?.[1];
  if (part !== undefined) {
    const source = sources.find(({ path }) => path === `docs/${part}`);
    return source !== undefined && isPart(text, source.text) ? null : `this does not stand in docs/${part}`;
  }
  if (note === "fragment")
    return language !== "sf" || formatSmartFrog(name, text).ok ? null : "the syntax of this fragment is wrong";
  if (note !== "" && note !== "wrong") return `\`${note}\` is none of: fragment, wrong, from=FILE`;
  const read = readSpecification({ main: name, files: { [name]: text } });
  if (note === "wrong") return read.ok ? "this is shown as wrong and has no errors" : null;
  if (!read.ok) return `${read.error[0]?.code}: ${read.error[0]?.message}`;
  return language !== "sf" || isFormatted(name, text) ? null : "not as `cells spec fmt` writes it";
}

/** Blocks `sf` and `json` are whole specifications, or say what they are instead. */
export function blockFaults(library: Library): readonly string[] {
  return library.documents.flatMap((document) =>
    blocksOf(document).flatMap((block) => {
      const where = at(document, block.line);
      if (!languages.includes(block.language))
        return [`${where}: a block in \`${block.language}\`, which is none of: ${languages.join(", ")}`];
      const fault = block.language === "sf" || block.language === "json" ? sourceBlockFault(block, library) : null;
      return fault === null ? [] : [`${where}: ${fault}`];
    }),
  );
}

/** Every call of `cells`, in a block or within a line, is one that the command line takes. */
export function commandFaults({ documents }: Library): readonly string[] {
  return documents.flatMap((document) => {
    const calls = [
      ...inlineCodeOf(document).map(({ line, text }) => ({ line, text, whole: false })),
      ...blocksOf(document)
        .filter(({ language }) => language === "console")
        .flatMap(entriesOf)
        .map(({ line, command }) => ({ line, text: command, whole: true })),
    ];
    return calls.flatMap(({ line, text, whole }) => {
      const words = wordsOf(text);
      const fault = words === null ? null : callFault(words, whole);
      return fault === null ? [] : [`${at(document, line)}: ${fault}`];
    });
  });
}

export function linkFaults({ documents, exists }: Library): readonly string[] {
  return documents.flatMap((document) =>
    linksOf(document).flatMap(({ line, text }) => {
      if (/^[a-z]+:/.test(text)) return [];
      const [file = "", anchor] = text.split("#", 2);
      const path = file === "" ? document.path : normalize(join(dirname(document.path), file)).replace(/\/$/, "");
      if (!exists(path)) return [`${at(document, line)}: the link to ${text} leads nowhere`];
      const target = documents.find((each) => each.path === path);
      return anchor === undefined || target === undefined || anchorsOf(target).has(anchor)
        ? []
        : [`${at(document, line)}: ${path} has no heading #${anchor}`];
    }),
  );
}

/** Files named in a line are there. */
export function pathFaults({ documents, exists }: Library): readonly string[] {
  return documents.flatMap((document) =>
    inlineCodeOf(document).flatMap(({ line, text }) =>
      !/^(docs|examples|decisions|editors|model|core|cli|gateway|image|testbed)\/[\w./-]+$/.test(text) ||
      exists(text.replace(/\/$/, ""))
        ? []
        : [`${at(document, line)}: there is no ${text}`],
    ),
  );
}

const families = new Set([...diagnosticPages.keys()].flatMap((code) => code.match(/^[a-z]+(?=\/)/) ?? []));

export function codeFaults({ documents }: Library): readonly string[] {
  return documents.flatMap((document) => {
    const named = inlineCodeOf(document).filter(({ text }) => {
      const [family = "", rest] = text.split("/");
      return families.has(family) && rest !== undefined && /^[a-z-]+\/[a-z-]+$/.test(text);
    });
    const asked = blocksOf(document)
      .flatMap(entriesOf)
      .flatMap(({ line, command }) => {
        const words = wordsOf(command);
        return words?.[0] === "explain" && words[1] !== undefined ? [{ line, text: words[1] }] : [];
      });
    return [...named, ...asked].flatMap(({ line, text }) =>
      "page" in explanationOf(text) ? [] : [`${at(document, line)}: there is no error code ${text}`],
    );
  });
}

const isAttribute = (name: string): boolean =>
  (["Cell", ...elementTypes] as const).some(
    (type) =>
      attributeSchema(type, name) !== undefined ||
      // `x.limits.*` and `x.limits` speak of the whole family.
      attributeNames(type).some((known) => known.startsWith(`${name.replace(/\.\*$/, "")}.`)),
  );

/** An attribute of the schema that is named is one. */
export function attributeFaults({ documents }: Library): readonly string[] {
  return documents.flatMap((document) =>
    inlineCodeOf(document).flatMap(({ line, text }) => {
      const name = /^(x\.[\w.]*\w(?:\.\*)?)(?: .*)?$/.exec(text)?.[1];
      return name === undefined || isAttribute(name) ? [] : [`${at(document, line)}: there is no attribute ${name}`];
    }),
  );
}

/** The index leads to every document beside it. */
export function indexFaults({ documents }: Library): readonly string[] {
  const index = documents.find(({ path }) => path === "docs/README.md");
  const linked = new Set(index === undefined ? [] : linksOf(index).map(({ text }) => text.split("#")[0]));
  return documents.flatMap(({ path }) => {
    const name = /^docs\/([^/]+\.md)$/.exec(path)?.[1];
    return name === undefined || name === "README.md" || linked.has(name)
      ? []
      : [`docs/README.md does not link ${path}`];
  });
}
