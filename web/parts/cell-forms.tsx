import { type FormEvent, type ReactNode, useState } from "react";
import { addSubnet, addVolume, rangeSays, ranges } from "../state/cell/changes/parts-of-cell.ts";
import { elementsIn } from "../state/known.ts";
import { Failed } from "./act.tsx";
import { useKnown } from "./use-known.ts";

interface CellFormsProps {
  readonly cell: string;
  readonly text: string;
  readonly main: string;
  readonly onText: (text: string) => void;
}
/** Volumes and subnets that are written into the text of their cell; nothing of them is made before that is applied. */
export function CellForms(props: CellFormsProps) {
  const { cell, text, main, onText } = props;
  const machines = elementsIn(useKnown().followed).filter((each) => each.cell === cell && each.type === "VM");
  return (
    <>
      <AddForm
        what="volume"
        add={(field) =>
          addVolume(text, main, cell, {
            name: field("name"),
            sizeMiB: Number(field("size")),
            image: field("image") || null,
            machine: field("machine") || null,
          })
        }
        onText={onText}
      >
        <label>
          Size in MiB
          <input name="size" type="number" required min={1} defaultValue={64} />
        </label>
        <label>
          Starts with the image
          <input name="image" maxLength={63} spellCheck={false} autoComplete="off" placeholder="empty" />
        </label>
        <label>
          Disk of
          <select name="machine" defaultValue="">
            <option value="">no machine</option>
            {machines.map(({ path }) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
      </AddForm>
      <AddForm
        what="subnet"
        add={(field) =>
          addSubnet(text, main, cell, {
            name: field("name"),
            size: Number(field("size")),
            range: ranges.find((each) => each === field("range")) ?? "internal",
            cidr: field("cidr") || null,
          })
        }
        onText={onText}
      >
        <label>
          Addresses
          <input name="size" type="number" required min={4} max={1_048_576} defaultValue={16} />
        </label>
        <label>
          They are
          <select name="range">
            {ranges.map((each) => (
              <option key={each} value={each}>
                {each}: {rangeSays[each]}
              </option>
            ))}
          </select>
        </label>
        <label>
          A fixed range
          <input name="cidr" maxLength={18} spellCheck={false} autoComplete="off" placeholder="any that is free" />
        </label>
      </AddForm>
    </>
  );
}

interface AddFormProps {
  readonly what: "volume" | "subnet";
  readonly add: (field: (name: string) => string) => ReturnType<typeof addVolume>;
  readonly onText: (text: string) => void;
  readonly children: ReactNode;
}
function AddForm({ what, add, onText, children }: AddFormProps) {
  const [wrong, setWrong] = useState<string | null>(null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const added = add((name) => String(fields.get(name) ?? "").trim());
    setWrong(added.ok ? null : added.error);
    if (!added.ok) return;
    onText(added.value);
    form.reset();
  };
  return (
    <details>
      <summary>Add a {what}</summary>
      <form className="filters" onSubmit={submit} aria-label={`A ${what}`}>
        <label>
          Name
          <input name="name" required maxLength={63} spellCheck={false} autoComplete="off" />
        </label>
        {children}
        <button type="submit">Write it into the text</button>
        <Failed why={wrong} />
      </form>
    </details>
  );
}
