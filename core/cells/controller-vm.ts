import type { CellName, Ipv4 } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { rootCell } from "../documents/cells.ts";
import { otherThanFirst } from "./binding.ts";
import type { WantedController } from "./work.ts";

/**
 * The VM of a cell's controller, as elements of the root cell (decisions/0031): its boot volume is the provider's, a copy of
 * the service image, and its store is on a data volume of its own. All of it is one component of the root cell's model.
 */
export const controllersPath = `${rootCell}/controllers`;
/** What the root cell's specification provides for it: the service image, and the network of the services. */
export const provided = { image: `${rootCell}/images/service`, subnet: `${rootCell}/management` } as const;

/** Most parts of a cell's name come from people, so a name is short enough to be a component's. */
const longestName = 64;

/**
 * Name of a cell's component in `controllers`: dots become dashes, and dashes double ones, so that `web.shop`, a child of
 * `shop`, and `web-shop` stay apart. No label begins or ends with a dash. Null: the name is too long for a component.
 */
export function componentOf(cell: CellName): string | null {
  const name = cell.replaceAll("-", "--").replaceAll(".", "-");
  return name.length <= longestName ? name : null;
}

/** Volumes that hold something of their own, as they are named when they may be destroyed. */
export const volumesOf = (component: string): readonly string[] =>
  ["boot", "data"].map((name) => `${controllersPath}/${component}/${name}`);

/** @param component from `componentOf` */
export function controllerElements(
  { cell, uid, cellNumber, services }: WantedController,
  component: string,
  address: Ipv4,
): JsonObject {
  const controller = { cell, cellUid: uid, cellNumber, ...otherThanFirst(services) };
  const own = (name: string): string => `<ref:/${controllersPath}/${component}/${name}>`;
  const disk = (volume: string, bootOrder: number): JsonObject => ({
    "x.type": "VolumeConnection",
    "x.vm": own("vm"),
    "x.volume": own(volume),
    "x.bootOrder": bootOrder,
  });
  return {
    boot: { "x.type": "VolumeCopy", "x.image": `<ref:/${provided.image}>` },
    data: { "x.type": "Volume", "x.size": 64 },
    vm: {
      "x.type": "VM",
      "x.memory": 160,
      "x.cpus": 1,
      "x.restartOnFailure": true,
      // As slowly as the other services' (decision 31): one that was short of a processor for a moment is not dead.
      "x.liveness.protocol": "icmp",
      "x.liveness.intervalMs": 3000,
      "x.liveness.failures": 10,
      "x.data": { service: { roles: { controller } } },
    },
    bootDisk: disk("boot", 0),
    dataDisk: disk("data", 1),
    interface: {
      "x.type": "VirtualInterface",
      "x.vm": own("vm"),
      "x.subnet": `<ref:/${provided.subnet}>`,
      "x.address": address,
    },
  };
}
