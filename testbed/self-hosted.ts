import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { bootstrapModel, firstPlaces, gatewayAddress } from "../core/bootstrap/bootstrap-model.ts";
import { type ServiceRole, serviceRoles } from "../core/documents/service-roles.ts";
import { type BootstrapProgress, progressFile, readBundle, readRoot } from "../host/bootstrap/bootstrap.ts";
import { peerName } from "../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { expectPeer } from "../runtime/transport/mutual-tls.ts";
import { listenDescriptor, memberFiles } from "./configuration.ts";
import { readJson, writeAtomically, writeJson } from "./files.ts";
import { memberDirectory, type Places } from "./places.ts";
import type { Door } from "./record.ts";
import { hostMember, type Member } from "./supervisor/members.ts";

/**
 * A testbed whose management runs in VMs of its own root cell: hosts and storage servers are members as always, and the
 * first host brings everything else into being (host/bootstrap/bootstrap.ts).
 */
export const profiles = ["small", "large"] as const;
export type Profile = (typeof profiles)[number];

export const bootstrapHost = hostMember(1);

/** Kept with the testbed, with what it includes: `cells apply` of it, changed, changes the cloud. */
export const rootSpecification = (at: Places, profile: Profile): string => join(at.shared, "root", `${profile}.sf`);

const credentialFile = (at: Places): string => join(memberDirectory(at, bootstrapHost.name), "operator.credential");
const authorityOf = (at: Places): string => join(memberDirectory(at, bootstrapHost.name), "authority");

/** The operator's, of a birth that was begun. */
export const birthCredential = (at: Places): string | undefined => {
  const file = credentialFile(at);
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
};

/** What the birth needs and `up` alone has: the specification as it was chosen, and the operator's credential. */
export const prepareBirth = (
  at: Places,
  profile: Profile,
  credential: string,
  { doors, apart }: { readonly doors: readonly Door[]; readonly apart: boolean },
): void => {
  mkdirSync(memberDirectory(at, bootstrapHost.name), { recursive: true });
  const from = fileURLToPath(new URL("../examples/root", import.meta.url));
  if (!existsSync(rootSpecification(at, profile)))
    cpSync(from, dirname(rootSpecification(at, profile)), { recursive: true });
  const directory = dirname(rootSpecification(at, profile));
  if (doors.length > 0 && apart) openApart(directory);
  else if (doors.length > 0) openDoors(join(directory, "service.sf"), doors);
  writeAtomically(credentialFile(at), `${credential}\n`, 0o600);
};

/** The gateway's VM carries personalities as well, which that file names in comments. */
const openDoors = (file: string, doors: readonly Door[]): void => {
  let text = readFileSync(file, "utf8");
  for (const door of doors) text = text.replace(new RegExp(`// (personality\\.${door} extends \\{ \\})`), "$1");
  text = text.replace(/memory 176; +\/\/.*\n/, "memory 256;\n    cpus 2;\n");
  writeAtomically(file, text, 0o644);
};

/** Personalities are in VMs of their own, as both files have it for one word. */
const openApart = (directory: string): void => {
  for (const name of ["service.sf", "primary.sf"]) {
    const file = join(directory, name);
    writeAtomically(
      file,
      readFileSync(file, "utf8").replace("extends Cell, Primary {", "extends Cell, PrimaryApart {"),
      0o644,
    );
  }
};

/** The part of the bootstrap host's configuration. Its copy of the authority is what the installation goes on with. */
export const bootstrapPart = (
  at: Places,
  profile: Profile,
  peers: Readonly<Record<string, string>>,
): NonNullable<ProcessConfiguration["bootstrap"]> => {
  const authorityDirectory = authorityOf(at);
  mkdirSync(authorityDirectory, { recursive: true, mode: 0o700 });
  for (const file of ["authority.key.pem", "authority.pem"])
    copyFileSync(join(at.authority, file), join(authorityDirectory, file));
  const specificationFile = rootSpecification(at, profile);
  return { specificationFile, authorityDirectory, credentialFile: credentialFile(at), peers };
};

/** What a member knows at first of where the others are; it follows the authority from then on. */
export const firstPeers = async (
  at: Places,
  profile: Profile,
  members: readonly Member[],
): Promise<Readonly<Record<string, string>>> => {
  const model = bootstrapModel(readRoot(await readBundle(rootSpecification(at, profile))));
  if (!model.ok) throw new Error(`${rootSpecification(at, profile)}: ${model.error}`);
  return {
    ...Object.fromEntries(members.map((member) => [member.peer, member.address])),
    ...firstPlaces(model.value.address),
  };
};

/** Its own, since it writes down what it learns. */
export const ownPeersFile = (at: Places, member: Member): string => join(memberFiles(at, member).data, "peers.json");
export const writeFirstPeers = (at: Places, member: Member, peers: Readonly<Record<string, string>>): void => {
  if (!existsSync(ownPeersFile(at, member))) writeJson(ownPeersFile(at, member), { peers }, 0o600);
};

/** How far the birth is; undefined before it has begun. */
export const bootstrapProgress = (at: Places): BootstrapProgress | undefined =>
  readJson<BootstrapProgress>(progressFile(memberFiles(at, bootstrapHost).data));

/**
 * Passes connections from the machine's loopback on to the gateway's VM, over TLS: the supervisor is the only one who is in
 * both networks. What it cannot reach it ends, and the client sees a closed connection.
 *
 * @param role the gateway, or a personality, which is at the same address wherever it stands
 * @param descriptor of the listening socket
 */
export const relayToGateway = async (
  at: Places,
  profile: Profile,
  role: ServiceRole = "gateway",
  descriptor = listenDescriptor,
): Promise<Server> => {
  const host = gatewayAddress(readRoot(await readBundle(rootSpecification(at, profile))));
  const server = createServer((client) => {
    client.on("error", () => client.destroy());
    if (host === undefined) {
      client.destroy();
      return;
    }
    const gateway = connect({
      host,
      port: serviceRoles[role].http,
      ca: readFileSync(join(at.authority, "authority.pem")),
      checkServerIdentity: expectPeer(peerName(role)),
      timeout: 10_000,
    });
    gateway.once("secureConnect", () => gateway.setTimeout(0));
    gateway.once("timeout", () => gateway.destroy());
    gateway.on("error", () => client.destroy());
    gateway.once("close", () => client.destroy());
    client.once("close", () => gateway.destroy());
    client.pipe(gateway).pipe(client);
  });
  server.listen({ fd: descriptor });
  return server;
};
