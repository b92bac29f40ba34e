import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { kindOf, mayAsk, type ServiceKind } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { readBody } from "../http/http.ts";
import type { PeerHandler } from "../http/peer-handler.ts";
import type { ProcessConfiguration } from "../installation.ts";
import type { Store } from "../process/store.ts";
import { copyProcess } from "./copy.ts";
import { BackupFault } from "./frames.ts";
import { certificateIn, hashOfOrder, longestOrder, type Order, openOrder, readSignedOrder } from "./order.ts";
import { writePart } from "./part.ts";

/**
 * `POST /backup` of every process that keeps a store: body is a `SignedOrder`, the answer its part (`part.ts`). One at a time:
 * a copy takes as much room as the store.
 */
export const createBackupHandler = (configuration: ProcessConfiguration, store: Pick<Store, "copyTo">): PeerHandler => {
  let busy = false;
  return async ({ peer, method, body }, response) => {
    const refuse = (status: number, code: string, message: string): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code, message } }));
    };
    if (method !== "POST") return refuse(405, "not-allowed", "a copy is asked for with POST");
    if (!mayBackUp(configuration.name, peer))
      return refuse(
        403,
        "forbidden",
        `only the gateway and the root cell's controller pass on such an order, and this is "${peer}"`,
      );
    if (busy) return refuse(503, "busy", "another copy of this store is under way");
    busy = true;
    try {
      const text = await readBody(body, 2 * longestOrder);
      const signed = readSignedOrder(text.ok ? JSON.parse(text.value) : null);
      const { caFile, certFile, keyFile } = configuration.certificate;
      const authority = certificateIn(await readFile(caFile, "utf8"), caFile);
      const order = openOrder(signed, authority, Date.now());
      if (!order.peers.includes(configuration.name))
        throw new BackupFault(null, `the order does not ask "${configuration.name}" for anything`);
      await send(configuration, store, response, {
        order,
        orderHash: hashOfOrder(signed),
        certificate: await readFile(certFile, "utf8"),
        privateKey: createPrivateKey(await readFile(keyFile)),
      });
    } catch (error) {
      if (response.headersSent) response.destroy();
      else if (error instanceof BackupFault || error instanceof SyntaxError) refuse(400, "backup/order", error.message);
      else throw error;
    } finally {
      busy = false;
    }
  };
};

const mayBackUp = (self: PeerName, peer: PeerName): boolean => {
  const kind = kindOf(peerName(self));
  return kind !== null && mayAsk(kind as ServiceKind, peer, "POST", "/backup");
};

interface Sent {
  readonly order: Order;
  readonly orderHash: string;
  readonly certificate: string;
  readonly privateKey: KeyObject;
}
const send = async (
  configuration: ProcessConfiguration,
  store: Pick<Store, "copyTo">,
  response: Parameters<PeerHandler>[1],
  sent: Sent,
): Promise<void> => {
  const copy = await copyProcess(configuration, store);
  try {
    const { name, role } = configuration;
    const part = writePart({ name, role, ...sent, manifest: copy.manifest, files: copy.files });
    response.writeHead(200, { "content-type": "application/octet-stream" });
    await pipeline(Readable.from(part), response);
  } finally {
    await copy.remove();
  }
};
