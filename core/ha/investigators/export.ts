import { freshMs, type Investigator, ofTime, unknown } from "./investigator.ts";

/**
 * Requests at the volumes' own daemons: whoever makes them has the key of the incarnation's lease, so it runs, even where nothing else of its
 * host is heard, its Host Manager stands still and its network to other hosts is cut. That none came says nothing: an idle guest
 * makes none.
 */
export const exports: Investigator = {
  name: "export",
  ask: ({ vm, incarnation, host }, { requests, reachable, nowMs }) => {
    const said = [...(requests.get(host) ?? [])].flatMap(([agent, machines]) => {
      const seen = reachable.get(agent) === true ? machines.get(`${vm} ${incarnation}`) : undefined;
      return seen === undefined ? [] : [{ server: agent.slice("agent.".length), ...seen }];
    });
    if (said.length === 0) return unknown("no storage server says whether it makes requests");
    for (const { server, servedMs } of said)
      if (servedMs !== null && nowMs - servedMs < freshMs)
        return { state: "Running", sentence: `${server} serves requests of it`, ...ofTime(servedMs) };
    return unknown(`${said.map(({ server }) => server).join(", ")} has seen no request of it lately`);
  },
};
