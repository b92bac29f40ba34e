import { isOfTheWay, mostTries, pauseMs, type RefusedUpload } from "../../model/contract/tenancy/volumes/resuming.ts";
import type { Upload, UploadPart } from "../../model/contract/tenancy/volumes/uploads.ts";

/**
 * A file of the person's own is brought, and goes on where its connection broke, as long as that brings it further (decision 220). What was sent is its
 * beginning: a browser reads a file as it was when it was chosen, or not at all.
 */
export interface Wires {
  /** Sends all behind `from`. @param told how much is on its way, with what is there */
  send(from: number, told: (sent: number) => void): Promise<Upload>;
  /** As it is there, as a whole; null: it is not. */
  whole(): Promise<Upload | null>;
  /** How far it came. */
  part(): Promise<UploadPart>;
  /** Rejects where the file can be read no longer. */
  readable(): Promise<void>;
  /** Rejects where somebody left meanwhile. */
  pause(ms: number): Promise<void>;
}
export interface Bringing {
  readonly bytes: number;
  readonly format: "raw" | "qcow2";
  readonly told: (sent: number) => void;
  /** It broke off, and goes on there. */
  readonly broke: (from: number) => void;
}

const refusalIn = (error: unknown): RefusedUpload => {
  const { status = -1, code = "" } = error as Partial<RefusedUpload>;
  return { status, code };
};
const hasBroken = (error: unknown, before: boolean): boolean => {
  const refusal = refusalIn(error);
  return (refusal.status === 0 && refusal.code === "unreachable") || isOfTheWay(refusal, before);
};

/** Rejects with what refused it, or with what broke it off last. */
export async function bring(wires: Wires, { bytes, format, told, broke }: Bringing): Promise<Upload> {
  let [from, furthest, tries] = [0, 0, 0];
  let [isSent, hasFailed] = [false, false];
  for (;;) {
    try {
      return await wires.send(from, (sent) => {
        isSent = true;
        told(sent);
      });
    } catch (error) {
      if (!isSent || !hasBroken(error, hasFailed)) throw error;
      hasFailed = true;
      await wires.readable();
      const next = await goesOnAt(error);
      if (typeof next !== "number") return next;
      if (next > furthest) [furthest, tries] = [next, 0];
      from = next;
      broke(from);
      told(from);
    }
  }

  /** The offset, or what is there as a whole, since an answer was lost. */
  async function goesOnAt(why: unknown): Promise<number | Upload> {
    while (tries < mostTries) {
      tries += 1;
      await wires.pause(pauseMs(tries));
      try {
        const whole = await wires.whole();
        if (whole !== null) return whole;
        const part = await wires.part();
        return part.length === bytes && part.format === format ? part.offset : 0;
      } catch (error) {
        // Nothing is kept of it.
        if (refusalIn(error).status === 404) return 0;
        if (!hasBroken(error, true)) throw error;
      }
    }
    throw why;
  }
}
