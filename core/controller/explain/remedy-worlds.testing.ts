import assert from "node:assert/strict";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { ActualVm } from "../../documents/vocabulary.ts";
import type { ControllerOptions } from "../state.ts";
import { shop, World } from "../world.testing.ts";

/* Worlds in which something is owed that a cause with a remedy says. */
export const parts = (changes: JsonObject = {}): Readonly<Record<string, JsonObject>> =>
  shop(changes).shop as Record<string, JsonObject>;
export const web = (more: JsonObject): JsonObject => ({ web: { ...parts().web, ...more } });
export const worldWith = (changes: JsonObject, options: Partial<ControllerOptions> = {}): World => {
  const world = new World(options);
  world.put(shop(changes));
  return world.settle();
};
export const endsAs = (world: World, how: Partial<ActualVm>): World => {
  const { incarnation } = world.vm("shop/web")?.document ?? assert.fail("it does not run");
  world.ended.set(`${world.uidOf("shop/web")}@${incarnation}`, how);
  return world.settle();
};
export const grown = (roomMiB: number): World => {
  const sized = (size: number): JsonObject => ({ webDisk: { ...parts().webDisk, "x.size": size } });
  const world = worldWith(sized(64));
  world.volumesAre.set(world.uidOf("shop/webDisk"), { roomMiB });
  world.settle();
  world.volumesAre.set(world.uidOf("shop/webDisk"), { smallerMiB: 64, roomMiB });
  world.put(shop(sized(200)));
  return world.settle();
};
export const askedAt = (path: string): JsonObject => ({
  "x.liveness.protocol": "icmp",
  "x.liveness.interface": `<ref:/${path}>`,
});
/** A second interface, in a subnet that has its range only when the VM runs. */
export const beside: JsonObject = {
  own: { "x.type": "Subnet", "x.size": 8 },
  late: { ...parts().webCard, "x.subnet": "<ref:/shop/own>", "x.vifName": "late", "x.requires": false },
};
const addressManager = peerName("address-manager");
export const unaskable = (): World => {
  const world = worldWith({});
  world.silent.add(addressManager);
  world.put(shop({ ...beside, ...web(askedAt("shop/late")) }));
  world.settle();
  world.silent.clear();
  world.settle();
  return endsAs(world, { phase: "waiting", health: "starting", reason: "it was started without the interface" });
};
