import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { mayAsk } from "../../../core/documents/permissions.ts";
import type { PeerRequest } from "../../../runtime/http/peer-handler.ts";
import type { BackupStore } from "./backup-store.ts";

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

/**
 * What an agent answers below `/backups`: to the root cell's controller, which puts and removes them, and to the gateway, which
 * lists and reads them.
 *
 * GET    /backups         → KeptBackup[], oldest first
 * GET    /backups/<name>  → the bytes
 * PUT    /backups/<name>  body: the bytes, with Content-Length → KeptBackup
 * DELETE /backups/<name>  → {}
 *
 * Answers false when the request is none of these.
 */
export const createBackupEdge =
  (store: BackupStore) =>
  async ({ peer, method, url, headers, body }: PeerRequest, response: ServerResponse): Promise<boolean> => {
    const match = /^\/backups(?:\/([^/?]+))?$/.exec(url);
    if (match === null) return false;
    const refuse = (status: number, code: string, message: string): void =>
      answer(response, status, { error: { code, message } });
    const name = match[1];
    if (!mayAsk("agent", peer, method, url)) refuse(403, "agent/refused", `"${peer}" may not do that with backups`);
    else if (name === undefined) answer(response, 200, await store.list());
    else if (method === "GET") {
      const found = await store.read(name);
      if (found === null) refuse(404, "backup/unknown", `there is no backup "${name.slice(0, 40)}" on this server`);
      else {
        response.writeHead(200, { "content-type": "application/octet-stream", "content-length": found.bytes });
        await pipeline(found.body, response);
      }
    } else if (method === "PUT") {
      const kept = await store.keep(name, Number(headers["content-length"] ?? Number.NaN), body);
      if (kept.ok) answer(response, 200, kept.value);
      else refuse(kept.error.status, kept.error.code, kept.error.message);
    } else {
      await store.remove(name);
      answer(response, 200, {});
    }
    return true;
  };
