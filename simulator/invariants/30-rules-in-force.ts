import type { HostName } from "../../model/identifiers.ts";
import type { Invariant } from "./invariant.ts";

/**
 * A rule that is said to be ready is met by packets at each host where a machine of its cell runs, and one that is said to be
 * removed by none any more.
 */
export const rulesInForce: Invariant = {
  number: 30,
  title: "a rule that is said to be ready is in force where its cell's machines run, and one that was removed is not",
  watch: ({ kernel, truth, installation }, verdict) => {
    const hostsOf = (cell: string): ReadonlySet<HostName> => {
      const hosts = new Set<HostName>();
      for (const { host, interfaces } of truth.machines)
        if (interfaces.some(({ address }) => cellAt(host, address) === cell)) hosts.add(host);
      return hosts;
    };
    const cellAt = (host: HostName, address: string): string | null => {
      const endpoint = truth.dataplane(host).endpoints.get(address);
      return endpoint === undefined ? null : installation.cellOf(endpoint.cellNumber);
    };
    const isInForce = (host: HostName, cell: string, path: unknown): boolean =>
      truth
        .dataplane(host)
        .policies.get(cell)
        ?.rules.some((rule) => rule.path === path) === true;
    kernel.watchers.push({
      log: (who, event, fields) => {
        if (!who.startsWith("controller.") || fields.type !== "NetworkRule") return;
        const cell = who.slice("controller.".length);
        const state = installation.controllers.get(cell)?.state;
        if (event === "element/state" && fields.phase === "ready") {
          for (const host of hostsOf(cell))
            verdict.check(
              isInForce(host, cell, fields.path),
              () => `${fields.path} is ready and not in force at ${host}`,
            );
        }
        // With its cell a rule ends when the last machine does.
        if (event !== "element/removed" || state?.model.document == null) return;
        if ([...state.uids.keys()].some((path) => path === fields.path)) return;
        for (const host of hostsOf(cell))
          verdict.check(!isInForce(host, cell, fields.path), () => `${fields.path} is removed and in force at ${host}`);
      },
    });
    return undefined;
  },
};
