import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";

/*
 * What names outside lead to, asked of this machine's name servers by sockets of our own. The system's own way (`getaddrinfo`) takes one of the four
 * threads that all reading and writing of files shares, for as long as a name server of a stranger's likes: four names of his would stop the gateway.
 * What the machine's own table says of a name counts as it does for the system; names that are not written in full are not completed.
 */
export type Resolve = (name: string) => Promise<readonly { readonly address: string }[]>;

const tryMs = 2000;
const tries = 2;
/** Of all that is asked for one name. */
const inAllMs = 6000;
const tableFile = "/etc/hosts";
const longestTable = 256 * 1024;
/** Of one name. More are of no use to anybody. */
const mostAddresses = 64;

/** What a table in the form of `/etc/hosts` says of a name. */
export function addressesIn(table: string, name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return table
    .slice(0, longestTable)
    .split("\n")
    .flatMap((line) => {
      const [address = "", ...names] = (line.split("#")[0] ?? "").trim().split(/\s+/);
      return names.some((each) => each.toLowerCase() === wanted) ? [address] : [];
    });
}

/** @param servers in place of the machine's, as `address:port` */
export const byNameServers =
  ({ servers, table = tableFile }: { readonly servers?: readonly string[]; readonly table?: string } = {}): Resolve =>
  async (written) => {
    const name = written.replace(/\.$/, "");
    // Nobody's server is asked for these (RFC 6761, section 6.3).
    if (/(?:^|\.)localhost$/i.test(name)) return [{ address: "127.0.0.1" }, { address: "::1" }];
    const own = addressesIn(await readFile(table, "utf8").catch(() => ""), name);
    if (own.length > 0) return own.map((address) => ({ address }));
    // Of this question alone, so that its end ends no other.
    const resolver = new Resolver({ timeout: tryMs, tries });
    if (servers !== undefined) resolver.setServers(servers);
    const end = setTimeout(() => resolver.cancel(), inAllMs);
    try {
      const told = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const found = told.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
      if (found.length > 0) return found.slice(0, mostAddresses).map((address) => ({ address }));
      const codes = told.flatMap((each) =>
        each.status === "rejected" ? [(each.reason as { code?: string }).code] : [],
      );
      const silent = codes.find((code) => code !== "ENOTFOUND" && code !== "ENODATA");
      if (silent === undefined) return [];
      throw new Error(`the name servers did not say where ${name} leads (${silent})`);
    } finally {
      clearTimeout(end);
    }
  };
