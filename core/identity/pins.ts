import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { isObject } from "../outbox.ts";
import type { Pins } from "./may-connect.ts";
import { isPinnable } from "./presented.ts";

/**
 * What a host keeps of the keys that the authority publishes (`pin/<name>`), beyond the authority's own life: they matter
 * when nobody is there to ask. Only the authority itself takes one back.
 */
export const authorityName = peerName("authority");
const mostPins = 10_000;
const fingerprint = /^[0-9a-f]{64}$/;

/** The pins after one publication of the authority's; null: it changes nothing, or is none. */
export function takePin(pins: Pins, key: string, value: Json): Pins | null {
  const name = key.startsWith("pin/") ? peerName(key.slice("pin/".length)) : null;
  if (name === null || !isPinnable(name)) return null;
  const pinned = isObject(value) && typeof value.key === "string" && fingerprint.test(value.key) ? value.key : null;
  if (pinned === null && value !== null) return null;
  if (pins.get(name) === (pinned ?? undefined)) return null;
  const next = new Map<PeerName, string>(pins);
  if (pinned === null) next.delete(name);
  else if (pins.has(name) || pins.size < mostPins) next.set(name, pinned);
  else return null;
  return next;
}
