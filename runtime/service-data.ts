import { type PeerName, peerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import { fail, ok, type Result } from "../model/result.ts";
import { type PeerBook, type ProcessConfiguration, ports } from "./installation.ts";
import { parsePeerAddress } from "./peers.ts";

/**
 * What a service VM is, from its `x.data` (SELF-HOSTING, One image). It reaches the guest on its seed volume, as
 * `data.json` beside the interfaces, and as a tree of files, from which the guest's first process takes the names of
 * the roles alone: the directories below `data/roles`. A role's process reads the rest, with this.
 *
 * The reader is strict: what it does not know is refused, since a misspelt name would otherwise be a service that runs as
 * something else than was meant.
 */
export interface ServiceData {
  /** Changes when an older image could not read it. */
  readonly format: 1;
  /** Certificate of the installation's authority, PEM. */
  readonly authority: string;
  /** Where the others are at the VM's start; entries as in `PeerBook`. */
  readonly peers: Readonly<Record<string, string>>;
  /** What this VM runs, at least one; each is a process and a user of its own. */
  readonly roles: Readonly<Partial<Record<ServiceRole, RoleData>>>;
}
export const serviceRoles = ["controller", "storage-manager", "address-manager", "dns-manager", "placer"] as const;
export type ServiceRole = (typeof serviceRoles)[number];

export interface RoleData {
  /** Name in its certificate and in everybody's peers. */
  readonly name: PeerName;
  readonly identity: ServiceIdentity;
  /** Own address, one of the VM's interfaces; absent: the first interface's. */
  readonly address?: string;
  /** In place of `ports`, and as the peers have them: roles of one VM share its addresses. */
  readonly distributionPort?: number;
  readonly httpPort?: number;
  /** Of a controller, and of nobody else. */
  readonly controller?: ControllerData;
}
/**
 * `enrolment`: a token that is good once, for which the service gets a certificate over a key that it made itself.
 * `issued`: the key itself. A model can be read back, so it belongs into no model: only who starts a VM without one (the
 * bootstrap's own VM, tests) gives it.
 */
export type ServiceIdentity =
  | { readonly kind: "enrolment"; readonly token: string; readonly issuer: PeerName }
  | { readonly kind: "issued"; readonly certificate: string; readonly key: string };

export type ControllerData = Omit<NonNullable<ProcessConfiguration["controller"]>, "mac">;

/** A network card, as the host says it on the seed volume. */
export interface ServiceInterface {
  readonly mac: string;
  readonly address: string;
}
export interface ServiceSeed {
  readonly data: ServiceData;
  readonly interfaces: readonly ServiceInterface[];
}

const longestText = 16_384;
const mostPeers = 10_000;

/** Reads `data.json` of a seed volume. The error is a sentence that names the place, e.g. `x.data:roles:placer`. */
export const readServiceSeed = (json: Json): Result<ServiceSeed, string> =>
  reading(() => {
    const seed = record(json, "data.json", null);
    const cards = seed.interfaces;
    if (!Array.isArray(cards) || cards.length === 0)
      throw new Fault("data.json:interfaces", "names no network card; a service VM needs at least one");
    const interfaces = cards.map((card, at) => {
      const where = `data.json:interfaces:${at}`;
      const { mac, address } = record(card as Json, where, null);
      return { mac: text(mac, `${where}:mac`), address: text(address, `${where}:address`) };
    });
    return { data: dataOf(seed.data ?? null), interfaces };
  });

/** Reads `x.data`. The error is a sentence that names the place, e.g. `x.data:roles:placer`. */
export const readServiceData = (json: Json): Result<ServiceData, string> => reading(() => dataOf(json));

const dataOf = (json: Json): ServiceData => {
  const { format, authority, peers, roles } = record(json, "x.data", ["format", "authority", "peers", "roles"]);
  if (format !== 1) throw new Fault("x.data:format", `is ${JSON.stringify(format)}; this image reads format 1`);
  const named = Object.entries(record(roles, "x.data:roles", serviceRoles));
  if (named.length === 0) throw new Fault("x.data:roles", `is empty; name at least one of ${serviceRoles.join(", ")}`);
  const read = Object.fromEntries(named.map(([role, value]) => [role, roleOf(role as ServiceRole, value)]));
  const names = Object.values(read).map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new Fault("x.data:roles", `gives two roles the name "${twice}"; each needs a name of its own`);
  const sockets = Object.values(read).flatMap(({ address = "", distributionPort, httpPort }) =>
    [distributionPort ?? ports.distribution, httpPort ?? ports.http].map((port) => `${address}:${port}`),
  );
  const shared = sockets.find((socket, at) => sockets.indexOf(socket) !== at);
  if (shared !== undefined)
    throw new Fault(
      "x.data:roles",
      `has two roles listen at ${shared.startsWith(":") ? `port ${shared.slice(1)}` : shared}; give each an address, or a distributionPort and an httpPort, of its own`,
    );
  return { format, authority: pem(authority, "x.data:authority", "CERTIFICATE"), peers: peersOf(peers), roles: read };
};

const peersOf = (json: Json | undefined): PeerBook["peers"] => {
  const entries = Object.entries(record(json, "x.data:peers", null));
  if (entries.length > mostPeers) throw new Fault("x.data:peers", `has more than ${mostPeers} entries`);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const where = `x.data:peers:${name}`;
      nameOf(name, where);
      const entry = text(value, where);
      const parsed = parsePeerAddress(entry);
      if (!parsed.ok) throw new Fault(where, parsed.error);
      return [name, entry];
    }),
  );
};

const roleOf = (role: ServiceRole, json: Json | undefined): RoleData => {
  const where = `x.data:roles:${role}`;
  const isController = role === "controller";
  const known = ["name", "identity", "address", "distributionPort", "httpPort"];
  const fields = record(json, where, [...known, ...(isController ? ["controller"] : [])]);
  const { name, identity, address, distributionPort, httpPort, controller } = fields;
  return {
    name: nameOf(name, `${where}:name`),
    identity: identityOf(identity, `${where}:identity`),
    ...(address === undefined ? {} : { address: text(address, `${where}:address`) }),
    ...(distributionPort === undefined
      ? {}
      : { distributionPort: port(distributionPort, `${where}:distributionPort`) }),
    ...(httpPort === undefined ? {} : { httpPort: port(httpPort, `${where}:httpPort`) }),
    ...(isController ? { controller: controllerOf(controller, `${where}:controller`) } : {}),
  };
};

const identityOf = (json: Json | undefined, where: string): ServiceIdentity => {
  const { kind } = record(json, where, null);
  if (kind === "enrolment") {
    const { token, issuer } = record(json, where, ["kind", "token", "issuer"]);
    return { kind, token: text(token, `${where}:token`), issuer: nameOf(issuer, `${where}:issuer`) };
  }
  if (kind !== "issued") throw new Fault(`${where}:kind`, 'says neither "enrolment" nor "issued"');
  const { certificate, key } = record(json, where, ["kind", "certificate", "key"]);
  return {
    kind,
    certificate: pem(certificate, `${where}:certificate`, "CERTIFICATE"),
    key: pem(key, `${where}:key`, "PRIVATE KEY"),
  };
};

const controllerOf = (json: Json | undefined, where: string): ControllerData => {
  const { cell, cellUid, cellNumber, domain, credentialHashes } = record(json, where, [
    ...["cell", "cellUid", "cellNumber", "domain", "credentialHashes"],
  ]);
  if (typeof cellNumber !== "number" || !Number.isInteger(cellNumber) || cellNumber < 1)
    throw new Fault(`${where}:cellNumber`, "is no whole number from 1 upward");
  if (!Array.isArray(credentialHashes)) throw new Fault(`${where}:credentialHashes`, "is no vector");
  const hashes = credentialHashes.map((hash, at) => {
    const value = text(hash as Json, `${where}:credentialHashes:${at}`);
    if (!/^[0-9a-f]{64}$/.test(value))
      throw new Fault(`${where}:credentialHashes:${at}`, "is no SHA-256 in 64 hexadecimal digits");
    return value;
  });
  return {
    cell: text(cell, `${where}:cell`),
    cellUid: text(cellUid, `${where}:cellUid`),
    cellNumber,
    domain: text(domain, `${where}:domain`),
    credentialHashes: hashes,
  };
};

/** Where a role's process finds and leaves its files. */
export interface RolePlaces {
  /** On the data volume. */
  readonly directory: string;
  /** Gone with the VM. */
  readonly runDirectory: string;
  readonly certificate: ProcessConfiguration["certificate"];
  readonly peersFile: string;
}

/** What the role's process is to be told, as any process of an installation is. The error is a sentence. */
export const configureRole = (
  { data, interfaces }: ServiceSeed,
  role: string,
  places: RolePlaces,
): Result<ProcessConfiguration, string> => {
  const found = serviceRoles.find((known) => known === role);
  const wanted = found === undefined ? undefined : data.roles[found];
  if (found === undefined || wanted === undefined)
    return fail(`x.data:roles does not name "${role}"; it names ${Object.keys(data.roles).join(", ")}`);
  const card =
    wanted.address === undefined ? interfaces[0] : interfaces.find(({ address }) => address === wanted.address);
  if (card === undefined)
    return fail(
      `x.data:roles:${role}:address is ${wanted.address}, which none of this VM's interfaces has; they have ` +
        interfaces.map(({ address }) => address).join(", "),
    );
  return ok({
    name: wanted.name,
    role: found,
    address: card.address,
    ...places,
    ...(wanted.distributionPort === undefined ? {} : { distributionPort: wanted.distributionPort }),
    ...(wanted.httpPort === undefined ? {} : { httpPort: wanted.httpPort }),
    ...(wanted.controller === undefined ? {} : { controller: { ...wanted.controller, mac: card.mac } }),
  });
};

class Fault extends Error {
  constructor(where: string, what: string) {
    super(`${where} ${what}`);
  }
}

const reading = <T>(read: () => T): Result<T, string> => {
  try {
    return ok(read());
  } catch (error) {
    if (error instanceof Fault) return fail(error.message);
    throw error;
  }
};

/** @param known names that may be there; null: any */
const record = (
  json: Json | undefined,
  where: string,
  known: readonly string[] | null,
): Readonly<Record<string, Json | undefined>> => {
  if (json === undefined) throw new Fault(where, "is missing");
  if (json === null || typeof json !== "object" || Array.isArray(json)) throw new Fault(where, "is no component");
  const stranger = known === null ? undefined : Object.keys(json).find((name) => !known.includes(name));
  if (stranger !== undefined)
    throw new Fault(where, `has "${stranger}", which is not known there; known are ${known?.join(", ")}`);
  return json as Readonly<Record<string, Json | undefined>>;
};

const text = (json: Json | undefined, where: string): string => {
  if (json === undefined) throw new Fault(where, "is missing");
  if (typeof json !== "string" || json === "") throw new Fault(where, "is no text");
  if (json.length > longestText) throw new Fault(where, `is longer than ${longestText} characters`);
  return json;
};

const port = (json: Json, where: string): number => {
  if (typeof json !== "number" || !Number.isInteger(json) || json < 1 || json > 65_535)
    throw new Fault(where, "is no port, a whole number from 1 to 65535");
  return json;
};

const nameOf = (json: Json | undefined, where: string): PeerName => {
  const name = text(json, where);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name))
    throw new Fault(where, 'is no name of a peer: at most 64 letters, digits, ".", "_" and "-"');
  return peerName(name);
};

/** Secrets are in no error: only their form is looked at. */
const pem = (json: Json | undefined, where: string, label: string): string => {
  const value = text(json, where);
  if (!value.trimStart().startsWith(`-----BEGIN ${label}-----`))
    throw new Fault(where, `does not begin with "-----BEGIN ${label}-----"`);
  return value;
};
