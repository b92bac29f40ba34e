import { readFile } from "node:fs/promises";
import { peerName } from "../../model/cell/identifiers.ts";
import { boolean, list, nullable, number, oneOf, record, type Schema, text } from "../../model/contract/schema.ts";
import type { OutgoingPeerRequest } from "../../runtime/http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { askPeer } from "../requests/ask-peer.ts";
import { answerAs, refusalIn } from "../requests/peer-answer.ts";

/* Storage servers as the gateway asks them for images; what they answer: `host/storage-agent/images/image-edge.ts`. */
export interface ServerImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeMiB: number;
  readonly provided: boolean;
}
export interface Staged extends Omit<ServerImage, "provided"> {
  /** Null: the very same is there already. */
  readonly id: string | null;
}
const parts = { name: text(), digest: text(), sizeMiB: number };
const serverImages = list(record<ServerImage>({ ...parts, provided: boolean }));
export const stagedImage = record<Staged>({ ...parts, id: nullable(text()) });
/** What a server has of an upload that broke off. */
export interface ServerPart {
  readonly format: "raw" | "qcow2";
  readonly length: number;
  readonly received: number;
  readonly digest: string;
}
const serverPart = record<ServerPart>({
  format: oneOf("raw", "qcow2"),
  length: number,
  received: number,
  digest: text(),
});
export interface Failure {
  readonly server: string;
  readonly status: number;
  readonly code: string;
  readonly message: string;
}
/** What one server answered. */
export type Told<T> = { readonly server: string; readonly value: T } | Failure;
export const failed = <T>(told: Told<T>): told is Failure => "code" in told;

/** Of what is not about bytes. */
export const answerTimeoutMs = 5_000;
/** A conversion takes minutes at most, and the server ends it itself; then comes the turn of the next. */
const conversionMs = 2 * 60 * 60_000;

export type AskServer = <T>(
  server: string,
  request: OutgoingPeerRequest & { readonly timeoutMs?: number },
  schema: Schema<T>,
) => Promise<Told<T>>;
export interface ImageServers {
  readonly ask: AskServer;
  /** In the order of their names. */
  readonly names: () => Promise<readonly string[]>;
  readonly lists: () => Promise<readonly Told<readonly ServerImage[]>[]>;
  readonly parts: (name: string) => Promise<readonly Told<ServerPart>[]>;
}
export function createImageServers(configuration: ProcessConfiguration): ImageServers {
  const ask: AskServer = async (server, { timeoutMs, ...request }, schema) => {
    try {
      const answer = await askPeer(configuration, peerName(`agent.${server}`), {
        idleTimeoutMs: conversionMs,
        ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
        ...request,
      });
      const body = await answer.text();
      if (answer.status === 200) return { server, value: answerAs(schema, body, `agent.${server}`) };
      const { code = "image/failed", message = "it failed; its log says why" } = refusalIn(body);
      return { server, status: answer.status, code, message };
    } catch (error) {
      const message = `the storage server ${server} does not answer: ${(error as Error).message}`;
      return { server, status: 503, code: "image/unreachable", message };
    }
  };
  const names = async (): Promise<readonly string[]> => {
    const { peers } = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
    const agents = Object.keys(peers).filter((peer) => peer.startsWith("agent."));
    return agents
      .map((peer) => peer.slice("agent.".length))
      .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  };
  const askAll = async <T>(path: string, schema: Schema<T>): Promise<readonly Told<T>[]> =>
    Promise.all(
      (await names()).map((server) => ask(server, { method: "GET", path, timeoutMs: answerTimeoutMs }, schema)),
    );
  const lists = () => askAll("/images", serverImages);
  const parts = (name: string) => askAll(`/images/${name}`, serverPart);
  return { ask, names, lists, parts };
}
