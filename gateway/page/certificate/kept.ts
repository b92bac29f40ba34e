import { createPrivateKey, generateKeyPairSync, type KeyObject, type X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import type { PageCertificate, PageCertificateRequest } from "../../../model/contract/operator/page-certificate.ts";
import { requestFor } from "../../../runtime/identity/own/request.ts";
import { createTurns } from "../../../runtime/process/one-at-a-time.ts";
import { replaceFile } from "../../../runtime/process/replace-file.ts";
import { refused } from "../../requests/refused.ts";
import { type Chain, chainFault, isFor as isForName, namesOf, readChain } from "./chain.ts";

/**
 * The page's certificate of one's own, which browsers know. It is shown to whoever asks for one of its names; whoever asks by an
 * address or a name of the installation's certificate is shown that one as before, so clients that know the gateway by the
 * installation's authority notice nothing.
 *
 * Key and chain are one file, so that no crash leaves one without the other. A request has a file of its own until it is answered,
 * and the certificate in force is served meanwhile. Where the files are lost or damaged the gateway serves the installation's
 * certificate alone, as if there had never been another one, and a new request makes a new key.
 */
interface Asked {
  readonly names: readonly string[];
  readonly key: string;
}
interface InForce extends Chain {
  readonly key: KeyObject;
  readonly keyText: string;
  readonly context: SecureContext;
}
export interface OwnCertificate {
  /** For who asks for this name; null: the installation's. */
  contextFor(name: string): SecureContext | null;
  isFor(name: string): boolean;
  state(): PageCertificate;
  /** Asked again for the same names before an answer came, it is the same key. */
  request(names: readonly string[]): Promise<PageCertificateRequest>;
  /** Rejects with a refusal and leaves all as it was where it would not be taken. */
  install(pem: string): Promise<PageCertificate>;
  forget(): Promise<PageCertificate>;
}

const servedName = "page-certificate.pem";
const askedName = "page-request.json";
const privateBlock = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----\n?/;

/** @param isOwnName that the installation's certificate is for */
export function openOwnCertificate(
  directory: string,
  isOwnName: (name: string) => boolean,
  now: () => number = Date.now,
): OwnCertificate {
  const [servedFile, askedFile] = [join(directory, servedName), join(directory, askedName)];
  let { served, fault } = readServed(servedFile);
  let asked = readAsked(askedFile);
  // It ended between the two files: that one is answered.
  if (asked !== null && asked.key === served?.keyText) asked = null;
  // Each change is of two files, and of what is known of both.
  const inTurn = createTurns();
  const isFor = (name: string): boolean =>
    served !== null && !isOwnName(name) && isForName(served.certificates[0], name);
  const state = (): PageCertificate => ({
    certificate: served === null ? null : described(served),
    asked: asked?.names ?? null,
    ...(fault === null ? {} : { fault }),
  });
  return {
    isFor,
    contextFor: (name) => (isFor(name) ? (served?.context ?? null) : null),
    state,
    request: (names) =>
      inTurn(async () => {
        const taken = names.find((name) => isOwnName(name));
        if (taken !== undefined)
          throw refused(
            400,
            "page-certificate/name",
            `clients know the gateway as ${taken} by the installation's own certificate: ask for another name`,
          );
        const isSame = asked !== null && inOrder(asked.names) === inOrder(names);
        const next = isSame && asked !== null ? asked : { names, key: newKey() };
        if (next !== asked) await replaceFile(askedFile, JSON.stringify(next));
        asked = next;
        return { names, request: requestFor(createPrivateKey(next.key), names) };
      }),
    install: (pem) =>
      inTurn(async () => {
        const read = readChain(pem);
        if (!read.ok) throw refused(400, "page-certificate/unreadable", read.error);
        const found = keysOf(asked, served).find(({ key }) => read.value.certificates[0].checkPrivateKey(key));
        if (asked === null && served === null)
          throw refused(
            409,
            "page-certificate/no-request",
            "the gateway has asked for no certificate, so it has no key for one: `cells gateway request NAME` first",
          );
        const why = chainFault(read.value, {
          names: found?.names ?? asked?.names ?? [],
          isOwnName,
          hasKey: () => found !== undefined,
          nowMs: now(),
        });
        if (why !== null || found === undefined)
          throw refused(409, "page-certificate/refused", `the certificate is not put in: ${why}`);
        const next = forTls(read.value, found.keyText);
        await replaceFile(servedFile, `${found.keyText}${read.value.pem}`);
        [served, fault] = [next, null];
        if (found.isAsked) {
          asked = null;
          await rm(askedFile, { force: true });
        }
        return state();
      }),
    forget: () =>
      inTurn(async () => {
        for (const file of [servedFile, askedFile]) await rm(file, { force: true });
        [served, asked, fault] = [null, null, null];
        return state();
      }),
  };
}

const inOrder = (names: readonly string[]): string => [...names].sort().join(" ");
const newKey = (): string =>
  generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }) as string;

interface OwnKey {
  readonly names: readonly string[];
  readonly key: KeyObject;
  readonly keyText: string;
  readonly isAsked: boolean;
}
/** An answer is to the last request, or renews what is in force over its key. */
function keysOf(asked: Asked | null, served: InForce | null): readonly OwnKey[] {
  const keys: OwnKey[] = [];
  if (asked !== null)
    keys.push({ names: asked.names, key: createPrivateKey(asked.key), keyText: asked.key, isAsked: true });
  if (served !== null)
    keys.push({ names: namesOf(served.certificates[0]), key: served.key, keyText: served.keyText, isAsked: false });
  return keys;
}

const inForce = (chain: Chain, keyText: string): InForce => ({
  ...chain,
  key: createPrivateKey(keyText),
  keyText,
  context: createSecureContext({ cert: chain.pem, key: keyText, minVersion: "TLSv1.3" }),
});

/** What passes as a chain may have a signature or a key in it that is too weak for TLS. */
function forTls(chain: Chain, keyText: string): InForce {
  try {
    return inForce(chain, keyText);
  } catch (error) {
    const { message, reason = message } = error as Error & { readonly reason?: string };
    throw refused(409, "page-certificate/refused", `the certificate is not put in: TLS does not take it: ${reason}`);
  }
}

function described({ certificates }: InForce): NonNullable<PageCertificate["certificate"]> {
  const [own] = certificates;
  const ends = certificates.map(({ validToDate }: X509Certificate) => validToDate.getTime());
  return {
    names: namesOf(own),
    issuer: own.issuer.replaceAll("\n", ", "),
    from: own.validFromDate.toISOString(),
    // Without one of those that vouch for it, it is nobody's.
    until: new Date(Math.min(...ends)).toISOString(),
    chain: certificates.length,
  };
}

const textOf = (file: string): string | null => {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
};
function readServed(file: string): { served: InForce | null; fault: string | null } {
  try {
    const text = textOf(file);
    if (text === null) return { served: null, fault: null };
    const [keyText = ""] = privateBlock.exec(text) ?? [];
    const read = readChain(text.replace(keyText, ""));
    if (!read.ok) throw new Error(read.error);
    if (!read.value.certificates[0].checkPrivateKey(createPrivateKey(keyText)))
      throw new Error("key and certificate do not belong together");
    return { served: inForce(read.value, keyText), fault: null };
  } catch (error) {
    const why = (error as Error).message;
    return { served: null, fault: `what was kept of a certificate cannot be read (${why}): ask for a new one` };
  }
}
/** What cannot be read was not asked: its answer is refused, with what to do. */
function readAsked(file: string): Asked | null {
  try {
    const { names, key } = JSON.parse(textOf(file) ?? "null") as Asked;
    createPrivateKey(key);
    return Array.isArray(names) && names.every((name) => typeof name === "string") ? { names, key } : null;
  } catch {
    return null;
  }
}
