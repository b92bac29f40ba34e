import { freshMs, type Investigator, ofTime, unknown } from "./investigator.ts";

/**
 * Neighbours of the host, asked to put an ARP request to it: the kernel of a machine that runs answers, whatever has become of its
 * Host Manager, and what ran there may run on. An answer counts from the MAC that the host said was its own, for as long as
 * it is fresh and its neighbour is heard. That nobody answers says nothing: the host may have lost its network alone.
 */
export const neighbours: Investigator = {
  name: "neighbours",
  ask: ({ host }, { probes, reachable, nowMs }) => {
    const asked = [...(probes.get(host) ?? [])].filter(([peer]) => reachable.get(peer) === true);
    if (asked.length === 0) return unknown(`no other host could be asked whether ${host} answers on the network`);
    const answers = asked.filter(([, { answeredMs }]) => answeredMs !== null && nowMs - answeredMs < freshMs);
    const [by, { answeredMs }] = answers.sort(
      ([, one], [, other]) => (other.answeredMs ?? 0) - (one.answeredMs ?? 0),
    )[0] ?? [null, { answeredMs: null }];
    if (by !== null)
      return {
        state: "Running",
        sentence: `${host} answers ${by.slice("host.".length)} on the network`,
        ...ofTime(answeredMs),
      };
    return unknown(
      `${host} does not answer ${asked.map(([peer]) => peer.slice("host.".length)).join(", ")} on the network`,
    );
  },
};
