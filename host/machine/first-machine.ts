import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { bootstrapModel, firstPlaces, gatewayAddress } from "../../core/bootstrap/bootstrap-model.ts";
import { serviceRoles } from "../../core/documents/service-roles.ts";
import type { Bundle } from "../../model/cell/cell.ts";
import { createAuthority, gossipKeyOf, readAuthority, signCertificate } from "../../runtime/identity/certificates.ts";
import { hashOfToken, newToken, ownKey } from "../../runtime/identity/own/keys.ts";
import { agentPorts, type ProcessConfiguration, ports } from "../../runtime/installation.ts";
import { makeDirectoryDurably, renameDurably, synchronize } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { readBundle, readRoot } from "../bootstrap/bootstrap.ts";
import { readRestoredBirth } from "../bootstrap/bootstrap-restored.ts";
import { agentConfiguration, hostConfiguration, type Machine, places } from "./configuration.ts";
import { examine, requireUnderlay } from "./examine.ts";
import { type JoinOptions, machineOf, prepare, requireUnused, startMachine, writeConfigurations } from "./join.ts";
import { type MachineRestore, restoreMachine } from "./restore.ts";
import { type Returning, readReturning } from "./returning.ts";

/**
 * Makes the first machine of an installation (decision 32): there is no authority yet that could let it in. So its
 * certificates are signed here, of keys made here, and are due for renewal at once: as soon as the authority of the birth
 * runs, the machine enrols there with tokens of its own like every other.
 *
 * Whatever was made is found again by the next try: it may be interrupted anywhere.
 */
export interface BootstrapMachineOptions extends JoinOptions {
  readonly name: string;
  readonly address: string | undefined;
  readonly storage: string;
  /** The root cell, a file. */
  readonly specification: string;
  /** Null: a new installation. */
  readonly restore: MachineRestore | null;
}
export interface Bootstrapped {
  readonly url: string;
  readonly credential: string;
  /** Certificate of the installation's authority, PEM. */
  readonly authority: string;
  /** Of the Host Manager: what `progressFile` takes. */
  readonly directory: string;
  /** Machines of a backup that are let in with the tokens in these files. */
  readonly returning: readonly Returning[];
}

const authorityDirectory = join(places.state, "authority");
const credentialFile = join(places.configuration, "operator.credential");
const rootDirectory = join(places.configuration, "root");
const hour = 3_600_000;

/** Puts everything into place and starts it; the birth then goes on by itself. Rejects with a sentence. */
export const bootstrapMachine = async (options: BootstrapMachineOptions): Promise<Bootstrapped> => {
  const { say, name, storage, images } = options;
  await requireUnused(name);
  const examined = await examine(options.interface, options.address);
  for (const warning of examined.warnings) say(`note: ${warning}`);
  const { file: rootFile, bundle, isThere } = await chooseRoot(options.specification);
  const root = readRoot(bundle);
  const model = bootstrapModel(root);
  if (!model.ok) throw new Error(`${rootFile}: ${model.error}`);
  const core = model.value.address;
  requireUnderlay(examined);
  if (examined.address === core)
    throw new Error(`${core} is the address of the root controller's VM: give this machine another`);
  const gateway = gatewayAddress(root);
  if (gateway === undefined)
    throw new Error(
      `${rootFile}: no CellController has x.gateway, and no VM with a fixed address carries the gateway: nobody could reach the cloud`,
    );

  await makeDirectoryDurably(places.configuration, 0o755);
  await makeDirectoryDurably(places.state, 0o755);
  if (options.restore !== null)
    await restoreMachine(options.restore, { name, wanted: { ...model.value, gateway }, authorityDirectory, say });
  if (isThere) say(`the root cell is what ${rootFile} says`);
  else await placeRoot(bundle, rootFile, say);
  await createAuthority(authorityDirectory);
  const authority = await readFile(join(authorityDirectory, "authority.pem"), "utf8");
  const credential = await keptOr(credentialFile, () => randomBytes(32).toString("base64url"));
  const machine: Machine = { ...machineOf(examined, options), name, storage, images };
  const known = { authority: `${core}:${ports.enrolment}`, fingerprint: fingerprintOfCertificate(authority) };
  const host = hostConfiguration(machine, known);
  const agent = agentConfiguration(machine, known);
  const peers = firstPlaces(core);
  const returning = (await readRestoredBirth(host.directory)) === null ? [] : await readReturning();
  const everybody: Record<string, string> = Object.assign({}, ...returning.map((each) => each.peers));
  const tokenHashes: Record<string, string> = Object.assign({}, ...returning.map((each) => each.tokenHashes));
  for (const each of [host, agent]) {
    if (each === null) continue;
    await prepare(each, peers);
    const tokenFile = await certifyFirst(each);
    everybody[each.name] = entryOf(each);
    tokenHashes[each.name] = hashOfToken((await readFile(tokenFile, "utf8")).trim()) ?? "";
  }
  const gossipKey = host.presence?.gossipKeyFile ?? "";
  if (!existsSync(gossipKey)) await replaceFile(gossipKey, `${await gossipKeyOf(authorityDirectory)}\n`);
  const bootstrap = { specificationFile: rootFile, authorityDirectory, credentialFile, peers: everybody, tokenHashes };
  await writeConfigurations({ ...withToken(host), bootstrap }, agent === null ? null : withToken(agent));
  say(`the installation's authority is made, in ${authorityDirectory}`);
  await startMachine(host, options);
  const url = `https://${gateway}:${serviceRoles.gateway.http}`;
  return { url, credential, authority, directory: host.directory, returning };
};

/** The root cell as it was chosen first; what is in place already counts. */
const chooseRoot = async (
  specification: string,
): Promise<{ readonly file: string; readonly bundle: Bundle; readonly isThere: boolean }> => {
  const file = join(rootDirectory, basename(specification));
  if (existsSync(file)) return { file, bundle: await readBundle(file), isThere: true };
  if (existsSync(rootDirectory))
    throw new Error(
      `${rootDirectory} has a root cell already, and no ${basename(file)}: go on with that, or remove the directory where no cloud has begun yet`,
    );
  const bundle = await readBundle(specification).catch((error: Error) => {
    throw new Error(`the root cell's specification cannot be read: ${error.message}`);
  });
  return { file, bundle, isThere: false };
};

const placeRoot = async (bundle: Bundle, file: string, say: (line: string) => void): Promise<void> => {
  const draft = `${rootDirectory}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(bundle.files)) await writeFile(join(draft, name), text, { flush: true });
  await synchronize(draft);
  await renameDurably(draft, rootDirectory);
  say(`the root cell is copied to ${file}`);
};

const entryOf = ({ role, address }: ProcessConfiguration): string =>
  role === "agent" ? `${address}:${agentPorts.distribution}:${agentPorts.http}` : address;

const tokenFileOf = ({ certificate }: ProcessConfiguration): string => `${certificate.keyFile}.token`;
const withToken = (configuration: ProcessConfiguration): ProcessConfiguration =>
  configuration.enrolment === undefined
    ? configuration
    : { ...configuration, enrolment: { ...configuration.enrolment, tokenFile: tokenFileOf(configuration) } };

/** A secret in a file, made when it is not there. */
const keptOr = async (file: string, make: () => string): Promise<string> => {
  if (!existsSync(file)) await replaceFile(file, `${make()}\n`);
  return (await readFile(file, "utf8")).trim();
};

/** Its first certificate, of which two thirds are over; and the token with which it gets the next. Returns its file. */
const certifyFirst = async (configuration: ProcessConfiguration): Promise<string> => {
  const { certificate, name, address, role } = configuration;
  const { keys } = await ownKey(certificate.keyFile);
  if (!existsSync(certificate.certFile)) {
    const signing = await readAuthority(authorityDirectory);
    if (signing === null) throw new Error(`${authorityDirectory} holds no authority`);
    const dates = { notBefore: new Date(Date.now() - 49 * hour), notAfter: new Date(Date.now() + 23 * hour) };
    const content = { name, publicKey: keys.publicKey, addresses: [address], cell: "root", role, ...dates };
    await replaceFile(certificate.caFile, await readFile(join(authorityDirectory, "authority.pem"), "utf8"));
    await replaceFile(certificate.certFile, await signCertificate(signing, content));
  }
  const file = tokenFileOf(configuration);
  await keptOr(file, () => newToken().token);
  return file;
};
