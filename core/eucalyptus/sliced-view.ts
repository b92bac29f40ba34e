import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import { cut, summaryOf } from "../distribution/views/slices.ts";
import { networkGroup, type ViewItem } from "../documents/network/eucalyptus.ts";
/** A view as hosts are told it: what is of the whole in the manifest, instances and groups in slices. */
export function slicedView(view: NetworkView) {
  const nodeOf = new Map(
    view.clusters.flatMap(({ nodes }) =>
      nodes.flatMap(({ name, instances }) => instances.map((id) => [id, name] as const)),
    ),
  );
  const items: readonly ViewItem[] = [
    ...view.instances.map((instance) => ({ node: nodeOf.get(instance.id) ?? "", instance })),
    ...view.securityGroups.map((group) => ({ group })),
  ];
  const slices = cut(
    networkGroup,
    items.map((item) => {
      const value = JSON.stringify(item);
      return { key: "group" in item ? item.group.id : item.instance.id, value, text: value };
    }),
  );
  const clusters = view.clusters.map((cluster) => ({
    ...cluster,
    nodes: cluster.nodes.map(({ name }) => ({ name, instances: [] })),
  }));
  const { version: _, ...head } = { ...view, clusters, instances: [], securityGroups: [] };
  const manifest = { head: JSON.stringify(head), slices: summaryOf(slices) };
  return { manifest, slices };
}
