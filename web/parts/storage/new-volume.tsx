import { type FormEvent, useState } from "react";
import { isUpload } from "../../../model/cell/image-name.ts";
import type { PersistentVolume } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { ask, askOnce } from "../../data/api.ts";
import { cellsIn, elementsIn } from "../../state/known.ts";
import {
  commandOfNew,
  emptyForm,
  newVolumeOf,
  type OriginKind,
  originNames,
  origins,
  type VolumeForm,
} from "../../state/storage/volumes.ts";
import { Failed, useDoing } from "../act.tsx";
import { Command } from "../bits.tsx";
import { go, useAsked, useKnown } from "../use-known.ts";
import { FileChoice, FileSent, useFile } from "./file-origin.tsx";

interface NewVolumeProps {
  /** Of the address: the cell that something is harvested from. */
  readonly cell: string | null;
  readonly volumes: readonly PersistentVolume[];
  /** Lists of images are the operator's; others write its name. */
  readonly hasImages: boolean;
  readonly onDone: () => Promise<void>;
}
export const labelPattern = "[A-Za-z0-9](?:[A-Za-z0-9._\\-]{0,61}[A-Za-z0-9])?";
export const labelRule = "letters, digits, points, hyphens and underscores, at most 63";

export function NewVolumeForm({ cell, volumes, hasImages, onDone }: NewVolumeProps) {
  const { busy, failed, run } = useDoing();
  const [form, setForm] = useState<VolumeForm>({ ...emptyForm, origin: cell === null ? "empty" : "cell" });
  const set = (change: Partial<VolumeForm>): void => setForm((before) => ({ ...before, ...change }));
  const file = useFile();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      const ask = (upload?: string) =>
        askOnce("addVolume", "POST", "/volumes", { body: JSON.stringify(newVolumeOf(form, upload)) });
      await (form.origin === "file" ? file.bring(form.format, ask) : ask());
      await onDone();
      setForm({ ...emptyForm, origin: form.origin });
    });
  };
  const needsSize = form.origin === "empty" || form.origin === "image";
  return (
    <section aria-labelledby="new-volume">
      <h2 id="new-volume">A new persistent volume</h2>
      <form className="filters" onSubmit={send}>
        <label>
          Name
          <input
            value={form.name}
            required
            pattern={labelPattern}
            title={labelRule}
            maxLength={63}
            spellCheck={false}
            onChange={(event) => set({ name: event.target.value })}
          />
        </label>
        <label>
          Comes from
          <select value={form.origin} onChange={(event) => set({ origin: event.target.value as OriginKind, of: "" })}>
            {origins.map((each) => (
              <option key={each} value={each}>
                {originNames[each]}
              </option>
            ))}
          </select>
        </label>
        {form.origin === "file" && <FileChoice form={form} set={set} file={file} busy={busy} />}
        <Origin form={form} set={set} cell={cell} volumes={volumes} hasImages={hasImages} />
        <label>
          Size in MiB
          <input
            value={form.size}
            type="number"
            min={1}
            max={2 ** 31 - 1}
            required={needsSize}
            placeholder={needsSize ? "" : "as large as that"}
            onChange={(event) => set({ size: event.target.value })}
          />
        </label>
        <Words form={form} set={set} />
        <button type="submit" disabled={busy}>
          {busy ? "Asking for it …" : "Make it"}
        </button>
        <FileSent file={file} />
        <Command text={commandOfNew(form)} />
      </form>
      {form.origin === "cell" && (
        <p className="hint">
          It is a copy, made once no machine writes the volume; until then the volume stays, also where its cell is
          deleted.
        </p>
      )}
      <Failed why={failed} />
    </section>
  );
}

/** By which it is found. */
const Words = ({ form, set }: Pick<OriginProps, "form" | "set">) => (
  <>
    <label>
      What it is for
      <input value={form.text} maxLength={4096} onChange={(event) => set({ text: event.target.value })} />
    </label>
    <label>
      Tags
      <input
        value={form.tags}
        maxLength={1024}
        spellCheck={false}
        placeholder="words, with blanks between"
        onChange={(event) => set({ tags: event.target.value })}
      />
    </label>
  </>
);

interface OriginProps extends Omit<NewVolumeProps, "onDone"> {
  readonly form: VolumeForm;
  readonly set: (change: Partial<VolumeForm>) => void;
}
function Origin({ form, set, cell, volumes, hasImages }: OriginProps) {
  const { followed } = useKnown();
  const choose = (event: { readonly target: { readonly value: string } }): void => set({ of: event.target.value });
  if (form.origin === "empty" || form.origin === "file") return null;
  if (form.origin === "image")
    return hasImages ? (
      <ImageChoice of={form.of} choose={choose} />
    ) : (
      <label>
        Image
        <input value={form.of} required maxLength={63} spellCheck={false} onChange={choose} />
      </label>
    );
  if (form.origin === "volume")
    return (
      <label>
        Persistent volume
        <select value={form.of} required onChange={choose}>
          <option value="">choose one</option>
          {volumes
            .filter(({ rights }) => rights.includes("copy"))
            .map(({ uid, name, account }) => (
              <option key={uid} value={uid}>
                {name} of {account ?? "the operator"}
              </option>
            ))}
        </select>
      </label>
    );
  const own = elementsIn(followed).filter(
    (each) => each.cell === cell && (each.type === "Volume" || each.type === "VolumeCopy"),
  );
  return (
    <>
      <label>
        Of the cell
        <select value={cell ?? ""} onChange={(event) => go({ page: "storage", cell: event.target.value || null })}>
          <option value="">choose one</option>
          {(cellsIn(followed) ?? [])
            .filter((each) => each.cell !== "root")
            .map((each) => (
              <option key={each.cell}>{each.cell}</option>
            ))}
        </select>
      </label>
      <label>
        Its volume
        <select value={form.of} required onChange={choose}>
          <option value="">{cell === null ? "of none yet" : own.length === 0 ? "it has none" : "choose one"}</option>
          {own.map(({ path }) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      </label>
    </>
  );
}
function ImageChoice({ of, choose }: { of: string; choose: (event: { target: { value: string } }) => void }) {
  const images = useAsked("images", async () => (await ask("listImages", "GET", "/images")).value);
  // Uploads are of one person each, and are made a volume of by their number.
  const names = [...new Set((images.value ?? []).map(({ name }) => name))].filter((name) => !isUpload(name));
  return (
    <label>
      Image
      <select value={of} required onChange={choose}>
        <option value="">
          {images.value === null ? "asking …" : names.length === 0 ? "there is none" : "choose one"}
        </option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
