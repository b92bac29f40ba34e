import { type FormEvent, useState } from "react";
import type { WantedMachine } from "../state/cell/machine.ts";
import { elementsIn } from "../state/known.ts";
import { Failed } from "./act.tsx";
import { useKnown } from "./use-known.ts";

interface MachineFormProps {
  readonly cell: string;
  /** Writes it into the text. A sentence: why it is not written; null: it is. */
  readonly onAdd: (wanted: WantedMachine) => string | null;
}
/** A machine that is written into the text of its cell; nothing of it is made before that is applied. */
export function MachineForm({ cell, onAdd }: MachineFormProps) {
  const [wrong, setWrong] = useState<string | null>(null);
  const subnets = elementsIn(useKnown().followed).filter((each) => each.cell === cell && each.type === "Subnet");
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
    });
    setWrong(why);
    if (why === null) form.reset();
  };
  return (
    <details>
      <summary>Add a machine</summary>
      <form className="filters" onSubmit={add}>
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
        <button type="submit">Write it into the text</button>
        <Failed why={wrong} />
      </form>
    </details>
  );
}
