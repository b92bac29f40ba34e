import { hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import type { ActualMachines } from "../../documents/ha.ts";
import type { Instant } from "../../env.ts";
import { deathOf } from "../../presence/group/deaths.ts";
import type { HaState } from "../state.ts";

/*
 * A VM that hangs: its controller has asked its host to start or to stop it, and the host, which is heard, goes on saying otherwise. No loss, so nothing
 * is fenced: a host that is heard is the one that has to do it. What each host lists is compared with all that is protected there each
 * `x.ha.syncInterval`, whatever is heard in between; what differs for `x.ha.stopRetryInterval` or `restartRetryInterval` is told to a person.
 */

export function compareAll(state: HaState, { ms }: Instant): void {
  const { at, wanted, machines, reachable, deaths, differing } = state;
  for (const vm of [...differing.keys()]) if (!wanted.has(vm)) differing.delete(vm);
  for (const [host, vms] of at) {
    const said =
      reachable.get(hostPeer(host)) === true && deathOf(deaths, host) === null ? machines.get(host) : undefined;
    const on = said === undefined ? null : runningIn(said);
    for (const vm of vms) {
      const document = wanted.get(vm)?.document;
      if (document === undefined) continue;
      const { incarnation, lost } = document;
      // Of a host that is not heard nobody knows what it says now.
      const differs = on !== null && on.has(`${vm} ${incarnation}`) === (lost === "end");
      const before = differing.get(vm);
      const wants = lost === "end" ? "stop" : "start";
      if (!differs) differing.delete(vm);
      else if (before?.incarnation !== incarnation || before.wants !== wants)
        differing.set(vm, { incarnation, wants, sinceMs: ms });
      if (differs) state.dirty.add(vm);
    }
  }
}
const runningIn = ({ machines }: ActualMachines): ReadonlySet<string> =>
  new Set(machines.flatMap(({ vm, incarnation, power }) => (power === "on" ? [`${vm} ${incarnation}`] : [])));

/** VMs that have differed for so long. */
export const stuckVms = ({ differing, settings }: HaState, { ms }: Instant): readonly Uid[] =>
  [...differing].flatMap(([vm, { sinceMs, wants }]) =>
    ms - sinceMs >= (wants === "stop" ? settings.stopRetryMs : settings.restartRetryMs) ? [vm] : [],
  );
