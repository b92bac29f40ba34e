import type { Invariant } from "./invariant.ts";

/**
 * An interface that can send or receive has the rules of its cell in force, a machine starts with its interfaces in place, and
 * every packet that arrives was permitted by some version of its cell; none ever crosses cells, since none of these consents.
 */
export const rulesBeforePackets: Invariant = {
  number: 20,
  title: "no packet passes before its rules are in place, none crosses cells without consent",
  watch: ({ truth, users, installation }, verdict) => {
    const permits = (cellNumber: number, from: string, to: string, port: number): boolean =>
      (users.submitted.get(installation.cells[cellNumber - 1] ?? "") ?? []).some(({ rules }) =>
        rules.some((rule) => rule.from === from && rule.to === to && rule.port === port),
      );
    truth.watchers.push({
      endpointOpened: (host, { cellNumber, desired }, { policies }) => {
        const hasRules = [...policies.values()].some((policy) => policy.cellNumber === cellNumber);
        verdict.check(hasRules, () => `${desired.path} opened at ${host} before the rules of its cell were there`);
      },
      machineStarted: ({ vm, host, interfaces }) => {
        const { taps, endpoints } = truth.dataplane(host);
        for (const { uid, path, address } of interfaces) {
          const isThere = taps.has(uid) && endpoints.get(address)?.desired.uid === uid;
          verdict.check(isThere, () => `${vm} started at ${host} before its interface ${path} was in place`);
        }
      },
      delivered: ({ from, to, fromCell, toCell, port }) => {
        const isPermitted = fromCell === toCell && permits(fromCell, from.name, to.name, port);
        verdict.check(
          isPermitted,
          () => `a packet from ${from.name} (cell ${fromCell}) reached port ${port} of ${to.name} (cell ${toCell})`,
        );
      },
    });
    return undefined;
  },
};
