import { type PeerName, peerName } from "../../model/cell/identifiers.ts";

/**
 * What a service VM may carry, and at which ports each role listens there: roles of one VM share its address, so their
 * ports differ. The same whatever a VM carries: packing roles differently moves addresses alone. A role that runs as a
 * process with an address of its own listens at `runtime/installation.ts`'s `ports`. For a new one: its service starts in
 * `runtime/roles.ts`, what is loaded for it in an image is listed in `image/service/main.ts`, and what it may say is in
 * `documents/permissions.ts`; that the root cell may have it is in `identity/authority/grants.ts`, what people call it in
 * `model/cause/words.ts`.
 */
export const serviceRoles = {
  controller: { distribution: 7100, http: 7101 },
  "storage-manager": { distribution: 7110, http: 7111 },
  "address-manager": { distribution: 7112, http: 7113 },
  "dns-manager": { distribution: 7114, http: 7115 },
  placer: { distribution: 7116, http: 7117 },
  presence: { distribution: 7118, http: 7119 },
  directory: { distribution: 7120, http: 7121 },
  "cell-manager": { distribution: 7122, http: 7123 },
  authority: { distribution: 7124, http: 7125 },
  gateway: { distribution: 7126, http: 7127 },
  "ha-manager": { distribution: 7128, http: 7129 },
  tenancy: { distribution: 7132, http: 7133 },
  "network-view-manager": { distribution: 7134, http: 7135 },
  // Personalities (decision 147): they stand beside the gateway, and have no part in state distribution.
  "personality.caas": { distribution: 7442, http: 7443 },
} as const satisfies Readonly<Record<string, ServicePorts>>;

export interface ServicePorts {
  readonly distribution: number;
  readonly http: number;
}
export type ServiceRole = keyof typeof serviceRoles;

/** Where a role of a VM is found, as an entry of the peers file: address, then its two ports. */
export const placeOf = (role: ServiceRole, address: string): string =>
  `${address}:${serviceRoles[role].distribution}:${serviceRoles[role].http}`;

/** A role that is a door beside the gateway, and opens nothing by itself (decision 147). */
export const isPersonality = (role: string): role is PersonalityRole =>
  isServiceRole(role) && role.startsWith("personality.");
export type PersonalityRole = Extract<ServiceRole, `personality.${string}`>;

/** What a VM at the way into the cloud may carry (decision 38): the gateway, and beside it personalities. */
export const isEntranceVm = (roles: readonly string[]): boolean =>
  roles.includes("gateway") && roles.every((role) => role === "gateway" || isPersonality(role));

/** Its name for the outside: `caas.cloud.example.org`. */
export const doorName = (role: string, zone: string): string => `${role.slice(role.lastIndexOf(".") + 1)}.${zone}`;

export const isServiceRole = (name: string): name is ServiceRole => Object.hasOwn(serviceRoles, name);

/** `placer`; `presence.2` where there are several, by their number; `controller.shop`. */
export const servicePeer = (role: ServiceRole, which?: number | string): PeerName =>
  peerName(which === undefined ? role : `${role}.${which}`);

/** Its number among several: 1 of `placer`, 2 of `placer.2`. */
export const serviceNumber = (peer: PeerName): number => Number(/\.(\d+)$/.exec(peer)?.[1] ?? 1);
