import type { Json } from "../../../../model/json/json.ts";

/**
 * `x.data` as a tree of files, for a guest that has a shell and no JSON parser: a component is a directory, a value is a
 * file with that value and a line end, a vector of values is a file with a line for each. A vector that holds components
 * is a directory of `0`, `1`, …; null is an empty file.
 *
 * Names are percent-encoded where a file name could not hold them, so nothing in a specification can leave the directory.
 */
export const dataTree = (data: Json, below: string): Readonly<Record<string, string>> => {
  if (data === null) return { [below]: "" };
  if (typeof data !== "object") return { [below]: `${data}\n` };
  if (Array.isArray(data) && data.every((item) => item === null || typeof item !== "object"))
    return { [below]: data.map((item) => `${item ?? ""}\n`).join("") };
  const files: Record<string, string> = {};
  for (const [name, value] of Object.entries(data)) Object.assign(files, dataTree(value, `${below}/${fileName(name)}`));
  return files;
};

const fileName = (name: string): string => {
  const encoded = encodeURIComponent(name);
  if (encoded === "" || /^\.+$/.test(encoded)) return encoded.replaceAll(".", "%2E") || "%00";
  return encoded.length <= 200 ? encoded : encoded.slice(0, 200);
};
