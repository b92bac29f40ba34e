import { type FormEvent, useState } from "react";
import { ownerText } from "../../../model/cell/tenants/dedication/dedication.ts";
import { implicitModes } from "../../../model/cell/tenants/dedication/implicit.ts";
import { ask } from "../../data/api.ts";
import { type OwnedZone, type WantedMachine, zonesIn } from "../../state/cell/machine.ts";
import { cellsIn, elementsIn } from "../../state/known.ts";
import { Failed } from "../act.tsx";
import { useAsked, useKnown } from "../use-known.ts";

interface MachineFormProps {
  readonly cell: string;
  /** Writes it into the text. A sentence: why it is not written; null: it is. */
  readonly onAdd: (wanted: WantedMachine) => string | null;
}
/** A machine that is written into the text of its cell; nothing of it is made before that is applied. */
export function MachineForm({ cell, onAdd }: MachineFormProps) {
  const [wrong, setWrong] = useState<string | null>(null);
  const subnets = elementsIn(useKnown().followed).filter((each) => each.cell === cell && each.type === "Subnet");
  const where = useWhere(cell);
  const add = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const text = (name: string): string => String(fields.get(name) ?? "").trim();
    const why = onAdd({
      name: text("name"),
      memoryMiB: Number(text("memory")),
      cpus: Number(text("cpus")),
      subnet: text("subnet") || null,
      zone: where.locked?.zone ?? null,
      group: where.group.trim() || null,
      dedication: implicitModes.find((each) => each === text("dedication")) ?? null,
    });
    setWrong(why);
    if (why !== null) return;
    form.reset();
    where.clear();
  };
  return (
    <details>
      <summary>Add a machine</summary>
      <form className="filters" onSubmit={add} aria-label="A machine">
        <label>
          Name
          <input name="name" required maxLength={63} spellCheck={false} autoComplete="off" />
        </label>
        <label>
          Memory in MiB
          <input name="memory" type="number" required min={1} max={1_048_576} defaultValue={256} />
        </label>
        <label>
          Processors
          <input name="cpus" type="number" required min={1} max={256} defaultValue={1} />
        </label>
        <label>
          In the subnet
          <select name="subnet" defaultValue="">
            <option value="">none</option>
            {subnets.map(({ path }) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
        <Standing where={where} />
        <button type="submit">Write it into the text</button>
        <Failed why={wrong} />
      </form>
    </details>
  );
}

const alone = {
  strict: "nobody of another account, or it waits",
  preferred: "rather nobody of another account",
} as const;

interface Where {
  readonly owned: readonly OwnedZone[];
  readonly zone: string;
  readonly setZone: (zone: string) => void;
  /** The zone that is chosen, whose group nobody changes; null: none. */
  readonly locked: OwnedZone | null;
  readonly group: string;
  readonly setGroup: (group: string) => void;
  readonly clear: () => void;
}
/** Whoever may not ask has no zone to choose from. */
function useWhere(cell: string): Where {
  const isThere = cellsIn(useKnown().followed)?.some((each) => each.cell === cell) ?? null;
  const asked = useAsked(`${cell} ${isThere}`, async () => {
    if (isThere === null) return [];
    const of = isThere ? `?cell=${encodeURIComponent(cell)}` : "";
    const { value } = await ask("listDedications", "GET", `/dedications${of}`);
    // One that is not there yet will be of whoever makes it; of the operator, who alone is told UIDs, nothing is dedicated to that account.
    return zonesIn(isThere ? value : value.filter(({ uid }) => uid === undefined));
  });
  const [zone, setZone] = useState("");
  const [group, setGroup] = useState("");
  const owned = asked.value ?? [];
  const locked = owned.find((each) => each.zone === zone) ?? null;
  const clear = (): void => {
    setZone("");
    setGroup("");
  };
  return { owned, zone, setZone, locked, group: locked?.group ?? group, setGroup, clear };
}
function Standing({ where: { owned, zone, setZone, locked, group, setGroup } }: { where: Where }) {
  return (
    <>
      {owned.length > 0 && (
        <label>
          In the zone
          <select value={zone} onChange={(event) => setZone(event.target.value)}>
            <option value="">any</option>
            {owned.map((each) => (
              <option key={each.zone}>{each.zone}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        Beside others
        <select name="dedication" defaultValue="">
          <option value="">whoever is there</option>
          {implicitModes.map((each) => (
            <option key={each} value={each}>
              {each}: {alone[each]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Affinity group
        <input
          value={group}
          readOnly={locked !== null}
          maxLength={63}
          spellCheck={false}
          autoComplete="off"
          aria-describedby="locked-group"
          onChange={(event) => setGroup(event.target.value)}
        />
      </label>
      <span id="locked-group" className="hint">
        {locked === null
          ? ""
          : `${locked.zone} is dedicated to ${ownerText(locked.owner)}: its machines are in this group, and in no other`}
      </span>
    </>
  );
}
