import { counter, gauge, type Metric, sample } from "../telemetry/metrics.ts";
import type { Distribution } from "./node/types.ts";

/** What state distribution holds and still owes, from its state alone. */
export function measureDistribution(node: Distribution): readonly Metric[] {
  const links = [...node.links.values()];
  const connections = (["client", "server"] as const).map((role) =>
    sample(links.filter((link) => link.role === role).length, { role }),
  );
  const targets = [...node.targets.values()];
  return [
    gauge("cells_distribution_connections", "Connections that stand, by this service's role in them.", connections),
    gauge("cells_distribution_publications", "Keys of actual state that this service publishes.", [
      sample(node.published.size),
    ]),
    gauge(
      "cells_distribution_desired_documents",
      "Documents that clients desire here, by client.",
      [...node.clients.values()].map(({ peer, documents }) => sample(documents.size, { peer })),
    ),
    gauge(
      "cells_distribution_orphans",
      "Documents that stay in force here although their client's last snapshot lacked them, by client.",
      [...node.clients.values()].map(({ peer, orphans }) => sample(orphans.size, { peer })),
    ),
    gauge(
      "cells_distribution_outbox_documents",
      "Own documents that are still to be sent to a peer; all of them while it is not reachable.",
      targets.map(({ peer, link, documents }) => sample(link?.pending.size ?? documents.size, { peer })),
    ),
    gauge(
      "cells_distribution_peer_reachable",
      "1 when everything that a peer says is known.",
      targets.map(({ peer, reachable }) => sample(reachable === true ? 1 : 0, { peer })),
    ),
    counter(
      "cells_distribution_refused_total",
      "Connections, frames and documents that were not taken, by reason.",
      [...node.refusals].map(([reason, count]) => sample(count, { reason })),
    ),
  ];
}
