import { type HostName, hostName, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { enoughLooks, requestsKey } from "../../documents/ha.ts";
import { actualRequests } from "../../documents/readers/ha.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { desire } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import { isLookedInto } from "../suspicions.ts";
import type { Served, Subject } from "./investigator.ts";

/**
 * Storage servers are asked whether machines of a host that is looked into make requests at their exports: each that is in step, for as
 * long as the host is suspected or an item is about that. What they say first is what the next word is compared with.
 */
/** Nobody waits longer for their first word. */
export const requestPatienceMs = 5_000;

/** @returns the host that it is about; null: it is no word of that kind */
export function takeRequests(state: HaState, from: PeerName, key: string, value: Json): HostName | null {
  const prefix = actualKey(state.options.self, requestsKey("" as HostName));
  if (!from.startsWith("agent.") || !key.startsWith(prefix)) return null;
  const host = hostName(key.slice(prefix.length));
  const byAgent = state.requests.get(host);
  if (byAgent === undefined) return host;
  const said = actualRequests.of(value, host);
  const before = byAgent.get(from);
  if (said === null) byAgent.delete(from);
  else
    byAgent.set(
      from,
      new Map(
        said.machines.map(({ vm, incarnation, looked, served }) => {
          const name = `${vm} ${incarnation}`;
          const known = before?.get(name);
          // What was served before anybody asked is no news, nor what a server counts anew after its start.
          const isMore = known !== undefined && looked >= known.looked && served > known.served;
          const seen: Served = { looked, served, servedMs: isMore ? state.nowMs : (known?.servedMs ?? null) };
          return [name, seen];
        }),
      ),
    );
  return host;
}

/** Has storage servers look that are to, and no others: of hosts at which something has changed. */
export function settleRequests(state: HaState): void {
  const { outbox, options, reachable, requests, looking, looksDue, nowMs, settings } = state;
  const isAsked = settings.investigators.includes("export");
  for (const host of looksDue) {
    const key = requestsKey(host);
    if (isAsked && isLookedInto(state, host)) {
      if (!requests.has(host)) requests.set(host, new Map());
      if ((looking.get(host) ?? null) === null) looking.set(host, nowMs);
      for (const agent of options.agents ?? []) if (reachable.get(agent) === true) desire(outbox, agent, key, { host });
    } else if (looking.delete(host)) {
      requests.delete(host);
      for (const [peer, documents] of outbox.desired) if (documents.has(key)) desire(outbox, peer, key, null);
    }
  }
}

/** A storage server that is in step has yet to say what it sees of the incarnation. */
export function isLookedFor(
  { options, reachable, requests, looking, nowMs, settings }: HaState,
  { host, vm, incarnation }: Pick<Subject, "host" | "vm" | "incarnation">,
): boolean {
  const agents = (options.agents ?? []).filter((agent) => reachable.get(agent) === true);
  if (agents.length === 0 || !settings.investigators.includes("export")) return false;
  const sinceMs = looking.get(host);
  // They are asked behind this look.
  if (sinceMs === undefined || sinceMs === null) return true;
  if (nowMs - sinceMs >= requestPatienceMs) return false;
  return agents.some((agent) => {
    const said = requests.get(host)?.get(agent);
    return said === undefined || (said.get(`${vm} ${incarnation}`)?.looked ?? enoughLooks) < enoughLooks;
  });
}
