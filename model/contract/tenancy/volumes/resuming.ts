import type { Upload, UploadPart } from "./uploads.ts";

/*
 * How whoever sends a file goes on where its connection broke, as long as that brings it further (decisions 220 and 229). It is the same for the command
 * and the page: who they are is their wires. The gateway and its storage servers keep what came of it for as long.
 */
/** Tries in a row that bring it no further, and the pauses before them. */
export const mostTries = 12;
export const pauseMs = (tries: number): number => Math.min(15_000, 250 * 2 ** tries);
/** Where nothing is taken for so long it has broken off. The gateway gives up whom it hears nothing of for 15 s. */
export const stalledMs = 60_000;

export interface RefusedUpload {
  readonly status: number;
  readonly code: string;
}
/** Nothing answered. */
export const unreachable: RefusedUpload = { status: 0, code: "unreachable" };

/** Whether it is the way that failed, and not what is sent. @param before it has failed before: who is busy now is asked again */
export const isOfTheWay = ({ status, code }: RefusedUpload, before: boolean): boolean =>
  (status === unreachable.status && code === unreachable.code) ||
  [502, 504, ...(before ? [429, 503] : [])].includes(status) ||
  ["upload/broken", "image/under-way", "image/offset"].includes(code);

export interface Wires {
  /** Sends all behind `from`. @param told how much is on its way, with what is there */
  send(from: number, told: (sent: number) => void): Promise<Upload>;
  /** As it is there, as a whole; null: it is not. */
  whole(): Promise<Upload | null>;
  /** How far it came. */
  part(): Promise<UploadPart>;
  /** Whether what came is the beginning of what is sent, by its SHA-256; its format and length are. Absent: it cannot be another one. */
  isBeginning?(part: UploadPart): Promise<boolean>;
  /** Rejects where what is sent can be read no longer. */
  readable?(): Promise<void>;
  /** Rejects where somebody left meanwhile. */
  pause(ms: number): Promise<void>;
  /** What an error says that one of these rejected with; null: it is no answer. */
  refusalIn(error: unknown): RefusedUpload | null;
}
export interface Bringing {
  readonly bytes: number;
  readonly format: "raw" | "qcow2";
  /** It was begun before, by somebody who is asked for no longer. */
  readonly begun?: boolean;
  readonly told: (sent: number) => void;
  /** It goes on there. @param why what broke it off; null: it was begun before */
  readonly goesOn: (from: number, why: unknown) => void;
}
/** Rejects with what refused it, or with what broke it off, first of the tries that brought it no further. */
export async function bring(wires: Wires, { bytes, format, begun = false, told, goesOn }: Bringing): Promise<Upload> {
  let [from, furthest, tries] = [0, 0, 0];
  let [isSent, hasFailed] = [begun, begun];
  const hasBroken = (error: unknown, before: boolean): boolean => {
    const refusal = wires.refusalIn(error);
    return refusal !== null && isOfTheWay(refusal, before);
  };
  const furtherOf = async (why: unknown): Promise<Upload | null> => {
    await wires.readable?.();
    const next = await goesOnAt(why);
    if (typeof next !== "number") return next;
    if (next > furthest) [furthest, tries] = [next, 0];
    from = next;
    goesOn(from, why);
    told(from);
    return null;
  };
  const there = begun ? await furtherOf(null) : null;
  if (there !== null) return there;
  for (;;) {
    try {
      return await wires.send(from, (sent) => {
        isSent = true;
        told(sent);
      });
    } catch (error) {
      if (!isSent || !hasBroken(error, hasFailed)) throw error;
      hasFailed = true;
      const whole = await furtherOf(error);
      if (whole !== null) return whole;
    }
  }

  /** The offset, or what is there as a whole, since an answer was lost. */
  async function goesOnAt(why: unknown): Promise<number | Upload> {
    let last = why;
    while (tries < mostTries) {
      // Who begins has waited for nothing yet.
      if (last !== null) {
        tries += 1;
        await wires.pause(pauseMs(tries));
      }
      try {
        const whole = await wires.whole();
        if (whole !== null) return whole;
        const part = await wires.part();
        const isIts = part.length === bytes && part.format === format;
        return isIts && (await (wires.isBeginning?.(part) ?? true)) ? part.offset : 0;
      } catch (error) {
        // Nothing is kept of it, or the gateway is older and keeps nothing.
        if (wires.refusalIn(error)?.status === 404) return 0;
        if (!hasBroken(error, true)) throw error;
        last ??= error;
      }
    }
    throw last;
  }
}
