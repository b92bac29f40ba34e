import type { ServerResponse } from "node:http";
import { isBinFileName } from "../../../core/documents/bin.ts";
import { mayAsk } from "../../../core/documents/permissions.ts";
import type { BinFile } from "../../../core/storage/bin.ts";
import type { BinEntry } from "../../../model/api.ts";
import type { AuditEntry } from "../../../model/contract/audit/audit.ts";
import type { PeerRequest } from "../../../runtime/http/peer-handler.ts";
import { askedBy } from "../../../runtime/observation/asked-by.ts";
import type { Executor } from "../executor.ts";
import type { BinFiles } from "./bin-files.ts";

/** As the gateway sees one server's file. */
export type ServerBinFile = Omit<BinEntry, "server">;

const told = ({ file, volume, about, sizeMiB, usedMiB, deleted, overlay, offered }: BinFile): ServerBinFile => ({
  file,
  volume,
  path: about?.path ?? null,
  sizeMiB,
  usedMiB,
  deleted,
  overlay,
  offered,
});
/** Before it is done, and durable then. */
type Recording = (entry: AuditEntry) => Promise<void>;
const answer = (response: ServerResponse, status: number, body: unknown): true => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
  return true;
};
const refuse = (response: ServerResponse, status: number, code: string, message: string): true =>
  answer(response, status, { error: { code, message } });

/** `POST /adopt`, by the gateway: what a server has that is older than others know it is taken as it is. */
export const createAdoptionEdge =
  (executor: Pick<Executor, "adopt">, record: Recording) =>
  async (request: PeerRequest, response: ServerResponse): Promise<boolean> => {
    const { peer, method, url } = request;
    if (url !== "/adopt") return false;
    if (!mayAsk("agent", peer, method, url))
      return refuse(response, 403, "agent/refused", `"${peer}" may not ${method} this`);
    await record(askedBy(request, { verb: "adoptServer", target: "this server" }));
    const adopted = await executor.adopt();
    const message = "nothing here is older than others know it: there is nothing to adopt";
    return adopted === null ? refuse(response, 409, "server/not-older", message) : answer(response, 200, adopted);
  };

/**
 * What an agent answers below `/bin`, to the gateway alone:
 *
 * GET    /bin         → ServerBinFile[]
 * POST   /bin/<file>  → ServerBinFile: the next volume with its cell and path begins with it
 * DELETE /bin/<file>  → {}: it is gone for good
 *
 * Answers false when the request is none of these.
 */
export const createBinEdge =
  (bin: BinFiles, executor: Pick<Executor, "reportBin" | "emptyBin">, record: Recording) =>
  async (request: PeerRequest, response: ServerResponse): Promise<boolean> => {
    const { peer, method, url } = request;
    const match = /^\/bin(?:\/([^/?]+))?$/.exec(url);
    if (match === null) return false;
    if (!mayAsk("agent", peer, method, url))
      return refuse(response, 403, "agent/refused", `"${peer}" has nothing to do with the bin`);
    const file: string | undefined = match[1];
    if (file === undefined && method === "GET") return answer(response, 200, (await bin.list()).map(told));
    if (file === undefined || (method !== "POST" && method !== "DELETE"))
      return refuse(response, 405, "agent/refused", `there is no ${method} here; a bin knows GET, POST and DELETE`);
    if (!isBinFileName(file)) return refuse(response, 404, "bin/unknown", noSuch(`${file}`.slice(0, 80)));
    await record(askedBy(request, { verb: method === "POST" ? "restoreFromBin" : "emptyBin", target: file }));
    if (method === "POST") {
      const offered = await bin.offer(file);
      if (offered === null) return refuse(response, 404, "bin/unknown", noSuch(file));
      await executor.reportBin();
      return answer(response, 200, told(offered));
    }
    await executor.reportBin();
    const [kept] = (await executor.emptyBin([file])).kept;
    return kept === undefined
      ? answer(response, 200, {})
      : refuse(response, 409, "bin/kept", `${file} stays: ${kept.why}`);
  };

const noSuch = (file: string): string => `there is no ${file} in the bin; \`cells bin list\` shows what there is`;
