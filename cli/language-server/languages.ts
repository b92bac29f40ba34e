import { extname } from "node:path";

/** What the server does for texts of a language. */
export interface Language {
  /** Completion, hover, navigation and rename: only languages that `viewBundle` reads. Diagnostics are for all. */
  readonly service: boolean;
  readonly format: boolean;
  /** Of languages in which other things are written as well: whether a text is a specification. */
  readonly isSpecification: (text: string) => boolean;
}

/**
 * The one place that says which files are specifications. To read a further language takes a line here and one in
 * `runtime/specification/evaluate.ts`.
 */
const languages: Readonly<Record<string, Language>> = {
  ".sf": { service: true, format: true, isSpecification: () => true },
  ".json": { service: true, format: false, isSpecification: (text) => text.includes('"x.type"') },
  ".yaml": { service: false, format: false, isSpecification: (text) => /^\s*"?x\.type"?\s*:/m.test(text) },
  ".yml": { service: false, format: false, isSpecification: (text) => /^\s*"?x\.type"?\s*:/m.test(text) },
  ".ts": { service: false, format: false, isSpecification: (text) => /\bfrom\s+["']cells\/model["']/.test(text) },
};

/** Null for a text that is no specification. */
export function languageOf(path: string, text: string): Language | null {
  const extension = extname(path);
  const language = Object.hasOwn(languages, extension) ? languages[extension] : undefined;
  return language?.isSpecification(text) ? language : null;
}
