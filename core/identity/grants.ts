import type { Ipv4, PeerName } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import { cellOfController, isObject } from "../outbox.ts";
import type { DesiredEnrolment, IdentityGrant } from "./documents.ts";

/**
 * Who may have whom enrolled, and under which names. A name is all that a peer is known by, so a role decides the form of
 * its names, and a cell which of them belong to it. The authority's own name is in nobody's gift.
 */
const part = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** There may be more than one of a service: `placer`, `placer.2` (SELF-HOSTING, scale-out). */
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
  placer: several("placer"),
  ha: several("ha"),
};
const cellRoles = ["controller", "gateway"] as const;
/** A child's has the names of the cells around it behind its own; a name with `controller.` before it fits a certificate. */
const cellPattern = new RegExp(`^(?=[a-z].{0,52}$)${part}(?:\\.${part})*$`);
export const rootCell = "root";

const limits = { grants: 16, addresses: 16 } as const;

/** Cell of which this one is a child; null where that is not known, and for the root cell. */
export type ParentOf = (cell: string) => string | null;
/** Where the operator's gateway is in a cell that the root cell lets have it; null in every other. */
export type EntranceOf = (cell: string) => Ipv4 | null;

/** The operator's gateway in a child of the root cell: that name, at that one address (decision 38). */
const isEntrance = ({ name, role, addresses }: IdentityGrant, entrance: Ipv4 | null): boolean =>
  entrance !== null && role === "gateway" && name === "gateway" && addresses.join() === entrance;

const grantFault = (cell: string, grant: IdentityGrant, entrance: Ipv4 | null): string | null => {
  const { name, role } = grant;
  if (isEntrance(grant, entrance)) return null;
  if ((cellRoles as readonly string[]).includes(role) && name === `${role}.${cell}`) return null;
  const form = cell === rootCell && Object.hasOwn(rootRoles, role) ? rootRoles[role] : undefined;
  if (form?.test(name)) return null;
  return `"${name}" is no name that a ${role} of the cell ${cell} may have`;
};

/** Why this client may not have that enrolled, as a sentence; null: it may. */
export function enrolmentFault(
  from: PeerName,
  self: PeerName,
  wish: DesiredEnrolment,
  parentOf: ParentOf,
  entranceOf: EntranceOf,
): string | null {
  const own = from === self ? rootCell : cellOfController(from);
  if (own === null) return `"${from}" is no controller: only controllers have services enrolled`;
  if (own !== rootCell && wish.cell !== own && parentOf(wish.cell) !== own)
    return `the cell ${wish.cell} is neither ${own} nor a child of it: the controller of ${own} enrols nobody for it`;
  for (const grant of wish.grants) {
    const fault = grantFault(wish.cell, grant, own === wish.cell ? entranceOf(wish.cell) : null);
    if (fault !== null) return fault;
    if (own !== rootCell && wish.cell === own && grant.role === "controller")
      return `the controller of ${own} cannot enrol itself: its parent cell's controller does`;
    if (own !== rootCell && !(cellRoles as readonly string[]).includes(grant.role))
      return `only the root cell's controller enrols a ${grant.role}`;
  }
  return null;
}

const readGrant = (value: Json): IdentityGrant | null => {
  if (!isObject(value)) return null;
  const { name, role, addresses, ports } = value;
  const sound =
    typeof name === "string" &&
    name.length <= 64 &&
    typeof role === "string" &&
    Array.isArray(addresses) &&
    addresses.length <= limits.addresses &&
    addresses.every((address) => typeof address === "string" && /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/.test(address)) &&
    (ports === undefined || (isObject(ports) && isPort(ports.distribution) && isPort(ports.http)));
  if (!sound) return null;
  const listens = isObject(ports) ? { ports: { distribution: ports.distribution, http: ports.http } } : {};
  return { name, role, addresses, ...listens } as unknown as IdentityGrant;
};
const isPort = (value: Json | undefined): boolean =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536;

/** Null for what is no such document. What it says may still be refused. */
export function readEnrolment(value: Json): DesiredEnrolment | null {
  if (!isObject(value)) return null;
  const { hash, cell, grants, endsAtMs } = value;
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash)) return null;
  if (typeof cell !== "string" || !cellPattern.test(cell)) return null;
  if (typeof endsAtMs !== "number" || !Number.isFinite(endsAtMs)) return null;
  if (!Array.isArray(grants) || grants.length === 0 || grants.length > limits.grants) return null;
  const read = grants.map((grant) => readGrant(grant as Json));
  if (read.some((grant) => grant === null)) return null;
  const names = new Set(read.map((grant) => grant?.name));
  if (names.size !== read.length) return null;
  return { hash, cell, grants: read, endsAtMs } as unknown as DesiredEnrolment;
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
