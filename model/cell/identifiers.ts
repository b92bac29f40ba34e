/**
 * Branded identifiers. None of these is a bare string in a signature, so that a path is never passed where an
 * identity is meant: a path only names an element, its UID identifies it.
 */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Immutable identity of an element, `<cell uid>-<number>`; letters, digits and `-` only, so it is safe as a file name. */
export type Uid = Branded<"Uid">;
/** Name of an element in its document, parts joined by `/`, starting with the cell's component: `shop/web/vm1`. */
export type ElementPath = Branded<"ElementPath">;
/** Name of a cell: a DNS label. */
export type CellName = Branded<"CellName">;
/** Authenticated name of a service instance, the common name of its certificate: `placer`, `host.h1`, `controller.shop`. */
export type PeerName = Branded<"PeerName">;
/** Name of a physical machine that runs VMs, as in `host.<HostName>`. */
export type HostName = Branded<"HostName">;
/** Name of a storage server, as in `agent.<ServerName>`. */
export type ServerName = Branded<"ServerName">;
/** IPv4 address in dotted decimal. */
export type Ipv4 = Branded<"Ipv4">;
/** IPv4 network in CIDR notation. */
export type Cidr = Branded<"Cidr">;
/** MAC address, lower-case hexadecimal with colons. */
export type Mac = Branded<"Mac">;

export const uid = (text: string): Uid => text as Uid;
export const elementPath = (text: string): ElementPath => text as ElementPath;
export const cellName = (text: string): CellName => text as CellName;
export const peerName = (text: string): PeerName => text as PeerName;
/** The peer that a host's Host Manager is. */
export const hostPeer = (host: HostName): PeerName => peerName(`host.${host}`);
export const hostName = (text: string): HostName => text as HostName;
export const serverName = (text: string): ServerName => text as ServerName;
export const ipv4 = (text: string): Ipv4 => text as Ipv4;
export const cidr = (text: string): Cidr => text as Cidr;
export const mac = (text: string): Mac => text as Mac;
