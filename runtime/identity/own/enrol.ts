import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import { clockFault, type Held, isDue, type NextAsk, nextAsk } from "../../../core/identity/authority/renewal.ts";
import { datesFault, mayConnect } from "../../../core/identity/may-connect.ts";
import type { EventName } from "../../../core/telemetry/event-names.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { fingerprintOf } from "../../transport/fingerprint.ts";
import { presented, readKeys, readPins } from "../../transport/judge.ts";
import { announceCredentials } from "../../transport/mutual-tls.ts";
import { gossipRingFile } from "./gossip-key.ts";
import { certificateRequest, type OwnKey, ownKey } from "./keys.ts";

/**
 * A process' own certificate: got with a token, renewed before its end. Its key is made here and stays in its file; the
 * files of certificate and authority are replaced as wholes, and whoever serves or dials in this process takes the new
 * one for what is new (`followCredentials`).
 */
export interface EnrolmentRun {
  readonly configuration: ProcessConfiguration;
  /** The one-time token, from `x.data` or the operator; null: none, or long spent. */
  readonly token: string | null;
  readonly log: (event: EventName, fields: { readonly [key: string]: string | number }) => void;
}
export interface Enrolled {
  /**
   * It may take part: at once with a valid certificate, or with any for a host, whose key others pinned; otherwise once
   * the authority has issued one. Rejects only for what no repetition mends: a key file that cannot be read or written.
   */
  readonly ready: Promise<void>;
  /** Asks no more. */
  stop(): void;
}

/** The authority's answer to `POST /enrol` and `POST /renew`. */
export interface IssuedAnswer {
  readonly certificates: readonly { readonly name: string; readonly certificate: string }[];
  /** Its own certificate, PEM. */
  readonly authority: string;
  /** Present where one of the names may use them. */
  readonly pins?: Readonly<Record<string, string>>;
  /** Present where one of the names is a host's: for its part in Presence. */
  readonly gossipKey?: string;
  readonly nowMs: number;
}

/** The authority has said no: to ask again brings the same. */
export class EnrolmentRefused extends Error {}

const authorityName = peerName("authority");
/** An emulated processor that has much else to do takes seconds for a handshake. */
const timeoutMs = 40_000;
const longestAnswer = 4 * 1024 * 1024;

/** The token that the configuration's file holds; null when there is none. The file may be gone once it is spent. */
export const readToken = async ({ enrolment }: ProcessConfiguration): Promise<string | null> => {
  if (enrolment?.tokenFile === undefined) return null;
  try {
    return (await readFile(enrolment.tokenFile, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
};

/** The present certificate's dates; null when there is none over this key. */
const heldOf = async ({ certificate }: ProcessConfiguration, key: OwnKey): Promise<Held | null> => {
  try {
    const read = new X509Certificate(await readFile(certificate.certFile));
    if (fingerprintOf(read.publicKey) !== key.fingerprint) return null;
    return { validFromMs: read.validFromDate.getTime(), validToMs: read.validToDate.getTime() };
  } catch {
    return null;
  }
};

/** The certificate of the authority whose key is the pinned one, from what the server showed; null: it is another. */
const authorityIn = (socket: TLSSocket, fingerprint: string): X509Certificate | null => {
  const shown = socket.getPeerCertificate(true);
  const raw = shown.issuerCertificate?.raw;
  if (raw === undefined) return null;
  try {
    const certificate = new X509Certificate(raw);
    return fingerprintOf(certificate.publicKey) === fingerprint ? certificate : null;
  } catch {
    return null;
  }
};

/** A connection to the authority, known by its fingerprint; nothing was said on it yet. Rejects with a sentence. */
const connectAuthority = async (configuration: ProcessConfiguration, withCertificate: boolean): Promise<TLSSocket> => {
  const { enrolment, certificate, name, pinsFile } = configuration;
  if (enrolment === undefined) throw new Error(`the configuration of "${name}" names no authority`);
  const [host = "", port = ""] = enrolment.authority.split(":");
  const own = withCertificate
    ? { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) }
    : {};
  // OpenSSL knows no authority here yet; the fingerprint says which one is right.
  const socket = connect({ host, port: Number(port), minVersion: "TLSv1.3", rejectUnauthorized: false, ...own });
  const deadline = setTimeout(() => socket.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.on("error", reject);
      socket.once("close", () => reject(new Error("it closed the connection")));
    });
    const authority = authorityIn(socket, enrolment.fingerprint);
    if (authority === null)
      throw new Error("it has not the key of this installation's authority: somebody else answers there");
    const shown = presented(socket.getPeerX509Certificate(), authority);
    const known = { pins: readPins(pinsFile), keys: readKeys(configuration) };
    const verdict = mayConnect(shown, { self: name, peer: authorityName }, known, Date.now());
    if (!verdict.ok) throw new Error(verdict.why);
    return socket;
  } catch (error) {
    socket.destroy();
    throw new Error(`the authority at ${enrolment.authority}: ${(error as Error).message}`);
  } finally {
    clearTimeout(deadline);
  }
};

/** Asks the authority. Rejects with a sentence when it does not answer, or refuses. */
const ask = async (
  configuration: ProcessConfiguration,
  path: string,
  body: object,
  own: boolean,
): Promise<IssuedAnswer> => {
  const socket = await connectAuthority(configuration, own);
  try {
    const outgoing = httpRequest({
      method: "POST",
      path,
      createConnection: () => socket,
      headers: { host: "authority" },
    });
    outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`silent for ${timeoutMs / 1000} s`)));
    const answer = await new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      outgoing.on("error", reject);
      outgoing.once("response", (response) => {
        let length = 0;
        response.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (length > longestAnswer) response.destroy(new Error("its answer has no end"));
        });
        text(response).then((read) => resolve({ status: response.statusCode ?? 0, body: read }), reject);
      });
      outgoing.end(JSON.stringify(body));
    });
    const read = JSON.parse(answer.body) as IssuedAnswer & { readonly message?: string };
    const why = `the authority did not issue a certificate: ${read.message ?? `status ${answer.status}`}`;
    if (answer.status >= 400 && answer.status < 500) throw new EnrolmentRefused(why);
    if (answer.status !== 200) throw new Error(read.message ?? `status ${answer.status}`);
    return read;
  } catch (error) {
    if (error instanceof EnrolmentRefused) throw error;
    throw new Error(`the authority did not issue a certificate: ${(error as Error).message}`);
  } finally {
    socket.destroy();
  }
};

/** Checks an answer and puts it into place. Rejects with a sentence, and leaves all as it was, when it is not right. */
const take = async (run: EnrolmentRun, key: OwnKey, answer: IssuedAnswer, joins = false): Promise<Held> => {
  const { configuration, log } = run;
  const { name, certificate, enrolment, pinsFile, presence } = configuration;
  const authority = new X509Certificate(answer.authority);
  if (fingerprintOf(authority.publicKey) !== enrolment?.fingerprint)
    throw new Error("the answer holds another authority's certificate");
  const own = answer.certificates.find((each) => each.name === name)?.certificate;
  if (own === undefined) throw new Error(`the token is good for other names than "${name}"`);
  const read = new X509Certificate(own);
  const shown = presented(read, authority);
  if (shown === null || !shown.signed || shown.name !== name || shown.key !== key.fingerprint)
    throw new Error("the certificate in the answer is not over this key and name");
  const { validFromMs, validToMs } = shown;
  const clock = clockFault(Date.now(), answer.nowMs, validToMs - answer.nowMs);
  if (clock !== null) log("identity/clock", { why: clock });
  await replaceFile(certificate.caFile, answer.authority);
  if (pinsFile !== undefined && answer.pins !== undefined)
    await replaceFile(pinsFile, `${JSON.stringify({ pins: answer.pins })}\n`);
  if (presence !== undefined && answer.gossipKey !== undefined) {
    // Of an earlier life of this machine, here or in another installation.
    if (joins) await rm(gossipRingFile(presence.gossipKeyFile), { force: true });
    await replaceFile(presence.gossipKeyFile, `${answer.gossipKey}\n`);
  }
  await replaceFile(certificate.certFile, own);
  announceCredentials(configuration);
  log("identity/changed", { until: read.validToDate.toISOString() });
  return { validFromMs, validToMs };
};

/** One attempt to get a certificate. Rejects with a sentence. */
const attempt = async (run: EnrolmentRun, key: OwnKey, { how }: NextAsk): Promise<Held> => {
  const { configuration, token } = run;
  if (how === "enrol" && token === null)
    throw new Error("it has no valid certificate and no token: it needs a new token from whoever starts it");
  const request = await certificateRequest(key);
  const enrol = () => ask(configuration, "/enrol", { token, request }, false);
  if (how === "enrol") return take(run, key, await enrol(), true);
  const renewed = ask(configuration, "/renew", { request }, true);
  // Its certificate was made before there was an authority that knew it: the first host's is.
  const answer =
    token === null ? renewed : renewed.catch((refused: Error) => enrol().catch(() => Promise.reject(refused)));
  return take(run, key, await answer);
};

/** Gets a certificate with the token, now: for whoever waits for it. Rejects with a sentence; it may be tried again. */
export const enrolNow = async (run: EnrolmentRun): Promise<void> => {
  const key = await ownKey(run.configuration.certificate.keyFile);
  await attempt(run, key, { how: "enrol", inMs: 0, usable: false });
};

/** Sees to it that this process has a certificate, from now until `stop`. */
export const keepIdentity = (run: EnrolmentRun): Enrolled => {
  const { configuration, log } = run;
  const { name } = configuration;
  let attempts = 0;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let usable: () => void = () => undefined;
  const becomesUsable = new Promise<void>((resolve) => {
    usable = resolve;
  });

  const next = (held: Held | null): NextAsk => {
    const found = nextAsk(name, held, attempts, Date.now(), Math.random());
    if (found.usable) usable();
    return found;
  };
  const turn = async (key: OwnKey, before: Held | null): Promise<void> => {
    const now = next(before);
    let held = before;
    if (attempts > 0 || isDue(now)) {
      try {
        held = await attempt(run, key, now);
        const fault = datesFault(name, held, Date.now());
        // It is in place, for those whose clocks are right; to ask again at once would bring the same.
        if (fault !== null) throw new Error(fault);
        attempts = 0;
      } catch (error) {
        attempts += 1;
        // Ever more seldom: an authority that is away for a day does not fill the log.
        if ((attempts & (attempts - 1)) === 0) log("identity/waiting", { why: (error as Error).message, attempts });
      }
    }
    const { inMs } = next(held);
    if (!stopped) timer = setTimeout(() => void turn(key, held), inMs);
  };
  const begin = async (): Promise<void> => {
    const key = await ownKey(configuration.certificate.keyFile);
    void turn(key, await heldOf(configuration, key));
    await becomesUsable;
  };
  return {
    ready: begin(),
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};
