import { type ReactNode, useId, useRef, useState } from "react";
import { type ActionName, type Asker, actions, type SubjectOf, whyNot } from "../../model/contract/actions/actions.ts";

/** Something is being done: one at a time, and what was refused is said. */
export interface Doing {
  readonly busy: boolean;
  readonly failed: string | null;
  /** Resolves to whether it was done. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
}
export function useDoing(): Doing {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string | null>(null);
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setFailed(null);
    try {
      await work();
      return true;
    } catch (error) {
      setFailed((error as Error).message);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, failed, run };
}
export const Failed = ({ why }: { why: string | null }) =>
  why === null ? null : (
    <p className="wrong" role="alert">
      {why}
    </p>
  );

interface ActProps<A extends ActionName> {
  readonly name: A;
  readonly asker: Asker | null;
  readonly subject: SubjectOf<A>;
  readonly run: () => Promise<unknown>;
  /** What comes of it, which is said before it is done. Null: nothing has to be. */
  readonly says?: ReactNode;
  /** Names what it is about to who does not see where the button stands. */
  readonly of: string;
}
/** A button of the table of actions: where it is off the reason stands beside it; what ends something is asked about first. */
export function Act<A extends ActionName>({ name, asker, subject, run, says = null, of }: ActProps<A>) {
  const { busy, failed, run: doing } = useDoing();
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const { label } = actions[name];
  const verdict = whyNot(name, asker, subject);
  const act = (): void => {
    dialog.current?.close();
    void doing(run);
  };
  return (
    <span className="act">
      <button
        type="button"
        disabled={busy || asker === null || verdict !== null}
        aria-label={`${label} ${of}`}
        aria-describedby={verdict === null ? undefined : id}
        onClick={() => (says === null ? act() : dialog.current?.showModal())}
      >
        {busy ? `${label} …` : label}
      </button>
      {verdict !== null && (
        <span className="hint" id={id}>
          {verdict.why}
        </span>
      )}
      <Failed why={failed} />
      {says !== null && (
        <dialog ref={dialog} aria-label={`${label} ${of}?`}>
          <h2>
            {label} {of}?
          </h2>
          {says}
          <p className="buttons">
            <button type="button" className="main" onClick={act}>
              {label}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Leave it as it is
            </button>
          </p>
        </dialog>
      )}
    </span>
  );
}
