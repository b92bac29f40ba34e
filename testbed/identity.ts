import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { issueCertificate } from "../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { writeAtomically } from "./files.ts";
import type { Member } from "./supervisor/members.ts";

/**
 * Gives a member its certificate, in `directory` and nowhere else: the authority's own directory is shown to no member.
 * @param authority directory that `createAuthority` made
 */
export const certify = async (
  authority: string,
  directory: string,
  member: Member,
): Promise<ProcessConfiguration["certificate"]> => {
  const issued = await issueCertificate(authority, member.peer, [member.address]);
  const own = {
    certFile: join(directory, "certificate.pem"),
    keyFile: join(directory, "key.pem"),
    caFile: join(directory, "authority.pem"),
  };
  copyFileSync(issued.certFile, own.certFile);
  copyFileSync(issued.keyFile, own.keyFile);
  copyFileSync(issued.caFile, own.caFile);
  rmSync(issued.certFile);
  rmSync(issued.keyFile);
  return own;
};

/**
 * Gives a host the installation's gossip key: 32 random bytes, written as hexadecimal, mode 0600. It is made when it is
 * asked for first and then stays: hosts of one installation that come up one after the other must understand each other.
 * @param authority directory that `createAuthority` made
 */
export const giveGossipKey = (authority: string, file: string): void => {
  const kept = join(authority, "gossip.key");
  if (!existsSync(kept)) writeAtomically(kept, randomBytes(32).toString("hex"), 0o600);
  writeAtomically(file, readFileSync(kept, "utf8"), 0o600);
};
