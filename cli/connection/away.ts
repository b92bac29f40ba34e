import { setTimeout as sleep } from "node:timers/promises";
import type { Terminal } from "../terminal/terminal.ts";
import { Refused } from "./client.ts";

/** For so long, of the time that a command may take. */
const longestMs = 60_000;
const pauseMs = 1000;

/** The gateway was there, and the controller that it asked was not. */
const isAway = (error: unknown): error is Refused =>
  error instanceof Refused && error.status >= 500 && error.code === "controller-unreachable";

/**
 * A controller that is away comes back: its VM is started again, or its machine has much to do. It is asked again for a minute at most,
 * and whoever waits is told for what. A change goes under the version for which it was planned, so it is made once, also where only its
 * answer was lost.
 *
 * @param onAway called each time that it was away
 */
export const untilThere = async <T>(
  { terminal }: { readonly terminal: Pick<Terminal, "warn"> },
  timeoutMs: number,
  ask: () => Promise<T>,
  onAway: () => void = () => undefined,
): Promise<T> => {
  const limitMs = Math.min(timeoutMs, longestMs);
  const end = performance.now() + limitMs;
  for (let attempt = 1; ; attempt += 1)
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error) || performance.now() + pauseMs > end) throw error;
      onAway();
      if (attempt === 1)
        terminal.warn(
          `${error.message}\nit is asked again for up to ${Math.round(limitMs / 1000)} s; Ctrl-C ends that`,
        );
      await sleep(pauseMs);
    }
};
