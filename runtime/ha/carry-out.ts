import type { PowerReading } from "../../core/ha/power/controller.ts";
import type { DueOrder } from "../../core/ha/power/orders.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";

/** What was read, and by which host; null: none of those who were asked has said anything. */
export type CarriedOut = (PowerReading & { readonly by: PeerName }) | null;
/** Null: that host does not answer. `over` is aborted once its answer counts no more: what it has not done by then is not to be done. */
export type AskExecutor = (by: PeerName, action: DueOrder["action"], over: AbortSignal) => Promise<PowerReading | null>;

/** A controller that works answers within a second; a host that was lost lets the edge wait for twelve. */
export const executorPatienceMs = 1_000;

/**
 * Has an order carried out. It is given once, to the first host; where that says nothing for a while the second one reads beside it. Off is off
 * whoever reads it; on says something of a power that is being cut only where the cut is through.
 */
export async function carryOut(
  order: DueOrder,
  ask: AskExecutor,
  after: (ms: number) => Promise<unknown>,
): Promise<CarriedOut> {
  const over = new AbortController();
  try {
    return await firstToSay(order, (by, action) => ask(by, action, over.signal), after);
  } finally {
    // One that was silent would cut the power of whatever is there when it goes on.
    over.abort();
  }
}
async function firstToSay(
  { action, controller, by: [first, second] }: DueOrder,
  ask: (by: PeerName, action: DueOrder["action"]) => Promise<PowerReading | null>,
  after: (ms: number) => Promise<unknown>,
): Promise<CarriedOut> {
  if (first === undefined) return null;
  const asked = async (by: PeerName, what: DueOrder["action"]): Promise<CarriedOut> => {
    const said = await ask(by, what);
    return said === null ? null : { ...said, by };
  };
  const ordered = asked(first, action);
  // The device of an agent may let one in at a time.
  const isOneAtATime = controller.kind === "agent";
  const early = await Promise.race([ordered, ...(isOneAtATime ? [] : [after(executorPatienceMs).then(() => null)])]);
  if (early !== null && early.power !== null) return early;
  if (second === undefined) return ordered;
  const beside = asked(second, "read");
  const counts = async (reading: Promise<CarriedOut>, isEnough: (power: PowerReading["power"]) => boolean) => {
    const said = await reading;
    if (said === null || !isEnough(said.power)) throw new Error("it does not say");
    return said;
  };
  const isRead = (power: PowerReading["power"]): boolean => power !== null;
  const isOff = (power: PowerReading["power"]): boolean => power === "off";
  try {
    return await Promise.any([counts(ordered, isRead), counts(beside, action === "off" ? isOff : isRead)]);
  } catch {
    return (await beside) ?? (await ordered);
  }
}
