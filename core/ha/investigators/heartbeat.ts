import { type Investigator, unknown } from "./investigator.ts";

/**
 * Storage servers that hear the host: it says to each that it uses, every few seconds, that it is there. One that is heard in the
 * boot in which the VM was started may run it, whatever became of its way to other hosts. That no server hears it says nothing: it
 * may have lost its network alone, and a beat that is late is no host that is down.
 */
export const heartbeat: Investigator = {
  name: "heartbeat",
  ask: ({ host, boot }, { heartbeats, reachable }) => {
    const said = [...(heartbeats.get(host) ?? [])].filter(([agent]) => reachable.get(agent) === true);
    if (said.length === 0) return unknown(`no storage server says whether it hears ${host}`);
    const [by, later] = [
      said.find(([, each]) => each.fresh && (boot === undefined || each.boot === boot)),
      said.find(([, each]) => boot !== undefined && each.boot > boot),
    ];
    if (by !== undefined) return { state: "Running", sentence: `${host} says to ${serverOf(by[0])} that it is there` };
    // That the boot is over others say for certain; here it is no more than a reason not to veto.
    if (later !== undefined) return unknown(`${serverOf(later[0])} has heard a later boot of ${host}`);
    return unknown(`${said.map(([agent]) => serverOf(agent)).join(", ")} has not heard ${host} for some time`);
  },
};
const serverOf = (agent: string): string => agent.slice("agent.".length);
