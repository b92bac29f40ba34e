import type { PowerReading } from "../../core/ha/power/controller.ts";
import type { DueOrder } from "../../core/ha/power/orders.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";

/** What was read, and by which host. */
export type ReadBy = PowerReading & { readonly by: PeerName };
export interface CarriedOut {
  /** Null: none of those who were asked has said anything. */
  readonly said: ReadBy | null;
  /** Who was handed an order to cut; null: certainly nobody, or there was none. */
  readonly given: PeerName | null;
  /** Has that one said anything by now? */
  readonly isAnswered: boolean;
}
/** One that is asked. */
export interface AskedExecutor {
  /** Null: that host does not answer. */
  readonly answer: Promise<PowerReading | null>;
  /** Takes the order back where that host does not have it yet. @returns whether: it certainly does not carry it out */
  withdraw(): boolean;
}
/** `over` is aborted once its answer counts no more: what it has not done by then is not to be done. */
export type AskExecutor = (by: PeerName, action: DueOrder["action"], over: AbortSignal) => AskedExecutor;

/** A controller that works answers within a second; a host that was lost lets the edge wait for twelve. */
export const executorPatienceMs = 1_000;

/**
 * Has an order carried out. It is given to the first host; where that says nothing for a while and does not have it yet, to the second one
 * instead, and else the second one reads beside it. Off is off whoever reads it; on says something of a power that is being cut only where the
 * cut is through.
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
  ask: (by: PeerName, action: DueOrder["action"]) => AskedExecutor,
  after: (ms: number) => Promise<unknown>,
): Promise<CarriedOut> {
  if (first === undefined) return { said: null, given: null, isAnswered: false };
  const isCut = action === "off";
  const ordered = ask(first, action);
  const reading = saidBy(first, ordered);
  const early = await Promise.race([reading, after(executorPatienceMs).then(() => null)]);
  if (early !== null && early.power !== null) return { said: early, given: isCut ? first : null, isAnswered: true };
  if (isCut && second !== undefined && ordered.withdraw()) {
    const instead = ask(second, action);
    const said = await saidBy(second, instead);
    return { said, given: said === null && instead.withdraw() ? null : second, isAnswered: said !== null };
  }
  // The device of an agent may let one in at a time: whoever may be there has all of his time.
  const alone = controller.kind === "agent" ? await reading : null;
  if (alone !== null && alone.power !== null) return { said: alone, given: isCut ? first : null, isAnswered: true };
  let isAnswered = false;
  const answered = reading.then((said) => {
    isAnswered = said !== null;
    return said;
  });
  const said = await (second === undefined
    ? answered
    : readBeside(answered, saidBy(second, ask(second, "read")), isCut));
  const isHandedOver = isCut && (said !== null || !ordered.withdraw());
  return { said, given: isHandedOver ? first : null, isAnswered };
}
const saidBy = async (by: PeerName, { answer }: AskedExecutor): Promise<ReadBy | null> => {
  const said = await answer;
  return said === null ? null : { ...said, by };
};

async function readBeside(
  ordered: Promise<ReadBy | null>,
  beside: Promise<ReadBy | null>,
  isCut: boolean,
): Promise<ReadBy | null> {
  const counts = async (reading: Promise<ReadBy | null>, isEnough: (power: PowerReading["power"]) => boolean) => {
    const said = await reading;
    if (said === null || !isEnough(said.power)) throw new Error("it does not say");
    return said;
  };
  const isRead = (power: PowerReading["power"]): boolean => power !== null;
  const isOff = (power: PowerReading["power"]): boolean => power === "off";
  try {
    return await Promise.any([counts(ordered, isRead), counts(beside, isCut ? isOff : isRead)]);
  } catch {
    return (await beside) ?? (await ordered);
  }
}
