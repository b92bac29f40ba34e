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
import { powerController } from "../../model/contract/operator/ha.ts";
import { read } from "../../model/contract/schema.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import { createAgentDriver } from "./agent.ts";
import { ipmiDriver } from "./ipmi.ts";
import { redfishDriver } from "./redfish.ts";

export interface PowerOrder {
  /** `try`: it is to be registered; what cannot be a power is asked nothing. */
  readonly action: PowerAction | "try";
  readonly controller: PowerController;
}
/** What a host does about the power of others, and which machine it is itself. */
export interface PowerHand {
  /** @param over aborted once nobody waits for it any more */
  carryOut(order: PowerOrder, over: AbortSignal): Promise<PowerReading>;
  /** Null: its firmware does not say. */
  uuid(): Promise<string | null>;
}

/** An order is void after this, or as soon as who gave it waits no longer: a host that stood still finds some that were given long ago. */
const patienceMs = 10_000;
const lookAgainMs = 500;

const ofDrivers: Readonly<Record<PowerController["kind"], PowerDriver>> = {
  ipmi: ipmiDriver,
  redfish: redfishDriver,
  agent: createAgentDriver(),
};

/** @param directory a host's own; its file `system-uuid` stands for firmware that shows none */
export const createPowerHand = (
  directory: string,
  dmi = "/sys/class/dmi/id/product_uuid",
  drivers = ofDrivers,
): PowerHand => ({
  uuid: async () => {
    for (const file of [join(directory, "system-uuid"), dmi]) {
      const text = await readFile(file, "utf8").catch(() => null);
      if (text !== null) return uuidOf(text.trim());
    }
    return null;
  },
  carryOut: async ({ action, controller }, over) => {
    const driver = drivers[controller.kind];
    const signal = AbortSignal.any([AbortSignal.timeout(patienceMs), over]);
    const why = action === "try" ? ((await driver.examine?.(controller, signal)) ?? null) : null;
    if (why !== null) return nothingRead(why);
    if (action === "off" && !signal.aborted) await driver.off(controller, signal);
    for (;;) {
      const reading = await driver.read(controller, signal);
      // One that was asked to cut the power takes a moment.
      if (action !== "off" || reading.power !== "on" || signal.aborted) return reading;
      await sleep(lookAgainMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return { ...reading, reason: null };
    }
  },
});

/** Null: it is none. */
export const readOrder = ({ action, controller }: JsonObject): PowerOrder | null => {
  const said = read(powerController, controller);
  return (action !== "read" && action !== "off" && action !== "try") || said instanceof Fault
    ? null
    : { action, controller: said };
};

export const noHand: PowerHand = { uuid: async () => null, carryOut: async () => nothingRead("not here") };
