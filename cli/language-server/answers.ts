import { join } from "node:path";
import {
  type CompletionItem,
  CompletionItemKind,
  type DocumentSymbol,
  InsertTextFormat,
  type Location as LspLocation,
  MarkupKind,
  type Range,
  SymbolKind,
  type TextEdit,
  type WorkspaceEdit,
} from "vscode-languageserver/node";
import type { TextDocument } from "vscode-languageserver-textdocument";
import type { Completion } from "../../model/editor/completion.ts";
import type { Location } from "../../model/editor/occurrences.ts";
import type { Rename } from "../../model/editor/rename.ts";
import type { Span } from "../../model/editor/sources/source.ts";
import type { Outline } from "../../model/editor/symbols.ts";
import type { Edit } from "../../model/editor/text-edit.ts";
import type { Documents } from "./documents.ts";

/** From what the language service says to what the protocol says; places become lines and UTF-16 columns. */

/** What the client said that it can do, as far as answers depend on it. */
export interface ClientAbilities {
  readonly snippets: boolean;
  readonly nestedSymbols: boolean;
  readonly documentChanges: boolean;
  readonly annotations: boolean;
}

export const rangeOf = (document: TextDocument, { start, end }: Span): Range => ({
  start: document.positionAt(start),
  end: document.positionAt(end),
});

export function locationOf(documents: Documents, directory: string, { file, start, end }: Location): LspLocation {
  const path = join(directory, file);
  return { uri: documents.uriOf(path), range: rangeOf(documents.textDocument(path), { start, end }) };
}

const completionKinds = {
  attribute: CompletionItemKind.Property,
  value: CompletionItemKind.Value,
  type: CompletionItemKind.Class,
  component: CompletionItemKind.Module,
  file: CompletionItemKind.File,
  keyword: CompletionItemKind.Keyword,
} as const;

export function completionItem(
  document: TextDocument,
  item: Completion,
  { snippets }: ClientAbilities,
): CompletionItem {
  const snippet = snippets ? item.snippet : undefined;
  return {
    label: item.label,
    kind: completionKinds[item.kind],
    sortText: `${item.rank}${item.label}`,
    textEdit: { range: rangeOf(document, item.replace), newText: snippet ?? item.insert },
    ...(snippet === undefined ? {} : { insertTextFormat: InsertTextFormat.Snippet }),
    ...(item.filter === undefined ? {} : { filterText: item.filter }),
    ...(item.detail === undefined ? {} : { detail: item.detail }),
    ...(item.docs === undefined ? {} : { documentation: { kind: MarkupKind.Markdown, value: item.docs } }),
  };
}

export function documentSymbol(document: TextDocument, outline: Outline): DocumentSymbol {
  return {
    name: outline.name === "" ? '""' : outline.name,
    kind: outline.kind === "component" ? SymbolKind.Object : SymbolKind.Property,
    range: rangeOf(document, outline.span),
    selectionRange: rangeOf(document, outline.nameSpan),
    ...(outline.detail === "" ? {} : { detail: outline.detail }),
    children: outline.children.map((child) => documentSymbol(document, child)),
  };
}

/** The one edit that makes a text of another: what is the same at both ends is left. */
export function replacement(document: TextDocument, text: string): TextEdit[] {
  const old = document.getText();
  if (old === text) return [];
  const shorter = Math.min(old.length, text.length);
  let [start, end] = [0, 0];
  while (start < shorter && old[start] === text[start]) start++;
  while (end < shorter - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
  const range = rangeOf(document, { start, end: old.length - end });
  return [{ range, newText: text.slice(start, text.length - end) }];
}

/** Renames of one name in several bundles, as one; each edit once. */
export interface RenameIn {
  readonly directory: string;
  readonly rename: Rename;
}
const keepAnnotation = "keep";

/**
 * The edits of a rename. Those that keep elements running belong to it by default; a client that shows annotations can
 * leave them out.
 */
export function workspaceEdit(
  documents: Documents,
  renames: readonly RenameIn[],
  { documentChanges, annotations }: ClientAbilities,
): WorkspaceEdit {
  const byPath = new Map<string, Map<string, TextEdit & { annotationId?: string }>>();
  const add = (directory: string, { file, start, end, text }: Edit, keep: boolean): void => {
    const path = join(directory, file);
    const range = rangeOf(documents.textDocument(path), { start, end });
    const edits = byPath.get(path) ?? new Map<string, TextEdit>();
    byPath.set(path, edits);
    const annotated = keep && annotations && documentChanges ? { annotationId: keepAnnotation } : {};
    edits.set(`${start} ${end} ${text}`, { range, newText: text, ...annotated });
  };
  for (const { directory, rename } of renames) {
    for (const edit of rename.edits) add(directory, edit, false);
    for (const edit of rename.keep) add(directory, edit, true);
  }
  const files = [...byPath].map(([path, edits]) => ({ path, edits: [...edits.values()] }));
  if (!documentChanges)
    return { changes: Object.fromEntries(files.map(({ path, edits }) => [documents.uriOf(path), edits])) };
  const kept = renames.some(({ rename }) => rename.keep.length > 0) && annotations;
  return {
    documentChanges: files.map(({ path, edits }) => ({
      textDocument: { uri: documents.uriOf(path), version: documents.versionOf(path) },
      edits,
    })),
    ...(kept ? { changeAnnotations: { [keepAnnotation]: keepText } } : {}),
  };
}

const keepText = {
  label: "Keep the running elements (x.movedFrom)",
  description: "Without it, renamed elements are deleted and made anew when the cell is applied.",
  needsConfirmation: false,
};
