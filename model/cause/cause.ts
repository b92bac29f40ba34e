import type { CellName, Cidr, ElementPath, HostName, Ipv4, PeerName } from "../cell/identifiers.ts";

/**
 * Why something is as it is, as data: a kind and its facts. A cause is made once, where the fact is known. What people read
 * comes of it in `sentence.ts`, at the edge; whatever ranks, counts or translates causes goes by their kinds.
 *
 * `because` is what is behind it, the first of several foremost: a VM waits for a volume, since no server has room for that.
 *
 * Kinds are published (`model/contract/`) and kept in stores: one that is there keeps its name and its facts. Later versions
 * have more of them, so whoever reads one that it does not know goes by the sentence beside it.
 *
 * Rejected: a code and a sentence. Facts would then be read out of the sentence again, as they were.
 */
export type Cause = { readonly [Kind in CauseKind]: { readonly kind: Kind } & CauseFacts[Kind] }[CauseKind];
export type CauseKind = keyof CauseFacts;
export type CauseOf<Kind extends CauseKind> = Extract<Cause, { readonly kind: Kind }>;

export interface Because {
  readonly because?: readonly Cause[];
}
interface AtHost {
  readonly host: HostName;
}
/** `vm`: whose turn or end it is about. */
interface OfVm {
  readonly vm: ElementPath;
}
/** The VM as commands name it: a child cell has its whole name in front. */
interface Commanded {
  readonly target: string;
}
/** An element of another cell, by the domain of that one. */
export interface Foreign {
  readonly domain: string;
  readonly path: string;
}
type Nothing = Readonly<Record<never, never>>;

/** Why a host cannot hold a VM. Both to be read by a person; `kind` absent: a Placer of an earlier version. */
export interface RefusedBy extends AtHost {
  readonly why: string;
  readonly lifts: string;
  readonly kind?: RefusalKind;
}
/**
 * `unreachable`: it is not heard; `closed`: it takes no VMs now; `pinned`, `apart`: `x.placement` keeps the VM away; `dedicated`: the host, or what the VM asks for, is somebody's;
 * `speed`, `memory`, `cpus`: it has less than is asked for, or less of it is free.
 */
export const refusalKinds = [
  "unreachable",
  "closed",
  "pinned",
  "apart",
  "dedicated",
  "speed",
  "memory",
  "cpus",
] as const;
export type RefusalKind = (typeof refusalKinds)[number];

/** How many hosts a rule keeps away (`RefusalKind`; of later versions others). */
export interface ByRule {
  readonly kind: string;
  readonly hosts: number;
}
/** Hosts that do not take a VM. */
export interface Refusing {
  readonly refusals: readonly RefusedBy[];
  /** Of all hosts, where `refusals` are some of them alone, one for each rule at least. Absent: they are all. */
  readonly counts?: readonly ByRule[];
}
/** Why a VM has no host, in short. */
export interface Advice {
  readonly rules: readonly ByRule[];
  /** What to write with which it would have had a place; null: nothing that it asks for is the reason. */
  readonly change: string | null;
}

export interface CauseFacts {
  /** Passed on as another service said it. */
  readonly said: { readonly by: PeerName; readonly sentence: string };

  // --- other elements of the cell
  /** It goes on as soon as the element is ready. Without `because`: that one says more itself. */
  readonly "waits-for": { readonly element: ElementPath } & Because;
  /** Its VM runs without it. */
  readonly "next-start": OfVm;
  readonly "switched-off": Commanded;
  /** A volume that gets a larger `x.size`, in MiB; `vm`: whose guest is to see it while it runs. */
  readonly grows: { readonly from: number; readonly to: number; readonly vm?: ElementPath } & Because;
  /** It cannot while its VM runs: the file has no room (`file`), or an IDE disk's size is looked at once (`ide`). */
  readonly "grows-next-start": OfVm &
    Commanded & { readonly from: number; readonly to: number; readonly since: "file" | "ide" };
  /**
   * A volume's image is on no storage server, and each of them is heard; or it is damaged at the one that is to make the volume.
   * The sentence is the Storage Manager's.
   */
  readonly "no-image": { readonly image: string; readonly sentence: string; readonly damaged?: true };
  /** No storage server has room for it, and each of them is heard. The sentence is the Storage Manager's. */
  readonly "no-storage": { readonly sentence: string };
  /** Its liveness is to be asked at an interface that the incarnation which runs was started without. */
  readonly "asked-next-start": OfVm & Commanded & { readonly interface: ElementPath };
  /** A volume that has left the model stays until the copy at that path of another cell is made (`x.hold`). */
  readonly "held-for-copy": Foreign & Commanded;
  /** The element has left the model. */
  readonly deleting: Nothing;

  // --- services and hosts
  readonly "service-unreachable": { readonly service: PeerName };
  /** It has not answered yet. */
  readonly "service-asked": { readonly service: PeerName };
  /** The document about it is longer than any that can be sent. In characters. */
  readonly "document-too-long": {
    readonly to: PeerName;
    readonly key: string;
    readonly characters: number;
    readonly most: number;
  };
  /** `unknown`: for so long that nobody knows what still runs there. */
  readonly "host-unreachable": AtHost & { readonly unknown?: true };
  /** By the Presence group; `since` is when, ISO 8601. */
  readonly "host-declared-dead": AtHost & { readonly since: string };
  /** It says that the controller's store was lost or is older, and no service does. */
  readonly "host-doubts-store": AtHost & { readonly controller: PeerName };
  /** Its own store was lost: it may run what it does not know of. */
  readonly "host-lost-store": AtHost;
  /** Another machine has its name by now. */
  readonly "host-replaced": AtHost;

  // --- a VM's life
  readonly "asks-for-host": Nothing;
  /** `said`: of a Placer that named no host. */
  readonly "no-host": Refusing & {
    readonly said: string | null;
    /** Absent: a Placer that gives none, or not now. */
    readonly advice?: Advice;
  };
  /** It is to leave its host, where it runs on until there is room elsewhere. */
  readonly "cannot-leave": AtHost & Refusing;
  /** The same, once that VM is well. */
  readonly "leaves-after": AtHost & OfVm;
  /** The root controller's own: another host starts it once this one is off. */
  readonly "leaves-with-its-host": AtHost;
  readonly "connects-volumes": Nothing;
  readonly "waits-for-lease": { readonly element: ElementPath } & Because;
  readonly starts: AtHost;
  readonly stops: AtHost;
  readonly "about-to-start": Nothing;
  /** How an incarnation ended that nobody asked to end, and what was said of it. */
  readonly ended: { readonly how: EndKind; readonly detail: string | null };
  /** Its machine runs, and its guest's agent has not answered yet. */
  readonly "guest-boots": Nothing;
  /** It did not within its time; it is asked on. */
  readonly "guest-late": Commanded & { readonly seconds: number };
  /** What was changed of it and is asked of a service, which has not said yet that it is so. */
  readonly unconfirmed: { readonly by: PeerName; readonly attributes: readonly string[] };
  /** What ended the incarnation before the present one. */
  readonly before: Because;
  readonly "not-restarted": Commanded;
  /** It runs and does not answer. */
  readonly "silent-left": Nothing;
  readonly "backs-off": { readonly seconds: number; readonly failures: number };
  /** Of the cell's rate of starts. `place`, `of`, `seconds`: in the queue, and about when; `own`: the limit is the cell's own. */
  readonly "waits-its-turn": {
    readonly perMinute: number;
    readonly atOnce: number;
    readonly queue?: {
      readonly place: number;
      readonly of: number;
      readonly seconds: number;
      readonly own: boolean;
    };
  };
  /** `asking`: members that are not had yet; otherwise those that could not be had; `more`: beside these few, from ten on rounded down to one digit. `seconds`: until all is asked for again. */
  readonly "all-or-none": {
    readonly stage: "asking" | "resting" | "clearing";
    readonly elements: readonly ElementPath[];
    readonly more?: number;
    readonly seconds?: number;
  };
  readonly "disk-unavailable": { readonly element: ElementPath } & Because;
  /** It may run at a host by that one's own word. */
  readonly "may-run-at": AtHost & Because;
  /** Hosts that may run incarnations which the controller has forgotten. */
  readonly "forgotten-runs": { readonly hosts: readonly HostName[] };
  /** The store is from a backup, and hosts of then are not heard. */
  readonly "restored-unheard": { readonly hosts: readonly HostName[] };

  // --- service VMs
  readonly "enrolment-refused": { readonly services: readonly PeerName[] } & Because;
  readonly "services-malformed": { readonly detail: string };
  /** `numbered`: it could have another number. */
  readonly "service-name-taken": OfVm & { readonly service: PeerName; readonly numbered: boolean };
  readonly "no-interface": Nothing;
  readonly "not-on-management": Nothing;

  // --- addresses and names
  readonly "address-asked": Nothing;
  readonly "subnet-full": { readonly element: ElementPath; readonly cidr: Cidr };
  /** Another subnet has the range, which `vms` still use. */
  readonly "range-taken": { readonly cidr: Cidr; readonly vms: readonly ElementPath[] };
  readonly "address-outside": {
    readonly element: ElementPath;
    readonly address: Ipv4;
    readonly cidr: Cidr;
    readonly first: Ipv4;
    readonly last: Ipv4;
  };
  readonly "address-taken": { readonly element: ElementPath; readonly address: Ipv4 };
  readonly "name-failed": { readonly name: string } & Because;

  // --- other cells
  readonly "foreign-wrong-type": Foreign & { readonly type: string; readonly wanted: "volume" | "addresses" };
  readonly "foreign-own-cell": Foreign;
  readonly "no-directory": Foreign;
  readonly "directory-unreachable": Foreign;
  readonly "foreign-hidden": Foreign;
  readonly "other-storage-manager": Foreign & { readonly theirs: number; readonly own: number };
  readonly "not-granted": Foreign & { readonly grant: "copy" | "connect"; readonly to: string };
  readonly "controller-of-own-cell-only": Nothing;
  /** `element`: this cell's end; `shown`: the other cell can name it. */
  readonly "not-agreed": Foreign & { readonly element: ElementPath; readonly shown: boolean };

  // --- rules
  readonly "removal-not-in-force": Because;
  readonly "rules-unconfirmed": AtHost;
  readonly "rules-refused": AtHost & Because;
  /** `version` 0: it has none of the cell's rules in force. */
  readonly "rules-older": AtHost & { readonly version: number; readonly wanted: number };
  readonly "more-hosts": { readonly count: number };

  // --- upgrades of service VMs
  readonly "upgrade-kept": OfVm;
  readonly "upgrade-went-back": OfVm & { readonly volume: string } & Because;
  /** It runs from what it had, and no other upgrade begins. */
  readonly "upgrade-over": Nothing;
  readonly "upgrade-tried": OfVm;
  readonly "upgrade-stopped": OfVm;
  readonly "upgrade-one-at-a-time": OfVm;
  readonly "upgrade-next": Nothing;
  /** Until the VM is as it must be before the next one: `on`, `settled` (neither starts nor ends), ready for `itself`, or well. */
  readonly "upgrade-awaits": OfVm & { readonly until: "on" | "settled" | "itself" | "well" };
  readonly "upgrade-comes-last": OfVm;
  readonly "upgrade-timed-out": { readonly seconds: number } & Because;

  // --- child cells and the controller itself
  readonly "no-cell-manager": Nothing;
  /** There is no such HA Manager any more, which the cell has: nobody looks after its VMs. */
  readonly unguarded: { readonly service: PeerName; readonly number: number; readonly cell: CellName };
  readonly "child-malformed": Nothing;
  readonly "child-named-root": { readonly name: string };
  /** Services that hold more than the controller's store. */
  readonly "store-older": { readonly controller: PeerName; readonly peers: readonly PeerName[] };
}

export const endKinds = ["exited", "crashed", "stopped", "silent", "not started", "host died"] as const;
export type EndKind = (typeof endKinds)[number];

/** What another service said, if it said anything. */
export const said = (by: PeerName, sentence: string | null | undefined): readonly Cause[] =>
  sentence == null ? [] : [{ kind: "said", by, sentence }];

/** The element of the same cell that all of it waits for and that says more itself; null: there is more to be said here. */
export function awaitedElement(causes: readonly Cause[]): ElementPath | null {
  const [first, ...more] = causes;
  return first?.kind === "waits-for" && more.length === 0 ? first.element : null;
}

/** Why a host does not take a VM as long as nobody makes room there, or moves something away. */
const untilRoom: ReadonlySet<RefusalKind | undefined> = new Set([
  "closed",
  "pinned",
  "apart",
  "speed",
  "memory",
  "cpus",
]);

/**
 * Nothing of it comes by itself: there is no room at any host or storage server, or another cell has not granted or agreed. A
 * host that is not heard may be starting, and then it is not known what it has room for.
 */
export const isUpToOthers = (cause: Cause): boolean =>
  cause.kind === "no-host"
    ? cause.refusals.length > 0 && cause.refusals.every(({ kind }) => untilRoom.has(kind))
    : othersLeave.has(cause.kind);
const othersLeave: ReadonlySet<CauseKind> = new Set([
  "no-storage",
  "not-granted",
  "foreign-hidden",
  "not-agreed",
] as const);

/** Their kinds, each with those behind it: `waits-for(said), before(ended)`. */
export const kindsOf = (causes: readonly Cause[]): string =>
  causes
    .map((cause) => {
      const behind = "because" in cause && cause.because !== undefined ? `(${kindsOf(cause.because)})` : "";
      return `${cause.kind}${behind}`;
    })
    .join(", ");
