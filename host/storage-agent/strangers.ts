import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Uid } from "../../model/cell/identifiers.ts";

/**
 * QSD gives a place to whoever connects, before a key is shown and for as long as it pleases, so somebody else could hold
 * every place of an export, and a VM whose connection breaks would find none. While half of them are taken, whoever comes
 * from elsewhere than those that the export is for is put out. By address, not by what was shown: how far a connection has
 * come is not to be seen from outside. The address of a holder is its host's alone as long as nobody on the wire takes it.
 */
export interface GuardedExport {
  readonly volume: Uid;
  readonly port: number;
  /** How many connections its daemon takes. */
  readonly places: number;
  /** Addresses of those that it is for; empty: not known, and nobody is a stranger. */
  readonly from: () => Promise<readonly string[]>;
}

/**
 * @param table the kernel's, as in /proc/net/tcp: local and remote end of each connection, in hexadecimal, and its state
 * @returns of each port at least half of whose places are taken, the addresses of all connections
 */
export function crowdsIn(
  table: string,
  exports: readonly Pick<GuardedExport, "port" | "places">[],
): ReadonlyMap<number, readonly string[]> {
  const peers = new Map<number, string[]>(exports.map(({ port }) => [port, []]));
  for (const line of table.split("\n")) {
    const found = /^\s*\d+: [0-9A-F]{8}:([0-9A-F]{4}) ([0-9A-F]{8}):[0-9A-F]{4} 01 /.exec(line);
    if (found === null) continue;
    const [, port = "", address = ""] = found;
    peers.get(Number.parseInt(port, 16))?.push(addressOf(address));
  }
  for (const { port, places } of exports) if ((peers.get(port)?.length ?? 0) < places / 2) peers.delete(port);
  return peers;
}

/** The machine's byte order is the little one. */
const addressOf = (hexadecimal: string): string => [...Buffer.from(hexadecimal, "hex")].reverse().join(".");

const run = promisify(execFile);
/** Of one command line. */
const mostAddresses = 200;

/** Resolves with how many connections were ended, by volume. Rejects where the kernel's table cannot be had. */
export async function putOutStrangers(exports: readonly GuardedExport[]): Promise<ReadonlyMap<Uid, number>> {
  const crowds = crowdsIn(await readFile("/proc/net/tcp", "utf8"), exports);
  const ended = new Map<Uid, number>();
  for (const { volume, port, from } of exports) {
    const peers = crowds.get(port);
    const own = peers === undefined ? [] : await from();
    const strangers = own.length === 0 ? [] : (peers ?? []).filter((address) => !own.includes(address));
    if (strangers.length === 0) continue;
    await putOut(port, [...new Set(strangers)]);
    ended.set(volume, strangers.length);
  }
  return ended;
}

async function putOut(port: number, addresses: readonly string[]): Promise<void> {
  for (let at = 0; at < addresses.length; at += mostAddresses) {
    const those = addresses.slice(at, at + mostAddresses).flatMap((each) => ["or", "dst", each]);
    await run("ss", [
      "-K",
      "-tnH",
      "state",
      "established",
      "sport",
      "=",
      `:${port}`,
      "and",
      "(",
      ...those.slice(1),
      ")",
    ]);
  }
}
