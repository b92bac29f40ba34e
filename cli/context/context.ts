import type { Client } from "../connection/client.ts";
import { usage } from "../terminal/failure.ts";
import { processTerminal, type Terminal } from "../terminal/terminal.ts";

/** What every command has at hand. */
export interface Context {
  readonly terminal: Terminal;
  /** `--output json`: one JSON text on standard output (for streams one per line), nothing else there. */
  readonly json: boolean;
  /** `--output yaml`, which `get` knows. */
  readonly yaml?: boolean;
  /** `--output csv`, which `list` knows. */
  readonly csv?: boolean;
  /** Made when first asked for: `cells up` needs none. */
  client(): Client;
}

/** `makeClient` is a parameter so that commands which ask no gateway need not load what speaks with one. */
export const createContext = (output: string, makeClient: () => Client): Context => {
  if (!["text", "json", "yaml", "csv"].includes(output)) throw usage(`--output is text or json, not \`${output}\``);
  let client: Client | undefined;
  return {
    terminal: processTerminal(),
    json: output === "json",
    yaml: output === "yaml",
    csv: output === "csv",
    client: () => {
      client ??= makeClient();
      return client;
    },
  };
};

export const printJson = ({ terminal }: Context, value: unknown): void =>
  terminal.print(JSON.stringify(value, null, 2));

export interface CellPath {
  readonly cell: string;
  /** As the cell's document has it: its component is the first part. */
  readonly path: string;
  /** The whole cell is meant. */
  readonly whole: boolean;
}
/** The cell that a path is in. A child cell has its parent's name behind its own: `web.shop/vm` is `web/vm` in its document. */
export const cellOfPath = (path: string): CellPath => {
  const [cell, ...rest] = path.split("/").filter((part) => part !== "");
  if (cell === undefined) throw usage("a path begins with the cell: for example shop, or shop/web/vm");
  return { cell, path: [ownNameOf(cell), ...rest].join("/"), whole: rest.length === 0 };
};
/** As a person names an element of a cell, by its path in that cell's document: what `cellOfPath` takes apart. */
export const pathIn = (cell: string, path: string): string => [cell, ...path.split("/").slice(1)].join("/");
/** The name of a cell in its own document. */
export const ownNameOf = (cell: string): string => cell.split(".")[0] ?? cell;

/** A number of seconds as written. */
export const secondsOf = (text: string): number => {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds < 0) throw usage(`\`${text}\` is no number of seconds`);
  return seconds;
};
