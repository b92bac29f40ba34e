import { createHash, createPrivateKey } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { BackupFault } from "../../runtime/backup/frames.ts";
import {
  certificateIn,
  hashOfOrder,
  longestOrder,
  openOrder,
  readSignedOrder,
  signOrder,
} from "../../runtime/backup/order.ts";
import { type PartFile, type PartManifest, writePart } from "../../runtime/backup/part.ts";
import { isAuthorized } from "../../runtime/http/bearer.ts";
import { readBody } from "../../runtime/http/http.ts";
import { readAuthority } from "../../runtime/identity/certificates.ts";
import type { Places } from "../places.ts";
import { readRecord } from "../record.ts";
import { membersOf } from "./members.ts";

/**
 * Where the management runs as processes, the supervisor is what the root cell's controller and the authority are elsewhere:
 * it knows the operator's credential, signs orders for backups, and gives its own part, without which the rest could not be
 * brought back: the installation's record and the authority.
 */
export const supervisorPart = "supervisor";
/** By path in the part, below the testbed's directory. */
export const supervisorFiles: readonly string[] = [
  "installation.json",
  "authority/authority.key.pem",
  "authority/authority.pem",
  "authority/gossip.key",
];

const refuse = (response: ServerResponse, status: number, code: string, message: string): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { code, message } }));
};

/** `POST /backup-order` {recipient} with the operator's credential → SignedOrder; `POST /backup` SignedOrder → the part. */
export const answerBackup = async (
  at: Places,
  path: "/backup-order" | "/backup",
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  try {
    const text = await readBody(request, 2 * longestOrder);
    const body: unknown = text.ok ? JSON.parse(text.value) : null;
    if (path === "/backup") await sendPart(at, body, response);
    else await sendOrder(at, request.headers.authorization, body, response);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else if (error instanceof BackupFault || error instanceof SyntaxError)
      refuse(response, 400, "backup/order", error.message);
    else refuse(response, 500, "supervisor", (error as Error).message);
  }
};

const sendOrder = async (
  at: Places,
  authorization: string | undefined,
  body: unknown,
  response: ServerResponse,
): Promise<void> => {
  const record = readRecord(at);
  const authority = await readAuthority(at.authority);
  if (record === undefined || authority === null) throw new Error("the installation's record or authority is missing");
  if (!isAuthorized(authorization, [record.credentialHash]))
    return refuse(response, 403, "forbidden", "a backup of the management is the operator's alone");
  const peers = membersOf(record).flatMap(({ role, peer }) => (role === "gateway" ? [] : [String(peer)]));
  const { recipient } = (body ?? {}) as { readonly recipient?: unknown };
  const order = { recipient: String(recipient), peers: [supervisorPart, ...peers], nowMs: Date.now() };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(await signOrder(authority, order)));
};

const sendPart = async (at: Places, body: unknown, response: ServerResponse): Promise<void> => {
  const signed = readSignedOrder(body);
  const certificate = await readFile(join(at.authority, "authority.pem"), "utf8");
  const order = openOrder(signed, certificateIn(certificate, "the authority's"), Date.now());
  const copies = await mkdtemp(join(at.run, "backup-"));
  try {
    const files: string[] = [];
    const described: PartFile[] = [];
    for (const path of supervisorFiles.filter((each) => existsSync(join(at.directory, each)))) {
      const copy = join(copies, path.replaceAll("/", "+"));
      await copyFile(join(at.directory, path), copy);
      const bytes = await readFile(copy);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      files.push(copy);
      described.push({ path, kind: "file", bytes: bytes.length, sha256 });
    }
    const own = { name: supervisorPart, role: supervisorPart };
    const taken = new Date().toISOString();
    const manifest: PartManifest = { format: 1, ...own, taken, history: null, files: described };
    const privateKey = createPrivateKey(await readFile(join(at.authority, "authority.key.pem")));
    const part = writePart({ ...own, order, orderHash: hashOfOrder(signed), certificate, privateKey, manifest, files });
    response.writeHead(200, { "content-type": "application/octet-stream" });
    await pipeline(Readable.from(part), response);
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
};
