import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import type { Layer } from "../../../core/documents/vocabulary.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { PeerBook } from "../../../runtime/installation.ts";
import { parsePeerAddress } from "../../../runtime/transport/peers.ts";

/** How long a server may take to accept a connection: a lost packet or two, and a busy machine. */
const answerWithinMs = 10_000;

/** The storage agent at an address (and, where several share one, at that HTTPS port); null: nobody is known there. */
export async function agentAt(peersFile: string, address: string, httpPort?: number): Promise<PeerName | null> {
  const book = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  for (const [name, entry] of Object.entries(book.peers)) {
    const known = parsePeerAddress(entry);
    if (!name.startsWith("agent.") || !known.ok || known.value.host !== address) continue;
    if (httpPort === undefined || known.value.httpPort === httpPort) return peerName(name);
  }
  return null;
}

/**
 * Resolves when every layer's server accepts connections. QEMU would find out as well, but can only name an address
 * among much else; a person needs the server's name. Rejects with a sentence.
 */
export async function requireServers(layers: readonly Layer[], peersFile: string): Promise<void> {
  await Promise.all(
    layers.map(async ({ address, port }) => {
      const why = await knock(address, port);
      if (why === null) return;
      const agent = await agentAt(peersFile, address).catch(() => null);
      const server = agent === null ? `the storage server at ${address}` : `storage server ${agent.slice(6)}`;
      throw new Error(`${server} does not serve its disk (${address}:${port}: ${why})`);
    }),
  );
}

/** Null when something accepts connections there, else why not. */
const knock = (host: string, port: number): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (why: string | null): void => {
      clearTimeout(deadline);
      socket.destroy();
      resolve(why);
    };
    const deadline = setTimeout(() => end(`no answer within ${answerWithinMs / 1000} s`), answerWithinMs);
    socket.once("connect", () => end(null));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
