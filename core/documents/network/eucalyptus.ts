import type { CellName, ElementPath, HostName, Ipv4, Uid } from "../../../model/cell/identifiers.ts";
import type { AllocatedAddress } from "../../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkView } from "../../../model/eucalyptus/view/network-view.ts";
import type { Progress } from "../vocabulary.ts";
import type { SliceDigest, Summary } from "./policy.ts";

/**
 * What the Network View Manager hears and says (decision 160).
 *
 * | key                  | desired by → at                    | actual from                    |
 * | instance/<vm uid>    | controller → network-view-manager  | that → that controller         |
 * | security-group/<uid> | controller → network-view-manager  | that → that controller         |
 * | network-view         | network-view-manager → host.<name> |                                |
 * | network-slice/<name> | network-view-manager → host.<name> |                                |
 * | network              |                                    | host → network-view-manager    |
 * | network-beat         |                                    | host → network-view-manager    |
 * | network-lease        |                                    | network-view-manager → that host |
 */
export interface DesiredInstance {
  /** Of the VM. */
  readonly uid: Uid;
  readonly cell: CellName;
  readonly path: ElementPath;
  readonly host: HostName;
  /** Subnets of its interface, which are security groups. */
  readonly groups: readonly Uid[];
  /** One of them is an external subnet: it has an elastic address. Absent: none. */
  readonly elastic?: true;
  /** Its VM is off, and has no address of its own: the elastic one stays the VM's. `host`: where it was last. */
  readonly off?: true;
}
export interface ActualInstance extends Progress {
  /** `i-xxxxxxxx`, of which its tap has the name. */
  readonly id: string | null;
  readonly address: Ipv4 | null;
  readonly mac: string | null;
  /** The site gives it its address: `address` is what it says of itself, null before it has said anything, and it starts without. Absent: it has one of the network configuration. */
  readonly learnt?: true;
  /** Where one is asked for. Absent: none is, or it is of a version that gives none. */
  readonly elastic?: ElasticAddress;
}
export interface ElasticAddress {
  /** Null: there is none yet. */
  readonly address: Ipv4 | null;
  /** Why it is not in place where the instance is; null: it is, or the VM is off. */
  readonly reason: string | null;
}
/** What a rule of a group is about; the fields are those of a view (`model/eucalyptus/view/network-view.ts`). */
export interface DesiredGroupRule {
  readonly protocol: number;
  readonly fromPort: number;
  readonly toPort: number;
  readonly icmpType: number;
  readonly icmpCode: number;
  /** One of the two. */
  readonly cidr?: string;
  readonly group?: Uid;
}
export interface DesiredSecurityGroup {
  readonly uid: Uid;
  readonly cell: CellName;
  readonly ingress: readonly DesiredGroupRule[];
  readonly egress: readonly DesiredGroupRule[];
}

/** How far its rules are: `ready` where every host has them in force that has a view. */
export interface ActualSecurityGroup extends Progress {
  /** Of `textOfRules` of the rules of which that is said. */
  readonly rules: SliceDigest;
  /** `sg-xxxxxxxx`, by which chains and sets of hosts have it. Absent: of a version that does not say it. */
  readonly id?: string;
}
/** Rules as both sides have them, whatever the order of their fields is. */
export const textOfRules = ({ ingress, egress }: Pick<DesiredSecurityGroup, "ingress" | "egress">): string =>
  JSON.stringify(
    [ingress, egress].map((rules) =>
      rules.map(({ protocol, fromPort, toPort, icmpType, icmpCode, cidr = "", group = "" }) => [
        protocol,
        fromPort,
        toPort,
        icmpType,
        icmpCode,
        cidr,
        group,
      ]),
    ),
  );

/** The view that a host puts in place: a manifest, and slices beside it, since a view may be larger than a document. */
export interface DesiredNetworkView {
  readonly version: number;
  /** JSON of a view without instances, groups, and instances of nodes. */
  readonly head: string;
  readonly slices: Summary;
  /** Clusters of which another network host may take over: who is named carries one under a lease alone. Absent: none is. */
  readonly leased?: readonly string[];
  /**
   * Boot of the host's machine of which the Network View Manager has heard: in a later one this is an old view, of addresses that may be others' by now, and
   * nothing of it is put in place. Absent: the host says none.
   */
  readonly boot?: number;
}
export interface NetworkSlice {
  readonly digest: SliceDigest;
  /** JSON of `ViewItem`. */
  readonly items: readonly string[];
}
/** An instance of a node, or a group. */
export type ViewItem =
  | { readonly node: string; readonly instance: NetworkView["instances"][number] }
  | { readonly group: NetworkView["securityGroups"][number] };
export const networkViewKey = "network-view";
export const networkSlice = "network-slice";
export const networkKey = "network";
/** Of whose slices a manifest speaks. */
export const networkGroup = "view";
export const networkViewKind = { names: () => (group: string) => group === networkGroup };

/** What a host is in a mode of Eucalyptus, and what became of addresses there (NRA). Of a host that offers none there is no such document. */
export interface ActualNetwork {
  readonly address: Ipv4;
  readonly cluster: string;
  readonly peer: "node" | "network";
  /** Of the latest view that is in place whole; 0: of none. */
  readonly version: number;
  /** Null: nobody has looked yet what is in place. */
  readonly instances: readonly PlacedInstance[] | null;
  /** `ActualHost.boot`. Absent: boots are not told apart, or it is of a version that does not say it. */
  readonly boot?: number;
}
export interface PlacedInstance {
  readonly id: string;
  /** Whose it is by the view that has come. Absent: that view does not have it, or this is of a version that does not say it. */
  readonly cell?: CellName;
  readonly private?: PlacedAddress;
  readonly public?: PlacedAddress;
}
export interface PlacedAddress {
  readonly address: Ipv4;
  readonly state: AllocatedAddress["state"];
  readonly reason?: string;
}

/**
 * The lease of a cluster's network host. A beat that the manager has answered lets it carry for so long from when it sent that beat, by its own clock; the
 * manager counts from when it answered, which is later, and waits longer. So neither has to know the other's time.
 */
export const networkLease = { beatMs: 1000, holdsMs: 4000, endsMs: 6000 } as const;
export const networkBeatKey = "network-beat";
export const networkLeaseKey = "network-lease";
/** A network host asks for its lease anew. One that says none knows no leases. */
export interface ActualNetworkBeat {
  /** Another one each time, also after a start. */
  readonly beat: number;
  /** Version of the view that has come by which it carries its cluster under a lease. Absent: it carries without one. */
  readonly leased?: number;
}
/** It has its lease. */
export interface ActualNetworkLease {
  /** That is answered. */
  readonly beat: number;
}
