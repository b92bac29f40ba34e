import { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { mayAsk } from "../../../core/documents/permissions.ts";
import { createAuthorityService } from "../../../core/identity/authority/authority.ts";
import { defaultLifetimeMs, toleranceMs } from "../../../core/identity/authority/lifetime.ts";
import { nextAsk } from "../../../core/identity/authority/renewal.ts";
import type { AuthorityAnswer, Issue } from "../../../core/identity/authority/requests.ts";
import { type CurrentKeys, mergeKeys, writeCurrentKeys } from "../../../core/identity/current-keys.ts";
import { mayConnect } from "../../../core/identity/may-connect.ts";
import { isPinnable } from "../../../core/identity/presented.ts";
import { toJson } from "../../../core/outbox.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { asideDirectory } from "../../backup/put-back.ts";
import { servePeers } from "../../http/https.ts";
import type { PeerHandler, PeerRequest } from "../../http/peer-handler.ts";
import { type ProcessConfiguration, ports } from "../../installation.ts";
import { writeErrorLine } from "../../life/error-line.ts";
import { stopAtSignals } from "../../life/signals.ts";
import { createObserver, type Observer, observed } from "../../observation/observer.ts";
import { type RunningService, runService } from "../../process/process.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { addressOf, createStrangers } from "../../transport/admission.ts";
import { fingerprintOf } from "../../transport/fingerprint.ts";
import { presented, readKeys } from "../../transport/judge.ts";
import {
  announceCredentials,
  type Credentials,
  followCredentials,
  readCredentials,
} from "../../transport/mutual-tls.ts";
import { type Authority, createAuthority, gossipKeyOf, readAuthority, signCertificate } from "../certificates.ts";
import type { IssuedAnswer } from "../own/enrol.ts";
import { type AskedKey, hashOfToken, ownKey, readRequest } from "../own/keys.ts";
import { keepOwnBook } from "../own/peers-follow.ts";
import { answerOrder, isOrderQuestion } from "./backup-order.ts";
import { keepBeside, readBeside } from "./beside.ts";
import { isGossipQuestion, serveGossip } from "./gossip.ts";
import { createPeerBook, fixedPeers, isPeersQuestion } from "./peer-book.ts";

/**
 * The authority as a process: holds the installation's signing key in `<directory>/authority`, asks its service what to
 * sign, and serves `POST /enrol` (token) and `POST /renew` (certificate) at `ports.enrolment`. Anybody may knock there, so
 * everything is bounded: connections, requests at once, their size and their time.
 */
export interface RunningAuthority {
  /** SHA-256 (hexadecimal) of the authority's public key: by this, services know it. */
  readonly fingerprint: string;
  readonly enrolmentPort: number;
  /** Takes or (null) takes back an enrolment of the operator's. Rejects with a sentence when it is refused. */
  enrol(id: string, enrolment: Json): Promise<void>;
  stop(): Promise<void>;
}

/**
 * `atOnce`: requests that have arrived as a whole, those with a certificate of this installation apart from those without.
 * `strangers`: connections of one address without one. So slow or many connections from one place keep nobody else out.
 */
const limits = {
  connections: 1024,
  strangers: 32,
  atOnce: 32,
  bodyBytes: 16_384,
  arriveMs: 20_000,
  requestMs: 60_000,
} as const;

interface Signing {
  readonly authority: Authority;
  readonly authorityPem: string;
  readonly verifying: X509Certificate;
  readonly running: RunningService;
  readonly configuration: ProcessConfiguration;
  /** What lies beside the key is as the service knows it. */
  readonly keep: () => Promise<void>;
  readonly atWork: { enrol: number; renew: number };
}

class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const readBody = async (incoming: Readable): Promise<{ readonly [key: string]: unknown }> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    length += (chunk as Buffer).length;
    if (length > limits.bodyBytes) throw new Refused(413, `a request has at most ${limits.bodyBytes} bytes`);
    chunks.push(chunk as Buffer);
  }
  try {
    const read: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (typeof read === "object" && read !== null) return read as { readonly [key: string]: unknown };
  } catch {
    // Said below.
  }
  throw new Refused(400, "the request's body is no JSON object");
};

const decide = async ({ running }: Signing, request: object): Promise<AuthorityAnswer> =>
  (await running.request(request as unknown as Json)) as unknown as AuthorityAnswer;

const sign = (signing: Signing, { publicKey }: AskedKey, issue: Issue): Promise<string> =>
  signCertificate(signing.authority, {
    name: issue.name,
    publicKey,
    addresses: issue.addresses,
    notBefore: new Date(issue.validFromMs),
    notAfter: new Date(issue.validToMs),
    cell: issue.cell,
    role: issue.role,
  });

const isKeptPartQuestion = (url: string): boolean => /^\/put-back(?:\/|$)/.test(url);
const authorityDirectory = ({ directory }: ProcessConfiguration): string => join(directory, "authority");

const pinsOf = async (signing: Signing): Promise<Readonly<Record<string, string>>> => {
  const answer = await decide(signing, { kind: "pins" });
  return answer.kind === "pins" ? answer.pins : {};
};

/** Who asks for a renewal. A host's certificate may have ended while everything was dark: its key is pinned. */
const renewer = async (
  signing: Signing,
  socket: TLSSocket,
): Promise<{ readonly name: string; readonly key: string; readonly beganMs: number | null }> => {
  const shown = presented(socket.getPeerX509Certificate(), signing.verifying);
  const pins = new Map(Object.entries(await pinsOf(signing)).map(([name, key]) => [peerName(name), key]));
  // Which key the name has now the service decides itself.
  const known = { pins, keys: new Map() };
  const verdict = mayConnect(shown, { self: signing.configuration.name, peer: null }, known, Date.now());
  if (!verdict.ok || shown === null) throw new Refused(403, verdict.ok ? "no certificate" : verdict.why);
  return { name: verdict.name, key: shown.key, beganMs: verdict.by === "certificate" ? shown.validFromMs : null };
};

const issueFor = async (signing: Signing, incoming: IncomingMessage): Promise<IssuedAnswer> => {
  const renewing = incoming.url === "/renew";
  const who = renewing ? await renewer(signing, incoming.socket as TLSSocket) : null;
  const { token, request } = await readBody(incoming);
  const kind = who === null ? "enrol" : "renew";
  if (signing.atWork[kind] >= limits.atOnce)
    throw new Refused(503, `the authority has ${limits.atOnce} requests at work; ask again`);
  signing.atWork[kind] += 1;
  try {
    return await answerTo(signing, who, token, request);
  } finally {
    signing.atWork[kind] -= 1;
  }
};

const answerTo = async (
  signing: Signing,
  who: Awaited<ReturnType<typeof renewer>> | null,
  token: unknown,
  request: unknown,
): Promise<IssuedAnswer> => {
  const asked = await readRequest(request);
  if (!asked.ok) throw new Refused(400, asked.error);
  const key = asked.value.fingerprint;
  if (who !== null && who.key !== key)
    throw new Refused(403, "a certificate is renewed over the key that it has; a new key needs a new token");
  const answer = await decide(
    signing,
    who === null ? { kind: "enrol", hash: hashOfToken(token) ?? "", key } : { ...who, kind: "renew", key },
  );
  if (answer.kind !== "issue") {
    // Whoever guesses learns nothing of what there is; the log says which it was.
    const unfit = "the token is unknown, spent or expired: ask for a new one from whoever starts this service";
    throw new Refused(403, who !== null && answer.kind === "refused" ? answer.why : unfit);
  }
  // Nobody else's store has whom an operator had enrolled.
  if (answer.certificates.some(({ name }) => isPinnable(peerName(name)))) await signing.keep();
  const certificates = await Promise.all(
    answer.certificates.map(async (issue) => ({
      name: issue.name,
      certificate: await sign(signing, asked.value, issue),
    })),
  );
  const pinned = certificates.some(({ name }) => isPinnable(peerName(name)));
  const pins = pinned ? { pins: await pinsOf(signing) } : {};
  const isHost = certificates.some(({ name }) => name.startsWith("host."));
  const ring = isHost ? await decide(signing, { kind: "gossip", host: null, has: null }) : null;
  const directory = authorityDirectory(signing.configuration);
  const gossip = ring?.kind === "gossip" ? { gossipKey: await gossipKeyOf(directory, ring.gossip.send) } : {};
  return { certificates, authority: signing.authorityPem, ...pins, ...gossip, nowMs: Date.now() };
};

const respond = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify(body));
};

/** Answers one request; never throws. */
const handle = async (signing: Signing, incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
  try {
    const known = incoming.method === "POST" && ["/enrol", "/renew"].includes(incoming.url ?? "");
    if (!known) throw new Refused(404, "the authority answers POST /enrol and POST /renew");
    respond(response, 200, await issueFor(signing, incoming));
  } catch (error) {
    if (!(error instanceof Refused)) writeErrorLine(signing.configuration.name, "https/handler-failed", error as Error);
    if (response.headersSent || response.destroyed) return;
    const status = error instanceof Refused ? error.status : 500;
    if (status === 503) response.setHeader("retry-after", "2");
    respond(response, status, {
      message: status === 500 ? "the authority failed; its log says why" : (error as Error).message,
    });
  }
};

/** Knows its servers' chain to the end, so that who has only the fingerprint can follow it. */
const withChain = (credentials: Credentials): Omit<Credentials, "ca"> => {
  const { ca, cert, key, minVersion } = credentials;
  return { cert: Buffer.concat([cert, ca]), key, minVersion };
};

const serveEnrolment = async (signing: Signing): Promise<{ readonly port: number; stop(): Promise<void> }> => {
  const { configuration } = signing;
  // Certificates are looked at where they are needed (`renewer`); who enrols has none.
  const server = createServer(
    {
      ...withChain(readCredentials(configuration)),
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: limits.arriveMs,
    },
    (incoming, response) => void handle(signing, incoming, response),
  );
  const strangers = createStrangers();
  server.on("connection", (socket: Socket) => {
    if (strangers.ofAddress(addressOf(socket)) >= limits.strangers) socket.destroy();
    else strangers.begin(socket);
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    if (presented(socket.getPeerX509Certificate(), signing.verifying)?.signed === true) strangers.leave(socket);
  });
  server.maxConnections = limits.connections;
  server.headersTimeout = limits.arriveMs;
  server.requestTimeout = limits.arriveMs;
  server.setTimeout(limits.requestMs, (socket) => socket.destroy());
  const forget = followCredentials(configuration, (renewed) => server.setSecureContext(withChain(renewed)));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(configuration.authority?.enrolmentPort ?? ports.enrolment, configuration.address, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : ports.enrolment,
    stop: () =>
      new Promise((resolve) => {
        forget();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

/** `PUT` and `DELETE /enrolments/<id>`: the operator's, by way of the root cell's controller. 204, or a sentence. */
const operating =
  (enrol: RunningAuthority["enrol"]): PeerHandler =>
  async ({ peer, method, url, body }, response) => {
    try {
      const id = /^\/enrolments\/([A-Za-z0-9-]{1,64})$/.exec(url)?.[1];
      if (id === undefined || (method !== "PUT" && method !== "DELETE"))
        throw new Refused(
          404,
          `there is no ${method} of ${url} here: PUT and DELETE of /enrolments/<id> and GET of /peers are answered`,
        );
      if (!mayAsk("authority", peer, method, url))
        throw new Refused(403, `only the root cell's controller may have hosts enrolled, and this is "${peer}"`);
      await enrol(id, method === "PUT" ? ((await readBody(body)) as Json) : null);
      response.writeHead(204).end();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      respond(response, error.status, { error: { code: "refused", message: error.message } });
    }
  };

/** What everybody has been told of keys: the file outlives a store that is put back, and a restore keeps it aside. */
const wasTold = ({ directory, peersFile }: ProcessConfiguration): CurrentKeys => {
  const aside = readKeys({ peersFile: join(directory, asideDirectory, "peers.json") });
  return mergeKeys(aside, readKeys({ peersFile }), Date.now());
};

/** The authority's own certificate, over a key that stays: hosts pin it. Issued anew at every start and before its end. */
const certifySelf = async (
  configuration: ProcessConfiguration,
  authority: Authority,
): Promise<{ key: string; stop(): void }> => {
  const { certificate, address, name } = configuration;
  const lifetimeMs = configuration.authority?.lifetimeMs ?? defaultLifetimeMs;
  const own = await ownKey(certificate.keyFile);
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  const issue = async (): Promise<void> => {
    const held = { validFromMs: Date.now() - toleranceMs(lifetimeMs), validToMs: Date.now() + lifetimeMs };
    const dates = {
      notBefore: new Date(held.validFromMs),
      notAfter: new Date(Math.ceil(held.validToMs / 1000) * 1000),
    };
    const content = { name, publicKey: own.keys.publicKey, addresses: [address], cell: "root", role: "authority" };
    await replaceFile(certificate.certFile, await signCertificate(authority, { ...content, ...dates }));
    announceCredentials(configuration);
    const wait = (): void => {
      if (stopped) return;
      const { inMs } = nextAsk(name, held, 0, Date.now(), Math.random());
      timer = setTimeout(() => (inMs <= 0 ? void issue().catch(fatal) : wait()), inMs);
    };
    wait();
  };
  const fatal = (error: Error): never => {
    // A disk that takes nothing: whoever started it does so again.
    writeErrorLine(name, "process/failed", error);
    process.exit(1);
  };
  await issue();
  return {
    key: own.fingerprint,
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};

/**
 * Runs the authority until `stop` or a signal. Its name is `authority`, its signing key is made at the first start and is
 * as durable as `configuration.directory`, which is on the root data volume. Rejects when it cannot listen.
 */
export const runAuthority = async (
  configuration: ProcessConfiguration,
  observer: Observer = createObserver(configuration.name),
): Promise<RunningAuthority> => {
  const directory = authorityDirectory(configuration);
  await createAuthority(directory);
  const authority = await readAuthority(directory);
  if (authority === null) throw new Error(`${directory} holds no authority`);
  const authorityPem = `${authority.certificate.toString("pem")}\n`;
  await replaceFile(configuration.certificate.caFile, authorityPem);
  const own = await certifySelf(configuration, authority);
  const lifetimeMs = configuration.authority?.lifetimeMs ?? defaultLifetimeMs;
  const beside = await readBeside(directory);
  const service = createAuthorityService({
    self: configuration.name,
    lifetimeMs,
    fixedPeers: fixedPeers(configuration),
    ...(beside === undefined ? {} : { beside }),
  });
  // Certificates and pins go on without it: its end is no goodbye.
  const running = await runService({ configuration, service, observer, goodbye: false });
  await running.request({ kind: "self", key: own.key, told: toJson(writeCurrentKeys(wasTold(configuration))) });
  const verifying = new X509Certificate(authorityPem);
  const keep = keepBeside(directory, running.request);
  const signing: Signing = {
    authority,
    authorityPem,
    verifying,
    running,
    configuration,
    keep,
    atWork: { enrol: 0, renew: 0 },
  };
  const enrol = async (id: string, desire: Json): Promise<void> => {
    const answer = await decide(signing, { kind: "enrolment", id, enrolment: desire });
    if (answer.kind === "refused") throw new Refused(409, answer.why);
    await keep();
  };
  const births = Object.entries(configuration.authority?.enrolments ?? {});
  for (const [id, desire] of births) await enrol(id, desire as unknown as Json);
  await keep();
  const enrolment = await serveEnrolment(signing);
  const epochs = serveGossip({ directory, request: running.request, heardAt: (peer) => book.heardAt(peer) });
  const book = createPeerBook(running, async (keys, places) => {
    await keepOwnBook(configuration, places, keys);
    await keep();
    epochs.look(places.peers);
  });
  observer.measures(book.measure);
  const operate = operating(enrol);
  const order = answerOrder(authority, running);
  // Only after a restore.
  const cellUidOf = async ({ peer, raw }: PeerRequest): Promise<string | null> => {
    const shown = presented((raw.socket as TLSSocket).getPeerX509Certificate(), verifying);
    const answer = await decide(signing, { kind: "cell-uid", name: peer, key: shown?.key ?? "" });
    return answer.kind === "cell-uid" ? answer.cellUid : null;
  };
  const keptParts: PeerHandler = async (asked, response) =>
    (await import("../../backup/kept-parts.ts")).answerKeptParts(configuration.directory, cellUidOf)(asked, response);
  const answers: readonly (readonly [(url: string) => boolean, PeerHandler])[] = [
    [isPeersQuestion, book.answer],
    [isGossipQuestion, epochs.answer],
    [isOrderQuestion, order],
    [isKeptPartQuestion, keptParts],
  ];
  const answer: PeerHandler = (asked, response) =>
    (answers.find(([isMeant]) => isMeant(asked.url))?.[1] ?? operate)(asked, response);
  const peers = await servePeers(configuration, observed(observer, answer), undefined, { observer });
  const stop = async (): Promise<void> => {
    unregister();
    own.stop();
    book.stop();
    epochs.stop();
    await Promise.all([enrolment.stop(), peers.stop()]);
    await running.stop();
  };
  const unregister = stopAtSignals(stop);
  return {
    fingerprint: fingerprintOf(verifying.publicKey),
    enrolmentPort: enrolment.port,
    enrol,
    stop,
  };
};
