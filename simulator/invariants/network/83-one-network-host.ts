import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * Who carries a cluster of a MANAGED mode to the outside has its gateways and elastic addresses: two at a time would both answer for them. The premise is
 * that one begins after another one did, however that ended. At rest exactly one does, once anybody has.
 */
export const oneNetworkHost: Invariant = {
  number: 83,
  title: "a cluster has never two network hosts that carry it",
  watch: ({ truth }, verdict) => {
    const last = new Map<string, HostName>();
    const carriersOf = (cluster: string): readonly HostName[] =>
      [...truth.dataplanes].flatMap(([host, { mode }]) => (mode.carries === cluster ? [host] : []));
    truth.watchers.push({
      carried: (host, cluster) => {
        const before = last.get(cluster);
        last.set(cluster, host);
        const now = carriersOf(cluster);
        if (now.length > 1) verdict.violate(`${now.join(" and ")} carry the cluster ${cluster}`);
        else if (before !== undefined && before !== host) verdict.held += 1;
      },
    });
    return () => {
      for (const cluster of last.keys()) {
        const now = carriersOf(cluster);
        if (now.length !== 1)
          verdict.violate(`at rest ${now.join(" and ") || "nobody"} carries the cluster ${cluster}`);
      }
    };
  },
};
