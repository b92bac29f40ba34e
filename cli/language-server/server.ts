import { fileURLToPath } from "node:url";
import {
  type CancellationToken,
  type Connection,
  DidChangeWatchedFilesNotification,
  ErrorCodes,
  type InitializeParams,
  type InitializeResult,
  LSPErrorCodes,
  MarkupKind,
  ResponseError,
  TextDocumentSyncKind,
} from "vscode-languageserver/node";
import { TextDocument } from "vscode-languageserver-textdocument";
import { completionsAt } from "../../model/editor/completions.ts";
import { hoverAt } from "../../model/editor/hover.ts";
import { definitionOf, referencesOf } from "../../model/editor/navigation.ts";
import { renamable, renameElement } from "../../model/editor/rename.ts";
import { symbolsOf } from "../../model/editor/symbols.ts";
import { formatSmartFrog } from "../../model/smartfrog-format/format.ts";
import {
  type ClientAbilities,
  completionItem,
  documentSymbol,
  locationOf,
  type RenameIn,
  rangeOf,
  replacement,
  workspaceEdit,
} from "./answers.ts";
import { Checks } from "./checks.ts";
import { Documents, type InBundle, pathOfUri } from "./documents.ts";
import { type Language, languageOf } from "./languages.ts";

/** What there is between `initialize` and `shutdown`. */
interface Session {
  readonly documents: Documents;
  readonly checks: Checks;
  readonly abilities: ClientAbilities;
  readonly watches: boolean;
}

/** A text that a request is about. */
interface Target {
  readonly session: Session;
  readonly path: string;
  readonly document: TextDocument;
  readonly language: Language;
  readonly bundles: readonly InBundle[];
}
interface TextRequest {
  readonly textDocument: { readonly uri: string };
  readonly position?: { readonly line: number; readonly character: number };
}

/** The language server over a connection, which the caller starts to listen. Everything it answers is read-only. */
export class LanguageServer {
  readonly #connection: Connection;
  #session: Session | null = null;
  #ended = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.onInitialize((parameters) => this.#initialize(parameters));
    connection.onInitialized(() => this.#initialized());
    connection.onShutdown(() => {
      this.#session?.checks.stop();
      this.#ended = true;
    });
    this.#follow();
    this.#answer();
  }

  #initialize(parameters: InitializeParams): InitializeResult {
    const { textDocument, workspace } = parameters.capabilities;
    const abilities = {
      snippets: textDocument?.completion?.completionItem?.snippetSupport === true,
      nestedSymbols: textDocument?.documentSymbol?.hierarchicalDocumentSymbolSupport === true,
      documentChanges: workspace?.workspaceEdit?.documentChanges === true,
      annotations: workspace?.workspaceEdit?.changeAnnotationSupport !== undefined,
    };
    const documents = new Documents(foldersOf(parameters));
    const watches = workspace?.didChangeWatchedFiles?.dynamicRegistration === true;
    this.#session = { documents, checks: new Checks(documents, this.#connection), abilities, watches };
    return {
      serverInfo: { name: "cells" },
      capabilities: {
        textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: false },
        completionProvider: { triggerCharacters: ['"', "/", ":", ".", "<"] },
        hoverProvider: true,
        definitionProvider: true,
        referencesProvider: true,
        documentSymbolProvider: true,
        renameProvider: { prepareProvider: true },
        documentFormattingProvider: true,
      },
    };
  }
  #initialized(): void {
    if (!this.#session?.watches) return;
    const watchers = [{ globPattern: "**/*.{sf,json,yaml,yml}" }];
    this.#connection.client.register(DidChangeWatchedFilesNotification.type, { watchers }).catch((error: unknown) => {
      this.#connection.console.error(`files are not watched: ${String(error)}`);
    });
  }

  /** What the client tells: texts that are opened, changed and closed, and files that change on the disk. */
  #follow(): void {
    const connection = this.#connection;
    connection.onDidOpenTextDocument(({ textDocument: { uri, languageId, version, text } }) => {
      this.#session?.documents.open(uri, TextDocument.create(uri, languageId, version, text));
      this.#session?.checks.schedule();
    });
    connection.onDidChangeTextDocument(({ textDocument: { uri, version }, contentChanges }) => {
      this.#session?.documents.change(uri, contentChanges, version);
      this.#session?.checks.schedule();
    });
    connection.onDidCloseTextDocument(({ textDocument: { uri } }) => {
      this.#session?.documents.close(uri);
      this.#session?.checks.schedule();
    });
    connection.onDidChangeWatchedFiles(({ changes }) => {
      for (const { uri } of changes) {
        const path = pathOfUri(uri);
        if (path !== null) this.#session?.documents.sources.changed(path);
      }
      this.#session?.checks.schedule();
    });
  }

  #answer(): void {
    const connection = this.#connection;
    connection.onCompletion((request, token) => this.#on(request, token, null, completion));
    connection.onHover((request, token) => this.#on(request, token, null, hover));
    connection.onDefinition((request, token) => this.#on(request, token, [], definition));
    connection.onReferences(({ context, ...request }, token) =>
      this.#on(request, token, [], (target, offset) => references(target, offset, context.includeDeclaration)),
    );
    connection.onDocumentSymbol((request, token) => this.#on(request, token, [], symbols));
    connection.onPrepareRename((request, token) => this.#on(request, token, null, prepareRename));
    connection.onRenameRequest((request, token) =>
      this.#on(request, token, null, (target, offset) => rename(target, offset, request.newName)),
    );
    connection.onDocumentFormatting((request, token) => this.#on(request, token, [], formatting));
  }

  /** Answers about an open text, unless the client has taken the question back or gone on writing meanwhile. */
  async #on<T>(
    request: TextRequest,
    token: CancellationToken,
    nothing: T,
    answer: (target: Target, offset: number) => T,
  ): Promise<T> {
    const session = this.#session;
    if (!session) throw new ResponseError(ErrorCodes.ServerNotInitialized, "the first request is `initialize`");
    if (this.#ended) throw new ResponseError(ErrorCodes.InvalidRequest, "the server is shut down");
    const path = pathOfUri(request.textDocument.uri);
    const asked = path === null ? undefined : session.documents.opened.get(path)?.version;
    if (path === null || asked === undefined) return nothing;
    // What the client has sent behind the question is read first.
    await new Promise((resolve) => setImmediate(resolve));
    if (token.isCancellationRequested) throw new ResponseError(LSPErrorCodes.RequestCancelled, "taken back");
    const document = session.documents.opened.get(path);
    if (document?.version !== asked) throw new ResponseError(LSPErrorCodes.ContentModified, "the text has changed");
    const language = languageOf(path, document.getText());
    if (!language?.service) return nothing;
    const offset = request.position ? document.offsetAt(request.position) : 0;
    const bundles = session.documents.bundlesOf(path);
    return answer({ session, path, document, language, bundles }, offset);
  }
}

function foldersOf({ workspaceFolders, rootUri, rootPath }: InitializeParams): readonly string[] {
  const uris = workspaceFolders?.map(({ uri }) => uri) ?? (rootUri ? [rootUri] : []);
  const folders = uris.flatMap((uri) => (uri.startsWith("file:") ? [fileURLToPath(uri)] : []));
  return folders.length > 0 || !rootPath ? folders : [rootPath];
}

function completion({ session, document, bundles }: Target, offset: number) {
  const [first] = bundles;
  if (!first) return null;
  const { items, incomplete } = completionsAt(first.view, first.name, offset);
  return {
    isIncomplete: incomplete,
    items: items.map((item) => completionItem(document, item, session.abilities)),
  };
}

function hover({ session, document, bundles }: Target, offset: number) {
  for (const { view, name, main } of bundles) {
    const found = hoverAt(view, name, offset, session.checks.faultsOf(main));
    if (found)
      return { contents: { kind: MarkupKind.Markdown, value: found.text }, range: rangeOf(document, found.span) };
  }
  return null;
}

const unique = <T>(all: readonly T[]): T[] => [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];

function definition({ session, bundles }: Target, offset: number) {
  const found = bundles.flatMap(({ view, name, directory }) =>
    definitionOf(view, name, offset).map((each) => locationOf(session.documents, directory, each)),
  );
  return unique(found);
}

function references({ session, bundles }: Target, offset: number, declarations: boolean) {
  const found = bundles.flatMap(({ view, name, directory }) =>
    referencesOf(view, name, offset, { declarations }).map((each) => locationOf(session.documents, directory, each)),
  );
  return unique(found);
}

function symbols({ session, document, bundles }: Target) {
  const file = bundles[0]?.view.tree.files.get(bundles[0].name);
  if (!file) return [];
  const all = symbolsOf(file).map((each) => documentSymbol(document, each));
  if (session.abilities.nestedSymbols) return all;
  return all.map(({ name, kind, range }) => ({ name, kind, location: { uri: document.uri, range } }));
}

function prepareRename({ document, bundles }: Target, offset: number) {
  const [first] = bundles;
  const found = first && renamable(first.view, first.name, offset);
  if (!found) return null;
  if (!found.ok) throw new ResponseError(LSPErrorCodes.RequestFailed, found.error);
  return { range: rangeOf(document, found.value.span), placeholder: found.value.name };
}

function rename({ session, bundles }: Target, offset: number, name: string) {
  const renames = bundles.map(({ view, name: file, directory }): RenameIn => {
    const found = renameElement(view, file, offset, name);
    if (!found.ok) throw new ResponseError(LSPErrorCodes.RequestFailed, found.error);
    return { directory, rename: found.value };
  });
  return workspaceEdit(session.documents, renames, session.abilities);
}

function formatting({ document, language, path }: Target) {
  if (!language.format) return [];
  const formatted = formatSmartFrog(path, document.getText());
  // What cannot be read is not touched; why, the diagnostics say.
  return formatted.ok ? replacement(document, formatted.value) : [];
}
