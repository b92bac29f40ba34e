import { isUtf8 } from "node:buffer";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, posix, relative, resolve, sep } from "node:path";
import type { Bundle } from "../../model/cell/cell.ts";
import { limits } from "../../model/limits.ts";
import { isStandardInclude } from "../../model/smartfrog/text/parser.ts";
import { commentEnd, quotedEnd } from "../../model/smartfrog-format/pieces.ts";
import { candidates, isRelative } from "../../runtime/specification/typescript/modules.ts";
import { scan } from "../../runtime/specification/typescript/scan.ts";
import { CommandFailure, usage } from "../terminal/failure.ts";

/** `optional`: `#include ?`, which brings nothing where there is no such file. */
export interface Included {
  readonly name: string;
  readonly optional: boolean;
}

/**
 * The files that a SmartFrog text includes, named as written. Comments and strings are skipped, so that an
 * `#include` in them is none; nor are those of SmartFrog's own distribution, which are never in a bundle. This only
 * decides which files are sent: the parser decides what they mean.
 */
export const includesOf = (text: string): readonly Included[] => {
  const found: Included[] = [];
  const token = /\/[/*]|##|"|#include[ \t]*(\?)?\s*"([^"\n]+)"/g;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [sign, optional, name] = match;
    if (name !== undefined) {
      if (!isStandardInclude(name)) found.push({ name, optional: optional !== undefined });
      continue;
    }
    const end = sign.startsWith("/") ? commentEnd(text, match.index) : quotedEnd(text, match.index);
    // What is never closed is no comment or string for a reader either, who goes on in the next line.
    if (end >= 0) token.lastIndex = end;
    else if (sign === "/*" || sign === "##") break;
  }
  return found;
};

/** Where bytes stop being UTF-8, as an author looks for it. */
const firstFault = (bytes: Buffer): string => {
  let line = 1;
  let start = 0;
  // A line feed is never part of a longer character, so each line is sound by itself or not.
  for (let end = bytes.indexOf(10); end >= 0 && isUtf8(bytes.subarray(start, end)); end = bytes.indexOf(10, start)) {
    line++;
    start = end + 1;
  }
  return `line ${line}`;
};

/** Bytes of a specification as text. */
export const textOf = (bytes: Buffer, shown: string): string => {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw usage(
    `${shown} is not text in UTF-8 (${firstFault(bytes)}): save it as UTF-8, or see whether it is a specification at all`,
  );
};

const mostFiles = 1000;

const read = (file: string, shown: string, includedBy: string | undefined): string => {
  try {
    if (statSync(file).isDirectory())
      throw usage(`${shown} is a directory: name a specification, e.g. ${shown}/shop.sf`);
    const { size } = statSync(file);
    if (size > limits.textLength)
      throw usage(`${shown} is larger than ${limits.textLength / 1024 / 1024} MiB, more than a specification may be`);
    return textOf(readFileSync(file), shown);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const by = includedBy === undefined ? "" : `, which ${includedBy} includes`;
    throw usage(`cannot read ${shown}${by}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`);
  }
};

/**
 * Reads a specification with all it includes. Everything must lie in the directory of the file or below. An included
 * file that cannot be had is refused, or left out so that the parser can say where it was to be included.
 */
export const readBundle = (file: string, missing: "refuse" | "leave-out" = "refuse"): Bundle => {
  const main = basename(file);
  if (!/\.(sf|json|ya?ml|ts)$/.test(main))
    throw usage(`${file}: a specification is a \`.sf\`, \`.json\`, \`.yaml\` or \`.ts\` file`);
  const root = dirname(resolve(file));
  const files: Record<string, string> = {};
  let characters = 0;
  const visit = (name: string, includedBy: string | undefined): void => {
    if (Object.hasOwn(files, name)) return;
    if (Object.keys(files).length === mostFiles) throw usage(`${file} includes more than ${mostFiles} files`);
    const path = resolve(root, name);
    const text = read(path, includedBy === undefined ? file : name, includedBy);
    // A symbolic link must not lead out of the tree either: what is outside is not the author's to send.
    const real = relative(realpathSync(root), realpathSync(path));
    if (real === ".." || real.startsWith(`..${sep}`)) throw usage(`${name} lies outside ${root}, and is not sent`);
    files[name] = text;
    characters += text.length;
    if (characters > limits.textLength)
      throw usage(`${file} and what it includes are larger than ${limits.textLength / 1024 / 1024} MiB together`);
    if (name.endsWith(".ts")) visitImports(name, text);
    if (!name.endsWith(".sf")) return;
    for (const { name: included, optional } of includesOf(text)) {
      const target = posix.normalize(posix.join(posix.dirname(name), included));
      if (posix.isAbsolute(included) || target === ".." || target.startsWith("../")) {
        if (missing === "leave-out") continue;
        throw usage(
          `${name} includes "${included}", which is outside ${root}: put it into that directory or one below, and include it by its relative path`,
        );
      }
      if (optional && !existsSync(resolve(root, target))) continue;
      try {
        visit(target, name);
      } catch (error) {
        if (missing === "refuse" || !(error instanceof CommandFailure) || characters > limits.textLength) throw error;
      }
    }
  };
  /** What cannot be imported is told where the import stands, when the specification is evaluated. */
  const visitImports = (name: string, text: string): void => {
    for (const { specifier } of scan(text, new Set()).imports) {
      const names = isRelative(specifier) ? (candidates(name, specifier) ?? []) : [];
      const there = names.find((each) => /\.(ts|json)$/.test(each) && existsSync(resolve(root, each)));
      if (there !== undefined) visit(there, name);
    }
  };
  visit(main, undefined);
  return { main, files };
};
