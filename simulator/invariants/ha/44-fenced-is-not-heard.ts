import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Delivered } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";
import { fieldsOf, incarnationOf, named, watchHa } from "./said-over.ts";

/** From when a host is told where an address is until its dataplane has it so. */
const placingMs = 5000;

/**
 * An incarnation that is over may run on, cut off from its disks, and send from its address. Wherever it is known that the address is at another host by now, as that of the next incarnation,
 * nothing of it arrives: a host knows it that has it in place, and one that was told by the cell's controller some seconds ago and was well since. The premise is a packet of one that is over, which is dropped
 * where it arrives, or gets through.
 */
export const fencedIsNotHeard: Invariant = {
  number: 44,
  title: "no packet of a fenced incarnation reaches who knows the next",
  watch: ({ kernel, truth, installation }, verdict) => {
    const { over, forced } = watchHa(kernel);
    const isOver = (name: string): boolean => over.has(name) || forced.has(name);
    /** By host and address: where it is, as its cell's controller has told that host, and since when. */
    const told = new Map<string, { readonly host: string; readonly sinceMs: number }>();
    kernel.watchers.push({
      frame: (_from, to, frame) => {
        if (frame.frame !== "desire" || !frame.key.startsWith("places/") || !to.startsWith("host.")) return;
        const own = named(frame.value, "own");
        for (const place of Array.isArray(own) ? own : []) {
          const { address, host } = fieldsOf(place);
          const key = `${to} ${address}`;
          if (told.get(key)?.host !== host) told.set(key, { host: String(host), sinceMs: kernel.clock.nowMs });
        }
      },
    });
    /** Where its address is, as that host has it in place. */
    const inPlace = (at: HostName, address: string): HostName | undefined => {
      const { endpoints, locations } = truth.dataplane(at);
      return endpoints.has(address) ? at : locations.get(address)?.host;
    };
    const isElsewhere = (place: string | undefined, from: HostName): boolean => place !== undefined && place !== from;
    const arrived = ({ from, to, fromInterface: { address } }: Delivered): void => {
      if (!isOver(incarnationOf(from)) || from.host === to.host) return;
      const place = inPlace(to.host, address);
      const said = told.get(`host.${to.host} ${address}`);
      const manager = installation.managers.get(to.host);
      const wellMs = Math.max(said?.sinceMs ?? Number.POSITIVE_INFINITY, manager?.wellSinceMs ?? 0);
      const isWell = manager?.isRunning === true && !manager.isPaused && kernel.clock.nowMs - wellMs > placingMs;
      const hasDriver = installation.hosts.get(to.host)?.dataplane.trouble === null;
      const isKnown = isElsewhere(place, from.host) || (isWell && hasDriver && isElsewhere(said?.host, from.host));
      if (isKnown)
        verdict.violate(
          `a packet of ${incarnationOf(from)} at ${from.host}, which is over, reaches ${to.name} at ${to.host}, which knows its address to be at ${said?.host ?? place}`,
        );
    };
    truth.watchers.push({
      delivered: arrived,
      copied: arrived,
      dropped: ({ from, to, fromInterface: { address } }) => {
        if (!isOver(incarnationOf(from)) || from.host === to.host) return;
        const said = told.get(`host.${to.host} ${address}`);
        if (isElsewhere(inPlace(to.host, address), from.host) || isElsewhere(said?.host, from.host))
          verdict.check(true, () => "");
      },
    });
    return undefined;
  },
};
