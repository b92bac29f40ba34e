import {
  isPersonality,
  isServiceRole,
  placeOf,
  type ServiceRole,
  serviceRoles,
} from "../../core/documents/service-roles.ts";
import { isPinnable } from "../../core/identity/presented.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { isMode, type Mode, modes } from "../../model/cell/network/modes.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { network, type ProcessConfiguration, ports } from "../installation.ts";

/**
 * What a service VM is, from `DesiredVm.data` (`core/controller/services/service-data.ts` writes it, decision 31):
 *
 *   { format: 2, authority: { address, fingerprint }, domain,
 *     roles: { "<role>": { name, token, controller?: {…}, gateway?: {…} } } }
 *
 * It reaches the guest on its seed volume as a tree of files (`data/roles/placer/name`), of which the guest's first process
 * gives each role what concerns it and nothing more: a token is its own role's secret. Of one role, the files are
 *
 *   interfaces               MAC ADDRESS … a line for each network card
 *   data/format  data/domain  data/authority/address  data/authority/fingerprint
 *   role/name  role/token  role/controller/cell  …
 *
 * The reader is strict: what it does not know is refused, since a misspelt name would otherwise be a service that runs as
 * something else than was meant.
 */
export interface ServiceSeed {
  readonly authority: { readonly address: string; readonly fingerprint: string };
  readonly domain: string;
  readonly interfaces: readonly ServiceInterface[];
  readonly role: ServiceRole;
  /** Name in its certificate and in everybody's peers. */
  readonly name: PeerName;
  /** Whether a token is there; what it says is for the enrolment alone. */
  readonly hasToken: boolean;
  /** Of a controller, and of nobody else. */
  readonly controller?: ControlledCell;
  /** Of a gateway, and of nobody else. */
  readonly gateway?: {
    readonly credentialHashes: readonly string[];
    /** With doors in VMs of their own: its address where they reach it, and theirs by role. */
    readonly inside?: string;
    readonly doors?: Readonly<Record<string, string>>;
  };
  /** Of the service `tenancy`, and of nobody else. */
  readonly tenancy?: { readonly credentialHashes: readonly string[] };
  /** Of a personality that keeps a part of its cell: the credential of that is there. What it says is for its requests alone. */
  readonly hasCredential?: true;
  /** Of a personality in a VM of its own: where the gateway serves it. */
  readonly gatewayAt?: string;
}
export interface ControlledCell {
  readonly cell: string;
  readonly cellUid: string;
  readonly cellNumber: number;
  readonly domain: string;
  readonly credentialHashes: readonly string[];
  /** Numbers of those of several that decide for it; absent: the first ones. */
  readonly placer?: number;
  readonly storageManager?: number;
  readonly haManager?: number;
  /** Absent: Diverter. */
  readonly networkMode?: Mode;
  /** It is the root cell's. */
  readonly root?: true;
}
/** A network card, as the host says it on the seed volume. */
export interface ServiceInterface {
  readonly mac: string;
  readonly address: string;
}

/** Changes when an older image could not read it. */
const format = "2";
const longestText = 16_384;
/** Files of the page in the service image. */
export const pageInImage = "/usr/lib/cells/page";
/** Where in the seed a role's token is. */
export const tokenPath = "role/token";
/** And a personality's credential of its part of the primary cell. */
const credentialPath = "role/personality/credential";

/** Reads the files of one role's seed, by their paths. The error is a sentence that names the file. */
export const readServiceSeed = (files: ReadonlyMap<string, string>, role: string): Result<ServiceSeed, string> => {
  try {
    return ok(seedOf(files, role));
  } catch (error) {
    if (error instanceof Fault) return fail(error.message);
    throw error;
  }
};

const seedOf = (files: ReadonlyMap<string, string>, role: string): ServiceSeed => {
  const read = new SeedReader(files);
  if (!isServiceRole(role))
    throw new Fault(
      "data/roles",
      `names "${role}", which is no role; the roles are ${Object.keys(serviceRoles).join(", ")}`,
    );
  const written = read.line("data/format");
  if (written !== format) throw new Fault("data/format", `is "${written}"; this image reads format ${format}`);
  const seed: ServiceSeed = {
    authority: {
      address: read.matching("data/authority/address", addressPattern, "an IPv4 address"),
      fingerprint: read.matching("data/authority/fingerprint", hashPattern, "a SHA-256 in 64 hexadecimal digits"),
    },
    domain: read.line("data/domain"),
    interfaces: read.interfaces(),
    role,
    name: peerName(read.matching("role/name", namePattern, "a name of a peer")),
    hasToken: role !== "authority" && read.matching(tokenPath, tokenPattern, "a token") !== "",
    ...(role === "controller" ? { controller: controlled(read) } : {}),
    ...(role === "gateway" ? { gateway: gatewayOf(read) } : {}),
    ...(isPersonality(role) ? personalityOf(read) : {}),
    ...(role === "tenancy" ? { tenancy: { credentialHashes: read.hashes("role/tenancy/credentialHashes") } } : {}),
  };
  read.end();
  return seed;
};

const gatewayOf = (read: SeedReader): NonNullable<ServiceSeed["gateway"]> => {
  const credentialHashes = read.hashes("role/gateway/credentialHashes");
  if (read.optional("role/gateway/inside") === null) return { credentialHashes };
  const address = (path: string): string => read.matching(path, addressPattern, "an IPv4 address");
  const doors = Object.keys(serviceRoles).flatMap((door) => {
    const path = `role/gateway/doors/${door}`;
    return isPersonality(door) && read.optional(path) !== null ? [[door, address(path)]] : [];
  });
  return { credentialHashes, inside: address("role/gateway/inside"), doors: Object.fromEntries(doors) };
};

const personalityOf = (read: SeedReader): Pick<ServiceSeed, "hasCredential" | "gatewayAt"> => {
  const path = "role/personality/gateway";
  return {
    ...(read.optional(credentialPath) === null ? {} : { hasCredential: true as const }),
    ...(read.optional(path) === null ? {} : { gatewayAt: read.matching(path, addressPattern, "an IPv4 address") }),
  };
};

const addressPattern = /^\d{1,3}(\.\d{1,3}){3}$/;
const hashPattern = /^[0-9a-f]{64}$/;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const tokenPattern = /^[A-Za-z0-9_-]{43}$/;
const numberPattern = /^[1-9][0-9]{0,8}$/;

const controlled = (read: SeedReader): ControlledCell => {
  const isRoot = read.optional("role/controller/root");
  if (isRoot !== null && isRoot !== "true") throw new Fault("role/controller/root", 'is not "true"');
  return {
    cell: read.line("role/controller/cell"),
    cellUid: read.line("role/controller/cellUid"),
    cellNumber: Number(read.matching("role/controller/cellNumber", numberPattern, "a whole number from 1 upward")),
    domain: read.line("role/controller/domain"),
    credentialHashes: read.hashes("role/controller/credentialHashes"),
    ...read.bound("placer"),
    ...read.bound("storageManager"),
    ...read.bound("haManager"),
    ...read.mode(),
    ...(isRoot === null ? {} : { root: true }),
  };
};

class Fault extends Error {
  constructor(where: string, what: string) {
    super(`the seed volume's ${where} ${what}`);
  }
}

/** Values are in no error where they may be secret: only their form is looked at. */
class SeedReader {
  readonly #files: ReadonlyMap<string, string>;
  readonly #taken = new Set<string>();

  constructor(files: ReadonlyMap<string, string>) {
    this.#files = files;
  }

  /** Null: there is no such file. */
  optional(path: string): string | null {
    this.#taken.add(path);
    const text = this.#files.get(path);
    if (text === undefined) return null;
    if (text.length > longestText) throw new Fault(path, `is longer than ${longestText} characters`);
    return text.replace(/\n$/, "");
  }
  line(path: string): string {
    const text = this.optional(path);
    if (text === null) throw new Fault(path, "is missing");
    if (text === "" || text.includes("\n")) throw new Fault(path, "is not one line");
    return text;
  }
  matching(path: string, pattern: RegExp, what: string): string {
    const text = this.line(path);
    if (!pattern.test(text)) throw new Fault(path, `is not ${what}`);
    return text;
  }
  /** Of a controller, if it is there. */
  bound(name: "placer" | "storageManager" | "haManager"): Partial<Record<typeof name, number>> {
    const path = `role/controller/${name}`;
    if (this.optional(path) === null) return {};
    return { [name]: Number(this.matching(path, numberPattern, "a whole number from 1 upward")) };
  }
  mode(): { readonly networkMode?: Mode } {
    const path = "role/controller/networkMode";
    const text = this.optional(path);
    if (text === null) return {};
    if (!isMode(text)) throw new Fault(path, `is none of ${modes.join(", ")}`);
    return { networkMode: text };
  }
  hashes(path: string): readonly string[] {
    const text = this.optional(path);
    if (text === null) throw new Fault(path, "is missing");
    const hashes = text === "" ? [] : text.split("\n");
    if (!hashes.every((hash) => hashPattern.test(hash)))
      throw new Fault(path, "holds something else than a SHA-256 in 64 hexadecimal digits on each line");
    return hashes;
  }
  interfaces(): readonly ServiceInterface[] {
    const lines = (this.optional("interfaces") ?? "").split("\n").filter((line) => line !== "");
    if (lines.length === 0) throw new Fault("interfaces", "names no network card; a service VM needs at least one");
    return lines.map((line) => {
      const [mac = "", address = ""] = line.split(" ");
      if (!addressPattern.test(address)) throw new Fault("interfaces", `has a line without an address: "${line}"`);
      return { mac, address };
    });
  }
  /** Whatever was not read is not known. */
  end(): void {
    const stranger = [...this.#files.keys()].find((path) => !this.#taken.has(path));
    if (stranger !== undefined)
      throw new Fault(stranger, "is not known there; the image may be older than what wrote it");
  }
}

/** Where a role's process finds and leaves its files. */
export interface RolePlaces {
  /** On the data volume: its store, its key and certificates, whom it knows. */
  readonly directory: string;
  /** Gone with the VM. */
  readonly runDirectory: string;
  /** Of the seed's files. */
  readonly seedDirectory: string;
}

/** What the role's process is to be told, as any process of an installation is. */
export const configureRole = (seed: ServiceSeed, places: RolePlaces): ProcessConfiguration => {
  const { role, name, authority, controller, gateway, tenancy, interfaces } = seed;
  const { directory, runDirectory, seedDirectory } = places;
  const inside = gateway?.inside;
  // A gateway with doors apart has two, and is at the other one for everybody else.
  const card = interfaces.find(({ address }) => address !== inside) ?? { mac: "", address: "" };
  const { distribution, http } = serviceRoles[role];
  const identity = `${directory}/identity`;
  return {
    name,
    role,
    address: card.address,
    directory,
    runDirectory,
    certificate: {
      certFile: `${identity}/certificate.pem`,
      keyFile: `${identity}/key.pem`,
      caFile: `${identity}/authority.pem`,
    },
    peersFile: `${directory}/peers.json`,
    // It asks the gateway beside it, and where anybody else is nobody tells it.
    ...(isPersonality(role) ? {} : { followPeers: true as const }),
    ...(isPinnable(name) ? { pinsFile: `${directory}/pins.json` } : {}),
    distributionPort: distribution,
    httpPort: http,
    ...(role === "authority"
      ? { authority: { enrolmentPort: ports.enrolment } }
      : {
          enrolment: {
            authority: `${authority.address}:${ports.enrolment}`,
            fingerprint: authority.fingerprint,
            ...(seed.hasToken ? { tokenFile: `${seedDirectory}/${tokenPath}` } : {}),
          },
        }),
    ...(controller === undefined ? {} : { controller: controllerOf(seed, controller, card.mac) }),
    ...(tenancy === undefined ? {} : { tenancy }),
    ...(isPersonality(role)
      ? {
          personality: {
            listen: { address: card.address, port: http },
            gateway: { address: seed.gatewayAt ?? card.address, port: serviceRoles.gateway.http },
            ...(seed.hasCredential === true ? { credentialFile: `${seedDirectory}/${credentialPath}` } : {}),
          },
        }
      : {}),
    ...(gateway === undefined
      ? {}
      : {
          gateway: {
            credentialHashes: gateway.credentialHashes,
            page: pageInImage,
            listen: { address: card.address, port: http },
            ...(inside === undefined
              ? {}
              : {
                  inside: { address: inside, port: http },
                  passes: passesOf(card.address, { inside, doors: gateway.doors ?? {} }, authority.address),
                }),
          },
        }),
  };
};

/** It takes 32 connections of one address from who has shown no certificate yet: the gateway asks it from the same one for its own. */
const placesAtAuthority = 8;
/** From outside to each door's own port, and from the doors to where certificates are issued. */
const passesOf = (
  outside: string,
  { inside, doors }: { readonly inside: string; readonly doors: Readonly<Record<string, string>> },
  authority: string,
): NonNullable<NonNullable<ProcessConfiguration["gateway"]>["passes"]> => [
  { at: `${inside}:${ports.enrolment}`, to: `${authority}:${ports.enrolment}`, places: placesAtAuthority },
  ...Object.entries(doors).flatMap(([door, address]) => {
    if (!isServiceRole(door)) return [];
    const { http } = serviceRoles[door];
    return [{ at: `${outside}:${http}`, to: `${address}:${http}` }];
  }),
];

const controllerOf = (
  { authority }: ServiceSeed,
  { root, ...cell }: ControlledCell,
  mac: string,
): NonNullable<ProcessConfiguration["controller"]> => ({
  ...cell,
  mac,
  directory: true,
  cellManager: true,
  ...(root === undefined ? {} : { root: { management: network.underlay, authority } }),
});

/** Whom a role that knows nobody asks where the others are. */
export const firstPeers = ({ authority }: ServiceSeed): string =>
  JSON.stringify({ peers: { authority: placeOf("authority", authority.address) } });
