import type { DesiredEnrolment } from "../core/documents/identity.ts";
import type { SavedState } from "../core/documents/saved-state.ts";
import type { ServiceRole } from "../core/documents/service-roles.ts";
import type { CurrentKey } from "../core/identity/current-keys.ts";
import type { Ring } from "../core/identity/gossip-ring.ts";
import type { PeerName } from "../model/cell/identifiers.ts";
import type { Mode } from "../model/cell/network/modes.ts";

/**
 * Where everything of one installation lies and listens. The underlay is one flat layer-2 network; services have the
 * addresses that their VMs will have later (decision 31). Written by `testbed/`, read by every process.
 */
export const network = {
  /** Underlay and management. */
  underlay: "10.0.0.0/16",
  gateway: "10.0.0.2",
  caas: "10.0.0.3",
  authority: "10.0.0.10",
  addressManager: "10.0.0.11",
  dnsManager: "10.0.0.12",
  placer: "10.0.0.13",
  storageManager: "10.0.0.14",
  directory: "10.0.0.15",
  cellManager: "10.0.0.16",
  haManager: "10.0.0.17",
  tenancy: "10.0.0.18",
  networkViewManager: "10.0.0.19",
  presence: (number: number): string => `10.0.0.${20 + number}`,
  host: (number: number): string => `10.0.1.${number}`,
  server: (number: number): string => `10.0.2.${number}`,
  /** By the number of its cell, from 1: 254 in each of 10.0.3.0/24, 10.0.4.0/24, … */
  controller: (number: number): string => `10.0.${3 + Math.floor((number - 1) / 254)}.${1 + ((number - 1) % 254)}`,
  /** The last cell's number: beyond it there are no addresses left in the underlay. */
  lastController: 254 * 252,
  /** Tenants' subnets are cut from these. */
  internalPool: "10.64.0.0/10",
  externalPool: "198.18.0.0/15",
  /** Domain below which every cell has its own. */
  domain: "cells.internal",
} as const;

export const ports = {
  /** State distribution, mutual TLS over TCP. Over UDP: hosts' datagrams to hosts, for Presence; nobody else listens. */
  distribution: 7100,
  /** HTTPS with client certificates: a controller's REST, a host's sessions and map reading, an agent's boot files. */
  http: 7101,
  /** HTTPS of the authority: enrolment with a token, renewal with a certificate. */
  enrolment: 7102,
  dns: 53,
  /** Storage agents export from here upward. */
  nbdFirst: 20000,
} as const;

/** A storage agent's, beside the Host Manager of a real machine: both have the machine's one address. */
export const agentPorts = { distribution: 7130, http: 7131 } as const;

/** Configuration of one process, a JSON file whose path is its only argument. No secrets: they are in the files it names. */
export interface ProcessConfiguration {
  readonly name: PeerName;
  readonly role: ServiceRole | "host" | "agent";
  /** Own address on the underlay. */
  readonly address: string;
  /** Own directory for durable state, already there. */
  readonly directory: string;
  /** Volatile files and sockets. */
  readonly runDirectory: string;
  readonly certificate: { readonly certFile: string; readonly keyFile: string; readonly caFile: string };
  /** Where its certificate comes from and is renewed; absent: it was issued for good, as the testbed's are. */
  readonly enrolment?: {
    /** `<address>:<port>` of the authority. */
    readonly authority: string;
    /** SHA-256 (hexadecimal) of the SubjectPublicKeyInfo of the authority's own certificate. */
    readonly fingerprint: string;
    /** File with the one-time token, mode 0600; absent: it has enrolled before. */
    readonly tokenFile?: string;
  };
  /**
   * Keys that were pinned at joining, JSON `{"pins": {"host.h1": "<fingerprint>"}}`; of hosts and the root controller.
   * With it, the dates of a pinned peer's certificate may have passed (decision 29).
   */
  readonly pinsFile?: string;
  /** JSON file `PeerBook`, rewritten atomically when a peer comes or goes; read again at each failed look-up. */
  readonly peersFile: string;
  /** `peersFile` is this process' own, and kept as the authority knows it (`runtime/identity/own/peers-follow.ts`). */
  readonly followPeers?: true;
  /** Listen here instead of at `ports`: several processes may then share one address (loopback, in tests). */
  readonly distributionPort?: number;
  readonly httpPort?: number;
  readonly authority?: {
    /** Of a certificate; default 24 h. */
    readonly lifetimeMs?: number;
    /** Listen here instead of at `ports.enrolment`. */
    readonly enrolmentPort?: number;
    /** By id: those of the installation's birth, before any controller can desire one (`DesiredEnrolment`). */
    readonly enrolments?: Readonly<Record<string, DesiredEnrolment>>;
    /** Where peers are that nobody enrols, as in `PeerBook`. */
    readonly peers?: PeerBook["peers"];
  };
  readonly controller?: {
    readonly cell: string;
    readonly cellUid: string;
    /** Unique in the installation, never 0. */
    readonly cellNumber: number;
    readonly domain: string;
    readonly mac: string;
    /** The installation has one; without, no other cell is visible and there are no child cells. */
    readonly directory?: true;
    readonly cellManager?: true;
    /** Numbers of those of several that decide for it; absent: the first ones. */
    readonly placer?: number;
    readonly storageManager?: number;
    readonly haManager?: number;
    /** Of its networks, by the rules of Eucalyptus; absent: Diverter. */
    readonly networkMode?: Mode;
    /** SHA-256 (hex) of the credentials that may change this cell. */
    readonly credentialHashes: readonly string[];
    /** VMs that a cell may start a minute which is no other's child; default 120 (core/controller/vm/start-limit.ts). */
    readonly startsPerMinute?: number;
    /** Whom its name server asks for names outside: addresses on the underlay, of a cell which is no other's child. */
    readonly resolvers?: readonly string[];
    /** Of the root cell's controller, and of no other: it makes service VMs what they are (`RootOptions`). */
    readonly root?: {
      /** The underlay, in CIDR notation. */
      readonly management: string;
      /** Where service VMs enrol: address, and SHA-256 (hexadecimal) of the authority's public key. */
      readonly authority: { readonly address: string; readonly fingerprint: string };
    };
  };
  readonly tenancy?: {
    /** SHA-256 (hex) of the operator's credentials. */
    readonly credentialHashes: readonly string[];
  };
  readonly host?: {
    readonly host: string;
    /** Device on the underlay. */
    readonly uplink: string;
    /**
     * Bridge that has `uplink` as a port, and this host's address and MAC itself: VMs of the management network are its
     * other ports. Absent: this host runs none.
     */
    readonly bridge?: string;
    /**
     * The way out of the installation, and into it, for external addresses. Absent: this host has none.
     */
    readonly outside?: {
      /** Device on the network of the upstream routers, with an address of this host there; absent: the uplink. */
      readonly device?: string;
      /** Their IPv4 addresses, from 1 to 4; the first that answers gets what goes out. */
      readonly routers: readonly string[];
      /** Number of the kernel's routing table from which a daemon announces external addresses of this host by BGP. */
      readonly table?: number;
    };
    readonly mac: string;
    readonly memoryMiB: number;
    readonly reservedMiB: number;
    readonly cpus: number;
    /** Device of the watchdog that resets this machine where what writes on it cannot be ended (decision 125), as `/dev/watchdog0`. Absent: none. */
    readonly watchdog?: string;
    /** Networks by the rules of Eucalyptus beside Diverter's (decision 160): where its files lie, and what this machine is there. Absent: none. */
    readonly eucalyptus?: {
      readonly directory: string;
      readonly peer: "node" | "network";
      /** Of the network configuration; its views come from the Network View Manager then. Absent: files come by other ways. */
      readonly cluster?: string;
    };
    /** Parent cgroup directories (v1: one per controller; v2: one); empty where none can be used. */
    readonly cgroups: readonly string[];
  };
  /** Of the one host from which the installation comes to run in itself (decision 31). */
  readonly bootstrap?: {
    /** The root cell, a file in SmartFrog or JSON. */
    readonly specificationFile: string;
    /** The installation's certificate authority, made if there is none. */
    readonly authorityDirectory: string;
    /** Holds the operator's credential, mode 0600. */
    readonly credentialFile: string;
    /** Hosts and storage agents that there are already; entries as in `PeerBook`. */
    readonly peers: Readonly<Record<string, string>>;
    /** Of these, with which they enrol as soon as the authority runs: SHA-256 (hexadecimal) of their one-time tokens. */
    readonly tokenHashes?: Readonly<Record<string, string>>;
  };
  /** A host's part in Presence; absent: it takes none. */
  readonly presence?: {
    /** At least 16 random bytes, the same at every host of the installation. A secret. */
    readonly gossipKeyFile: string;
  };
  readonly agent?: {
    readonly server: string;
    /** `images/<name>/{manifest.json,disk.qcow2,kernel,initrd}` as `image/` builds them. */
    readonly imagesDirectory: string;
    /** Parent cgroup directories of the sandboxes in which uploads are read (v1: one per controller; v2: one). */
    readonly cgroups?: readonly string[];
    /** How long files of deleted volumes are kept, and how much space they leave; absent: 7 days, a twentieth. */
    readonly bin?: { readonly keepHours?: number; readonly reserveMiB?: number };
    /** What an uploaded image may be and take; `ImageLimits` of `host/storage-agent/images/image-store.ts`. */
    readonly imageLimits?: Readonly<Partial<Record<ImageLimitName, number>>>;
  };
  readonly gateway?: {
    /** Descriptor of a listening socket handed over at the start. */
    readonly listenFd?: number;
    /** In its place: HTTPS with this process' certificate. Clients need none, they show a credential. */
    readonly listen?: { readonly address: string; readonly port: number };
    /**
     * Unix socket of the testbed's supervisor: makes and ends controllers. Absent: cells are elements of the root cell, and
     * its controller makes and ends theirs.
     */
    readonly supervisorSocket?: string;
    readonly credentialHashes: readonly string[];
    /** Directory with the files of the page; absent: the gateway has no page. */
    readonly page?: string;
    /** HTTPS for personalities, which ask it from inside: of the installation, or of its own cell where they stand apart (decision 212). */
    readonly inside?: { readonly address: string; readonly port: number };
    /** Where it passes connections on, unopened: each `ADDRESS:PORT` it listens at, and where to. */
    readonly passes?: readonly { readonly at: string; readonly to: string; readonly places?: number }[];
  };
  /** Of a personality: a door beside the gateway, which it asks with the credential of whoever asks it (decision 147). */
  readonly personality?: {
    /** Where its clients find it, over TLS with its own certificate. */
    readonly listen?: { readonly address: string; readonly port: number };
    /** In its place: descriptor of a listening socket handed over at the start. */
    readonly listenFd?: number;
    /** Beside such a socket: over TLS for the gateway, which passes on to it who comes to the gateway itself (decision 201). */
    readonly inside?: { readonly address: string; readonly port: number };
    /** Where the gateway is, over TLS. */
    readonly gateway: { readonly address: string; readonly port: number };
    /** File with the credential of its own part of the primary cell, mode 0600; absent, or not there yet: it has none. */
    readonly credentialFile?: string;
  };
}
/**
 * Peer → address on the underlay. `<address>:<distribution port>` and `<address>:<distribution port>:<http port>` name
 * other ports than `ports`; without the last one, HTTPS is one port above.
 */
export interface PeerBook {
  readonly peers: Readonly<Record<string, string>>;
  /** By controller: the UID of its cell, which no later cell of that name has; absent: nobody has said. */
  readonly cells?: Readonly<Record<string, string>>;
  /** From when on which key is whose, of names that others had before (decision 58); absent: nobody has said. */
  readonly keys?: Readonly<Record<string, CurrentKey>>;
  /** The epochs of the key of hosts' datagrams (decision 58); absent: the first. */
  readonly gossip?: Ring;
}

/** See `ImageLimits` of `host/storage-agent/images/image-store.ts`; a limit that is not named has its default. */
export type ImageLimitName =
  | "uploadMiB"
  | "virtualMiB"
  | "outputMiB"
  | "cpuSeconds"
  | "wallSeconds"
  | "memoryMiB"
  | "processes";

/** Supervisor's unix socket, HTTP: what the gateway and `cells status` may ask. */
export interface SupervisorApi {
  /** GET /status → services with pid and restarts. POST /cells/<cell> → makes its controller, idempotent; DELETE /cells/<cell> → ends it once empty. GET /cells → names. */
  readonly paths: "GET /status" | "POST /cells/:cell" | "DELETE /cells/:cell" | "GET /cells";
}

/** `image/`'s record of an image, `manifest.json`. */
export interface ImageManifest {
  readonly name: string;
  /** SHA-256 over the inputs; names the cache entry. */
  readonly digest: string;
  /** qcow2, no backing file. */
  readonly disk: string;
  readonly sizeMiB: number;
  readonly boot: {
    readonly kernel: string;
    readonly initrd: string;
    readonly commandLine: string;
    /** SHA-256 (hexadecimal) of the two files; a host checks what it fetched against them. */
    readonly kernelSha256?: string;
    readonly initrdSha256?: string;
    /** The guest has QEMU's guest agent; absent: not known. */
    readonly agent?: true;
    /** Files `memory` and `state` beside the manifest; absent: none was saved. */
    readonly saved?: SavedState;
    /** Of each size two files, under the names of `savedPart`. */
    readonly savedSizes?: readonly SavedState[];
  } | null;
}
