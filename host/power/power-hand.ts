import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  nothingRead,
  type PowerAction,
  type PowerController,
  type PowerDriver,
  type PowerReading,
  uuidOf,
} from "../../core/ha/power/controller.ts";
import { ipmiDriver } from "./ipmi.ts";
import { redfishDriver } from "./redfish.ts";

export interface PowerOrder {
  readonly action: PowerAction;
  readonly controller: PowerController;
}
/** What a host does about the power of others, and which machine it is itself. */
export interface PowerHand {
  carryOut(order: PowerOrder): Promise<PowerReading>;
  /** Null: its firmware does not say. */
  uuid(): Promise<string | null>;
}

const drivers: Readonly<Record<PowerController["kind"], PowerDriver>> = { ipmi: ipmiDriver, redfish: redfishDriver };
/** An order is void after this: who gave it waits no longer either. */
const patienceMs = 10_000;
const lookAgainMs = 500;

/** @param directory a host's own; its file `system-uuid` stands for firmware that shows none */
export const createPowerHand = (directory: string, dmi = "/sys/class/dmi/id/product_uuid"): PowerHand => ({
  uuid: async () => {
    for (const file of [join(directory, "system-uuid"), dmi]) {
      const text = await readFile(file, "utf8").catch(() => null);
      if (text !== null) return uuidOf(text.trim());
    }
    return null;
  },
  carryOut: async ({ action, controller }) => {
    const driver = drivers[controller.kind];
    const signal = AbortSignal.timeout(patienceMs);
    if (action === "off") await driver.off(controller, signal);
    for (;;) {
      const reading = await driver.read(controller, signal);
      // One that was asked to cut the power takes a moment.
      if (action === "read" || reading.power !== "on" || signal.aborted) return reading;
      await sleep(lookAgainMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return { ...reading, reason: null };
    }
  },
});

/** Null: it is none. */
export const readOrder = (body: Readonly<Record<string, unknown>>): PowerOrder | null => {
  const { action, controller } = body;
  if ((action !== "read" && action !== "off") || typeof controller !== "object" || controller === null) return null;
  const { kind, address, user, password, suite, fingerprint } = controller as Readonly<Record<string, unknown>>;
  const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 256;
  if ((kind !== "ipmi" && kind !== "redfish") || !isText(address) || !isText(user) || !isText(password)) return null;
  if (!isAddress(address) || (suite !== undefined && suite !== 3 && suite !== 17)) return null;
  if (/^-|[\0\n]/.test(user) || /[\0\n]/.test(password) || (fingerprint !== undefined && !isText(fingerprint)))
    return null;
  return {
    action,
    controller: {
      ...{ kind, address, user, password },
      ...(suite === undefined ? {} : { suite }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    },
  };
};
/** `ADDRESS` or `ADDRESS:PORT`, IPv4 or a name: no word of it could be an option. */
const isAddress = (text: string): boolean => /^[a-z0-9](?:[a-z0-9.-]{0,250})(?::\d{1,5})?$/i.test(text);

export const noHand: PowerHand = { uuid: async () => null, carryOut: async () => nothingRead("not here") };
