import type { HostName } from "../../../model/cell/identifiers.ts";
import { isBoot } from "../../documents/life-numbers.ts";
import type { ActualNetwork } from "../../documents/network/eucalyptus.ts";
import type { Effect, Input } from "../../env.ts";
import { isObject, log, write } from "../../outbox.ts";
import { followDeaths, followOthers, hasEnded, hearMember, membersIn, takeDeath } from "../../presence/group/deaths.ts";
import { ask, hostsOf, type NetworkViewManagerOptions, type NetworkViewState } from "../state.ts";

/*
 * Hosts whose power is known to be off: what they had in place is gone, so nobody waits for their word. That is said for a boot of the machine, and a
 * later one may run by the time it is heard here. So each host says in which boot it speaks, is told views of that boot alone, and puts those of no other in
 * place: whatever of a boot is struck off here, no later one acts on it. A host that says no boot is waited for as before.
 */

/** Record `boot/<host>`: `{ boot, over? }`, the last boot of which it was heard; `over`: it is known to have ended. */
interface Heard {
  readonly boot: number;
  readonly over?: true;
}
const recordOf = (host: HostName): string => `boot/${host}`;
function heardOf({ outbox }: Pick<NetworkViewState, "outbox">, host: HostName): Heard | null {
  const record = outbox.records.get(recordOf(host)) ?? null;
  return isObject(record) && isBoot(record.boot) ? (record as unknown as Heard) : null;
}

export const followFences = ({ deaths }: NetworkViewState): readonly Effect[] => followDeaths(deaths);

/** Takes what says something of ends of hosts. */
export function takeEnd({ deaths, outbox }: NetworkViewState, input: Input): void {
  if (input.kind === "actual") takeDeath(deaths, input.from, input.key, input.value);
  else if (input.kind === "reachable") hearMember(deaths, input.peer, input.reachable);
  else if (input.kind === "request") {
    const members = membersIn(input.request);
    if (members !== null) outbox.effects.push(...followOthers(deaths, members));
  }
}

/** Why a host's word counts for nothing, a sentence: it is of a boot that is over; null: it counts. Of which boot it is, is durable. */
export function takeBoot(state: NetworkViewState, host: HostName, { boot }: ActualNetwork): string | null {
  const heard = heardOf(state, host);
  if (boot === undefined) return null;
  if (heard !== null && (boot < heard.boot || (boot === heard.boot && heard.over === true)))
    return `it is of boot ${boot} of ${host}, which is over`;
  if (heard?.boot !== boot) write(state.outbox, recordOf(host), { boot });
  return null;
}

/** Of the views that it is told. */
export function bootOf(state: NetworkViewState, host: HostName): { readonly boot?: number } {
  const boot = state.said.get(host)?.boot;
  return boot === undefined ? {} : { boot };
}

/** Strikes off what stood at hosts in a boot that is over. */
export function fenceHosts(state: NetworkViewState, options: NetworkViewManagerOptions): void {
  const { deaths, outbox } = state;
  for (const host of hostsOf(options)) {
    const heard = heardOf(state, host);
    if (heard === null || heard.over === true || !hasEnded(deaths, host, heard.boot)) continue;
    const { boot } = heard;
    write(outbox, recordOf(host), { boot, over: true });
    state.said.delete(host);
    state.heard.delete(host);
    state.placesChanged += 1;
    state.isIdDue = true;
    ask(state, { kind: "fenced", host });
    log(outbox, "network/host-fenced", { host, boot });
  }
}
/** Why a host offers no mode; null: it says so itself. */
export const whyFenced = (state: NetworkViewState, host: HostName): string | null =>
  heardOf(state, host)?.over === true ? `the power of its host ${host} was off, and it is not back yet` : null;
