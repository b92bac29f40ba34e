import { fail, ok, type Result } from "../../../../../model/result.ts";
import { type LocalConfiguration, localDefaults } from "../plan/plan.ts";

/**
 * What each machine keeps for itself, by the keys of the original's `eucalyptus.conf`; all others of that file are nobody's here. `VNET_DHCPDAEMON`
 * names a server that is another one here.
 */
export interface MachineConfiguration extends LocalConfiguration {
  readonly dhcpUser: string;
}
export const machineDefaults: MachineConfiguration = { ...localDefaults, dhcpUser: "nobody" };

/** Names of devices: no more than the kernel takes, and nothing that a command line could take for another thing. */
const device = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;
const yesOrNo = /^[YNyn]$/;
type Key = Exclude<keyof MachineConfiguration, "bridgeMac" | "underlay" | "metadataHere">;
const keys = new Map<string, readonly [name: Key, form: RegExp, what: string]>([
  ["VNET_PUBINTERFACE", ["publicInterface", device, "the name of a device"]],
  ["VNET_PRIVINTERFACE", ["privateInterface", device, "the name of a device"]],
  ["VNET_BRIDGE", ["bridge", device, "the name of a bridge"]],
  ["VNET_DHCPUSER", ["dhcpUser", /^[a-z_][a-z0-9_-]{0,31}$/, "the name of a user"]],
  ["METADATA_USE_VM_PRIVATE", ["metadataPrivate", yesOrNo, "Y or N"]],
  ["DISABLE_TUNNELING", ["tunnelsDisabled", yesOrNo, "Y or N"]],
  ["CELLS_SITE_GATEWAY", ["siteGateway", yesOrNo, "Y or N"]],
  ["CELLS_OUTGOING_CLOSED", ["outgoingClosed", yesOrNo, "Y or N"]],
  ["CELLS_UNDERLAY_OPEN", ["underlayOpen", yesOrNo, "Y or N"]],
]);

/** The last line of a key counts, as in a shell; all faults are told. Of an absent key the default is so. */
export function readMachineFile(
  text: string,
  defaults = machineDefaults,
): Result<MachineConfiguration, readonly string[]> {
  const faults: string[] = [];
  const found: { [key in Key]?: string | boolean } = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, key = "", quoted, single, bare] =
      /^\s*([A-Z][A-Z0-9_]*)=(?:"([^"]*)"|'([^']*)'|([^\s#]*))\s*(?:#.*)?$/.exec(line) ?? [];
    const known = keys.get(key);
    if (known === undefined) continue;
    const [name, form, what] = known;
    const value = (quoted ?? single ?? bare ?? "").trim();
    if (value === "") delete found[name];
    else if (!form.test(value)) faults.push(`line ${index + 1}: ${key} is ${what}, not ${JSON.stringify(value)}`);
    else found[name] = form === yesOrNo ? value.toUpperCase() === "Y" : value;
  }
  return faults.length > 0 ? fail(faults) : ok({ ...defaults, ...found } as MachineConfiguration);
}
