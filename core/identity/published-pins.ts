import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ActualPin } from "../documents/identity.ts";
import { actualPin } from "../documents/readers/identity.ts";
import { isObject, type Outbox, toJson } from "../outbox.ts";

/** Keys that the authority publishes, for whoever pins them: `pin/<name>`. */
const pinKey = (name: string): string => `pin/${name}`;

/** `key` null: nobody's any more. */
export function publishPin({ effects, published }: Outbox, name: PeerName, key: string | null): void {
  const known = published.get(pinKey(name));
  if (key === null ? known === undefined : isObject(known) && known.key === key) return;
  const pin: ActualPin | null = key === null ? null : { key };
  if (pin === null) published.delete(pinKey(name));
  else published.set(pinKey(name), toJson(pin));
  effects.push({ kind: "publish", key: pinKey(name), value: pin === null ? null : toJson(pin) });
}

/** By name, as they were published. */
export const publishedPins = ({ published }: Outbox): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...published]
      .filter(([key]) => key.startsWith(pinKey("")))
      .map(([key, pin]) => [key.slice(pinKey("").length), actualPin.of(pin)?.key ?? ""]),
  );
