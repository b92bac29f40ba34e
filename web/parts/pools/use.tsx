import { type FormEvent, useState } from "react";
import type { PoolSummary } from "../../../model/contract/tenancy/pools.ts";
import {
  fillSays,
  fills,
  formOfPool,
  type PoolForm,
  poolChange,
  poolCommands,
  poolFields,
} from "../../state/hosts/pools.ts";
import { ChangeShown, Field, Fields, useChange } from "../change.tsx";

/** How a pool's hosts are used, and by whose machines: an attribute each of the cell's document. */
export function PoolUse({ pool, onDone }: { pool: PoolSummary; onDone: () => Promise<void> }) {
  const [form, setForm] = useState<PoolForm>(() => formOfPool(pool));
  const changing = useChange(pool.cell, onDone);
  const change = poolChange(pool, form);
  const set = (more: Partial<PoolForm>): void => {
    setForm({ ...form, ...more });
    changing.leave();
  };
  const plan = (event: FormEvent): void => {
    event.preventDefault();
    if (change !== null) changing.plan([change]);
  };
  return (
    <details>
      <summary>How {pool.path} is used</summary>
      <Fields said={changing.said} names={poolFields}>
        <form className="filters" onSubmit={plan} aria-label={`Use of ${pool.path}`}>
          <Ratios form={form} set={set} />
          <Whose form={form} set={set} />
          <button type="submit" disabled={changing.busy || change === null}>
            Plan
          </button>
        </form>
      </Fields>
      <ChangeShown
        changing={changing}
        label={`Change ${pool.path}`}
        fields={poolFields}
        says={<p>What runs there stays, also of accounts that are not named any more.</p>}
        commands={poolCommands(pool, form)}
      />
    </details>
  );
}

interface PartProps {
  readonly form: PoolForm;
  readonly set: (more: Partial<PoolForm>) => void;
}
const Ratios = ({ form, set }: PartProps) => (
  <>
    <Field label="Virtual processors for each one" name="x.cpuRatio">
      {(control) => (
        <input
          {...control}
          type="number"
          min={1}
          max={16}
          value={form.cpuRatio}
          placeholder="16"
          onChange={({ target }) => set({ cpuRatio: target.value })}
        />
      )}
    </Field>
    <Field label="Percent of the memory" name="x.memoryPercent">
      {(control) => (
        <input
          {...control}
          type="number"
          min={1}
          max={100}
          value={form.memoryPercent}
          placeholder="100"
          onChange={({ target }) => set({ memoryPercent: target.value })}
        />
      )}
    </Field>
    <Field label="Which host a machine gets" name="x.fill">
      {(control) => (
        <select {...control} value={form.fill} onChange={({ target }) => set({ fill: target.value })}>
          <option value="">as elsewhere</option>
          {fills.map((each) => (
            <option key={each} value={each}>
              {each}: {fillSays[each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  </>
);
const Whose = ({ form, set }: PartProps) => (
  <>
    <label>
      Whose machines
      <select
        value={form.isNamed ? "named" : "own"}
        onChange={({ target }) => set({ isNamed: target.value === "named" })}
      >
        <option value="own">those of the account of its cell</option>
        <option value="named">those of these accounts alone</option>
      </select>
    </label>
    {form.isNamed && (
      <Field label="Accounts, by their paths" name="x.authorised">
        {(control) => (
          <textarea
            {...control}
            rows={3}
            maxLength={10_000}
            spellCheck={false}
            placeholder="ROOT/acme/dev"
            value={form.authorised}
            onChange={({ target }) => set({ authorised: target.value })}
          />
        )}
      </Field>
    )}
  </>
);
