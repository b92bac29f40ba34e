import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { DesiredEnrolment } from "../../core/documents/identity.ts";
import { type ServiceRole, serviceRoles } from "../../core/documents/service-roles.ts";
import { cellName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createAuthority } from "../../runtime/identity/certificates.ts";
import { newToken } from "../../runtime/identity/own/keys.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";

/** Of the VM, and of the namespace that it is in. */
export const guestAddress = "10.0.0.13";
export const hostAddress = "10.0.1.1";

/**
 * An authority for one service VM, as files: the configuration of a process that enrols some roles, each with a token of
 * its own, and what the VM is to be told. For tests and measuring.
 */
export interface ServiceAuthority {
  /** Its own, which holds all that it knows. */
  readonly directory: string;
  readonly configurationFile: string;
  readonly caFile: string;
  /** `DesiredVm.data` of a VM with these roles; `at`: where it enrols. */
  data(roles: Readonly<Partial<Record<ServiceRole, object>>>, at?: string): Json;
}

export const createServiceAuthority = async (
  directory: string,
  names: Readonly<Partial<Record<ServiceRole, string>>>,
): Promise<ServiceAuthority> => {
  mkdirSync(join(directory, "identity"), { recursive: true, mode: 0o700 });
  const { caFile } = await createAuthority(join(directory, "authority"));
  const tokens = new Map(Object.keys(names).map((role) => [role, newToken()]));
  const desire = (role: ServiceRole, name: string): DesiredEnrolment => ({
    hash: tokens.get(role)?.hash ?? "",
    cell: cellName("root"),
    endsAtMs: Date.now() + 86_400_000,
    grants: [{ name: peerName(name), role, addresses: [guestAddress], ports: serviceRoles[role] }],
  });
  const enrolments = Object.fromEntries(
    Object.entries(names).map(([role, name], at) => [`vm-${at}`, desire(role as ServiceRole, name)]),
  );
  const identity = (name: string): string => join(directory, "identity", name);
  const peersFile = `${directory}.peers.json`;
  writeFileSync(peersFile, '{"peers": {}}');
  const configuration: ProcessConfiguration = {
    name: peerName("authority"),
    role: "authority",
    address: hostAddress,
    directory,
    runDirectory: directory,
    peersFile,
    certificate: {
      certFile: identity("certificate.pem"),
      keyFile: identity("key.pem"),
      caFile: identity("authority.pem"),
    },
    distributionPort: serviceRoles.authority.distribution,
    httpPort: serviceRoles.authority.http,
    authority: { enrolments },
  };
  const configurationFile = `${directory}.json`;
  writeFileSync(configurationFile, JSON.stringify(configuration));
  const fingerprint = fingerprintOfCertificate(readFileSync(caFile, "utf8"));
  return {
    directory,
    configurationFile,
    caFile,
    data: (roles, at = hostAddress) => ({
      format: 2,
      authority: { address: at, fingerprint },
      domain: "cells.internal",
      roles: Object.fromEntries(
        Object.entries(roles).map(([role, more]): [string, Json] => {
          const token = tokens.get(role)?.token;
          return [
            role,
            { name: names[role as ServiceRole] ?? role, ...(token === undefined ? {} : { token }), ...more },
          ];
        }),
      ),
    }),
  };
};

/** The files below a directory as those that a role is born with. */
export const birthFiles = (role: ServiceRole, directory: string): Readonly<Record<string, Buffer>> =>
  Object.fromEntries(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((file) => [`birth/${role}/${relative(directory, file)}`, readFileSync(file)]),
  );
