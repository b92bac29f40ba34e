import { type Ipv4, ipv4, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredEnrolment, IdentityGrant } from "../../documents/identity.ts";
import { desiredEnrolment } from "../../documents/readers/identity.ts";
import { isPersonality } from "../../documents/service-roles.ts";
import { cellOfController } from "../../outbox.ts";

/**
 * Who may have whom enrolled, and under which names. A name is all that a peer is known by, so a role decides the form of
 * its names, and a cell which of them belong to it. The authority's own name is in nobody's gift.
 */
const part = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** There may be more than one of a service: `placer`, `placer.2` (decision 37). */
const several = (role: string): RegExp => new RegExp(`^${role}(\\.[1-9][0-9]{0,3})?$`);

/** Roles of the root cell alone: who has such a name serves or runs everybody's VMs. */
const rootRoles: Readonly<Record<string, RegExp>> = {
  host: new RegExp(`^host\\.${part}$`),
  agent: new RegExp(`^agent\\.${part}$`),
  presence: /^presence\.[1-9][0-9]{0,3}$/,
  gateway: /^gateway$/,
  "storage-manager": several("storage-manager"),
  "address-manager": several("address-manager"),
  "dns-manager": several("dns-manager"),
  directory: several("directory"),
  "cell-manager": /^cell-manager$/,
  tenancy: /^tenancy$/,
  placer: several("placer"),
  "ha-manager": several("ha-manager"),
  "network-view-manager": /^network-view-manager$/,
};
const cellRoles = ["controller", "gateway"] as const;
/** A child's has the names of the cells around it behind its own; a name with `controller.` before it fits a certificate. */
const cellPattern = new RegExp(`^(?=[a-z].{0,52}$)${part}(?:\\.${part})*$`);
export const rootCell = "root";

/** Cell of which this one is a child; null where that is not known, and for the root cell. */
export type ParentOf = (cell: string) => string | null;
/** Where the operator's gateway is in a cell that the root cell lets have it; null in every other. */
export type EntranceOf = (cell: string) => Ipv4 | null;

/** The operator's gateway in a child of the root cell, and personalities beside it: those names, at that one address (decisions 38, 147). */
export const isEntrance = ({ name, role, addresses }: IdentityGrant, entrance: Ipv4 | null): boolean =>
  entrance !== null && (role === "gateway" || isPersonality(role)) && name === role && addresses.join() === entrance;

const grantFault = (cell: string, grant: IdentityGrant, entrance: Ipv4 | null): string | null => {
  const { name, role } = grant;
  if (isEntrance(grant, entrance)) return null;
  if ((cellRoles as readonly string[]).includes(role) && name === `${role}.${cell}`) return null;
  const form = cell === rootCell && Object.hasOwn(rootRoles, role) ? rootRoles[role] : undefined;
  if (form?.test(name)) return null;
  return `"${name}" is no name that a ${role} of the cell ${cell} may have`;
};

/**
 * One address has one holder: names of a cell, rules of the network and the peers file know a service by it. So a cell's
 * controller has nobody enrolled where a service of another client is. Processes of one machine share its loopback.
 * @returns a sentence; null: it may
 */
export function addressFault(
  { grants }: DesiredEnrolment,
  taken: Iterable<readonly [address: string, holder: string]>,
): string | null {
  for (const [address, holder] of taken)
    for (const { name, addresses } of grants)
      if (name !== holder && !address.startsWith("127.") && addresses.includes(ipv4(address)))
        return `${address} is the address of "${holder}": "${name}" cannot be enrolled there`;
  return null;
}

/** Why this client may not have that enrolled, as a sentence; null: it may. */
export function enrolmentFault(
  from: PeerName,
  self: PeerName,
  desire: DesiredEnrolment,
  parentOf: ParentOf,
  entranceOf: EntranceOf,
): string | null {
  const own = from === self ? rootCell : cellOfController(from);
  if (own === null) return `"${from}" is no controller: only controllers have services enrolled`;
  if (own !== rootCell && desire.cell !== own && parentOf(desire.cell) !== own)
    return `the cell ${desire.cell} is neither ${own} nor a child of it: the controller of ${own} enrols nobody for it`;
  for (const grant of desire.grants) {
    const fault = grantFault(desire.cell, grant, own === desire.cell ? entranceOf(desire.cell) : null);
    if (fault !== null) return fault;
    if (own !== rootCell && desire.cell === own && grant.role === "controller")
      return `the controller of ${own} cannot enrol itself: its parent cell's controller does`;
    if (own !== rootCell && !isPersonality(grant.role) && !(cellRoles as readonly string[]).includes(grant.role))
      return `only the root cell's controller enrols a ${grant.role}`;
  }
  return null;
}

/** Null for what is no such document. What it says may still be refused. */
export function readEnrolment(value: Json): DesiredEnrolment | null {
  const document = desiredEnrolment.of(value);
  if (document === null || !cellPattern.test(document.cell) || document.grants.length === 0) return null;
  const names = new Set(document.grants.map(({ name }) => name));
  return names.size === document.grants.length ? document : null;
}

/**
 * Equality of two hashes; the time it takes tells nothing of where they differ. Hashes have one length, so that a
 * different one is not worth hiding.
 */
export function equalHashes(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index += 1) difference |= a.charCodeAt(index) ^ b.charCodeAt(index);
  return difference === 0;
}
