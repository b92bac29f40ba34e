import { readFile } from "node:fs/promises";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { configurationJson } from "../../model/eucalyptus/configuration/configuration.ts";
import { explode } from "../../model/eucalyptus/configuration/effective.ts";
import type { ConfigurationFault } from "../../model/eucalyptus/configuration/faults.ts";
import { importVnet } from "../../model/eucalyptus/configuration/import-vnet.ts";
import {
  type ReadConfiguration,
  readConfigurationJson,
  readNetworkConfiguration,
  refusedMode,
} from "../../model/eucalyptus/configuration/read.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

/** `cells network configuration`: a Eucalyptus network configuration; `set` and `get` ask the gateway, and nothing else does. */

const textOf = async (file: string): Promise<string> => {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CommandFailure(exitCodes.refused, `${file} cannot be read (${(error as Error).message})`);
  }
};

const atPointer = ({ pointer, message }: ConfigurationFault): string =>
  pointer === "" ? message : `${pointer}: ${message}`;
const shown = (file: string, fault: ConfigurationFault): string =>
  printable(`${file}:${fault.line}:${fault.column}: ${atPointer(fault)}`);
const count = (faults: readonly unknown[]): string => `${faults.length} fault${faults.length === 1 ? "" : "s"}`;

const refused = (file: string, faults: readonly ConfigurationFault[]): CommandFailure =>
  new CommandFailure(exitCodes.refused, [...faults.map((fault) => shown(file, fault)), count(faults)].join("\n"));

/** What can be read but not used is refused, too. */
const usable = (
  read: ReturnType<typeof readNetworkConfiguration>,
): { readonly value: ReadConfiguration | null; readonly faults: readonly ConfigurationFault[] } => {
  if (!read.ok) return { value: null, faults: read.error };
  const why = refusedMode(read.value.configuration);
  return why === null
    ? { value: read.value, faults: [] }
    : { value: null, faults: [{ pointer: "/Mode", line: 1, column: 1, message: why }] };
};

/** `cells network configuration check FILE`: all that is wrong with it. With `--output json`: `{ok, faults, notes, effective?}`. */
export const checkConfigurationFile = async (context: Context, file: string): Promise<void> => {
  const { value, faults } = usable(readNetworkConfiguration(await textOf(file)));
  if (context.json) {
    const effective = value === null ? {} : { effective: configurationJson(explode(value.configuration)) };
    printJson(context, { ok: value !== null, faults, notes: value?.notes ?? [], ...effective });
    if (value === null) process.exitCode = exitCodes.refused;
    return;
  }
  if (value === null) throw refused(file, faults);
  const { mode, clusters } = value.configuration;
  for (const note of value.notes) context.terminal.warn(shown(file, note));
  context.terminal.print(
    printable(`${file}: mode ${mode}, ${clusters.length} cluster${clusters.length === 1 ? "" : "s"}: no faults`),
  );
};

/** `cells network configuration import FILES`: the document, on standard output; what it cannot say, on standard error. */
export const importConfiguration = async (
  context: Context,
  files: readonly string[],
  clusters: readonly string[],
): Promise<void> => {
  const texts = await Promise.all(files.map(textOf));
  const imported = importVnet(texts.join("\n"), clusters);
  if (!imported.ok) throw new CommandFailure(exitCodes.refused, imported.error.map(printable).join("\n"));
  const { document, notes } = imported.value;
  const { faults } = usable(readConfigurationJson(document, null));
  if (faults.length > 0)
    throw new CommandFailure(
      exitCodes.refused,
      [
        "what these values say is no configuration that can be used:",
        ...faults.map((fault) => printable(`  ${atPointer(fault)}`)),
      ].join("\n"),
    );
  for (const note of notes) context.terminal.warn(printable(note));
  printJson(context, document);
};

/** `cells network configuration set FILE`: in force where it has no faults and moves nothing that is in use. */
export const setConfiguration = async (context: Context, file: string): Promise<void> => {
  const read = await textOf(file);
  // Faults are told with their places in the file before anything is sent.
  const { value, faults } = usable(readNetworkConfiguration(read));
  if (value === null) throw refused(file, faults);
  for (const note of value.notes) context.terminal.warn(shown(file, note));
  const { version } = await context.client().setNetworkConfiguration(JSON.parse(read) as JsonObject);
  if (context.json) printJson(context, { ok: true, version });
  else context.terminal.print(`The network configuration is in force; hosts are told version ${version} of the view.`);
};

/** `cells network configuration get`: the document in force, as `set` takes it. */
export const getConfiguration = async (context: Context): Promise<void> => {
  const { configuration } = await context.client().networkConfiguration();
  printJson(context, configuration);
};
