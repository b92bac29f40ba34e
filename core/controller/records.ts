import type { Cause, EndKind } from "../../model/cause/cause.ts";
import type { ElementType, VolumeConnectionElement } from "../../model/cell/cell.ts";
import type { Cidr, ElementPath, HostName, Ipv4, Mac, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { InUse } from "../documents/cells.ts";
import type { PlacedAmounts, PlacedTerms } from "../documents/pools.ts";
import type { DesiredConnection, DesiredGrant, Phase } from "../documents/vocabulary.ts";

export interface Hearing {
  /** An operator has let a store count that had forked. Record `lost`. */
  hasLost: boolean;
  /** And everybody has said since what they hold of it. */
  hasHeardAll: boolean;
  /** Names of hosts and storage servers that were heard, the first ones first. Record `machines`. */
  readonly machines: Set<string>;
}

/** Record `credential/<id>`, or `limited-credential/<id>` where it opens one path alone. `hash`: SHA-256 of the credential, hexadecimal. `since`: milliseconds since 1970. */
export interface CredentialRecord {
  readonly id: string;
  readonly hash: string;
  readonly note: string;
  readonly since: number;
  /** Absent: it opens all of the cell. */
  readonly within?: { readonly path: string; readonly access: "read" | "write" };
}

export interface StartState {
  /** Tokens that were taken and are not there again, as far as the bucket holds them. */
  used: number;
  /** Taken while the bucket was larger, and how much of it is given up a minute. */
  above: number;
  abovePerMinute: number;
  /** The rate at the last look; null: not known. */
  rate: number | null;
  /** When all this was right; null: not since this process started, `wallMs` says more. */
  atMs: number | null;
  wallMs: number;
  /** Since it was written down. */
  isTaken: boolean;
  /** VMs in the order in which they could have started. */
  readonly queue: Set<Uid>;
  /** When the timer is due; null: none is set. */
  dueMs: number | null;
}

/** What a parent was told last of what its child uses. */
export interface SaidInUse {
  /** Null: not known. */
  amount: InUse | null;
  /** Monotonic: another one is not said before. */
  untilMs: number;
  isTimed: boolean;
}

/** Record `element/<uid>`: an element of the model, or one that is being deleted. */
export interface ElementRecord {
  readonly uid: Uid;
  readonly path: ElementPath;
  readonly type: ElementType;
  readonly deleting: boolean;
  /** New in an all-or-none deployment that does not have everything yet; absent: never was. */
  readonly reserving?: boolean;
  /** A volume that nobody was ever given: it holds what it was made from and nothing more. Absent: it may hold data. */
  readonly unwritten?: true;
  /**
   * Of a volume that has left the model: grants whose copies it stays for (`volumes/holds.ts`). Absent: it stays for none. Empty: what it
   * stays for only the Storage Manager knows.
   */
  readonly held?: readonly DesiredGrant[];
  /** Of a volume that has left the model: it was held for nothing, that is over, or was given up. Absent: nobody has said so. */
  readonly letGo?: true;
  /** Of a grant: the copy that its volume was held for, which has been made. */
  readonly copied?: ElementPath;
  /** Of a VM, subnet or interface in compiled rules; 0 for other types. */
  readonly identity: number;
  /** Of an interface; kept until no incarnation uses it. */
  readonly allocation: { readonly subnet: Uid; readonly address: Ipv4; readonly mac: Mac } | null;
  /** Of a subnet, as the IP Address Manager gave it. */
  readonly range: { readonly cidr: Cidr; readonly gateway: Ipv4 } | null;
  /** Name that was asked for at the DNS Manager. */
  readonly name: string | null;
  readonly phase: Phase | null;
  /** Why; empty: there is nothing to say. */
  readonly causes: readonly Cause[];
  /** Milliseconds since 1970, for people. */
  readonly since: number;
}
/** A disk as one incarnation has it. */
export interface RunDisk {
  readonly connection: Uid;
  readonly volume: Uid;
  readonly busType: VolumeConnectionElement["busType"];
  readonly busNumber: number | null;
  readonly busSlot: number | null;
  readonly bootOrder: number | null;
}
/**
 * One incarnation of a VM from its placement to the confirmation that it is gone. What it was started with stays as it
 * is: a change that needs a restart makes a new incarnation.
 */
export interface Run {
  readonly incarnation: number;
  readonly stage: "placing" | "connecting" | "running" | "stopping";
  readonly host: HostName | null;
  /** The boot of that host for which it was placed; absent: not known, and nothing follows from the end of one. */
  readonly boot?: number;
  /** By what it was placed there, as the host is to judge it once more; absent: its Placer is of a version before. */
  readonly terms?: PlacedTerms;
  /** Names of its nice wishes that are so there; absent: none. */
  readonly nice?: readonly string[];
  /** What it has to have, where it has more by these; absent: what it has. */
  readonly least?: PlacedAmounts;
  /** The host was told to run it, so only the host, or the certain end of its boot, can say that it is gone. */
  readonly handedOver: boolean;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly cpuSpeedMHz: number;
  readonly placement: JsonObject;
  readonly disks: readonly RunDisk[];
  readonly interfaces: readonly Uid[];
  /** How often its guest has reset itself, as far as its host was heard. */
  readonly reboots?: number;
  /** Leased beside the others: of an upgrade that its host carries out, until the host has settled on one (upgrade.ts). */
  readonly spare?: RunDisk;
  /**
   * Its host cannot say by silence that it ended: `lost`, its store was, since it was told of it; `replaced`, another machine
   * has its name by now, which cannot say anything of it. Until the host says that it runs (`lost`), or an operator has looked.
   */
  readonly unsure?: "lost" | "replaced";
  /** The host of the one before was lost: a host that is kept for that may take it. */
  readonly restart?: true;
  /** The operator has freed it of its host, though nobody has seen that it ended (requests/force-stop.ts). */
  readonly forced?: true;
  /** What it boots from, where it asks for a pool, whose owner may ask that (vm/places/offering.ts). */
  readonly image?: string;
  /** `host` started it by itself (succession.ts). */
  readonly succeeded?: true;
}
/**
 * How an incarnation ended that nobody asked to end. `exited`: its guest powered off; `silent`: it answered no probes;
 * `host died`: the power of its host was known to be off.
 */
export interface VmEnd {
  readonly incarnation: number;
  readonly how: EndKind;
  readonly reason: string | null;
}
/** Where a stopped VM ran last, and what it asked for there. */
export interface Rested extends Pick<Run, "incarnation" | "memoryMiB" | "cpus" | "cpuSpeedMHz" | "placement"> {
  readonly host: HostName;
  /** Wall clock. */
  readonly untilMs: number;
  /** How long it was to be when it began; absent: as preset. */
  readonly lastsMs?: number;
}
export type Ran = Pick<VmEnd, "incarnation"> & { readonly host: HostName };
/** Record `vm/<uid>`. */
export interface VmRecord {
  readonly uid: Uid;
  /** The newest that was minted: the fencing token, only grows. */
  readonly incarnation: number;
  /** The next one is above this, too: the store was put back, and others may know later ones (put-back.ts). Absent: it never was. */
  readonly above?: number;
  /**
   * The store was put back, and not every host of then is known to be gone: hosts beside those at which incarnations that it does
   * not know have ended. Absent: it never was, or an incarnation was handed over since.
   */
  readonly endedAt?: readonly HostName[];
  /** Ends in a row that nobody asked for; the next start waits the longer for it. */
  readonly failures: number;
  /** Why the last incarnation ended by itself; null when it ended on request or runs. */
  readonly failure: string | null;
  /** May start again after `failure`. */
  readonly again: boolean;
  /** Hosts where it could not be started since it ran last. */
  readonly avoid?: readonly HostName[];
  readonly run: Run | null;
  /** It was stopped lately, and goes on counting where it ran (vm/rested.ts). Absent: it was not, or asks for nothing of the kind. */
  readonly rested?: Rested;
  /** The last one; for people. */
  readonly lastEnd?: VmEnd;
  /** Where its last incarnations were handed over, newest first; for their consoles. Absent: none was, or by a version before. */
  readonly ran?: readonly Ran[];
  /** Hosts that may run an incarnation of it which an older store of this controller knew nothing of (fork.ts). */
  readonly strays?: readonly HostName[];
  /** The newest incarnation of which they spoke. */
  readonly straysUpTo?: number;
  /** What the Storage Manager had for incarnations at hosts that were not heard (kept-disks.ts). Absent: none. */
  readonly keptDisks?: readonly DesiredConnection[];
  /** The operator has this incarnation go to another host (upgrade/moves.ts). Absent: it stays. */
  readonly move?: { readonly to: HostName; readonly incarnation: number };
  /** The operator has freed it of that host, and nobody has seen that it ended there. Of interest until there is a later incarnation. */
  readonly freed?: { readonly host: HostName; readonly incarnation: number };
  /** The model wants it to boot from another volume than the one with which it has proved itself (upgrade.ts). */
  readonly upgrade?: Upgrade;
}
export interface Upgrade {
  /** The disk that it returns to. Kept until the new one has proved itself, whatever the model says. */
  readonly from: RunDisk;
  /** Connection of the disk that it is tried with now. */
  readonly trying?: Uid;
  /** The one that it went back from, and why. */
  readonly refused?: { readonly connection: Uid; readonly reason: string; readonly because?: readonly Cause[] };
}

/** How an element stands: its phase and why, the first cause foremost. Of `Progress`, what a controller works out itself. */
export interface Standing {
  readonly phase: Phase;
  readonly causes: readonly Cause[];
}

/** What a host has in force of the cell's rules (rules-in-force.ts). */
export interface RulesAtHost {
  readonly host: HostName;
  /** Of the newest of this cell's policies that it has confirmed; 0: none. */
  readonly version: number;
  /** Why it is not the present one. */
  readonly why: Standing;
}

/** Times of the one upgrade that is being tried, monotonic ms; counted anew after a start. */
export interface UpgradeClock {
  readonly vm: Uid;
  /** Since when it could have answered; null: it could not yet, or its host is not heard. */
  readonly sinceMs: number | null;
  /** Since when it has been well without a pause. */
  readonly wellMs: number | null;
  /** For when its timer was set; null: no timer runs. */
  readonly dueMs: number | null;
}

/** Record `abroad/<key>`: a document at the directory, and what it answered last; null: nothing is visible. */
export interface ForeignRecord {
  readonly answer: Json;
}

/** What is in memory of the answers of changes that may be asked for again (`requests/once.ts`): which there are, oldest first. */
export interface Answers {
  readonly numbers: Map<string, number>;
  readonly kept: Map<number, { readonly name: string; readonly wallMs: number; readonly characters: number }>;
  characters: number;
  next: number;
}

/** Record `guard`. */
export interface GuardRecord {
  readonly haManager: PeerName;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** As in `DesiredLife`. Absent: said by an earlier version. */
  readonly moves?: number;
}
