import type { EndCause } from "../../../model/cell/session-messages.ts";

/** How a session into a VM ended, for who looks at it. */
export type Ended =
  | { readonly kind: "ended"; readonly cause: EndCause; readonly sentence: string }
  /** It was not opened. @param status 0: the gateway does not answer */
  | { readonly kind: "refused"; readonly status: number; readonly sentence: string }
  /** Without a word. */
  | { readonly kind: "broken" };

export interface Next {
  readonly sentence: string;
  /** It is tried again after so long; null: somebody has to ask for it. */
  readonly afterMs: number | null;
}
/** A VM that is off or is started again, a service that is away: they come again. What is not allowed does not. */
export function afterEnd(ended: Ended, tries: number): Next {
  // Each try is a record of the cell's audit: a page that is left open must not push out who changed what.
  const afterMs = Math.min(500 * 2 ** Math.min(tries, 10), tries < 12 ? 5000 : 300_000);
  switch (ended.kind) {
    case "broken":
      return { sentence: "The connection ended. It is opened again by itself.", afterMs };
    case "refused": {
      const { status, sentence } = ended;
      const passes = status === 0 || status === 409 || status === 429 || status >= 500;
      return {
        sentence: passes ? `${sentence}. It is tried again by itself.` : sentence,
        afterMs: passes ? afterMs : null,
      };
    }
    case "ended": {
      const passes = ended.cause === "machine-ended" || ended.cause === "closing" || ended.cause === "failed";
      return passes
        ? { sentence: `${ended.sentence}. It is opened again by itself.`, afterMs }
        : { sentence: ended.sentence, afterMs: null };
    }
  }
}
