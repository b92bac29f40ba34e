import { createContext, type ReactNode, useContext, useId, useState } from "react";
import type { Changed } from "../../model/api.ts";
import type { ElementChange } from "../../model/editor/patches/patches.ts";
import type { Refused } from "../data/api.ts";
import { type Prepared, prepared, put } from "../data/change.ts";
import { type Allowance, allowedFor, besideFields, whereSays } from "../state/cell/changes/change.ts";
import { linesOf } from "../state/cell/plan.ts";
import { useDoing } from "./act.tsx";
import { Command, Waiting } from "./bits.tsx";
import { Fault, Losses, PlanShown, refusedBy } from "./plan.tsx";

/** A change of a cell's document: planned, seen, and then put. */
export interface Changing {
  readonly cell: string;
  readonly planned: { readonly change: Prepared; readonly changed: Changed } | null;
  readonly said: Refused | null;
  readonly busy: boolean;
  readonly plan: (changes: readonly ElementChange[]) => void;
  readonly apply: (allowed: readonly string[]) => void;
  readonly leave: () => void;
}
/** @param onDone once it was put */
export function useChange(cell: string, onDone: () => unknown): Changing {
  const [planned, setPlanned] = useState<Changing["planned"]>(null);
  const [said, setSaid] = useState<Refused | null>(null);
  const { busy, run } = useDoing();
  const leave = (): void => {
    setPlanned(null);
    setSaid(null);
  };
  const doing = (work: () => Promise<void>): void => {
    leave();
    void run(() => work().catch((error: unknown) => setSaid(refusedBy(error))));
  };
  const plan = (changes: readonly ElementChange[]): void =>
    doing(async () => {
      const change = await prepared(cell, changes);
      setPlanned({ change, changed: await put(cell, change, new URLSearchParams({ dryRun: "true" })) });
    });
  const apply = (allowed: readonly string[]): void => {
    if (planned === null) return;
    const { change } = planned;
    doing(async () => {
      await put(cell, change, new URLSearchParams(allowed.map((path) => ["allowDestroy", path])));
      await onDone();
    });
  };
  return { cell, planned, said, busy, plan, apply, leave };
}

interface ShownProps {
  readonly changing: Changing;
  /** What the group is called: `Change shop/racks`. */
  readonly label: string;
  /** Attributes that have fields, beside which what is said of them stands. */
  readonly fields?: readonly string[];
  /** What comes of it that no plan says. */
  readonly says?: ReactNode;
  readonly commands?: readonly (string | null)[];
}
/** What a change would do, and the button that does it. */
export function ChangeShown({ changing, label, fields = [], says = null, commands = [] }: ShownProps) {
  const { cell, planned, said, busy, apply, leave } = changing;
  const [allowance, setAllowance] = useState<Allowance>({ plan: null, paths: [] });
  if (planned === null && said === null && !busy) return null;
  const lost = planned === null ? [] : linesOf(planned.changed.plan).filter(({ losesData }) => losesData);
  const paths = lost.map(({ path }) => path);
  const allowed = allowedFor(planned, paths, allowance);
  const isSaid = paths.every((path) => allowed.includes(path));
  const diagnostics = besideFields(said?.refusal.diagnostics ?? [], fields);
  const isBeside = diagnostics.size > 0 && !diagnostics.has("");
  return (
    <fieldset className="card" aria-label={`${label}?`}>
      {busy && <Waiting what={`the controller of ${cell}`} />}
      {said !== null &&
        (isBeside ? <p className="wrong">It is refused: see beside the fields.</p> : <Fault said={said} />)}
      {planned !== null && (
        <>
          <PlanShown changed={planned.changed} />
          <p className="hint">{whereSays(planned.change)}</p>
        </>
      )}
      {says}
      <Losses lost={lost} allowed={allowed} onAllow={(paths) => setAllowance({ plan: planned, paths })} />
      <div className="buttons">
        <button
          type="button"
          className="main"
          disabled={busy || planned === null || !isSaid}
          onClick={() => apply(allowed)}
        >
          Apply
        </button>
        <button type="button" onClick={leave}>
          Leave it as it is
        </button>
        {commands.map((each) => (
          <Command key={each} text={each} />
        ))}
      </div>
    </fieldset>
  );
}

const FieldsOf = createContext<{ readonly said: Refused | null; readonly names: readonly string[] }>({
  said: null,
  names: [],
});
/** Fields of a form, beside which stands what was refused of them. */
export const Fields = ({
  said,
  names,
  children,
}: {
  said: Refused | null;
  names: readonly string[];
  children: ReactNode;
}) => <FieldsOf.Provider value={{ said, names }}>{children}</FieldsOf.Provider>;
interface Control {
  readonly id: string;
  readonly name: string;
  readonly "aria-describedby"?: string;
  readonly "aria-invalid"?: true;
}
interface FieldProps {
  readonly label: string;
  /** Attribute that it writes. */
  readonly name: string;
  readonly children: (control: Control) => ReactNode;
}
export function Field({ label, name, children }: FieldProps) {
  const { said, names } = useContext(FieldsOf);
  const id = useId();
  const wrong = besideFields(said?.refusal.diagnostics ?? [], names).get(name) ?? [];
  const isWrong = wrong.length > 0;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, name, ...(isWrong ? { "aria-describedby": `${id}-wrong`, "aria-invalid": true } : {}) })}
      {isWrong && (
        <p className="wrong" id={`${id}-wrong`} role="alert">
          {wrong.join(" ")}
        </p>
      )}
    </div>
  );
}
