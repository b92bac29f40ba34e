import { posix } from "node:path";

/** What a module of a bundle may import: files of the bundle by relative names, and the builder. */
export const builderModule = "cells/model";

export type Resolved =
  | { readonly kind: "file"; readonly name: string }
  | { readonly kind: "builder" }
  | { readonly kind: "fault"; readonly message: string; readonly hint: string };

const refuse = (message: string, hint: string): Resolved => ({ kind: "fault", message, hint });

/** Names that a relative specifier may mean, the likeliest first; null if it leads out of the directory. */
export function candidates(base: string, specifier: string): readonly string[] | null {
  const name = posix.normalize(posix.join(posix.dirname(base), specifier));
  if (name === ".." || name.startsWith("../") || posix.isAbsolute(name)) return null;
  return /\.(ts|json)$/.test(name) ? [name] : [name.replace(/\.js$/, ".ts"), `${name}.ts`];
}

export const isRelative = (specifier: string): boolean => /^\.\.?(\/|$)/.test(specifier);

/** What `import … from "specifier"` in the file `base` means. */
export function resolveImport(base: string, specifier: string, has: (name: string) => boolean): Resolved {
  if (specifier === builderModule) return { kind: "builder" };
  if (isRelative(specifier)) {
    const names = candidates(base, specifier);
    if (names === null)
      return refuse(
        `\`${specifier}\` lies outside the directory of the specification`,
        "Put it into that directory or one below.",
      );
    const name = names.find((each) => /\.(ts|json)$/.test(each) && has(each));
    if (name !== undefined) return { kind: "file", name };
    return refuse(
      `There is no \`${names.at(-1)}\` in the bundle`,
      "A specification imports TypeScript (`./tier.ts`) and JSON (`./ports.json`) that lie beside it.",
    );
  }
  if (specifier.startsWith("node:"))
    return refuse(
      `\`${specifier}\` is not there: a specification has no files, no network and no processes`,
      'Write what it needs into the specification, or into JSON beside it: `import ports from "./ports.json" with { type: "json" }`.',
    );
  if (/^[a-z][a-z0-9+.-]*:/i.test(specifier) || specifier.startsWith("/"))
    return refuse(
      `\`${specifier}\` is not loaded: a specification imports only files that lie beside it`,
      'Put a copy into its directory and import that, as in `"./tier.ts"`.',
    );
  return refuse(
    `\`${specifier}\` is not there: a specification imports \`${builderModule}\` and files that lie beside it, no packages`,
    `Write \`"./${specifier}"\` if it is a file beside this one.`,
  );
}
