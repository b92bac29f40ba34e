import { type FormEvent, useId, useState } from "react";
import { type Asker, whyNot } from "../../../model/contract/actions/actions.ts";
import type { LimitKey, QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { ask, type Refused } from "../../data/api.ts";
import {
  formOfLimits,
  limitKeys,
  limitNames,
  limitsOf,
  mostOfLimit,
  type QuotaForm,
  quotaCommand,
  quotaSays,
} from "../../state/people/quotas.ts";
import { useDoing } from "../act.tsx";
import { Command } from "../bits.tsx";
import { Fault, refusedBy } from "../plan.tsx";

interface QuotaProps {
  readonly uid: string;
  readonly path: string;
  readonly state: string;
  /** Null: nothing of it is limited. */
  readonly quota: QuotaSummary | null;
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** Other limits: what would come of them, and then in force. */
function useLimits({ uid, quota, onDone }: QuotaProps) {
  const [form, setForm] = useState<QuotaForm>(() => formOfLimits(quota?.limits ?? {}));
  const [foreseen, setForeseen] = useState<QuotaSummary | null>(null);
  const [said, setSaid] = useState<Refused | null>(null);
  const { busy, run } = useDoing();
  const limits = limitsOf(form);
  const send = (dryRun: boolean): void => {
    setSaid(null);
    setForeseen(null);
    void run(async () => {
      try {
        const at = `/quotas/${encodeURIComponent(uid)}?dryRun=${dryRun}`;
        const { value } = await ask("setQuota", "PUT", at, { body: JSON.stringify({ limits }) });
        if (dryRun) setForeseen(value);
        else await onDone();
      } catch (error) {
        setSaid(refusedBy(error));
      }
    });
  };
  const set = (key: LimitKey, value: string): void => {
    setForm({ ...form, [key]: value });
    setForeseen(null);
  };
  return { form, set, limits, foreseen, said, busy, send, leave: () => setForeseen(null) };
}

/** What it may have in all: said beforehand with what was granted, and then in force. It is no part of a document. */
export function Quota(props: QuotaProps) {
  const { path, state, quota, asker } = props;
  const { form, set, limits, foreseen, said, busy, send, leave } = useLimits(props);
  const id = useId();
  const verdict = whyNot("setQuota", asker, { party: path, state });
  const look = (event: FormEvent): void => {
    event.preventDefault();
    send(true);
  };
  return (
    <details>
      <summary>What {path} may have</summary>
      <form className="filters" onSubmit={look} aria-label={`Limits of ${path}`}>
        {limitKeys.map((key) => (
          <label key={key}>
            Most {limitNames[key]}
            <input
              type="number"
              min={0}
              max={mostOfLimit}
              value={form[key]}
              placeholder="not limited"
              onChange={({ target }) => set(key, target.value)}
            />
            {quota?.granted != null && <span className="hint">{quota.granted[key] ?? 0} granted</span>}
          </label>
        ))}
        <button
          type="submit"
          disabled={busy || asker === null || verdict !== null}
          aria-describedby={verdict === null ? undefined : id}
        >
          What would come of it?
        </button>
        {verdict !== null && (
          <span className="hint" id={id}>
            {verdict.why}
          </span>
        )}
      </form>
      {said !== null && <Fault said={said} />}
      {foreseen !== null && (
        <fieldset className="card" aria-label={`Limit ${path}?`}>
          <Foreseen says={quotaSays(quota?.limits ?? {}, foreseen)} busy={busy} onLimit={() => send(false)} />
          <div className="buttons">
            <button type="button" onClick={leave}>
              Leave it as it is
            </button>
            <Command text={quotaCommand(path, limits)} />
          </div>
        </fieldset>
      )}
    </details>
  );
}

interface ForeseenProps {
  readonly says: readonly string[];
  readonly busy: boolean;
  readonly onLimit: () => void;
}
const Foreseen = ({ says, busy, onLimit }: ForeseenProps) => (
  <>
    {says.length === 0 && <p>That is so already.</p>}
    <ul className="lines">
      {says.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
    <button type="button" className="main" disabled={busy || says.length === 0} onClick={onLimit}>
      Limit it so
    </button>
  </>
);
