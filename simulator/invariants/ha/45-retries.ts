import type { Json } from "../../../model/json/json.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Invariant } from "../invariant.ts";
import { incarnationOf, isHaManager, named } from "./said-over.ts";

/** As CloudStack presets them; times in seconds. */
const presets = {
  maxRetries: 5,
  timeBetweenFailures: 3600,
  restartRetryInterval: 600,
  investigateRetryInterval: 60,
  haWorkers: 5,
} as const;
type Name = keyof typeof presets;
/** An order that nobody has answered makes way after this. */
const orderMs = 10_000;
/** What the manager hears of its own clock, and the operator's word, come a little apart. */
const slackMs = 200;

/**
 * What is tried again keeps to what the operator has set: a VM is started elsewhere so often within so long, and then waits for him; an order to a power that did not help is
 * given again after its time; no more powers are asked for at once than there are workers; and other neighbours are asked after theirs. The premise is something that is tried.
 */
export const retries: Invariant = {
  number: 45,
  title: "retries keep to the settings",
  watch: ({ kernel }, verdict) => {
    const setting = watchSettings(kernel);
    const types = new Map<string, string>();
    /** By manager and VM, when it was started elsewhere. */
    const restarts = new Map<string, number[]>();
    const begun = new Set<string>();
    const released = new Set<string>();
    /** By manager and host, when an order about its power was given that nobody has answered. */
    const open = new Map<string, number>();
    const cutMs = new Map<string, number>();
    const goesOn = (who: string, vm: unknown, name: string): void => {
      const withinMs = setting(who, "timeBetweenFailures") * 1000;
      const { nowMs } = kernel.clock;
      const lately = (restarts.get(`${who} ${vm}`) ?? []).filter((atMs) => nowMs - atMs < withinMs - slackMs);
      const most = setting(who, "maxRetries");
      if (lately.length > 0)
        verdict.check(
          lately.length < most || released.has(name),
          () => `${name} is started elsewhere after ${lately.length} times, and ${most} are allowed`,
        );
    };
    const orders = (who: string, key: string, order: Json): void => {
      const { nowMs } = kernel.clock;
      const host = `${who} ${key.slice("order/".length)}`;
      const underWay = [...open].filter(
        ([other, atMs]) => other !== host && other.startsWith(`${who} `) && nowMs - atMs < orderMs - slackMs,
      );
      open.set(host, nowMs);
      verdict.check(
        underWay.length < setting(who, "haWorkers"),
        () => `${who} asks for ${underWay.length + 1} powers at once`,
      );
      if (named(order, "action") !== "off") return;
      const cut = `${host} ${named(order, "boot")}`;
      const sinceMs = nowMs - (cutMs.get(cut) ?? Number.NEGATIVE_INFINITY);
      cutMs.set(cut, nowMs);
      verdict.check(
        sinceMs >= setting(who, "restartRetryInterval") * 1000 - orderMs,
        () => `${who} orders the power of ${host} to be cut once more after ${Math.round(sinceMs)} ms`,
      );
    };
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        if (!isHaManager(who)) return;
        if (input.kind === "request" && named(input.request, "kind") === "ha-power-read")
          open.delete(`${who} ${named(input.request, "host")}`);
        for (const effect of effects) {
          if (effect.kind === "write" && effect.key.startsWith("order/") && effect.value !== null)
            if (input.kind === "request" && named(input.request, "kind") === "ha-power-next")
              orders(who, effect.key, effect.value);
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          const name = `${who} ${incarnationOf({ vm: fields.vm, incarnation: fields.incarnation })}`;
          // Nobody was handed it, or who was is lost and has it no more: it is as one that was not given.
          if (event === "ha/power-not-cut") cutMs.delete(`${who} ${fields.host} ${fields.boot}`);
          if (event === "ha/released" && fields.vm !== null)
            for (const each of types.keys()) if (each.startsWith(`${who} ${fields.vm}.`)) released.add(each);
          if (event !== "ha/step" || begun.has(name)) continue;
          if (fields.cell !== "root" && (fields.step === "Fencing" || fields.step === "Restarting"))
            goesOn(who, fields.vm, name);
        }
      },
      log: (who, event, { vm, incarnation, step, type, cell }) => {
        if (event === "process/crashed" || event === "store/taken") forget(who, open);
        if (event === "store/taken") forget(who, restarts, cutMs);
        if (!isHaManager(who)) return;
        const name = `${who} ${incarnationOf({ vm, incarnation })}`;
        if (event === "ha/scheduled") {
          types.set(name, String(type));
          begun.delete(name);
        }
        if (event !== "ha/step" || cell === "root") return;
        if (step === "Fencing") begun.add(name);
        if (step !== "Done" || types.get(name) !== "HA") return;
        const times = restarts.get(`${who} ${vm}`) ?? [];
        times.push(kernel.clock.nowMs);
        restarts.set(`${who} ${vm}`, times);
      },
    });
    return undefined;
  },
};

function forget(who: string, ...all: readonly Map<string, unknown>[]): void {
  for (const each of all) for (const key of each.keys()) if (key.startsWith(`${who} `)) each.delete(key);
}

/** What a manager was told last, or as it is preset. */
function watchSettings(kernel: Kernel): (who: string, name: Name) => number {
  const told = new Map<string, Json>();
  kernel.watchers.push({
    stepped: (who, input) => {
      if (isHaManager(who) && input.kind === "desired" && input.key === "settings") told.set(who, input.value);
    },
    log: (who, event) => {
      if (event === "process/crashed") told.delete(who);
    },
  });
  return (who, name) => {
    const said = named(named(told.get(who) ?? null, "settings"), name);
    return typeof said === "number" ? said : presets[name];
  };
}
