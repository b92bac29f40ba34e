import { readFile } from "node:fs/promises";
import { parseIpv4 } from "../../model/addresses/addresses.ts";
import type { Json } from "../../model/json/json.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { parsePeerAddress } from "../../runtime/transport/peers.ts";
import { watchPeers } from "../../runtime/transport/peers-watch.ts";

/** Where peers are on the underlay, by the book of the authority: entries that are addresses, those of this machine alone left out. */
const addressesIn = ({ peers }: PeerBook): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(peers).flatMap(([name, entry]) => {
      const parsed = parsePeerAddress(entry);
      const isAddress = parsed.ok && parseIpv4(parsed.value.host) !== null && !parsed.value.host.startsWith("127.");
      return isAddress ? [[name, parsed.value.host]] : [];
    }),
  );

/**
 * Tells the service where peers are, now and whenever the peers file says something else. Where no authority keeps that file it says
 * where storage servers are, and what controllers say of themselves is believed. Returns how to stop that.
 */
export const followAddresses = (
  { peersFile, followPeers }: ProcessConfiguration,
  request: (request: Json) => Promise<Json>,
): (() => Promise<void>) => {
  const tell = async (): Promise<void> => {
    try {
      const book = JSON.parse(await readFile(peersFile, "utf8")) as PeerBook;
      const all = Object.entries(addressesIn(book));
      const told = followPeers === true ? all : all.filter(([name]) => name.startsWith("agent."));
      await request({ kind: "peer-addresses", addresses: Object.fromEntries(told) });
    } catch {
      // What was known of it counts until the file can be read again, or the service is being stopped.
    }
  };
  const stop = watchPeers(peersFile, tell);
  void tell();
  return async () => stop();
};
