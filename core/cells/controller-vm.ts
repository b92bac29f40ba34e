import type { CellBinding } from "../../model/cell/cell.ts";
import type { CellName, Ipv4, Uid } from "../../model/cell/identifiers.ts";
import { modes } from "../../model/cell/network/modes.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { Fault, object, oneOf, optional, ordinal } from "../../model/json/reader.ts";
import { rootCell } from "../documents/cells.ts";
import { cellText, uidText } from "../documents/readers/values.ts";
import { isObject, toJson } from "../outbox.ts";
import { firstServices, otherThanFirst } from "./binding.ts";
import type { FoundController, WantedController } from "./work.ts";

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
  const controller: ControllerRole = { cell, cellUid: uid, cellNumber, ...otherThanFirst(services) };
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
      "x.data": { service: { roles: { controller: toJson(controller) } } },
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

const serviceNumber = optional(ordinal);
const role = object<ControllerRole>({
  cell: cellText,
  cellUid: uidText,
  cellNumber: ordinal,
  placer: serviceNumber,
  storageManager: serviceNumber,
  haManager: serviceNumber,
  networkMode: optional(oneOf(...modes)),
});
/** Elements of which one is the VM of a controller. */
const readElements = object<{ readonly vm: { readonly "x.data": { readonly service: { readonly roles: Roles } } } }>({
  vm: object({ "x.data": object({ service: object({ roles: object<Roles>({ controller: role }) }) }) }),
});
interface Roles {
  readonly controller: ControllerRole;
}
interface ControllerRole extends CellBinding {
  readonly cell: CellName;
  readonly cellUid: Uid;
  readonly cellNumber: number;
}

/** @param all the elements of all controllers, by their components; null: there are none */
export const controllersIn = (all: Json): readonly FoundController[] =>
  isObject(all) ? Object.values(all).flatMap((elements) => controllerIn(elements) ?? []) : [];

/** Null: they are something else, and nobody's cell. */
function controllerIn(elements: Json): FoundController | null {
  const read = readElements(elements);
  if (read instanceof Fault) return null;
  const { cell, cellUid, cellNumber, ...services } = read.vm["x.data"].service.roles.controller;
  return { uid: cellUid, cell, cellNumber, services: { ...firstServices, ...services } };
}
