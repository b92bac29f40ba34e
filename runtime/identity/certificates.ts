import "reflect-metadata";
import { hkdfSync, randomBytes, webcrypto } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { type FileOperations, linkDurably, makeDirectoryDurably, realFiles } from "../process/durable-files.ts";

/**
 * The certificate authority of an installation (decision 29). A certificate's common name is the peer's name and all that
 * a peer is known by; the addresses in it are for other tools. Wall-clock time enters here alone.
 */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 24 * 60 * 60 * 1000;
const authorityDays = 3650;
const certificateDays = 365;
/** Clocks of the machines may differ by this much. */
const clockToleranceMs = 60 * 60 * 1000;

x509.cryptoProvider.set(webcrypto);

interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}
const validity = (days: number): Validity => {
  const now = Date.now();
  return { notBefore: new Date(now - clockToleranceMs), notAfter: new Date(now + days * dayMs) };
};

/** Positive and unguessable, RFC 5280 section 4.1.2.2. */
const serialNumber = (): string => `00${randomBytes(16).toString("hex")}`;

const keyPem = async (key: webcrypto.CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");

const generateKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);

const authorityFile = (directory: string): string => join(directory, "authority.pem");
/** Key and certificate in one file, so that no crash leaves one without the other. */
export const authorityKeyFile = (directory: string): string => join(directory, "authority.key.pem");

export interface Authority {
  readonly certificate: x509.X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

/** The authority that `createAuthority` made; null when there is none. Rejects when its file is damaged. */
export const readAuthority = async (directory: string): Promise<Authority | null> => {
  try {
    const text = await readFile(authorityKeyFile(directory), "utf8");
    const [keyPart, certificatePart] = x509.PemConverter.decode(text);
    if (keyPart === undefined || certificatePart === undefined) {
      throw new Error(`${authorityKeyFile(directory)} does not hold a key and a certificate`);
    }
    const key = await webcrypto.subtle.importKey("pkcs8", keyPart, algorithm, false, ["sign"]);
    return { certificate: new x509.X509Certificate(certificatePart), key };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
};

/**
 * The installation's gossip key (decision 25), hexadecimal: derived from the authority's own key (HKDF, RFC 5869), so that it
 * is the same for every host that ever joins and is kept nowhere beside.
 * @param directory that `createAuthority` made
 * @param epoch whoever has the key of one cannot tell another's (decision 58)
 */
export const gossipKeyOf = async (directory: string, epoch = 0): Promise<string> => {
  const [key] = x509.PemConverter.decode(await readFile(authorityKeyFile(directory), "utf8"));
  if (key === undefined) throw new Error(`${authorityKeyFile(directory)} does not hold a key`);
  const label = epoch === 0 ? "cells gossip key" : `cells gossip key ${epoch}`;
  return Buffer.from(hkdfSync("sha256", Buffer.from(key), "", label, 32)).toString("hex");
};

const makeAuthority = async (): Promise<string> => {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    // Two authorities never share a name, so a chain to the wrong one is never tried.
    name: [{ O: ["Cells"] }, { CN: [`authority ${randomBytes(8).toString("hex")}`] }],
    ...validity(authorityDays),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return `${await keyPem(keys.privateKey)}\n${certificate.toString("pem")}\n`;
};

/**
 * Makes the installation's authority in `directory`, or leaves the one that is there. Of two that run at once, both end
 * with the same one.
 * @returns the file with its certificate, which every process of the installation trusts
 */
export const createAuthority = async (
  directory: string,
  files: FileOperations = realFiles,
): Promise<{ readonly caFile: string }> => {
  await makeDirectoryDurably(directory, 0o700);
  if ((await readAuthority(directory)) === null) {
    const temporary = `${authorityKeyFile(directory)}.${randomBytes(6).toString("hex")}`;
    await files.write(temporary, await makeAuthority(), 0o600);
    try {
      // Before anything is signed with it: another one would be made after a power cut, and nobody would believe it.
      await linkDurably(temporary, authorityKeyFile(directory), files);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      await files.remove(temporary);
    }
  }
  const authority = await readAuthority(directory);
  if (authority === null) throw new Error(`${authorityKeyFile(directory)} vanished while it was being made`);
  const caFile = authorityFile(directory);
  await writeFile(caFile, `${authority.certificate.toString("pem")}\n`, { mode: 0o600 });
  return { caFile };
};

const peerPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** What a certificate says, over whose key. */
export interface CertificateContent {
  readonly name: PeerName;
  readonly publicKey: webcrypto.CryptoKey;
  /** IPv4 or host names, for other tools. */
  readonly addresses: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** For people: they stand beside the name, which alone counts. */
  readonly cell?: string;
  readonly role?: string;
}

/** Signs a certificate for both ends of a connection. Throws for what cannot be a peer's name. PEM. */
export const signCertificate = async (authority: Authority, content: CertificateContent): Promise<string> => {
  const { name, publicKey, addresses, notBefore, notAfter, cell, role } = content;
  if (!peerPattern.test(name)) {
    throw new Error(`"${name}" cannot be a peer's name: it takes at most 64 letters, digits, ".", "_" and "-"`);
  }
  const alternatives = addresses.map((value) => ({ type: /^[0-9.]+$/.test(value) ? "ip" : "dns", value }) as const);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [
      ...(cell === undefined ? [] : [{ O: [cell] }]),
      ...(role === undefined ? [] : [{ OU: [role] }]),
      { CN: [name] },
    ],
    issuer: authority.certificate.subject,
    notBefore,
    notAfter,
    signingKey: authority.key,
    signingAlgorithm: algorithm,
    publicKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth]),
      ...(alternatives.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternatives)]),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(authority.certificate),
    ],
  });
  return `${certificate.toString("pem")}\n`;
};

/**
 * Issues a certificate for a peer, valid for a year, for both ends of a connection. A new key each time; files of an
 * earlier one are replaced.
 * @param directory that of the authority, which must be there; `<peer>.{cert,key}.pem` are put into it, mode 0600
 * @param addresses of the peer, IPv4 or host names
 */
export const issueCertificate = async (
  directory: string,
  peer: PeerName,
  addresses: readonly string[],
): Promise<CertificateFiles> => {
  // Its files would be the authority's own.
  if (peer === "authority") throw new Error('"authority" is the name of the authority itself: it certifies itself');
  const authority = await readAuthority(directory);
  if (authority === null) throw new Error(`there is no certificate authority in ${directory}: create it first`);
  const keys = await generateKeys();
  const content = { name: peer, publicKey: keys.publicKey, addresses, ...validity(certificateDays) };
  const certificate = await signCertificate(authority, content);
  const files = {
    certFile: join(directory, `${peer}.cert.pem`),
    keyFile: join(directory, `${peer}.key.pem`),
    caFile: authorityFile(directory),
  };
  await writeFile(files.keyFile, `${await keyPem(keys.privateKey)}\n`, { mode: 0o600 });
  await writeFile(files.certFile, certificate, { mode: 0o600 });
  // A file that was there keeps its mode otherwise.
  for (const file of [files.keyFile, files.certFile]) await chmod(file, 0o600);
  return files;
};
