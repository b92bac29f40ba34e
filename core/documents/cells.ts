import type { CellBinding, Openness } from "../../model/cell/cell.ts";
import {
  type CellName,
  type Cidr,
  cellName,
  type ElementPath,
  type HostName,
  type Ipv4,
  type PeerName,
  type ServerName,
  type Uid,
} from "../../model/cell/identifiers.ts";
import type { Usage } from "../../model/check/check-limits.ts";
import type { JsonObject } from "../../model/json/json.ts";
import type { PoolAsked, PoolHostGiven } from "./pools.ts";
import type { CompiledRule, Progress } from "./vocabulary.ts";
import type { HeldFor } from "./volumes.ts";

/** The documents with which cells know of each other and are made by each other: a part of the vocabulary in `documents.ts`. */

// --- between cells: controller ↔ directory ---------------------------------------------------------------------

/** An element that is `x.public`, and exactly what another cell may know of it. Its rules and its places are not among that. */
export interface DesiredPublic {
  readonly uid: Uid;
  readonly path: ElementPath;
  readonly shows: PublicElement;
  /** Of one that is shown since it is held (`x.hold`), and not public: to these alone. Absent: to whoever names it. */
  readonly heldFor?: readonly HeldFor[];
}
export type PublicElement =
  | {
      readonly kind: "addresses";
      readonly type: "Subnet" | "VM" | "VirtualInterface";
      /** A subnet's range, or the addresses of interfaces. */
      readonly networks: readonly Cidr[];
    }
  | {
      readonly kind: "volume";
      readonly type: "Volume" | "VolumeCopy";
      readonly sizeMiB: number | null;
      readonly server: ServerName | null;
      /** Number of the Storage Manager that has it; absent: the first. */
      readonly manager?: number;
    };
/** The desire to know of one element of another cell. There is no desire for "all": who cannot name it does not learn of it. */
export interface DesiredWant {
  readonly domain: string;
  /** As the reference has it: `shop/db`, or below the cell's own component `db`. */
  readonly path: string;
}
/** Only where the element is visible; nothing is said of one that is not there, and nothing of one that is private. */
export interface ActualWant {
  readonly uid: Uid;
  readonly shows: PublicElement;
  /** What elements of the asking cell at these paths find there, since it is held for them. Absent: nothing is. */
  readonly heldFor?: readonly WantHeld[];
  /** Nothing else is there: to all other elements it is not visible. */
  readonly onlyHeld?: true;
}
export interface WantHeld {
  /** Of the element in the asking cell. */
  readonly path: ElementPath;
  readonly uid: Uid;
  readonly shows: PublicElement;
}
/** A NetworkRule with one end in another cell. Only where that cell has one that says the same, anybody's place is told. */
export interface DesiredReach {
  readonly uid: Uid;
  readonly other: DesiredWant;
  /** What the rule's end in the own cell stands for. */
  readonly networks: readonly Cidr[];
  /** Interfaces among these that are at a host now. */
  readonly placed: readonly { readonly address: Ipv4; readonly host: HostName }[];
  readonly openings: readonly ReachOpening[];
}
export interface ReachOpening {
  /** "out": from the own end to the other cell's. */
  readonly direction: "out" | "in";
  readonly protocol: CompiledRule["protocol"];
  readonly sourcePorts: CompiledRule["ports"];
  readonly ports: CompiledRule["ports"];
}
export interface ActualReach {
  /** The other cell has a rule in effect that opens the same; without one, no packet leaves its source host. */
  readonly agreed: boolean;
  /** Per own address the hosts of the other cell's ends that it may talk to. */
  readonly hosts: readonly { readonly address: Ipv4; readonly hosts: readonly HostName[] }[];
  /** Where those ends of the other cell are. Absent: a directory of the previous version, which does not say. */
  readonly there?: readonly { readonly address: Ipv4; readonly host: HostName }[];
}
export const directoryKey = {
  public: (element: Uid): string => `public/${element}`,
  want: ({ domain, path }: DesiredWant): string => `want/${domain}/${path}`,
  reach: (rule: Uid): string => `reach/${rule}`,
} as const;

// --- child cells: controller ↔ Cell Manager ↔ controller --------------------------------------------------------

/** The cell in which the cloud itself runs (decisions/0031). No other has this name. */
export const rootCell = cellName("root");
/** Name of a child cell: its label before its parent's name, but a child of the root cell is named by its label alone. */
export const childName = (parent: CellName, label: string): CellName =>
  cellName(parent === rootCell ? label : `${label}.${parent}`);
/** The child cell of the root cell that a controller is of, or that its cell is in. */
export function cellAround(client: PeerName): CellName {
  const cell = client.slice("controller.".length);
  return cell.slice(cell.lastIndexOf(".") + 1) as CellName;
}

/**
 * A child cell of the client. `ending`, or the tombstone, deletes it: its own children first, then what it has, then its
 * controller; it is gone when the Cell Manager says that it has `ended`, or says nothing of it any more.
 */
export interface DesiredCell {
  /** Of its CellController: the child's elements are `<uid>-<n>`. */
  readonly uid: Uid;
  /** Its name and its parent's: `web.shop`; see `childName`. */
  readonly cell: CellName;
  /** Its first model, submitted once, as version 1. What is changed here later means nothing to a cell that has a model. */
  readonly model: JsonObject;
  readonly grant: QuotaGrant;
  /** Of the root cell's one child that is the way in: where its gateway is on the management network (decision 38). */
  readonly gateway?: Ipv4;
  /** VMs that it may start a minute, with its own children. Absent: the installation's default. */
  readonly startsPerMinute?: number;
  /** What it may have open, and whom it may ask for names outside (`model/check/openness.ts`). Absent: nobody says anything. */
  readonly bound?: Openness;
  /** `x.services` and `x.networkMode`; count when the cell is made, and never again but for an HA Manager in place of one that is gone. */
  readonly services?: CellBinding;
  /** Its account is disabled: its machines, and those of its own children, are off. */
  readonly off?: true;
  /** What became of hosts of its pools. Absent: it has asked for none. */
  readonly pools?: readonly PoolHostGiven[];
  /** It is to end. Said until `ended` is; a Cell Manager of the previous version takes the tombstone alone. */
  readonly ending?: true;
}
/** Numbers of those of several services that decide for a cell (decisions/0037), and by which rules its networks are made (161). */
export interface CellServices extends CellBinding {
  readonly placer: number;
  readonly storageManager: number;
  /** Absent: the first. */
  readonly haManager?: number;
}
export interface ActualCell extends Progress {
  readonly controller: PeerName;
  /** Of its controller, where its own VMs see it; null until it is made. */
  readonly address: Ipv4 | null;
  /** Of its model; 0: it has none yet. */
  readonly version: number;
  /** What it holds and asks for; null while its controller was not heard. */
  readonly quota: QuotaAsked | null;
  /** As in `ActualLife`. */
  readonly pools?: readonly PoolAsked[];
  /** Absent: it was not made yet. */
  readonly services?: CellServices;
  /** There is no HA Manager of that number any more, so nobody looks after its VMs. Absent: there is, as far as anybody knows. */
  readonly unguarded?: true;
  /** Nothing is left of it, as was asked for. Absent: a Cell Manager of the previous version, which knows no `ending`. */
  readonly ended?: boolean;
  /** An operator says that this child is the one that has been there under another UID: its parent takes that for it. */
  readonly is?: Uid;
}
/** The same, as the Cell Manager hands it to the child's controller. Key `life`. */
export interface DesiredLife {
  readonly uid: Uid;
  readonly model: JsonObject;
  readonly grant: QuotaGrant;
  readonly startsPerMinute?: number;
  readonly bound?: Openness;
  /** It is to end. It takes no changes any more, deletes its children, then what it has, and says when nothing is left. */
  readonly ending: boolean;
  /** As in `DesiredCell`. */
  readonly gateway?: Ipv4;
  /** As in `DesiredCell`. */
  readonly off?: true;
  /** As in `DesiredCell`. */
  readonly pools?: readonly PoolHostGiven[];
  /** The HA Manager that looks after it from now on, since the one that it was made with is gone. Absent: that one, or whoever it had last. */
  readonly guard?: number;
  /** How often it was moved to another one; of two words about `guard` the one with more counts. Absent: said by an earlier version. */
  readonly guardMoves?: number;
  /** As in `ActualCell`. */
  readonly unguarded?: true;
}
export interface ActualLife extends Progress {
  readonly version: number;
  /** As its controller has it, where that was said to it. */
  readonly guard?: number;
  /** Beside it, as it was said. */
  readonly guardMoves?: number;
  /** Nothing is left of it, here or anywhere. */
  readonly empty: boolean;
  readonly quota: QuotaAsked;
  /** Pools of a child of the root cell. Absent: it has none, or does not know of any. */
  readonly pools?: readonly PoolAsked[];
}
/**
 * What a cell may have, with its children (decisions/0030). The parent alone raises it, under a new serial; the child alone
 * binds itself to less, under the serial that it has seen. So what the parent counts is never less than what the child holds.
 */
export interface QuotaGrant {
  readonly amount: Usage;
  readonly serial: number;
  /** The last question that was answered, and why not; null: yes. */
  readonly answered: number;
  readonly refusal: string | null;
}
export interface QuotaAsked {
  /** The newest grant that it has seen, and what of it it has not given back. */
  readonly serial: number;
  readonly holds: Usage;
  readonly asks: { readonly number: number; readonly amount: Usage } | null;
  /** What it uses now. Null: not known at the moment, and as it was; absent: a controller of the previous version, which does not say. */
  readonly uses?: InUse | null;
}
/** Of machines that hosts were told to run and have not said to have ended; and of volumes, off or on. With its child cells. */
export interface InUse {
  readonly vms: number;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly storageMiB: number;
}
export const lifeKey = "life";

/**
 * At the authority, of the root cell's controller alone, and published by it to every host under the same key: the one VM of
 * that child cell that may be on the management network and have the name `gateway` (decision 38).
 */
export interface Entrance {
  readonly address: Ipv4;
  /** Below which what stands there has names for the outside (`doorName`). Absent: the root cell hands none. */
  readonly zone?: string;
}
export const entrancePrefix = "entrance/";
export const entranceKey = (cell: string): string => `${entrancePrefix}${cell}`;
