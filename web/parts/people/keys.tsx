import { useState } from "react";
import type { KeyState, MadeKey } from "../../../model/contract/tenancy/tenancy.ts";
import { ask } from "../../data/api.ts";
import { commandOf } from "../../state/command.ts";
import { Failed, useDoing } from "../act.tsx";
import { Command, Phase } from "../bits.tsx";
import { useAsked } from "../use-known.ts";

/** Access keys, by which scripts sign what they ask. The secret of one is seen once. */
export function Keys({ isUser }: { isUser: boolean }) {
  const keys = useAsked("keys", async () => (await ask("listKeys", "GET", "/keys")).value);
  const { busy, failed, run } = useDoing();
  const [note, setNote] = useState("");
  const [made, setMade] = useState<MadeKey | null>(null);
  const add = (): void =>
    void run(async () => {
      const body = JSON.stringify(note === "" ? {} : { note });
      setMade((await ask("addKey", "POST", "/keys", { body })).value);
      setNote("");
      await keys.again();
    });
  const change = (id: string, state: KeyState | null): void =>
    void run(async () => {
      const at = `/keys/${encodeURIComponent(id)}`;
      if (state === null) await ask("deleteKey", "DELETE", at);
      else await ask("changeKey", "PUT", at, { body: JSON.stringify({ state }) });
      await keys.again();
    });
  return (
    <section aria-labelledby="keys">
      <h2 id="keys">Access keys</h2>
      <Failed why={keys.failed} />
      <ul className="lines">
        {(keys.value ?? []).map(({ id, user, state, note: of, used }) => (
          <li key={id}>
            <strong>{id}</strong> <Phase phase={state} />
            <span className="reason">
              of {user}
              {of === "" ? "" : `, ${of}`}, {used === null ? "never used" : `used ${used.slice(0, 10)}`}
            </span>
            <span className="buttons">
              <button
                type="button"
                disabled={busy}
                aria-label={`${state === "enabled" ? "Disable" : "Enable"} the key ${id}`}
                onClick={() => change(id, state === "enabled" ? "disabled" : "enabled")}
              >
                {state === "enabled" ? "Disable" : "Enable"}
              </button>
              {/* One that is disabled opens nothing any more: nobody is surprised by its end. */}
              <button
                type="button"
                disabled={busy || state === "enabled"}
                aria-label={`Delete the key ${id}`}
                title={state === "enabled" ? "disable it first" : undefined}
                onClick={() => change(id, null)}
              >
                Delete
              </button>
            </span>
          </li>
        ))}
        {keys.value?.length === 0 && <li>There is none.</li>}
      </ul>
      {isUser && (
        <div className="filters">
          <label>
            What a new one is for
            <input value={note} maxLength={100} onChange={(event) => setNote(event.target.value)} />
          </label>
          <button type="button" disabled={busy} onClick={add}>
            Make a key
          </button>
          <Command text={note === "" ? "cells key add" : commandOf("cells key add --note", note)} />
        </div>
      )}
      <Failed why={failed} />
      {made !== null && (
        <div className="notice" role="status">
          <p>The secret of {made.key.id} is shown here and nowhere else:</p>
          <code className="secret">{made.secret}</code>
        </div>
      )}
    </section>
  );
}
