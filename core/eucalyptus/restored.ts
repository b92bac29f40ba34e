import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { type Book, type BookedAddress, type BookedInstance, type ElasticLease, emptyBook } from "./book.ts";
import { restoredCarriers } from "./network-hosts/carriers.ts";

/** A book from the records that steps have written. */
export function restoreBook(records: ReadonlyMap<string, unknown>): Book {
  const book = emptyBook();
  for (const [key, value] of records) {
    const [kind = "", ...rest] = key.split("/");
    const name = rest.join("/");
    if (kind === "configuration") book.configuration = value as NetworkConfiguration;
    else if (kind === "version") book.version = value as number;
    else if (kind === "instance") book.instances.set(name, value as BookedInstance);
    else if (kind === "elastic") book.elastic.set(Number(name), value as ElasticLease);
    else if (kind === "segment") book.segments.set(name, value as number);
    else if (kind === "recovery") {
      const hosts = value as readonly string[];
      book.recovery = { hosts, unheard: new Set(hosts), found: new Set(), carriers: new Map() };
    } else if (kind === "network-host") {
      book.networkHosts.set(name, restoredCarriers(value as Parameters<typeof restoredCarriers>[0]));
    } else if (kind === "address") {
      const stored = value as Omit<BookedAddress, "hosts"> & {
        readonly hosts: [string, { since: number; until: null }][];
      };
      book.addresses.set(name, { ...stored, hosts: new Map(stored.hosts) });
    }
  }
  return book;
}
