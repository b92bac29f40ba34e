import type { Client } from "./client.ts";
import { usage } from "./failure.ts";
import { processTerminal, type Terminal } from "./terminal.ts";

/** What every command has at hand. */
export interface Context {
  readonly terminal: Terminal;
  /** `--output json`: one JSON text on standard output (for streams one per line), nothing else there. */
  readonly json: boolean;
  /** `--output yaml`, which `get` knows. */
  readonly yaml?: boolean;
  /** Made when first asked for: `cells up` needs none. */
  client(): Client;
}

/** `makeClient` is a parameter so that commands which ask no gateway need not load what speaks with one. */
export const createContext = (output: string, makeClient: () => Client): Context => {
  if (!["text", "json", "yaml"].includes(output)) throw usage(`--output is text or json, not \`${output}\``);
  let client: Client | undefined;
  return {
    terminal: processTerminal(),
    json: output === "json",
    yaml: output === "yaml",
    client: () => {
      client ??= makeClient();
      return client;
    },
  };
};

export const printJson = ({ terminal }: Context, value: unknown): void =>
  terminal.print(JSON.stringify(value, null, 2));

/** The cell that a path is in, and the path as the document has it: the cell's component is its first part. */
export const cellOfPath = (path: string): { readonly cell: string; readonly path: string } => {
  const clean = path.split("/").filter((part) => part !== "");
  const [cell] = clean;
  if (cell === undefined) throw usage("a path begins with the cell: for example shop, or shop/web/vm");
  return { cell, path: clean.join("/") };
};

/** A number of seconds as written. */
export const secondsOf = (text: string): number => {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds < 0) throw usage(`\`${text}\` is no number of seconds`);
  return seconds;
};
