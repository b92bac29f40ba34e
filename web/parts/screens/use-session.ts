import { useEffect, useState } from "react";
import { type Asked, openSession, type PageSession, type SessionListener } from "../../data/session.ts";
import { afterEnd } from "../../state/screens/again.ts";

export interface Shown {
  /** What is said of the connection; null: it is open. */
  readonly said: string | null;
  /** Somebody has to ask for it. */
  readonly isOver: boolean;
  readonly open: () => void;
}
/** What one connection of several is given to. */
export interface Screen extends Pick<SessionListener, "bytes" | "message"> {
  /** It is no more, and another one comes. */
  left?(): void;
}

/** A session into a VM that follows it: to its next incarnation, and over a service that restarts. */
export function useSession(asked: Asked, begin: ((session: () => PageSession | null) => Screen) | null): Shown {
  const { cell, vm, verb } = asked;
  const [round, setRound] = useState(0);
  const [state, setState] = useState<Omit<Shown, "open">>({ said: "Waits for its host.", isOver: false });
  useEffect(() => {
    if (begin === null) return;
    let isGone = false;
    let timer: number | undefined;
    let current: PageSession | null = null;
    let screen: Screen | null = null;
    let tries = 0;
    const open = (): void => {
      const begun = begin(() => current);
      screen = begun;
      current = openSession(
        { cell, vm, verb },
        {
          bytes: (bytes) => {
            // Only now: a host says that it is open before the machine has answered.
            tries = 0;
            begun.bytes(bytes);
          },
          message: (message) => {
            if (message.kind === "opened") setState({ said: null, isOver: false });
            begun.message(message);
          },
          ended: (ended) => {
            current = null;
            begun.left?.();
            if (isGone) return;
            const { sentence, afterMs } = afterEnd(ended, tries);
            tries += 1;
            setState({ said: sentence, isOver: afterMs === null });
            if (afterMs !== null) timer = window.setTimeout(open, afterMs);
          },
        },
      );
    };
    open();
    return () => {
      isGone = true;
      window.clearTimeout(timer);
      current?.close();
      screen?.left?.();
    };
  }, [cell, vm, verb, begin, round]);
  return {
    ...state,
    open: () => {
      setState({ said: "Waits for its host.", isOver: false });
      setRound(round + 1);
    },
  };
}
