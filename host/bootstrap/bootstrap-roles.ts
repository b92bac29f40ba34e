import { createHash, randomBytes } from "node:crypto";
import { cp, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { bootstrapRoles } from "../../core/bootstrap/bootstrap-model.ts";
import { macOf } from "../../core/controller/network/ipv4-range.ts";
import type { DesiredEnrolment, IdentityGrant } from "../../core/documents/identity.ts";
import { placeOf, servicePeer, serviceRoles } from "../../core/documents/service-roles.ts";
import { cellName, type Ipv4, ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { createAuthority } from "../../runtime/identity/certificates.ts";
import { network, type PeerBook, type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { makeDirectoryDurably } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { parsePeerAddress } from "../../runtime/transport/peers.ts";
import { birthStores } from "./bootstrap-restored.ts";

/** What the services of the birth leave behind for the VM: `<role>/…`, as the VM has it on its data volume. */
export const birthDirectory = ({ directory }: ProcessConfiguration): string => birthStores(directory);

const peersFileName = "peers.json";

type BirthRole = (typeof bootstrapRoles)[number];
const nameOf = (role: BirthRole): PeerName => servicePeer(role, role === "controller" ? "root" : undefined);

/** Of each role one, made once: a child that is started again finds what it enrolled with. */
interface Tokens {
  readonly endsAtMs: number;
  readonly tokens: Readonly<Record<string, string>>;
}
const tokenHours = 24;

/**
 * Configurations of the processes that make the first VM, in the order in which they start, with the files that they
 * begin with. `address`: that of the VM.
 */
export const birthConfigurations = async (
  configuration: ProcessConfiguration,
  address: Ipv4,
): Promise<readonly ProcessConfiguration[]> => {
  const { bootstrap, directory } = configuration;
  if (bootstrap === undefined) throw new Error("the configuration has no part `bootstrap`");
  const stores = birthDirectory(configuration);
  const authorityDirectory = join(stores, "authority", "authority");
  await mkdir(join(stores, "authority"), { recursive: true, mode: 0o700 });
  await createAuthority(bootstrap.authorityDirectory);
  await cp(bootstrap.authorityDirectory, authorityDirectory, { recursive: true });
  const fingerprint = fingerprintOfCertificate(await readFile(join(authorityDirectory, "authority.pem"), "utf8"));
  const known = await tokensOf(join(directory, "bootstrap", "tokens.json"));
  const configurations: ProcessConfiguration[] = [];
  for (const role of bootstrapRoles) {
    const own = join(stores, role);
    const identity = join(own, "identity");
    const runDirectory = join(configuration.runDirectory, "bootstrap", role);
    for (const path of [identity, runDirectory]) await makeDirectoryDurably(path, 0o700);
    const peersFile = join(own, peersFileName);
    await replaceFile(peersFile, JSON.stringify({ peers: firstPeers(configuration, address) }));
    const tokenFile = join(runDirectory, "token");
    await replaceFile(tokenFile, known.tokens[role] ?? "");
    configurations.push({
      name: nameOf(role),
      role,
      address,
      directory: own,
      runDirectory,
      peersFile,
      distributionPort: serviceRoles[role].distribution,
      httpPort: serviceRoles[role].http,
      certificate: {
        certFile: join(identity, "certificate.pem"),
        keyFile: join(identity, "key.pem"),
        caFile: join(identity, "authority.pem"),
      },
      ...(role === "authority"
        ? { authority: { enrolments: firstEnrolments(bootstrap, address, known) } }
        : { enrolment: { authority: `${address}:${ports.enrolment}`, fingerprint, tokenFile } }),
      ...(role === "controller"
        ? // Machines may join meanwhile, and it looks whether an address is free.
          { followPeers: true, controller: await rootController(bootstrap.credentialFile, address, fingerprint) }
        : {}),
    });
  }
  return configurations;
};

/**
 * `birth/<role>/<file>` → content, of all that the roles have written, as the VM has it. SQLite's index of its log is made
 * anew. Of where others are, a role has the authority alone and waits for its first book: the birth's Placer knew one host,
 * and one that began with that would take it for a quorum and put the next VMs there too.
 */
export const birthFiles = async (configuration: ProcessConfiguration): Promise<Readonly<Record<string, Buffer>>> => {
  const directory = birthDirectory(configuration);
  const files: Record<string, Buffer> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith("-shm") || entry.name.endsWith(".lock")) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(directory.length + 1);
    const content = await readFile(path);
    const follows = bootstrapRoles.some((role) => role !== "authority" && name === join(role, peersFileName));
    files[join("birth", name)] = follows ? authorityAlone(content) : content;
  }
  return files;
};

const authorityAlone = (book: Buffer): Buffer => {
  const { peers } = JSON.parse(book.toString("utf8")) as PeerBook;
  return Buffer.from(JSON.stringify({ peers: { authority: peers.authority } }));
};

const tokensOf = async (file: string): Promise<Tokens> => {
  const found = await readFile(file, "utf8").catch(() => null);
  if (found !== null) return JSON.parse(found) as Tokens;
  const tokens = Object.fromEntries(bootstrapRoles.map((role) => [role, randomBytes(32).toString("base64url")]));
  const made: Tokens = { endsAtMs: Date.now() + tokenHours * 3_600_000, tokens };
  await replaceFile(file, JSON.stringify(made));
  return made;
};

const rootController = async (credentialFile: string, address: Ipv4, fingerprint: string) => {
  const credential = (await readFile(credentialFile, "utf8")).trim();
  return {
    cell: "root",
    cellUid: "root",
    cellNumber: 1,
    domain: network.domain,
    mac: macOf(address),
    ...({ directory: true, cellManager: true } as const),
    credentialHashes: [hashCredential(credential)],
    root: { management: network.underlay, authority: { address, fingerprint } },
  };
};

/** The Placer of the birth knows this host alone: the first VM is to start where its stores are. */
const firstPeers = (configuration: ProcessConfiguration, address: Ipv4): Readonly<Record<string, string>> => {
  const others = Object.entries(configuration.bootstrap?.peers ?? {});
  return {
    ...Object.fromEntries(bootstrapRoles.map((role) => [nameOf(role), placeOf(role, address)])),
    ...Object.fromEntries(others.filter(([name]) => !name.startsWith("host.") || name === configuration.name)),
  };
};

/** What the authority of the birth knows before any controller can desire it: the roles' tokens, and who has joined. */
const firstEnrolments = (
  { peers, tokenHashes = {} }: NonNullable<ProcessConfiguration["bootstrap"]>,
  address: Ipv4,
  { endsAtMs, tokens }: Tokens,
): Readonly<Record<string, DesiredEnrolment>> => {
  const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");
  const desire = (hash: string, grants: readonly IdentityGrant[]): DesiredEnrolment => ({
    hash,
    cell: cellName("root"),
    grants,
    endsAtMs,
  });
  const roles = bootstrapRoles
    .filter((role) => role !== "authority")
    .map((role): [string, DesiredEnrolment] => {
      const grant = { name: nameOf(role), role, addresses: [address], ports: serviceRoles[role] };
      return [`birth-${role}`, desire(hashOf(tokens[role] ?? ""), [grant])];
    });
  const joined = Object.entries(peers).map(([name, entry]): [string, DesiredEnrolment] => {
    const found = parsePeerAddress(entry);
    if (!found.ok) throw new Error(`bootstrap.peers: ${found.error}`);
    const [role = ""] = name.split(".");
    const { host, distributionPort: distribution, httpPort: http } = found.value;
    const listens = entry.includes(":") ? { ports: { distribution, http } } : {};
    const grant = { name: peerName(name), role, addresses: [ipv4(host)], ...listens };
    // Without one they have certificates for good, and nobody knows the token.
    const hash = tokenHashes[name] ?? hashOf(randomBytes(32).toString("hex"));
    return [`joined-${name.replaceAll(".", "-")}`, desire(hash, [grant])];
  });
  return Object.fromEntries([...roles, ...joined]);
};
