import { buildView, type World } from "../../model/eucalyptus/view/build-view.ts";
import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import { type Book, isElasticTold } from "./book.ts";

/**
 * The global view of the book's version; null: there is no configuration, its mode has no view, or the book is still gathering what it has
 * lost: hosts keep the view that they have.
 * @param installation what is no matter of addresses: clusters with their hosts, groups, who answers for metadata and names
 */
export function viewOf(book: Book, installation: Omit<World, "instances">): NetworkView | null {
  if (book.configuration === null || book.recovery !== null) return null;
  const elastic = new Map<string, number>();
  for (const entry of book.addresses.values()) {
    const at = entry.instance === null ? undefined : book.instances.get(entry.instance);
    if (entry.kind === "elastic" && at !== undefined && isElasticTold(book, entry, at))
      elastic.set(at.id, entry.address);
  }
  const instances = [...book.instances.values()].flatMap(({ id, owner, mac, cluster, node, groups, privateIp }) => {
    const publicIp = elastic.get(id);
    if (node === null) return [];
    return [
      {
        id,
        owner,
        mac,
        cluster,
        node,
        ...(privateIp === 0 ? {} : { privateIp }),
        securityGroups: groups,
        ...(publicIp === undefined ? {} : { publicIp }),
      },
    ];
  });
  const view = buildView(book.configuration, { ...installation, instances });
  return view === null ? null : { ...view, version: String(book.version) };
}
