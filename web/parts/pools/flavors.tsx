import { type FormEvent, useState } from "react";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import type { ListedFlavor } from "../../../model/contract/tenancy/pools.ts";
import { commandOf } from "../../state/command.ts";
import { flavorChange, flavorFields, flavorPath, whyNoFlavor } from "../../state/hosts/pools.ts";
import { Waiting } from "../bits.tsx";
import { ChangeShown, Field, Fields, useChange } from "../change.tsx";

interface FlavorsProps {
  readonly flavors: readonly ListedFlavor[] | null;
  readonly failed: string | null;
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** Kinds of whole hosts. They stand in the root cell's document, which the operator alone changes. */
export function Flavors({ flavors, failed, asker, onDone }: FlavorsProps) {
  const isOperator = asker?.kind === "operator";
  return (
    <section aria-labelledby="flavors">
      <h2 id="flavors">Flavours</h2>
      {failed !== null && <p className="hint">{failed}</p>}
      {flavors === null && failed === null && <Waiting what="the root controller" />}
      {flavors?.length === 0 && <p>The operator gives no whole hosts.</p>}
      <ul className="lines">
        {(flavors ?? []).map((flavor) => (
          <li key={flavor.name}>
            <strong>{flavor.name}</strong> {flavor.units} {flavor.units === 1 ? "unit" : "units"}, {flavor.free} free
            <span className="reason">
              {flavor.description}
              {flavor.hosts === undefined ? "" : `; its hosts: ${flavor.hosts.join(", ") || "none"}`}
            </span>
            {isOperator && (
              <FlavorForm
                key={`${flavor.description} ${flavor.units}`}
                flavor={flavor}
                names={flavors?.map(({ name }) => name) ?? []}
                onDone={onDone}
              />
            )}
          </li>
        ))}
      </ul>
      {isOperator && <FlavorForm flavor={null} names={flavors?.map(({ name }) => name) ?? []} onDone={onDone} />}
    </section>
  );
}

interface FormProps {
  /** Null: a new one. */
  readonly flavor: ListedFlavor | null;
  readonly names: readonly string[];
  readonly onDone: () => Promise<void>;
}
function FlavorForm({ flavor, names, onDone }: FormProps) {
  const [isNew, title] = [flavor === null, flavor === null ? "A new flavour" : `Change ${flavor.name}`];
  const [name, setName] = useState(flavor?.name ?? "");
  const [description, setDescription] = useState(flavor?.description ?? "");
  const [units, setUnits] = useState(String(flavor?.units ?? 1));
  const changing = useChange("root", async () => {
    if (isNew) setName("");
    await onDone();
  });
  const wrong = isNew ? whyNoFlavor(name, names) : null;
  const change = wrong === null ? flavorChange(flavor, { name, description, units: Number(units) }) : null;
  const plan = (event: FormEvent): void => {
    event.preventDefault();
    if (change !== null) changing.plan([change]);
  };
  return (
    <details>
      <summary>{title}</summary>
      <Fields said={changing.said} names={flavorFields}>
        <form className="filters" onSubmit={plan} onChange={changing.leave} aria-label={title}>
          {isNew && (
            <label>
              Name
              <input
                value={name}
                required
                pattern="[a-z](?:[a-z0-9\-]{0,51}[a-z0-9])?"
                title="small letters, digits and -, the first a letter"
                maxLength={53}
                spellCheck={false}
                aria-invalid={(name !== "" && wrong !== null) || undefined}
                onChange={({ target }) => setName(target.value)}
              />
              {name !== "" && wrong !== null && <span className="wrong">{wrong}</span>}
            </label>
          )}
          <Field label="What such a host is" name="x.description">
            {(control) => (
              <input
                {...control}
                value={description}
                maxLength={1024}
                onChange={({ target }) => setDescription(target.value)}
              />
            )}
          </Field>
          <Field label="Units that it counts" name="x.units">
            {(control) => (
              <input
                {...control}
                type="number"
                required
                min={1}
                value={units}
                onChange={({ target }) => setUnits(target.value)}
              />
            )}
          </Field>
          <button type="submit" disabled={changing.busy || change === null}>
            Plan
          </button>
          {flavor !== null && (
            <button
              type="button"
              disabled={changing.busy}
              onClick={() => changing.plan([{ kind: "remove", path: flavorPath(flavor.name) }])}
            >
              Take {flavor.name} back
            </button>
          )}
        </form>
      </Fields>
      <ChangeShown
        changing={changing}
        label={title}
        fields={flavorFields}
        commands={flavor === null ? [] : [commandOf("cells delete", flavorPath(flavor.name))]}
      />
    </details>
  );
}
