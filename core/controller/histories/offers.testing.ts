import { peerName } from "../../../model/cell/identifiers.ts";
import { toJson } from "../../outbox.ts";
import type { World } from "../world.testing.ts";

/** The Placer says which hosts it has heard, and whether these are all. */
export const offer = (world: World, hosts: readonly string[], complete = true): void => {
  const offers = hosts.map((host) => ({ host, memoryMiB: 4096, cpus: 4, cpuSpeedMHz: 0 }));
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value: toJson({ hosts: offers, complete }) });
};
