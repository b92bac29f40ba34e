import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  type CompletionItem,
  createProtocolConnection,
  type Diagnostic,
  type PublishDiagnosticsParams,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver/node";

const main = fileURLToPath(new URL("../../main.ts", import.meta.url));

/** Starts `cells spec serve` as an editor does, without configuration or gateway. */
export function startServer(environment: NodeJS.ProcessEnv = {}): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, "spec", "serve", "--stdio"], {
    env: { ...process.env, CELLS_CONFIG: "/nonexistent/none.json", CELLS_HOME: "/nonexistent", ...environment },
  });
}

export interface Exit {
  readonly code: number | null;
  readonly errors: string;
}
/** The end of a server that was started. */
export const exitOf = (child: ChildProcessWithoutNullStreams): Promise<Exit> =>
  new Promise((resolve) => {
    const lines: string[] = [];
    createInterface(child.stderr).on("line", (line) => lines.push(line));
    child.on("close", (code) => resolve({ code, errors: lines.join("\n") }));
  });

export interface Place {
  readonly line: number;
  readonly character: number;
}

/** An editor's side of one server. */
export class Editor {
  readonly child: ChildProcessWithoutNullStreams;
  readonly exit: Promise<Exit>;
  readonly connection: ReturnType<typeof createProtocolConnection>;
  readonly #published = new Map<string, PublishDiagnosticsParams>();
  readonly #waiting = new Set<() => void>();
  #version = 1;

  constructor(child: ChildProcessWithoutNullStreams = startServer()) {
    this.child = child;
    this.exit = exitOf(child);
    this.connection = createProtocolConnection(
      new StreamMessageReader(child.stdout),
      new StreamMessageWriter(child.stdin),
    );
    this.connection.onNotification("textDocument/publishDiagnostics", (found: PublishDiagnosticsParams) => {
      this.#published.set(found.uri, found);
      for (const look of this.#waiting) look();
    });
    this.connection.onRequest("client/registerCapability", () => null);
    this.connection.listen();
  }

  async initialize(folders: readonly string[], capabilities: object = {}): Promise<void> {
    const workspaceFolders = folders.map((folder) => ({ uri: pathToFileURL(folder).href, name: "folder" }));
    await this.request("initialize", { processId: process.pid, rootUri: null, capabilities, workspaceFolders });
    await this.connection.sendNotification("initialized", {});
  }
  request<T = unknown>(method: string, parameters: object): Promise<T> {
    return this.connection.sendRequest<T>(method, parameters);
  }
  at<T = unknown>(method: string, file: string, position: Place, more: object = {}): Promise<T> {
    return this.request<T>(method, { textDocument: { uri: pathToFileURL(file).href }, position, ...more });
  }
  async labels(file: string, position: Place): Promise<readonly string[]> {
    const found = await this.at<{ items: CompletionItem[] }>("textDocument/completion", file, position);
    return found.items.map(({ label }) => label);
  }

  async open(file: string, text: string): Promise<void> {
    const textDocument = { uri: pathToFileURL(file).href, languageId: "smartfrog", version: this.#version, text };
    await this.connection.sendNotification("textDocument/didOpen", { textDocument });
  }
  /** Replaces what stands in a range. */
  async change(file: string, start: Place, end: Place, text: string): Promise<void> {
    const textDocument = { uri: pathToFileURL(file).href, version: ++this.#version };
    await this.connection.sendNotification("textDocument/didChange", {
      textDocument,
      contentChanges: [{ range: { start, end }, text }],
    });
  }
  async close(file: string): Promise<void> {
    await this.connection.sendNotification("textDocument/didClose", {
      textDocument: { uri: pathToFileURL(file).href },
    });
  }
  /** The diagnostics of a file, once they are as wanted. */
  diagnostics(file: string, wanted: (found: readonly Diagnostic[]) => boolean): Promise<readonly Diagnostic[]> {
    const uri = pathToFileURL(file).href;
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.#published.get(uri)?.diagnostics;
        if (found === undefined || !wanted(found)) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** As an editor ends it. */
  async shutdown(): Promise<Exit> {
    await this.request("shutdown", {});
    await this.connection.sendNotification("exit");
    return this.exit;
  }
  /** At the end of a test, however that went. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exit;
    this.connection.dispose();
  }
}
