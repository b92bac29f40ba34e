import { hostPeer } from "../../../model/cell/identifiers.ts";
import { type Investigator, ofTime, unknown } from "./investigator.ts";

/**
 * The Host Manager's own list of its machines, as long as it is in step: what it said before it was lost is no news. That a VM
 * is not in the list says nothing, since a host whose store was lost lists nothing and may run everything.
 */
export const hostManager: Investigator = {
  name: "host-manager",
  ask: ({ vm, incarnation, host }, { machines, machinesMs, reachable }) => {
    if (reachable.get(hostPeer(host)) !== true) return unknown(`the Host Manager of ${host} does not answer`);
    const machine = machines.get(host)?.machines.find((each) => each.vm === vm && each.incarnation === incarnation);
    if (machine === undefined) return unknown(`the Host Manager of ${host} says nothing of incarnation ${incarnation}`);
    return machine.power === "on"
      ? {
          state: "Running",
          sentence: `the Host Manager of ${host} says that incarnation ${incarnation} runs`,
          ...ofTime(machinesMs.get(host)),
        }
      : { state: "Stopped", sentence: `the Host Manager of ${host} says that incarnation ${incarnation} has ended` };
  },
};
