import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from "react";
import type { Suggested, Suggestion } from "../state/cell/completion.ts";

interface EditorTextProps {
  readonly id: string;
  readonly main: string;
  readonly text: string;
  readonly onText: (text: string) => void;
}
type Language = typeof import("../state/cell/completion.ts");
/** The language comes when it is asked for the first time: who only reads a text has no use of it. */
const load = (): Promise<Language> => import("../state/cell/completion.ts");

interface Offered extends Suggested {
  readonly at: number;
}

function useOffered({ main, text, onText }: Omit<EditorTextProps, "id">) {
  const field = useRef<HTMLTextAreaElement>(null);
  const language = useRef<Language | null>(null);
  const [offered, setOffered] = useState<Offered | null>(null);
  const [failed, setFailed] = useState(false);
  const [chosen, setChosen] = useState<readonly [number, number] | null>(null);
  useLayoutEffect(() => {
    if (chosen !== null) field.current?.setSelectionRange(...chosen);
  }, [chosen]);
  const leave = (): void => setOffered(null);
  const look = (now: string, offset: number): void => {
    if (language.current === null) return;
    const found = language.current.suggestionsAt(main, now, offset, offered?.view);
    setOffered({ ...found, at: 0 });
  };
  const begin = async (): Promise<void> => {
    language.current ??= await load().catch(() => null);
    setFailed(language.current === null);
    if (field.current !== null) look(field.current.value, field.current.selectionStart);
  };
  const take = (each: Suggestion): void => {
    const done = language.current?.completed(text, each);
    leave();
    if (done === undefined) return;
    onText(done.text);
    setChosen([...done.chosen]);
    field.current?.focus();
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      void begin();
    } else if (offered !== null) pressedInList(event, offered);
  };
  const pressedInList = (event: KeyboardEvent, list: Offered): void => {
    const [{ key }, { all, at }] = [event, list];
    const own = all[at];
    const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    if (key === "Escape") leave();
    else if (own === undefined) return;
    else if (step !== 0) setOffered({ ...list, at: (at + step + all.length) % all.length });
    else if (key === "Enter") take(own);
    else {
      // The cursor goes elsewhere.
      if (/^(?:Arrow|Home|End|Page)/.test(key)) leave();
      return;
    }
    event.preventDefault();
  };
  return { field, offered, failed, look, pressed, take, leave };
}

/**
 * A text with what could stand at its cursor, by Control and Space. Nothing opens by itself, and Tab leaves the text as everywhere, so nobody is
 * held in it. While the list is open it follows what is written; arrows choose, Enter takes, Escape leaves it.
 */
export function EditorText(props: EditorTextProps) {
  const { id, text, onText } = props;
  const { field, offered, failed, look, pressed, take, leave } = useOffered(props);
  const ids = useId();
  const own = offered?.all[offered.at];
  const count = offered?.all.length ?? 0;
  return (
    <>
      <textarea
        ref={field}
        id={id}
        className="editor"
        value={text}
        spellCheck={false}
        rows={24}
        aria-autocomplete="list"
        aria-controls={count > 0 ? ids : undefined}
        aria-activedescendant={own === undefined ? undefined : `${ids}-${offered?.at}`}
        aria-describedby={`${ids}-keys`}
        onKeyDown={pressed}
        onBlur={leave}
        onClick={leave}
        onChange={({ target }) => {
          onText(target.value);
          if (offered !== null) look(target.value, target.selectionStart);
        }}
      />
      {count > 0 && <List id={ids} offered={offered} onTake={take} />}
      <p id={`${ids}-keys`} className="hint">
        <kbd>Ctrl</kbd> <kbd>Space</kbd> offers what could stand at the cursor.
      </p>
      <p role="status" className="hint">
        {failed
          ? "What could stand here was not loaded: try again."
          : offered === null
            ? ""
            : count === 0
              ? "Nothing is known that fits here."
              : `${count} of it could stand here. ${own?.docs ?? ""}`}
      </p>
    </>
  );
}

interface ListProps {
  readonly id: string;
  readonly offered: Offered | null;
  readonly onTake: (each: Suggestion) => void;
}
function List({ id, offered, onTake }: ListProps) {
  const own = useRef<HTMLDivElement>(null);
  const at = offered?.at ?? 0;
  useLayoutEffect(() => {
    // What it answers is no clean-up: newer browsers give a promise.
    own.current?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <div id={id} role="listbox" aria-label="What could stand here" className="offered">
      {(offered?.all ?? []).map((each, index) => (
        <div
          key={each.label}
          id={`${id}-${index}`}
          ref={index === at ? own : undefined}
          role="option"
          aria-selected={index === at}
          tabIndex={-1}
          // The text keeps the cursor.
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(each);
          }}
        >
          <code>{each.label}</code> <span className="hint">{each.detail}</span>
        </div>
      ))}
    </div>
  );
}
