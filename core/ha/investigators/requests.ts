import { type HostName, hostName, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { enoughLooks, requestsKey } from "../../documents/ha.ts";
import { actualRequests } from "../../documents/readers/ha.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { desire } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import { suspectedHosts } from "../suspicions.ts";
import type { Served, Subject } from "./investigator.ts";

/**
 * Storage servers are asked whether machines of a host that is looked into make requests at their exports: each that is in step, for as
 * long as the host is suspected or an item is about that. What they say first is what the next word is compared with.
 */
/** Nobody waits longer for their first word. */
const patienceMs = 5_000;

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

/** Has storage servers look that are to, and no others. */
export function settleRequests(state: HaState): void {
  const { outbox, options, reachable, requests, looking, nowMs, settings } = state;
  const isAsked = settings.investigators.includes("export");
  const looked = new Set(isAsked ? suspectedHosts(state) : []);
  for (const { step, host } of isAsked ? state.active.values() : [])
    if (step === "Scheduled" || step === "Investigating") looked.add(host);
  if (looked.size === 0 && looking.size === 0) return;
  for (const host of looked) {
    if (!requests.has(host)) requests.set(host, new Map());
    if ((looking.get(host) ?? null) === null) looking.set(host, nowMs);
    for (const agent of options.agents ?? [])
      if (reachable.get(agent) === true) desire(outbox, agent, requestsKey(host), { host });
  }
  for (const [peer, documents] of outbox.desired)
    for (const key of [...documents.keys()])
      if (key.startsWith("requests/") && !looked.has(hostName(key.slice("requests/".length))))
        desire(outbox, peer, key, null);
  for (const host of [...looking.keys()]) {
    if (looked.has(host)) continue;
    looking.delete(host);
    requests.delete(host);
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
  if (nowMs - sinceMs >= patienceMs) return false;
  return agents.some((agent) => {
    const said = requests.get(host)?.get(agent);
    return said === undefined || (said.get(`${vm} ${incarnation}`)?.looked ?? enoughLooks) < enoughLooks;
  });
}
