import type { PeerName } from "../../../model/cell/identifiers.ts";
import { freshMs, type Investigator, ofTime, unknown } from "./investigator.ts";

/**
 * The VM itself, asked at its address by other hosts: the dataplane of its host, which stays when everything else of Cells there has ended, puts the
 * question to it, and sends its answer back. An answer counts from that host's own MAC, so the next incarnation elsewhere, which has the
 * address too, is not taken for this one. That none came says nothing: a guest need not answer, and the host may have lost its network alone.
 */
export const vm: Investigator = {
  name: "vm",
  ask: (subject, { probes, reachable, nowMs }) => {
    const asked = [...(probes.get(subject.host) ?? [])].flatMap(([peer, { machines }]) => {
      const said = reachable.get(peer) === true ? machines.get(subject.vm) : undefined;
      return said === undefined ? [] : [{ by: nameOf(peer), ...said }];
    });
    if (asked.length === 0) return unknown("no other host could ask it at its address");
    const answers = asked.filter(({ answeredMs }) => answeredMs !== null && nowMs - answeredMs < freshMs);
    const [last] = answers.sort((one, other) => (other.answeredMs ?? 0) - (one.answeredMs ?? 0));
    if (last !== undefined)
      return {
        state: "Running",
        sentence: `it answers ${last.by} at its address, from ${subject.host}`,
        ...ofTime(last.answeredMs),
      };
    return unknown(`it does not answer ${asked.map(({ by }) => by).join(", ")} at its address`);
  },
};
const nameOf = (peer: PeerName): string => peer.slice("host.".length);
