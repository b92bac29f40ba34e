import { type SyntheticEvent, useEffect, useRef, useState } from "react";
import { openSession, type PageSession } from "../../data/session.ts";
import { commandOf } from "../../state/command.ts";
import { wordsOf } from "../../state/screens/words.ts";
import { Command } from "../bits.tsx";

/** What an incarnation that has ended said last, by its number. It is text: nobody sits at that terminal any more. */
export function FormerConsole({ cell, vm, newest }: { cell: string; vm: string; newest: number | null }) {
  const [number, setNumber] = useState(`${Math.max(1, (newest ?? 1) - 1)}`);
  const [said, say] = useState<{ readonly of: number; readonly words: string; readonly why: string | null } | null>(
    null,
  );
  const session = useRef<PageSession | null>(null);
  useEffect(() => () => session.current?.close(), []);
  const look = (event: SyntheticEvent): void => {
    event.preventDefault();
    session.current?.close();
    const of = Number(number);
    let [words, past, isRight] = ["", 0, true];
    const show = (why: string | null): void => say({ of, words, why });
    say({ of, words, why: "Waits for its host." });
    const left = (): void => {
      show(words === "" ? "It has said nothing." : null);
      session.current?.close();
    };
    const pieces: number[] = [];
    session.current = openSession(
      { cell, vm, verb: "console", incarnation: of },
      {
        bytes: (bytes) => {
          if (!isRight) return;
          pieces.push(...bytes);
          words = wordsOf(Uint8Array.from(pieces));
          // One that runs goes on: what it said so far is what was asked for.
          if (pieces.length >= past) left();
        },
        message: (message) => {
          if (message.kind !== "opened") return;
          past = message.pastBytes;
          isRight = message.incarnation === of;
          if (!isRight) show("A service on the way is of a version before, and knows the incarnation that runs alone.");
          if (!isRight) session.current?.close();
          else if (past === 0) left();
        },
        ended: (ended) => show(ended.kind === "broken" ? "The connection ended." : ended.sentence),
      },
    );
  };
  return (
    <details>
      <summary>What {vm} said before it ended</summary>
      <form className="buttons" onSubmit={look}>
        <label>
          Incarnation{" "}
          <input type="number" min={1} required value={number} onChange={(event) => setNumber(event.target.value)} />
        </label>
        <button type="submit">Read it</button>
        <Command text={commandOf("cells logs --incarnation", number, vm)} />
      </form>
      {said?.why != null && <p role="status">{said.why}</p>}
      {said !== null && said.words !== "" && (
        <section className="difference" aria-label={`Last words of incarnation ${said.of} of ${vm}`}>
          <pre>
            <code>{said.words}</code>
          </pre>
        </section>
      )}
    </details>
  );
}
