import { rootCell } from "../../../core/documents/cells.ts";
import { cidr, ipv4 } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { network } from "../../../runtime/installation.ts";
import type { History } from "../history.ts";

/** What service VMs are told, of which nobody here makes use: services are processes. */
const means = {
  management: cidr(network.underlay),
  authority: { address: ipv4(network.authority), fingerprint: "00" },
  credentialHashes: [],
  token: (vm: string, incarnation: number, role: string) => ({ token: `${vm} ${incarnation} ${role}`, hash: "00" }),
};
/** Of a cell's controller, where it is that of an installation with service VMs. */
export const meansOf = ({ own }: History, cell: string) =>
  own === true && cell === rootCell ? { root: means } : ({} as const);

/** The root controller's own VM, as an installation's first model has it; the root cell is the first one. */
export const ownRoles: JsonObject = {
  service: { roles: { controller: { cell: rootCell, cellUid: "cell1", cellNumber: 1 } } },
};
