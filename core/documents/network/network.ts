import type { CellName, Cidr, ElementPath, HostName, Ipv4, Uid } from "../../../model/cell/identifiers.ts";
import type { CellPolicy, Progress } from "../vocabulary.ts";
import type { SliceDigest } from "./policy.ts";

/**
 * What of a cell's policy is in force at a host, `policy/<cell>`. `ready`: the one that is desired. Otherwise `reason` says
 * what keeps it, and the host goes on with what it had.
 */
export interface ActualPolicy extends Progress {
  /** Of the policy whose rules packets meet there; null: of none. */
  readonly version: number | null;
  /** This host takes policies in slices. Absent: it is of a version that knows documents alone. */
  readonly slices?: true;
}
/**
 * `slice/<cell>/<name>`: what of a cell's policy concerns one identity, or a part of that. What concerns several is in the
 * slices of each. Its group (`groupOf`) is `<base>-<identity>`, or `<base>-hosts`.
 */
export interface PolicySlice
  extends Partial<Pick<CellPolicy, "rules" | "networks" | "hosts" | "subnets" | "routers" | "traits">> {
  readonly digest: SliceDigest;
}
export const hostsGroup = "hosts";
export const sliceGroup = (base: number, of: number | typeof hostsGroup): string => `${base}-${of}`;
/** Of whose slices a manifest speaks. */
export const policyView = {
  names: ({ slices, identities = [] }: CellPolicy): ((group: string) => boolean) => {
    const base = slices?.base ?? 0;
    const groups = new Set([...identities, hostsGroup as typeof hostsGroup].map((of) => sliceGroup(base, of)));
    return (group) => groups.has(group);
  },
};
/**
 * Where a host will be told that addresses are, `places/<cell>`, by the controller that placed them: what another host says
 * of an address counts where it agrees with this. Never more than the host may know.
 */
export interface DesiredPlaces {
  readonly cell: CellName;
  /** Interfaces of the cell at other hosts. */
  readonly own: readonly DesiredPlace[];
  /** Interfaces of other cells that rules of both let its VMs there talk to. Null: the directory does not say where they are. */
  readonly foreign: readonly Pick<DesiredPlace, "address" | "host">[] | null;
}
export interface DesiredPlace {
  readonly address: Ipv4;
  readonly host: HostName;
  readonly identity: number;
  readonly vmIdentity: number;
  readonly subnetIdentity: number;
}
/** Of the operator, `zone`: whom the DNS Manager hands the names of external addresses, and under which name. */
export interface DesiredZone {
  readonly zone: string;
  /** Names of the name servers that answer for it. */
  readonly servers: readonly string[];
  /** From where it is fetched, on the management network. */
  readonly secondaries: readonly Ipv4[];
  /** Name of the key without which nobody fetches it; absent: the addresses alone count. */
  readonly key?: string;
  /** Of external addresses, for names by address. Absent: those of its configuration. */
  readonly pools?: readonly Cidr[];
  /** Which cell is the way in, and where: whose word counts of what stands there. Absent: there is none, or nobody says. */
  readonly entrance?: { readonly cell: CellName; readonly address: Ipv4 };
}
export const zoneKey = "zone";
/** Of the cell that is the way in, `doors`: the gateway and personalities that stand there, by their roles. */
export interface DesiredDoors {
  readonly address: Ipv4;
  readonly roles: readonly string[];
}
export const doorsKey = "doors";
/**
 * Pools of external addresses, `pools`: as the operator declares them at the IP Address Manager, and as that has them in force at
 * every host, to which all other addresses are outside. Where nobody says so each has its own.
 */
export interface DesiredPools {
  /** In the order in which they are used. With `had` there may be none: the one of its configuration. */
  readonly external: readonly Cidr[];
  /**
   * At the IP Address Manager: networks that it told to be kept, by the last that was heard. One that has lost its store gives a range of
   * these to the subnet that says it has it. Absent: none.
   */
  readonly had?: readonly Cidr[];
}
/** To the root controller, `controller.root/pools`. */
export interface ActualPools {
  /** In force. One that is declared and overlaps what internal subnets have is not. */
  readonly external: readonly Cidr[];
  /** Of an installation that declares none. */
  readonly otherwise: Cidr;
  /** In each pool in force the smallest network with all that was given of it, where anything was. */
  readonly used: readonly Cidr[];
  /** Ranges of external subnets in no pool in force, up to 64: machines have them still. */
  readonly kept: readonly Cidr[];
  /** Ranges of internal subnets outside the internal pool, up to 64, and whole networks of which there are more. */
  readonly inside: readonly Cidr[];
}
export const poolsKey = "pools";
export const mostRanges = 64;
export const mostHad = 2 * mostRanges;
/** A subnet at the IP Address Manager, `subnet/<uid>`. */
export interface DesiredSubnet {
  readonly uid: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  readonly size: number;
  readonly addressRange: "internal" | "external";
  readonly cidr: Cidr | null;
  /** The range that it was given before, which is in use: an IP Address Manager that has lost its store gives it again. */
  readonly has?: Cidr;
}
export interface ActualSubnet extends Progress {
  readonly cidr: Cidr | null;
  /** First usable address of the range; never given to a VM. */
  readonly gateway: Ipv4 | null;
  /** The range that it says it has, where another subnet has that, or a part of it. */
  readonly taken?: Cidr;
}
