import { useState } from "react";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import type { PartySubject } from "../../../model/contract/actions/subjects.ts";
import { ask } from "../../data/api.ts";
import { Act, Failed, useDoing } from "../act.tsx";

interface RemovalProps {
  readonly name: "deleteAccount" | "deleteDomain";
  readonly subject: PartySubject;
  /** Where it is asked for. */
  readonly at: string;
  /** Cells whose data goes with it. */
  readonly lost: readonly string[];
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** All that goes with it, dedications too, is said by the service, in its order, before anything does. */
export function Removal({ name, subject, at, lost, asker, onDone }: RemovalProps) {
  const [plan, setPlan] = useState<readonly string[] | null>(null);
  const { busy, failed, run } = useDoing();
  const { party } = subject;
  const send = async (dryRun: boolean): Promise<readonly string[]> => {
    const query = new URLSearchParams({ dryRun: String(dryRun) });
    if (name === "deleteDomain") query.set("cleanup", "true");
    for (const cell of lost) query.append("allowDestroy", cell);
    return (await ask(name, "DELETE", `${at}?${query}`)).value.plan ?? [];
  };
  if (plan === null)
    return <Act name={name} of={party} asker={asker} subject={subject} run={async () => setPlan(await send(true))} />;
  return (
    <fieldset className="danger-box" aria-label={`Delete ${party}?`}>
      <strong>With {party} goes, in this order:</strong>
      <ul className="lines">
        {plan.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <button
        type="button"
        className="main"
        disabled={busy}
        onClick={() =>
          void run(async () => {
            await send(false);
            await onDone();
            setPlan(null);
          })
        }
      >
        Delete {party}
        {lost.length > 0 && ` with all data of ${lost.join(", ")}`}
      </button>{" "}
      <button type="button" onClick={() => setPlan(null)}>
        Leave it as it is
      </button>
      <Failed why={failed} />
    </fieldset>
  );
}
