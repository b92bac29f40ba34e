import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";

/**
 * A connection that breaks after a change was sent leaves open whether it was made. It goes under a key, so it is asked for again:
 * made now, or answered as it was then (`Idempotency-Key`, docs/rest.md).
 */
const attempts = 5;
const pauseMs = 1000;

/** Of one change, however often it is asked for. */
export const newKey = (): string => randomUUID();
export const keyHeader = (key: string): Readonly<Record<string, string>> => ({ "idempotency-key": key });

/** The request may have arrived. */
export class AnswerLost extends CommandFailure {}
const broken: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);
export const isBroken = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && broken.has(cause.code);
/** An answer that ends before its end (`fetch` says "terminated"). */
const isCut = (error: unknown): boolean => error instanceof TypeError && error.message === "terminated";
const isUnreachable = (error: unknown): boolean =>
  error instanceof CommandFailure && error.exitCode === exitCodes.unreachable;

/** @param onRepeat called before it is asked for again */
export const repeated = async <T>(ask: () => Promise<T>, onRepeat: () => void = () => undefined): Promise<T> => {
  let isLost = false;
  for (let attempt = 1; ; attempt += 1)
    try {
      return await ask();
    } catch (error) {
      isLost ||= error instanceof AnswerLost || isCut(error);
      // A gateway that is started again is away for a moment.
      if (!isLost || attempt === attempts || !(isUnreachable(error) || isCut(error))) throw error;
      onRepeat();
      await sleep(pauseMs);
    }
};
