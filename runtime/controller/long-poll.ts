import type { ControllerResponse } from "../../core/controller/requests/requests.ts";
import type { CellEvent } from "../../model/api.ts";
import type { Json } from "../../model/json/json.ts";

/**
 * A long poll: the answer waits until it says that something is so, for whoever makes or ends what is a part of this cell:
 * `ready`, the element is as declared, or cannot be before something is changed; `gone`, nothing is left of it, and the answer is 404. Looked at again
 * after each event of the cell, and given as it is after a while, so that a connection that broke is noticed.
 */
export type Awaited = "ready" | "gone";

const longestMs = 45_000;
/** All that wait at one controller. */
const mostWaiting = 256;
let waiting = 0;

/** Null: too many wait here. */
export async function longPoll(
  until: Awaited,
  look: () => Promise<ControllerResponse>,
  subscribe: (listener: (event: CellEvent) => void) => () => void,
  signal: AbortSignal,
): Promise<ControllerResponse | null> {
  if (waiting >= mostWaiting) return null;
  waiting += 1;
  let [changed, tell] = [true, (): void => undefined];
  const leave = subscribe(() => {
    changed = true;
    tell();
  });
  const end = AbortSignal.any([signal, AbortSignal.timeout(longestMs)]);
  end.addEventListener("abort", () => tell());
  try {
    for (;;) {
      changed = false;
      const answer = await look();
      if (isSo(until, answer) || end.aborted) return answer;
      while (!changed && !end.aborted) await new Promise<void>((resolve) => (tell = resolve));
    }
  } finally {
    leave();
    waiting -= 1;
  }
}

const isSo = (until: Awaited, { status, body }: ControllerResponse): boolean => {
  if (until === "gone" || status !== 200) return status !== 200;
  const state = (body as { readonly $state?: { readonly phase?: Json; readonly stuck?: Json } } | null)?.$state;
  return state?.phase === "ready" || state?.phase === "failed" || state?.stuck === true;
};
