import type { BinEntry } from "../../model/api.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../context/context.ts";
import { renderSize } from "../output/status.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { table } from "../terminal/terminal.ts";

/** `cells bin list`, `restore` and `empty`: files of deleted volumes. A file is named `<server>/<file>`. */

const partsOf = (name: string): readonly [server: string, file: string] => {
  const [server = "", file = "", ...more] = name.split("/");
  if (server !== "" && file !== "" && more.length === 0) return [server, file];
  throw usage(`\`${printable(name)}\` names no file of a bin: SERVER/FILE, as \`cells bin list\` shows it`);
};
const nameOf = ({ server, file }: Pick<BinEntry, "server" | "file">): string => `${server}/${file}`;

export const listBin = async (context: Context): Promise<void> => {
  const { terminal } = context;
  const bin = await context.client().bin();
  if (context.json) return printJson(context, bin);
  if (bin.files.length === 0) terminal.print("the bin is empty");
  const rows = bin.files.map((file) => [
    nameOf(file),
    printable(file.path ?? `volume ${file.volume}`),
    `${renderSize(file.usedMiB)} of ${renderSize(file.sizeMiB)}`,
    `deleted ${file.deleted.slice(0, 19)}Z`,
    file.offered ? terminal.paint("yellow", "is brought back") : file.overlay ? terminal.paint("grey", "a copy") : "",
  ]);
  for (const line of table(rows)) terminal.print(line);
  for (const { server, why } of bin.missing) terminal.warn(printable(`not known of ${server}: ${why}`));
};

export const restoreFromBin = async (context: Context, name: string): Promise<void> => {
  const restored = await context.client().restoreFromBin(...partsOf(name));
  if (context.json) return printJson(context, restored);
  const { path, overlay } = restored;
  const { terminal } = context;
  if (path === null)
    terminal.print(
      `${name} is brought back as soon as somebody desires the volume ${restored.volume}: nobody knows its path`,
    );
  else
    terminal.print(
      `the next volume at ${printable(path)} begins with ${name}: apply a specification that has it${overlay ? ", as a copy of the same volume" : ""}`,
    );
};

/** What was adopted, and of which volumes others have seen later data. */
export const adoptServer = async (context: Context, server: string): Promise<void> => {
  const adopted = await context.client().adoptServer(server);
  if (context.json) return printJson(context, adopted);
  const { terminal } = context;
  terminal.print(`${server} goes on with what it has: ${adopted.leases.length} leases have ended`);
  const rows = adopted.leases.map(({ volume, path, epoch, known }) => [
    printable(path ?? `volume ${volume}`),
    known > epoch ? terminal.paint("yellow", "written later than what is here") : "may have been written later",
  ]);
  for (const line of table(rows)) terminal.print(line);
  terminal.print("VMs that stand still on these volumes must be started anew: their guests know other data");
};

/** Asks nothing: the names are said, or `--all`. */
export const emptyBin = async (context: Context, names: readonly string[], all: boolean): Promise<void> => {
  if (all === names.length > 0) throw usage("say which files, SERVER/FILE, or --all for everything in the bin");
  const client = context.client();
  const failures: string[] = [];
  const emptied: string[] = [];
  // A copy goes before its origin.
  let rest = all ? (await client.bin()).files.map(nameOf) : [...names];
  for (let before = rest.length + 1; rest.length > 0 && rest.length < before; ) {
    before = rest.length;
    failures.length = 0;
    const kept: string[] = [];
    for (const name of rest) {
      const [server, file] = partsOf(name);
      try {
        await client.emptyBin(server, file);
        emptied.push(name);
      } catch (error) {
        if (!(error instanceof CommandFailure)) throw error;
        kept.push(name);
        failures.push(error.message);
      }
    }
    rest = kept;
  }
  if (context.json) printJson(context, { emptied, kept: rest });
  else for (const name of emptied) context.terminal.print(`${name} is gone for good`);
  if (failures.length > 0) throw new CommandFailure(exitCodes.refused, failures.join("; "));
};
