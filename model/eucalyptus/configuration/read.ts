import { isManaged, modes, otherMode } from "../../cell/network/modes.ts";
import { Diagnostics } from "../../diagnostics/diagnostics.ts";
import type { Positions } from "../../diagnostics/positions.ts";
import { isObject, type JsonObject } from "../../json/json.ts";
import { fail, ok, type Result } from "../../result.ts";
import { parseJsonText } from "../../specification/json-text.ts";
import { isValidSegment } from "../addresses/segments.ts";
import { checkConfiguration, type Pool } from "./check.ts";
import { managedSubnetOf, type NetworkConfiguration } from "./configuration.ts";
import { type ConfigurationFault, Faults } from "./faults.ts";
import { readFields, withoutEffect } from "./fields.ts";

/** Characters of a document. */
const longest = 1024 * 1024;

export interface ReadConfiguration {
  readonly configuration: NetworkConfiguration;
  /** What is accepted and does nothing, as sentences. */
  readonly notes: readonly ConfigurationFault[];
}

/**
 * Reads a network configuration from its JSON text. All faults are told, each with its place. A document of the mode VPCMIDO is
 * read as far as this mode is known here; `refusedMode` says why it cannot be used.
 * @param pools what else of the installation hands out addresses
 */
export function readNetworkConfiguration(
  text: string,
  pools: readonly Pool[] = [],
): Result<ReadConfiguration, readonly ConfigurationFault[]> {
  if (text.length > longest) return fail([whole(`the configuration has more than ${longest} characters`)]);
  if (/^\s*[^{\s]/.test(text.replace(/^\ufeff/, "")))
    return fail([whole("a network configuration is one JSON object")]);
  const diagnostics = new Diagnostics();
  const parsed = parseJsonText("configuration", text, diagnostics);
  if (parsed === null)
    return fail(
      diagnostics.list.map(({ message, hint, position }) => ({
        pointer: "",
        line: position?.line ?? 1,
        column: position?.column ?? 1,
        message: hint === undefined ? message : `${message}. ${hint}`,
      })),
    );
  return readConfigurationJson(parsed.document, parsed.positions, pools);
}

/** The same of a document that is parsed already. */
export function readConfigurationJson(
  document: JsonObject,
  positions: Positions | null,
  pools: readonly Pool[] = [],
): Result<ReadConfiguration, readonly ConfigurationFault[]> {
  const faults = new Faults(document, positions);
  const configuration = readFields(document, faults);
  checkMido(document, configuration, faults);
  checkConfiguration(configuration, faults, pools);
  const inOrder = [...faults.list].sort((a, b) => a.line - b.line || a.column - b.column);
  return inOrder.length > 0 ? fail(inOrder) : ok({ configuration, notes: notesOf(document, configuration, positions) });
}

const whole = (message: string): ConfigurationFault => ({ pointer: "", line: 1, column: 1, message });

function checkMido({ Mido }: JsonObject, { mode }: NetworkConfiguration, faults: Faults): void {
  if (mode === otherMode) {
    if (!isObject(Mido)) faults.add([], `mode ${otherMode} needs Mido`);
    else if (Array.isArray(Mido.Gateways) ? Mido.Gateways.length === 0 : Mido.GatewayHost === undefined)
      faults.add(["Mido"], "Mido needs Gateways, at least one, or a GatewayHost");
  }
  if (mode !== otherMode && Mido !== undefined) faults.add(["Mido"], `Mido belongs to mode ${otherMode} alone`);
}

function notesOf(
  document: JsonObject,
  { mode, managedSubnet, privateIps }: NetworkConfiguration,
  positions: Positions | null,
): readonly ConfigurationFault[] {
  const notes = new Faults(document, positions);
  const written = document.ManagedSubnet;
  for (const field of withoutEffect)
    if (isObject(written) && written[field] !== undefined)
      notes.add(["ManagedSubnet", field], `${field} of ManagedSubnet is without effect`);
  const full = managedSubnet === undefined ? null : managedSubnetOf(managedSubnet);
  if (full !== null && managedSubnet?.maxVlan !== undefined && !isValidSegment(full, full.maxVlan))
    notes.add(["ManagedSubnet", "MaxVlan"], `MaxVlan ${full.maxVlan} is past the subnet; tags end before`);
  if (mode !== otherMode && isManaged(mode) && privateIps !== undefined)
    notes.add(["PrivateIps"], `in mode ${mode} PrivateIps are without effect: addresses come from segments`);
  return notes.list;
}

/** Why a configuration that can be read cannot be used, or null. */
export const refusedMode = ({ mode }: NetworkConfiguration): string | null =>
  mode === otherMode
    ? `the mode ${otherMode} does not exist here; ${modes.join(", ")} do, and cells without a mode have networks of their own kind`
    : null;
