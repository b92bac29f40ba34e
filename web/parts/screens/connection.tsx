import type { ReactNode } from "react";
import type { Shown } from "./use-session.ts";

/** What is said of a connection, above what it shows. */
export function Connection({ shown, said, children }: { shown: Shown; said: string | null; children: ReactNode }) {
  const text = shown.said ?? said;
  return (
    <>
      <p className="hint" role="status">
        {text ?? "Connected."}
        {shown.isOver && (
          <button type="button" onClick={shown.open}>
            Open it again
          </button>
        )}
      </p>
      {children}
    </>
  );
}
