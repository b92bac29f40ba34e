import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { kindOf, mayAsk } from "../../core/documents/permissions.ts";
import type { GoneHosts } from "../../core/env.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../http/https.ts";
import type { PeerHandler, PeerRequest } from "../http/peer-handler.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { synchronize } from "../process/durable-files.ts";
import { replaceFile } from "../process/replace-file.ts";
import { BackupFault } from "./frames.ts";
import { manifestIn, type PartFile, type PartManifest } from "./part.ts";
import { putBack, unconfirmedFile } from "./put-back.ts";
import { checkDatabase, type UnpackedPart } from "./unpack.ts";
import { isGivenBack } from "./what-is-kept.ts";

/**
 * Parts of a backup that the authority of a restored root cell keeps for those whose volumes were lost (decision 59). A service
 * that starts without a store asks for its own, by the name in its certificate, before it does anything else: one that
 * began blank would give out names and numbers that are taken.
 *
 *   GET /put-back          the manifest of the asking peer's part; 404: there is none; 410: it was taken
 *   GET /put-back/<n>      the n-th file of it
 *   DELETE /put-back/<id>  it was put in, under an id of this taking; 204, also when said again; 410: another has taken it
 *
 * A part is given once: who lost its volume again, months later, would go on from a store that others have long left
 * behind. Before it was put in durably its taker may ask again; no service runs before it was confirmed.
 */
const keptPath = "/put-back";
const authority = peerName("authority");
/** Below the authority's own directory. */
export const keptPartsDirectory = (directory: string): string => join(directory, "put-back");
const manifestFile = "manifest.json";
const takenFile = "taken.json";
interface Taken extends Kept {
  readonly by: string;
  /** ISO 8601. */
  readonly at: string;
}
/** What is kept, as the authority knows it. */
interface Kept {
  /** Of the cell whose controller it is of; null: of none, or its store does not say. */
  readonly cellUid: string | null;
}
/** With the names of hosts. */
const longestManifest = 256 * 1024;
const pauseMs = 2000;

/** Of the others nothing is put back: what they know they hear again from those that desire it of them. */
export const keepsItsOwn = (peer: PeerName): boolean => mayAsk("authority", peer, "GET", keptPath);

/**
 * @param directory the authority's own
 * @param goneHosts as in `noteRestored`
 */
export const keepPart = async (
  { manifest, files }: UnpackedPart,
  directory: string,
  goneHosts: GoneHosts = "all",
): Promise<void> => {
  const own = join(keptPartsDirectory(directory), manifest.name);
  await rm(own, { recursive: true, force: true });
  await mkdir(own, { recursive: true, mode: 0o700 });
  const store = files.get("state.sqlite");
  const cellUid = store === undefined ? null : cellUidIn(store);
  // The store is the last one to be put into place: where it is, the rest is.
  const kept = manifest.files.filter(isGivenBack).sort((one, other) => (one.path < other.path ? -1 : 1));
  for (const [index, { path }] of kept.entries()) {
    await copyFile(files.get(path) ?? "", join(own, String(index)));
    await synchronize(join(own, String(index)));
  }
  await replaceFile(join(own, manifestFile), JSON.stringify({ ...manifest, files: kept, cellUid, goneHosts }));
};

/**
 * @param directory the authority's own
 * @param cellUidOf of which cell the asking controller is, by its enrolment; null: nobody said so
 */
export const answerKeptParts =
  (directory: string, cellUidOf: (asked: PeerRequest) => Promise<string | null>): PeerHandler =>
  async (asked, response) => {
    const { peer, method, url } = asked;
    const refuse = (status: number, message: string): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code: "refused", message } }));
    };
    // What is behind a question mark is not looked at by the table.
    if (url.includes("?") || !mayAsk("authority", peer, method, url))
      return refuse(403, `nothing is put back for "${peer}"`);
    const own = join(keptPartsDirectory(directory), peer);
    const name = url === keptPath ? manifestFile : url.slice(keptPath.length + 1);
    const taken = await readKept<Taken>(join(own, takenFile));
    const kept = taken ?? (await readKept<Kept>(join(own, manifestFile)));
    if (kept === null) return refuse(404, `no backup that was restored has anything of "${peer}"`);
    if (kindOf(peer) === "controller") {
      const cellUid = await cellUidOf(asked);
      if (cellUid === null)
        return refuse(503, `the enrolment of "${peer}" does not say of which cell it is; ask again`);
      if (kept.cellUid === null)
        return refuse(410, `what the restored backup has of "${peer}" has no element that says of which cell it is`);
      if (kept.cellUid !== cellUid)
        return refuse(404, `what the restored backup has of "${peer}" is of a former cell of that name`);
    }
    if (taken !== null && (method !== "DELETE" || taken.by !== name))
      return refuse(410, `what the restored backup had of "${peer}" was put in on ${taken.at}, and is given once`);
    if (method === "DELETE") {
      await end(own, taken ?? { by: name, at: new Date().toISOString(), cellUid: kept.cellUid });
      response.writeHead(204);
      response.end();
      return;
    }
    if (!existsSync(join(own, name))) return refuse(404, `what is kept of "${peer}" has no "${name}"`);
    response.writeHead(200, { "content-type": "application/octet-stream" });
    await pipeline(createReadStream(join(own, name)), response);
  };

const readKept = async <Form extends Kept>(file: string): Promise<Form | null> =>
  existsSync(file) ? (JSON.parse(await readFile(file, "utf8")) as Form) : null;

/** The note is durable before anything goes, and stays. */
const end = async (own: string, taken: Taken): Promise<void> => {
  await replaceFile(join(own, takenFile), JSON.stringify(taken));
  for (const file of await readdir(own)) if (file !== takenFile) await rm(join(own, file), { force: true });
};

type Log = (event: EventName, fields: { readonly [key: string]: Json }) => void;

/**
 * Where this process has no store yet, gets the one that the restored backup has of it, if there is one. Resolves when its
 * directory is as it should be and the authority gives that store to nobody else; goes on asking as long as it gives no
 * answer.
 */
export const takeKeptPart = async (configuration: ProcessConfiguration, log: Log): Promise<void> => {
  const { directory, enrolment, name } = configuration;
  if (enrolment === undefined || !keepsItsOwn(name)) return;
  const insistently = async (task: () => Promise<void>): Promise<void> => {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await task();
      } catch (error) {
        if ((attempts & (attempts - 1)) === 0) log("store/waits", { why: (error as Error).message, attempts });
        await sleep(pauseMs);
      }
    }
  };
  if (!existsSync(join(directory, "state.sqlite"))) await insistently(() => attempt(configuration, log));
  if (existsSync(join(directory, unconfirmedFile))) await insistently(() => confirm(configuration));
};

const attempt = async (configuration: ProcessConfiguration, log: Log): Promise<void> => {
  const { directory, name } = configuration;
  const draft = join(directory, "put-back.new");
  await rm(draft, { recursive: true, force: true });
  // Of a taking that was broken off before its store was in place.
  await rm(join(directory, unconfirmedFile), { force: true });
  try {
    const found = await manifestOf(configuration, log);
    if (found === null) return;
    const { manifest, goneHosts } = found;
    await mkdir(draft, { recursive: true, mode: 0o700 });
    const files = new Map<string, string>();
    for (const [index, file] of manifest.files.entries()) {
      const to = join(draft, String(index));
      await takeFile(configuration, index, file, to);
      if (file.kind !== "file") checkDatabase(to, `"${file.path}" of "${name}"`);
      files.set(file.path, to);
    }
    if (isOfAnother(files.get("state.sqlite") ?? "", configuration)) return;
    await replaceFile(join(directory, unconfirmedFile), randomUUID());
    await putBack({ manifest, files }, directory, goneHosts);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
};

/** The store is in place; it may have been, before a crash. */
const confirm = async (configuration: ProcessConfiguration): Promise<void> => {
  const file = join(configuration.directory, unconfirmedFile);
  const path = `${keptPath}/${await readFile(file, "utf8")}`;
  const answer = await peerRequest(configuration, authority, { method: "DELETE", path });
  const text = await answer.text();
  // 404: an authority that was restored once more, without it.
  if (answer.status !== 204 && answer.status !== 404)
    throw new Error(`the authority answers ${path} with ${answer.status}: ${text.slice(0, 300)}`);
  await rm(file, { force: true });
  await synchronize(configuration.directory);
};

const ask = async (configuration: ProcessConfiguration, path: string) => {
  const answer = await peerRequest(configuration, authority, { method: "GET", path });
  if ([200, 404, 410].includes(answer.status)) return answer;
  throw new Error(`the authority answers ${path} with ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
};

/** Null: there is none. */
const manifestOf = async (
  configuration: ProcessConfiguration,
  log: Log,
): Promise<{ readonly manifest: PartManifest; readonly goneHosts: GoneHosts } | null> => {
  const answer = await ask(configuration, keptPath);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += (chunk as Buffer).length;
    if (bytes > longestManifest) throw new BackupFault(null, "the authority's manifest has no end");
    chunks.push(chunk as Buffer);
  }
  if (answer.status === 410) log("store/blank", { why: Buffer.concat(chunks).toString("utf8").slice(0, 300) });
  if (answer.status !== 200) return null;
  const { name, role } = configuration;
  const manifest = manifestIn(Buffer.concat(chunks), { name, role });
  if (!manifest.files.every(isGivenBack) || manifest.files.at(-1)?.path !== "state.sqlite")
    throw new BackupFault(null, `the manifest of "${name}" names files that are not put back, or no store`);
  const { goneHosts = "all" } = manifest as Partial<{ readonly goneHosts: GoneHosts }>;
  if (goneHosts !== "all" && !(Array.isArray(goneHosts) && goneHosts.every((host) => typeof host === "string")))
    throw new BackupFault(null, `the manifest of "${name}" says of no host that it is gone, and not of all`);
  return { manifest, goneHosts };
};

const takeFile = async (
  configuration: ProcessConfiguration,
  index: number,
  { path, bytes, sha256 }: PartFile,
  to: string,
): Promise<void> => {
  const answer = await ask(configuration, `${keptPath}/${index}`);
  const hash = createHash("sha256");
  let taken = 0;
  const counted = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      taken += chunk.length;
      hash.update(chunk);
      done(taken > bytes ? new BackupFault(null, `"${path}" is longer than its manifest says`) : null, chunk);
    },
  });
  await pipeline(Readable.from(answer.body), counted, createWriteStream(to, { mode: 0o600 }));
  if (answer.status !== 200 || taken !== bytes || hash.digest("hex") !== sha256)
    throw new BackupFault(null, `"${path}" is not what its manifest says`);
};

/** A cell that was made anew under the name of one that is in the backup is another cell. */
const isOfAnother = (store: string, { controller }: ProcessConfiguration): boolean => {
  const found = cellUidIn(store);
  return controller !== undefined && found !== null && found !== controller.cellUid;
};

/** By the elements in its controller's store, which have the UIDs `<cellUid>-<n>`; null: there is none. */
export const cellUidIn = (store: string): string | null => {
  const prefix = "own/element/";
  const database = new DatabaseSync(store, { readOnly: true });
  try {
    const found = database.prepare("SELECT key FROM entries WHERE key LIKE ? LIMIT 1").get(`${prefix}%`);
    if (found === undefined) return null;
    const key = String(found.key);
    return key.slice(prefix.length, key.lastIndexOf("-"));
  } finally {
    database.close();
  }
};
