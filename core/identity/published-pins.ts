import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ActualPin } from "../documents/identity.ts";
import { actualPin } from "../documents/readers/identity.ts";
import { type Outbox, publishValue } from "../outbox.ts";

/** Keys that the authority publishes, for whoever pins them: `pin/<name>`. */
const pinKey = (name: string): string => `pin/${name}`;

/** `key` null: nobody's any more. */
export function publishPin(outbox: Outbox, name: PeerName, key: string | null): void {
  publishValue(outbox, pinKey(name), key === null ? null : ({ key } satisfies ActualPin));
}

/** By name, as they were published. */
export const publishedPins = ({ published }: Outbox): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...published]
      .filter(([key]) => key.startsWith(pinKey("")))
      .map(([key, pin]) => [key.slice(pinKey("").length), actualPin.of(pin)?.key ?? ""]),
  );
