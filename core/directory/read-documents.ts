import { parseNetwork } from "../../model/addresses.ts";
import type { Json } from "../../model/json.ts";
import type { DesiredPublic, DesiredReach, DesiredWant } from "../cell-documents.ts";
import { isObject } from "../outbox.ts";

// A controller is authenticated but runs in a tenant's cell: its documents are looked at before they are believed.

const isText = (value: Json | undefined): value is string => typeof value === "string";
const all = (value: Json | undefined, is: (each: Json) => boolean): boolean => Array.isArray(value) && value.every(is);
const isNetwork = (value: Json): boolean => isText(value) && parseNetwork(value) !== null;
const isPort = (value: Json | undefined): boolean =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= 65_535;
const isPorts = (value: Json | undefined): boolean => isObject(value) && isPort(value.from) && isPort(value.to);

/** Null: it is malformed, or is not about the element that its key names. */
export function readPublic(id: string, value: Json): DesiredPublic | null {
  if (!isObject(value) || value.uid !== id || !isText(value.path) || !isObject(value.shows)) return null;
  const { kind, networks, sizeMiB, server, manager = 1 } = value.shows;
  if (kind === "addresses" ? !all(networks, isNetwork) : kind !== "volume") return null;
  if (kind === "volume" && !(sizeMiB === null || Number.isSafeInteger(sizeMiB))) return null;
  if (kind === "volume" && ((server !== null && !isText(server)) || !Number.isSafeInteger(manager))) return null;
  return value as unknown as DesiredPublic;
}

export function readWant(id: string, value: Json): DesiredWant | null {
  if (!isObject(value) || !isText(value.domain) || !isText(value.path)) return null;
  return `${value.domain}/${value.path}` === id ? (value as unknown as DesiredWant) : null;
}

export function readReach(id: string, value: Json): DesiredReach | null {
  if (!isObject(value) || value.uid !== id || !isObject(value.other)) return null;
  if (!isText(value.other.domain) || !isText(value.other.path) || !all(value.networks, isNetwork)) return null;
  const isPlaced = (each: Json): boolean =>
    isObject(each) && isText(each.address) && isNetwork(each.address) && isText(each.host);
  const isOpening = (each: Json): boolean =>
    isObject(each) &&
    (each.direction === "out" || each.direction === "in") &&
    ["any", "tcp", "udp", "icmp"].includes(String(each.protocol)) &&
    isPorts(each.ports) &&
    isPorts(each.sourcePorts);
  if (!all(value.placed, isPlaced) || !all(value.openings, isOpening)) return null;
  return value as unknown as DesiredReach;
}
