import type { Cause } from "./cause/cause.ts";
import type { BoundServices, ElementType } from "./cell/cell.ts";
import type { ElementPath } from "./cell/identifiers.ts";
import type { GivenAnew } from "./cell/tenants/dedication/given-anew.ts";
import type { Diagnostic } from "./diagnostics/diagnostic.ts";
import type { Json } from "./json/json.ts";
import type { PatchFault } from "./json/patch.ts";
import type { Foreseen } from "./plan/foreseen.ts";
import type { Opened } from "./plan/opened.ts";
import type { Plan } from "./plan/plan-types.ts";

/*
 * What requests and answers of the published contract carry. Which requests there are, who may make them and who answers says
 * the table in `contract/routes.ts`; the CLI and the web page are clients of that and of nothing else. `contract/values.ts`
 * has a schema for each of these interfaces, and does not compile where the two differ.
 */
export interface BundleBody {
  /** The bundle's texts, `main` first to be read. */
  readonly main: string;
  readonly files: Readonly<Record<string, string>>;
}
export const bundleMediaType = "application/vnd.cells.bundle+json";
/** RFC 6902; and one YAML text instead of JSON (RFC 9512), whose deprecated names mean the same. */
export const patchMediaType = "application/json-patch+json";
export const yamlMediaType = "application/yaml";
export const isYamlMediaType = (mediaType: string | undefined): boolean =>
  /^\s*(?:application|text)\/(?:x-)?yaml\s*(?:;|$)/i.test(mediaType ?? "");

export interface Changed {
  readonly plan: Plan;
  /** Version of the model after the change; grows by one per accepted change. */
  readonly version: number;
  readonly dryRun: boolean;
  /** Of a dry run: what the installation could give of these is not known now, so that it is checked when it is applied. */
  readonly unchecked?: readonly ("hosts" | "storage" | "addresses")[];
  /**
   * Of the root cell: service VMs that this gives another boot volume, in order. They are started again one at a time, and
   * go back to what they run from where the new one does not come up. Absent: none.
   */
  readonly upgraded?: readonly ElementPath[];
  /** Of a dry run of the root cell: what it gives anew to domains and accounts that it does not declare itself. Absent: nothing. */
  readonly dedicates?: readonly GivenAnew[];
  /** Of the cell's networks, by the rules of Eucalyptus. Absent: Diverter. */
  readonly networkMode?: string;
  /** What has failed and is left so by the change. Absent: nothing. */
  readonly failed?: readonly FailedElement[];
  /** What will not become ready as things stand, and why. Absent: nothing is known that will not. */
  readonly foreseen?: readonly Foreseen[];
  readonly opened?: readonly Opened[];
}
export interface FailedElement {
  readonly path: ElementPath;
  readonly type: ElementType;
  readonly reason: string | null;
  /** `reason` as data. Absent: there is none, or it is of an earlier version. */
  readonly causes?: readonly Cause[];
}
/** Body of every answer that is not a success. */
export interface Refusal {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly diagnostics?: readonly Diagnostic[];
    /** Of a patch: where it is wrong, or which of its tests failed. */
    readonly patch?: Pick<PatchFault, "operation" | "path" | "wanted" | "found">;
  };
}

/** How a specification with faults is refused, wherever it is read. */
export function invalidSpecification(diagnostics: readonly Diagnostic[]): Refusal["error"] {
  const more = diagnostics.length > 1 ? ` (and ${diagnostics.length - 1} more)` : "";
  const message = `the specification is refused: ${diagnostics[0]?.message ?? "it is not valid"}${more}`;
  return { code: "invalid-specification", message, diagnostics };
}

/** The value of "$state" in an element of `GET …?state=true`. Fields that do not apply to a type are absent. */
export interface ElementState {
  readonly phase: "waiting" | "working" | "ready" | "failed" | "deleting";
  readonly reason: string | null; // In words.
  /** As data, the first foremost. Absent: there is nothing to say, or it is of an earlier version. */
  readonly causes?: readonly Cause[];
  readonly since: string; // ISO 8601.
  readonly uid: string;
  /** It stays as it is until somebody changes something: it has failed, is owed something until a machine starts anew, or needs what is so. */
  readonly stuck?: true;
  // VM
  readonly host?: string | null;
  readonly incarnation?: number;
  readonly power?: "on" | "off";
  /** What its liveness probes say; absent where none are sent. */
  readonly health?: "starting" | "answering" | "silent";
  readonly reachability?: "ok" | "impaired" | "insufficient-data"; // Absent: it is not to run, or has no host yet.
  /** How often its guest has reset itself in this incarnation; absent: never. */
  readonly reboots?: number;
  /** How an incarnation ended last that nobody asked to end; `exited`: its guest powered off, `silent`: it answered no probes. */
  readonly lastEnd?: {
    readonly incarnation: number;
    readonly how: "exited" | "crashed" | "stopped" | "silent" | "not started" | "host died";
    readonly reason: string | null;
  };
  /** It was stopped, and its affinity groups and implicit dedication count it where it was until then. `host` null: that is not for whoever asks. Absent: nowhere. */
  readonly countsAt?: { readonly host: string | null; readonly incarnation: number; readonly until: string };
  // VirtualInterface
  readonly address?: string | null;
  readonly publicAddress?: string; // In a mode of Eucalyptus, the elastic one. Absent: it has none.
  readonly mac?: string | null;
  readonly name?: string | null;
  // Volume, VolumeCopy
  readonly server?: string | null;
  readonly sizeMiB?: number | null;
  // Subnet
  readonly cidr?: string | null;
  readonly gateway?: string | null;
  // CellController: numbers of those of several services that decide for the child; absent: it was not made yet
  readonly services?: BoundServices;
  // PoolHost: UIDs of all that stand there, whosever they are
  readonly vms?: readonly string[];
}

/** One line of the event stream. */
export interface CellEvent {
  readonly id: number;
  /** ISO 8601. */
  readonly time: string;
  readonly cell: string;
  /** The element it is about; the cell's own path for the cell as a whole. */
  readonly path: string;
  readonly type: string;
  /** `accepted` (a change of the model, with its version), `state` (an element's phase changed), `rebooted` (a guest reset itself), `moved` (it has another path; `from` is the one before), `removed`. */
  readonly event: string;
  readonly phase?: string;
  readonly reason?: string | null;
  /** `reason` as data. */
  readonly causes?: readonly Cause[];
  readonly fields?: { readonly [key: string]: Json };
}

/**
 * One line of the time line over all services: a change of state that a process logged. Ordered by `time`; `service` and
 * `id` name it.
 */
export interface ServiceEvent {
  /** Unique for its service. */
  readonly id: string;
  /** ISO 8601. */
  readonly time: string;
  /** Peer name: `placer`, `host.h1`, `controller.shop`, `supervisor`. */
  readonly service: string;
  /** `<area>/<what-happened>`, from the table in `core/telemetry/event-names.ts`. */
  readonly event: string;
  readonly cell: string | null;
  /** The element it is about, where it is about one. */
  readonly path: string | null;
  readonly fields: { readonly [key: string]: Json };
}

/**
 * A credential of one cell: it opens everything below `/cells/<cell>/`, and in `GET /cells` shows that cell alone. With a `path`
 * it opens what is there in the model and below it, and nothing else; with `access` `read` it changes nothing there.
 */
export interface CredentialSummary {
  readonly id: string;
  /** Who it was given to, in the operator's words. */
  readonly note: string;
  /** ISO 8601. */
  readonly created: string;
  /** Of an element or a group, as `primary/volumes`. Absent: it opens the whole cell. */
  readonly path?: string;
  /** Exactly with `path`. */
  readonly access?: "read" | "write";
}
export interface NewCredential {
  readonly id: string;
  /** `<cell>.<id>.<secret>`. The cloud keeps a hash of it only. */
  readonly credential: string;
}

/** What the Presence group knows of a host. */
export interface HostEnd {
  readonly host: string;
  /** Of its last life; null: none is known. */
  readonly generation: number | null;
  /** Which start of its machine that was; null: not known. */
  readonly boot: number | null;
  /** Why nobody's word is taken that its power is off, a sentence; null: it would be, or was. */
  readonly against: string | null;
  /** The last start of its machine that is known to be over; null: none is. */
  readonly ended: number | null;
}
/**
 * The operator knows that the machine's power is off, since before the request for the `HostEnd` with these numbers: all of
 * its VMs have ended, and may be started elsewhere. If that is not so, they will run twice.
 */
export interface HostPowerOff {
  readonly powerIsOff: true;
  readonly generation: number;
  readonly boot: number;
}

export interface CellSummary {
  readonly cell: string;
  readonly version: number;
  /** Elements per phase, and how many in all. */
  readonly phases: { readonly [phase: string]: number };
  readonly elements: number;
  /** Numbers of those of several services that decide for it. Absent: an earlier version answered. */
  readonly services?: BoundServices;
  /** What is not ready and why: failed ones first, a few of them. */
  readonly waiting?: readonly NotReady[];
}
export interface NotReady {
  readonly path: string;
  readonly phase: string;
  readonly reason: string | null;
  /** `reason` as data. Absent: there is none, or it is of an earlier version. */
  readonly causes?: readonly Cause[];
}
export interface InstallationStatus {
  readonly services: readonly {
    readonly name: string;
    /** As other services know it: `host.h1`. */
    readonly peer?: string;
    readonly address: string;
    readonly running: boolean;
    readonly pid: number | null;
    readonly restarts: number;
    /** `starting`: its ports do not answer yet; `resting`: it ended and is started again after a pause. */
    readonly state?: "running" | "starting" | "resting" | "stopped";
    /** ISO 8601; null when it does not run. */
    readonly since?: string | null;
    readonly memoryMiB?: number | null;
    /** How it ended last; null if it never did. */
    readonly lastEnd?: string | null;
  }[];
  readonly hosts: readonly {
    readonly host: string;
    readonly address: string;
    readonly state: string;
    readonly memoryMiB: number;
    readonly usedMiB: number;
    readonly cpus: number;
    readonly accelerator: string;
    readonly vms: number;
    /**
     * By the Presence group, apart from whether the host answers the gateway just now. `dead`: declared by a majority; what
     * runs there is not known. `since`: ISO 8601; null: not known. `powerIsOff`: somebody said so, and nothing runs there.
     * Absent: no member of the group answered.
     */
    readonly presence?: {
      readonly state: "up" | "suspected" | "dead" | "unknown";
      readonly since: string | null;
      readonly powerIsOff?: true;
    };
    /** The operator has it take nothing new; in maintenance its VMs are to leave it. Absent: it takes VMs. */
    readonly administration?: "disabled" | "maintenance" | "reserved";
    /** VMs that are to leave it: where room is kept for each, or why it is still there. Absent: none. */
    readonly leaving?: readonly {
      readonly cell: string;
      readonly path: string;
      readonly to: string | null;
      readonly reason: string | null;
    }[];
    /** What it says of itself that somebody should know, a sentence. */
    readonly remark?: string;
    /**
     * External addresses here that are to be announced by BGP, and with whom this machine has a BGP connection. `since`: ISO
     * 8601; null: since before its Host Manager started. Absent: it is not configured to.
     */
    readonly announces?: {
      readonly to: readonly string[];
      readonly addresses: readonly { readonly address: string; readonly since: string | null }[];
    };
    /** Kept for the management; not offered to VMs. */
    readonly reservedMiB?: number;
    /** CPUs in use since somebody asked before (1 is a whole one). */
    readonly load?: { readonly vms: number; readonly management: number };
    readonly machines?: readonly {
      readonly path: string;
      readonly cell: string;
      readonly stage: string;
      readonly memoryMiB: number;
      /** Resident, of the process; null when it does not run. */
      readonly residentMiB: number | null;
      /** Octets a second of its interfaces, and of its disks, both ways; absent: its host does not say. */
      readonly network?: number;
      readonly disk?: number;
      readonly cpus: number;
      readonly load: number;
    }[];
  }[];
  readonly servers: readonly {
    readonly server: string;
    readonly address: string;
    readonly totalMiB: number;
    readonly freeMiB: number;
    readonly volumes: number;
    /** Files of deleted volumes that are kept for a time, and what they take. Absent: a server of an earlier version. */
    readonly bin?: { readonly files: number; readonly usedMiB: number };
    readonly state?: "up" | "unreachable";
  }[];
  /** What would be if the fullest host were lost now: which of its VMs had no place elsewhere, `cell/path` each. Absent: not known. */
  readonly loss?: { readonly host: string; readonly vms: number; readonly stranded: readonly string[] };
  /**
   * Room is kept for the VMs of so many hosts, the fullest (`x.ha.spareHosts`); `lack`: how many of these had none, and what they ask for;
   * null: there is enough. Absent: none is kept.
   */
  readonly spare?: {
    readonly hosts: number;
    readonly lack: { readonly vms: number; readonly memoryMiB: number } | null;
  };
  /** Fewer hosts are left to the cloud's own VMs than are to be (`x.placement.systemHosts`). Absent: as many are, or a Placer of a version before. */
  readonly systemHosts?: { readonly kept: number; readonly left: number };
  /**
   * Services whose store was lost or is older, and services that keep documents which their clients did not repeat. Absent:
   * none, as far as those know that answered.
   */
  readonly leftovers?: { readonly forked: readonly string[]; readonly keepers: readonly string[] };
  /** What the gateway says of itself before it is trouble (its page's certificate ends soon), sentences. Absent: nothing. */
  readonly warnings?: readonly string[];
}

/** An image that `x.import` may name, the same for every cell. */
export interface ImageSummary {
  readonly name: string;
  /** Of an uploaded image: SHA-256 of the bytes that were uploaded, hexadecimal. */
  readonly digest: string;
  /** Of its disk: a volume made from it is at least as large. */
  readonly sizeMiB: number;
  /** Comes with the installation: it cannot be replaced or deleted. */
  readonly provided: boolean;
  /** Storage servers that have it; its volumes can be placed there. */
  readonly servers: readonly string[];
}
/** The image is there; 400 when it is refused for what it is, 409 when the name is taken. */
export interface ImageAdded extends Omit<ImageSummary, "provided"> {
  /** Servers that did not answer. Adding the same file again brings it there. */
  readonly missing: readonly MissingServer[];
}
/** Volumes made from the image are copies of it and stay as they are. */
export interface ImageRemoved {
  readonly name: string;
  readonly servers: readonly string[];
  /** Servers that did not answer, and still have it. */
  readonly missing: readonly MissingServer[];
}
/** A controller starts again with a copy of its store. */
export interface StoreReturned {
  /** The cell's UID, which the copy is of. */
  readonly returned: string;
}
/** Documents that stay in force at a service although their client does not desire them any more, or not so. */
export interface ServiceOrphans {
  readonly service: string;
  readonly clients: readonly {
    readonly client: string;
    /** Its store was lost or is older: what the service took of it before stays as it is. */
    readonly forked: boolean;
    /** How many documents do. */
    readonly kept: number;
    /** How many documents it did not repeat, and their keys, 1000 at most. */
    readonly orphans: number;
    readonly keys: readonly string[];
  }[];
  /** Services at which this one desires something. `forked`: its own store was lost or is older; `itForked`: theirs. */
  readonly receivers: readonly { readonly receiver: string; readonly forked: boolean; readonly itForked: boolean }[];
}
export interface OrphanList {
  /** Those that have any. */
  readonly services: readonly ServiceOrphans[];
  /** Services that did not answer. */
  readonly missing: readonly MissingService[];
}
export interface MissingService {
  readonly service: string;
  readonly why: string;
}
/** A file of a deleted volume, in a storage server's bin. */
export interface BinEntry {
  readonly server: string;
  /** Its name there; `<server>/<file>` names it to people. */
  readonly file: string;
  /** The volume's UID. */
  readonly volume: string;
  /** Of the volume; null: nobody wrote it down. */
  readonly path: string | null;
  readonly sizeMiB: number;
  readonly usedMiB: number;
  /** ISO 8601, by the server's clock. */
  readonly deleted: string;
  /** It is of use only above another volume's bytes, of which it was a copy. */
  readonly overlay: boolean;
  /** The next volume at that path begins with it. */
  readonly offered: boolean;
}
export interface BinList {
  readonly files: readonly BinEntry[];
  /** Servers that did not answer. */
  readonly missing: readonly MissingServer[];
}
/** What an operator adopted of a storage server that is older than others knew it. */
export interface ServerAdopted {
  readonly server: string;
  readonly leases: readonly {
    readonly volume: string;
    /** Null: the server does not know it. */
    readonly path: string | null;
    /** The lease's epoch as the server had it, and as others knew it: if later, somebody wrote what is not there. */
    readonly epoch: number;
    readonly known: number;
  }[];
}
export interface MissingServer {
  readonly server: string;
  readonly why: string;
}

/** A backup of the management, as one storage server has it. Its name says when it was ordered: `20261122T172010Z`. */
export interface KeptBackup {
  readonly name: string;
  readonly bytes: number;
}
export interface BackupList {
  /** Oldest first. */
  readonly backups: readonly (KeptBackup & { readonly servers: readonly string[] })[];
  readonly missing: readonly MissingServer[];
}

/** What an element needs, what it rests on first; the first that does not pass holds it up. */
export interface ElementAnswer {
  readonly path: string;
  readonly type: string;
  readonly phase: string;
  readonly reason: string | null;
  /** `reason` as data. Absent: there is none, or it is of an earlier version. */
  readonly causes?: readonly Cause[];
  readonly checks: readonly ElementCheck[];
  /** One sentence: what holds it up, and what would lift that. */
  readonly verdict: string;
}
export interface ElementCheck {
  readonly check: string;
  readonly passes: boolean;
  readonly detail: string;
  /** What would let it pass; null where nobody can say. */
  readonly lifts: string | null;
  /** Of one that does not pass: `detail` as data. Absent: of an earlier version, or there is no more to it. */
  readonly causes?: readonly Cause[];
}

/** Why a connection passes or not, read from the maps in force on both hosts. */
export interface ConnectionAnswer {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly port: number | null;
  readonly allowed: boolean;
  /** In the order a packet meets them; the first that does not pass is where it ends. */
  readonly checks: readonly {
    readonly where: string;
    readonly check: string;
    readonly passes: boolean;
    readonly detail: string;
  }[];
  /** One sentence: what decides, and what would change it. */
  readonly verdict: string;
}

export interface ExecRequest {
  /** Path of the VM. */
  readonly vm: string;
  readonly command: readonly string[];
  readonly timeoutMs?: number;
}
/** A VM goes to another host: its incarnation is stopped in order there, and the next one starts with the same volumes. */
export interface MoveOrder {
  /** Path of the VM in its document, the cell's component first. */
  readonly vm: string;
  readonly to: string;
}
export interface Moved {
  readonly vm: string;
  readonly from: string;
  readonly to: string;
  /** That is stopped. */
  readonly incarnation: number;
  /** Nothing is done: it is there, and an earlier order is taken back. */
  readonly isThere: boolean;
}
export interface ForceStopOrder {
  /** Path of the VM in its document, the cell's component first. */
  readonly vm: string;
}
/** A VM that its host cannot confirm to have ended counts as stopped from now on. */
export interface ForcedStop {
  readonly vm: string;
  readonly host: string;
  readonly incarnation: number;
  /** What nobody has looked at, and what holds all the same: sentences. */
  readonly unchecked: readonly string[];
  readonly checked: readonly string[];
}
export interface ExecAnswer {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
