import { peerName } from "../../../model/cell/identifiers.ts";
import { goodQuality } from "../../kernel/network.ts";
import type { Invariant } from "../invariant.ts";

/**
 * A right that was taken back opens nothing a second later, or five minutes where the service that says so cannot be heard; and whose right
 * was not taken back is let in all the while, also while that service is away for less than five minutes. What is physically so decides
 * whether it can be heard: whether it runs, and whether there is a way to it. Whom the operator lets back in is in, whatever became of the store.
 */
const tenancy = peerName("tenancy");
const withinMs = 1_000;
const silenceMs = 5 * 60_000;
/** A connection that broke is noticed, and made anew, within this long. */
const reconnectMs = 45_000;
const lookEveryMs = 100;

export const takenRights: Invariant = {
  number: 70,
  title: "a right that was taken back opens nothing, and no other is lost",
  watch: ({ kernel, installation }, verdict) => {
    /** By cell: until when its controller could not hear it, and since when without a pause. */
    const unheard = new Map<string, { untilMs: number; sinceMs: number }>();
    /** By cell: when its controller was seen first. */
    const born = new Map<string, number>();
    /** By cell: when one of that name was seen last that ends, with whatever was opened there. */
    const ended = new Map<string, number>();
    const states = new Map<string, string>();
    let isOlder = false;
    /** When packets were lost or late last: a connection says again what was lost, which takes its time. */
    let lossyMs = -1;
    const look = (): void => {
      kernel.clock.after(lookEveryMs, look);
      if (kernel.network.quality !== goodQuality) lossyMs = kernel.clock.nowMs;
      const service = installation.processes.get(tenancy);
      for (const [cell, controller] of installation.controllers) {
        const ways = [
          [controller.machine, "tenancy"],
          ["tenancy", controller.machine],
        ] as const;
        const isOpen = ways.every(([from, to]) => kernel.network.isOpen(from, to));
        const isWell = service?.isRunning === true && !service.isPaused && controller.isRunning && !controller.isPaused;
        const { nowMs } = kernel.clock;
        if (!born.has(cell)) born.set(cell, nowMs);
        if (controller.state?.life?.ending === true) ended.set(cell, nowMs);
        if (isOpen && isWell) continue;
        const before = unheard.get(cell);
        const isSame = before !== undefined && before.untilMs + reconnectMs >= nowMs;
        unheard.set(cell, { untilMs: nowMs, sinceMs: isSame ? before.sinceMs : nowMs });
      }
    };
    kernel.clock.after(lookEveryMs, look);
    kernel.watchers.push({
      log: (who, event) => {
        if (who === "tenancy" && event === "store/taken") isOlder = true;
      },
    });
    installation.visitors.returnWatchers.push(({ user, role }) =>
      verdict.check(role === "root-admin", () => `${user}, whom the operator let back in, is ${role ?? "nobody"}`),
    );
    installation.visitors.watchers.push(({ visit, state, askedMs }) => {
      const { nowMs } = kernel.clock;
      const { user, cell, revokedMs, sinceMs, isRevoking } = visit;
      const away = unheard.get(cell);
      const isHeard = away === undefined || away.untilMs + reconnectMs < (revokedMs ?? nowMs);
      const isIn = state === "open" || state === "old";
      if (states.get(visit.ticket) !== state) kernel.log(`user.${user}`, "told", { cell, state });
      states.set(visit.ticket, state);
      if (revokedMs !== null) {
        const soonMs = lossyMs < revokedMs ? withinMs : reconnectMs;
        const mostMs = isHeard ? soonMs : silenceMs + 2 * reconnectMs;
        if (askedMs > revokedMs + mostMs)
          verdict.check(
            !isIn,
            () => `${user} is told ${state} in ${cell}, ${nowMs - revokedMs} ms after he was disabled`,
          );
        return;
      }
      // A store that was lost or is older lets nobody in; a controller that began anew remembers nothing.
      if (sinceMs <= (ended.get(cell) ?? -1)) return;
      if (isRevoking || isOlder || nowMs < Math.max(sinceMs, born.get(cell) ?? nowMs) + reconnectMs) return;
      const awayMs = away === undefined ? 0 : away.untilMs - away.sinceMs;
      const isStarted = installation.controllers.get(cell)?.starts === 1;
      if (isStarted && awayMs < silenceMs - reconnectMs)
        verdict.check(isIn, () => `${user}, whose right nobody has taken back, is told ${state} in ${cell}`);
    });
    return undefined;
  },
};
