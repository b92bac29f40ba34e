import { createHash, createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RootOptions } from "../../../core/controller/state.ts";
import { cidr, ipv4 } from "../../../model/cell/identifiers.ts";
import { hashCredential } from "../../http/bearer.ts";
import { network, type ProcessConfiguration } from "../../installation.ts";
import { replaceFile } from "../../process/replace-file.ts";

/**
 * Tokens of service VMs are not kept but derived: the HMAC, under a secret of the root controller's directory, of whom each
 * is for. So a controller that died between two steps says the same again, and no specification or store contains any.
 */
const secretBytes = 32;

/** The secret in `<directory>/root-secret`, mode 0600, made at the first start. Rejects for a file that holds none. */
export const rootSecret = async (directory: string): Promise<Buffer> => {
  const file = join(directory, "root-secret");
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return null;
  });
  if (text !== null) {
    const secret = Buffer.from(text.trim(), "hex");
    if (secret.length !== secretBytes)
      throw new Error(
        `${file} holds no secret of ${secretBytes} bytes in hexadecimal: put it back from a backup, or remove it; ` +
          "service VMs that have not enrolled yet then get new tokens",
      );
    return secret;
  }
  const made = randomBytes(secretBytes);
  await replaceFile(file, `${made.toString("hex")}\n`);
  return made;
};

/** @returns 256 bits in base64url, as of every enrolment token, and the SHA-256 that the authority is told */
export const tokenOf =
  (secret: Buffer): RootOptions["token"] =>
  (vm, incarnation, role) => {
    // As JSON, so that no two askers are one text.
    const of = JSON.stringify(["service", vm, incarnation, role]);
    const token = createHmac("sha256", secret).update(of).digest("base64url");
    return { token, hash: createHash("sha256").update(token).digest("hex") };
  };

/** Of a personality, in the form of any credential of the cell: by its name, an id, and 256 bits that are derived as tokens are. */
export const credentialOf =
  (secret: Buffer, cell: string): NonNullable<RootOptions["credential"]> =>
  (vm, incarnation, role) => {
    const bits = createHmac("sha256", secret)
      .update(JSON.stringify(["part", cell, vm, incarnation, role]))
      .digest();
    const id = createHash("sha256").update(bits).digest("hex").slice(0, 8);
    const credential = `${cell}.${id}.${bits.toString("base64url")}`;
    return { token: credential, hash: hashCredential(credential) };
  };

/**
 * What a controller makes services with: the root cell's any, every other one what its parent lets it (decision 38). Null
 * for a controller that was never enrolled itself.
 */
export const serviceOptions = async ({
  directory,
  controller,
  enrolment,
}: ProcessConfiguration): Promise<RootOptions | null> => {
  if (controller === undefined) return null;
  const { root } = controller;
  const [address] = enrolment?.authority.split(":") ?? [];
  const own = address === undefined || enrolment === undefined ? null : { address, fingerprint: enrolment.fingerprint };
  const authority = root?.authority ?? own;
  if (authority === null) return null;
  const secret = await rootSecret(directory);
  return {
    management: cidr(root?.management ?? network.underlay),
    authority: { address: ipv4(authority.address), fingerprint: authority.fingerprint },
    credentialHashes: controller.credentialHashes,
    token: tokenOf(secret),
    credential: credentialOf(secret, controller.cell),
  };
};
