import { type BundleView, viewBundle } from "../editor/sources/bundle-tree.ts";

/** Texts in which `‸` marks a cursor; the first file is the main one. */
export function marked(files: Readonly<Record<string, string>>): {
  readonly view: BundleView;
  readonly file: string;
  readonly offset: number;
} {
  const [main = ""] = Object.keys(files);
  const [file, text] = Object.entries(files).find(([, each]) => each.includes("‸")) ?? [main, "‸"];
  const plain = Object.fromEntries(Object.entries(files).map(([name, each]) => [name, each.replace("‸", "")]));
  return { view: viewBundle({ main, files: plain }), file, offset: text.indexOf("‸") };
}
