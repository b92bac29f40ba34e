/** The networking modes of the paper. */
export const modes = ["EDGE", "MANAGED", "MANAGED-NOVLAN", "STATIC", "SYSTEM"] as const;
export type Mode = (typeof modes)[number];
/** A mode of later versions. A document that asks for it can be read, and is then refused. */
export const otherMode = "VPCMIDO";

export const isMode = (text: string): text is Mode => modes.some((mode) => mode === text);
/** One subnet that is cut into segments, in place of a subnet for each cluster. */
export const isManaged = (mode: Mode): boolean => mode === "MANAGED" || mode === "MANAGED-NOVLAN";
/** Its instances speak in the site's own network, where nothing is let in or kept out. */
export const isPlain = (mode: Mode): boolean => mode === "STATIC" || mode === "SYSTEM";
/** The site's DHCP server gives addresses: a view has none, and hosts say which ones instances have. */
export const isLearnt = (mode: Mode): boolean => mode === "SYSTEM";

export const defaultMacPrefix = "d0:0d";
export const defaultDomain = "eucalyptus.internal";

/** Of one security group, and so of one subnet of a cell on a mode. Each is compared with packets by itself, so that many cost every packet. */
export const mostRulesOfGroup = 500;
/** Of all groups of one cell: what hosts read has room for some 30,000 of all cells, and past it no host would have its next view. */
export const mostRulesOfModeCell = 4000;
