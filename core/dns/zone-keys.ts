import type { Json } from "../../model/json/json.ts";
import { isObject } from "../outbox.ts";
import type { ZoneNumber } from "./zone.ts";

/**
 * Keys by which the transfers of zones are signed (TSIG, RFC 8945). The service has each sealed, and opens none: whoever asks by DNS
 * showed a key to the edge, which says its name. Only the one that the root cell names counts.
 */
export const recordOfKey = (name: string): string => `zone-key/${name}`;
/** One in use, one that follows it, and some that nobody removed. */
export const mostKeys = 8;

/** `sealed` null: it is forgotten. Answered with a `ZoneKeyTaken`. */
export interface ZoneKeyGiven {
  readonly zone: "key";
  readonly name: string;
  readonly sealed: string | null;
}
export interface ZoneKeyTaken {
  readonly wasThere: boolean;
  /** The root cell names it. */
  readonly declared: boolean;
  /** Nothing was taken: there are `mostKeys` others. */
  readonly full: boolean;
}
/** Answer to `{ zone: "state" }`. */
export interface ZoneState {
  /** Null: no zone is declared. */
  readonly number: ZoneNumber | null;
  /** Name of the key without which nothing is handed over; null: the addresses alone count. */
  readonly declared: string | null;
  readonly keys: readonly { readonly name: string; readonly sealed: string }[];
}

export function keysIn(records: ReadonlyMap<string, Json>): Map<string, string> {
  const prefix = recordOfKey("");
  return new Map(
    [...records].flatMap(([key, value]) =>
      key.startsWith(prefix) && isObject(value) && typeof value.sealed === "string"
        ? [[key.slice(prefix.length), value.sealed] as const]
        : [],
    ),
  );
}
