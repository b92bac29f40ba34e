import { readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import type { IsThere } from "../../core/distribution/node/release.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { type PeerBook, type ProcessConfiguration, ports } from "../installation.ts";

export interface PeerAddress {
  readonly host: string;
  readonly distributionPort: number;
  readonly httpPort: number;
}

const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65536;

/** Reads one entry of the peers file, as `PeerBook` describes it. */
export const parsePeerAddress = (entry: string): Result<PeerAddress, string> => {
  const [host = "", ...numbers] = entry.split(":");
  const [distributionPort = ports.distribution, httpPort = numbers.length === 0 ? ports.http : distributionPort + 1] =
    numbers.map(Number);
  if (host === "" || numbers.length > 2 || !isPort(distributionPort) || !isPort(httpPort)) {
    return fail(`"${entry}" is no address of a peer; it would be "10.0.1.1" or "127.0.0.1:7100:7101"`);
  }
  return ok({ host, distributionPort, httpPort });
};

/** Names in the peers file that start with `prefix`, sorted. Rejects when the file cannot be read. */
export const listPeers = async (configuration: ProcessConfiguration, prefix: string): Promise<readonly PeerName[]> => {
  const book = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
  const names = Object.keys(book.peers).filter((name) => name.startsWith(prefix));
  return names.sort().map(peerName);
};

/**
 * Machines of the installation, by their names, each with its address. Read anew when the file is another one: who answers tenants asks for it with
 * each answer, and a cloud may have thousands.
 */
async function machines({ peersFile }: ProcessConfiguration): Promise<ReadonlyMap<string, string>> {
  // A process without it reaches nobody, and hears of no machine.
  const found = await stat(peersFile).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (found === null) return new Map();
  const version = `${found.ino} ${found.mtimeMs} ${found.size}`;
  const known = machinesRead.get(peersFile);
  if (known?.version === version) return known.machines;
  const { peers } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  const all = new Map(
    Object.entries(peers).flatMap(([peer, entry]) => {
      const name = /^(?:host|agent)\.(.+)$/.exec(peer)?.[1];
      const address = parsePeerAddress(entry);
      return name === undefined || !address.ok ? [] : [[name, address.value.host] as const];
    }),
  );
  machinesRead.set(peersFile, { version, machines: all });
  return all;
}
const machinesRead = new Map<string, { readonly version: string; readonly machines: ReadonlyMap<string, string> }>();
export const machineNames = async (configuration: ProcessConfiguration): Promise<Iterable<string>> =>
  (await machines(configuration)).keys();
export const machineAddresses = async (configuration: ProcessConfiguration): Promise<ReadonlySet<string>> =>
  new Set((await machines(configuration)).values());

/** Who of those whose names start with `prefix` has that address; null: nobody. Rejects when the file cannot be read. */
export const peerAt = async (
  { peersFile }: ProcessConfiguration,
  prefix: string,
  address: string,
): Promise<PeerName | null> => {
  const { peers } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  const has = (entry: string): boolean => {
    const parsed = parsePeerAddress(entry);
    return parsed.ok && parsed.value.host === address;
  };
  const names = Object.keys(peers).filter((name) => name.startsWith(prefix) && has(peers[name] ?? ""));
  return names.sort().map(peerName)[0] ?? null;
};

/**
 * Who there is, by the peers file. A controller that is said to be another cell's is gone, also when a later cell has its name.
 * Rejects when the file cannot be read.
 */
export const readWhoIsThere = async ({ peersFile }: ProcessConfiguration): Promise<IsThere> => {
  const { peers, cells = {} } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  return (peer, instance) => {
    if (!Object.hasOwn(peers, peer)) return false;
    const now = Object.hasOwn(cells, peer) ? cells[peer] : undefined;
    return instance === null || now === undefined || now === instance;
  };
};

/** By its name, which of that name a cell is; "": nobody has said. Rejects when the file cannot be read. */
export const readLives = async ({ peersFile }: ProcessConfiguration): Promise<(cell: string) => string> => {
  const { cells = {} } = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
  return (cell) => (Object.hasOwn(cells, `controller.${cell}`) ? (cells[`controller.${cell}`] ?? "") : "");
};

/**
 * Where a peer is. The file is read at each look-up: look-ups come only with new connections, which their back-off
 * bounds, and a peer that moved is found at once. A small file in memory is read in a fraction of what it costs to have
 * another thread read it.
 */
export const findPeer = async (
  configuration: ProcessConfiguration,
  peer: PeerName,
): Promise<Result<PeerAddress, string>> => {
  const { peersFile } = configuration;
  try {
    const book = JSON.parse(readFileSync(peersFile, "utf8")) as PeerBook;
    const entry = Object.hasOwn(book.peers, peer) ? book.peers[peer] : undefined;
    if (entry === undefined) return fail(`the peers file ${peersFile} does not name "${peer}"`);
    return parsePeerAddress(entry);
  } catch (error) {
    return fail(`the peers file ${peersFile} cannot be read: ${(error as Error).message}`);
  }
};
