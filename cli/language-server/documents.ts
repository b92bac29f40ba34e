import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { TextDocument } from "vscode-languageserver-textdocument";
import { type BundleView, viewBundle } from "../../model/editor/sources/bundle-tree.ts";
import { keepNewest } from "../../model/limits.ts";
import { Sources } from "./sources.ts";

/** A text as part of a bundle: a main file and what it includes. */
export interface InBundle {
  readonly view: BundleView;
  /** Directory that the bundle's names are relative to. */
  readonly directory: string;
  readonly main: string;
  /** Its name in the bundle. */
  readonly name: string;
}

/** Null: it is not a `file:` URI. */
export function pathOfUri(uri: string): string | null {
  try {
    return uri.startsWith("file:") ? fileURLToPath(uri) : null;
  } catch {
    return null;
  }
}

/** How many views of texts that are not open are cached. */
const mostViews = 20;

/** The texts of the workspace with the unsaved changes of the editor, and a cached view of each bundle. */
export class Documents {
  readonly sources = new Sources();
  readonly #single: boolean;
  readonly #open = new Map<string, TextDocument>();
  /** The URI that the client uses for a path; answers must use the same spelling. */
  readonly #uris = new Map<string, string>();
  readonly #views = new Map<string, BundleView>();

  /** `folders` of the workspace; without any, the directory of each open file takes their place. */
  constructor(folders: readonly string[]) {
    this.#single = folders.length === 0;
    for (const folder of folders) this.sources.addRoot(folder);
  }

  get opened(): ReadonlyMap<string, TextDocument> {
    return this.#open;
  }
  open(uri: string, document: TextDocument): string | null {
    const path = pathOfUri(uri);
    if (path === null) return null;
    if (this.#single) this.sources.addRoot(dirname(path), 0);
    this.#open.set(path, document);
    this.#uris.set(path, uri);
    this.sources.open(path, document.getText());
    return path;
  }
  /** The document after a change that the client sent, in parts or as a whole. */
  change(uri: string, changes: Parameters<typeof TextDocument.update>[1], version: number): string | null {
    const path = pathOfUri(uri);
    const document = path === null ? undefined : this.#open.get(path);
    if (path === null || !document) return null;
    return this.open(uri, TextDocument.update(document, changes, version));
  }
  close(uri: string): string | null {
    const path = pathOfUri(uri);
    if (path === null || !this.#open.delete(path)) return null;
    this.sources.close(path);
    return path;
  }

  uriOf(path: string): string {
    return this.#uris.get(path) ?? pathToFileURL(path).href;
  }
  versionOf(path: string): number | null {
    return this.#open.get(path)?.version ?? null;
  }
  /** To convert offsets to positions, also in a text that is not open. */
  textDocument(path: string): TextDocument {
    return this.#open.get(path) ?? TextDocument.create(this.uriOf(path), "smartfrog", 0, this.sources.read(path) ?? "");
  }

  /** A text in each bundle that it is part of; there is at least one. */
  bundlesOf(path: string): readonly InBundle[] {
    return this.sources.mains(path).map((main) => this.#inBundle(main, path));
  }
  #inBundle(main: string, path: string): InBundle {
    const directory = dirname(main);
    const bundle = this.sources.bundle(main);
    const known = this.#views.get(main);
    const names = Object.keys(bundle.files);
    const same =
      known !== undefined &&
      names.length === Object.keys(known.bundle.files).length &&
      names.every((name) => known.bundle.files[name] === bundle.files[name]);
    const view = same ? known : viewBundle(bundle, known);
    this.#views.delete(main);
    this.#views.set(main, view);
    keepNewest(this.#views, mostViews);
    const name = names.find((each) => join(directory, each) === path) ?? bundle.main;
    return { view, directory, main, name };
  }
}
