import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { issueCertificate } from "../runtime/certificates.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import type { Member } from "./members.ts";

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
