import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";
import { isHaManager, watchOwn } from "./said-over.ts";

/** What is said to an HA Manager of a VM, and by it. */
const aboutVms = /(?:^|\/)(?:protected|over|fence)\/([^/]+)$/;

/**
 * The VM of the root controller is its hosts' matter: nobody else protects it, looks into its loss, fences it or says that it is over, or who protects whom would go round in a circle. Which one that is
 * is read off what its controller has its host start: that VM alone is started again by its host. The premise is its host's loss, seen by what HA does for others there, and its next start.
 */
export const rootControllersVm: Invariant = {
  number: 46,
  title: "HA does not touch the root controller's VM",
  watch: ({ kernel, truth, installation }, verdict) => {
    if (installation.history.own !== true) return undefined;
    const own = watchOwn(kernel);
    /** Where it ran last. */
    let at: string | null = null;
    truth.watchers.push({
      machineStarted: ({ vm, host }) => {
        if (!own.has(vm)) return;
        verdict.check(true, () => "");
        at = host;
      },
    });
    const notOf = (vm: Json | undefined, what: () => string): void => {
      if (own.has(String(vm))) verdict.violate(what());
    };
    kernel.watchers.push({
      frame: (from, to, frame) => {
        if ((frame.frame !== "desire" && frame.frame !== "actual") || frame.value === null) return;
        const about = aboutVms.exec(frame.key)?.[1];
        if (about !== undefined && (isHaManager(from) || isHaManager(to)))
          notOf(about, () => `${from} says ${frame.key} to ${to}, which is about the root controller's VM`);
      },
      log: (who, event, { vm, host, step }) => {
        const isAboutHa = event.startsWith("ha/") && (isHaManager(who) || who.startsWith("storage-manager"));
        if (!isAboutHa) return;
        notOf(vm, () => `${who} says ${event} ${step ?? ""} of the root controller's VM`);
        if (event === "ha/scheduled" && host === at) verdict.check(true, () => "");
      },
    });
    return undefined;
  },
};
