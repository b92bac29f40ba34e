import { useEffect, useRef, useState } from "react";
import { bring, type Wires } from "../../../model/contract/tenancy/volumes/resuming.ts";
import type { Upload } from "../../../model/contract/tenancy/volumes/uploads.ts";
import { ask, Refused, upload } from "../../data/api.ts";
import { formatOf, nameOfHarvested, sentText, sizeText, type VolumeForm } from "../../state/storage/volumes.ts";
import { useAsked } from "../use-known.ts";

/*
 * A file of the person's own machine, of which a persistent volume is made: its bytes go first, and are there as a whole or not at all. While they go the
 * page stays; whoever goes to another one leaves them.
 */
type Format = VolumeForm["format"];
export interface ChosenFile {
  readonly chosen: File | null;
  readonly choose: (file: File | null) => void;
  /** Null: nothing is on its way. */
  readonly sent: { readonly sent: number; readonly all: number } | null;
  /** Where it went on since it broke off; null: it did not. */
  readonly broke: number | null;
  /** So many volumes were made of one. */
  readonly made: number;
  /** What waits in the account, and what became of it, is another one since. */
  readonly changes: number;
  /** Its bytes, and then what is done with their number. */
  readonly bring: (format: Format, use: (id: string) => Promise<unknown>) => Promise<void>;
  readonly leave: () => void;
}
interface Brought {
  readonly file: File;
  readonly format: Format;
  readonly id: string;
}

export function useFile(): ChosenFile {
  const [chosen, choose] = useState<File | null>(null);
  const [sent, setSent] = useState<ChosenFile["sent"]>(null);
  const [broke, setBroke] = useState<number | null>(null);
  const [changes, setChanges] = useState(0);
  const [made, setMade] = useState(0);
  const leaving = useRef<AbortController | null>(null);
  // Who is refused the volume has brought the bytes nevertheless: they are not sent again.
  const brought = useRef<Brought | null>(null);
  const leave = (): void => leaving.current?.abort();
  useEffect(() => leave, []);

  const send = async (file: File, format: Format): Promise<string> => {
    const there = brought.current;
    if (there?.file === file && there.format === format) return there.id;
    const left = new AbortController();
    leaving.current = left;
    const id = newUploadId();
    setBroke(null);
    setSent({ sent: 0, all: file.size });
    const told = (octets: number): void => setSent({ sent: octets, all: file.size });
    try {
      const wires = wiresOf(file, { id, format, signal: left.signal });
      await bring(wires, { bytes: file.size, format, told, goesOn: setBroke });
    } catch (error) {
      if (left.signal.aborted) void forget(id);
      throw error;
    } finally {
      setSent(null);
      setChanges((before) => before + 1);
    }
    brought.current = { file, format, id };
    return id;
  };
  return {
    chosen,
    choose: (file) => {
      setBroke(null);
      choose(file);
    },
    sent,
    broke,
    made,
    changes,
    leave,
    bring: async (format, use) => {
      if (chosen === null) throw new Error("choose a file first");
      const id = await send(chosen, format);
      try {
        await use(id);
      } catch (error) {
        // It has gone meanwhile, as each does after a day.
        if (error instanceof Refused && error.status === 404) brought.current = null;
        throw error;
      }
      brought.current = null;
      setBroke(null);
      setMade((before) => before + 1);
      choose(null);
    },
  };
}

/** 32 hexadecimal digits, at random. */
const newUploadId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");

/** What was sent is its beginning: a browser reads a file as it was when it was chosen, or not at all. */
function wiresOf(
  file: File,
  { id, format, signal }: { readonly id: string; readonly format: Format; readonly signal: AbortSignal },
): Wires {
  return {
    refusalIn: (error) => (error instanceof Refused ? error : null),
    send: async (from, told) =>
      (await upload(`/uploads/${id}?format=${format}`, file, { told, signal, from })) as Upload,
    whole: async () => (await ask("listUploads", "GET", "/uploads")).value.find((each) => each.id === id) ?? null,
    part: async () => (await ask("readUpload", "GET", `/uploads/${id}`)).value,
    readable: async () => {
      await file
        .slice(0, 1)
        .arrayBuffer()
        .catch(() => {
          throw new Error(`${file.name} has changed since it was chosen, or can be read no longer: choose it again`);
        });
    },
    pause: (ms) =>
      new Promise((resolve, reject) => {
        const isLeft = (): void =>
          reject(new Refused(0, { code: "left", message: "the upload was left: nothing of it is kept" }));
        if (signal.aborted) {
          isLeft();
          return;
        }
        const timer = setTimeout(() => {
          signal.removeEventListener("abort", isLeft);
          resolve();
        }, ms);
        signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
        signal.addEventListener("abort", isLeft, { once: true });
      }),
  };
}

/** What came of one that was left has no place of its account's any longer. The gateway may not know yet that it broke off; then it goes after an hour. */
async function forget(id: string): Promise<void> {
  for (const ms of [500, 2_000, 5_000]) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    const isGone = await ask("removeUpload", "DELETE", `/uploads/${id}`).then(
      () => true,
      () => false,
    );
    if (isGone) return;
  }
}

interface FileChoiceProps {
  readonly form: VolumeForm;
  readonly set: (change: Partial<VolumeForm>) => void;
  readonly file: ChosenFile;
  readonly busy: boolean;
}
export function FileChoice({ form, set, file, busy }: FileChoiceProps) {
  // A field that comes again has no file.
  useEffect(() => () => file.choose(null), []);
  const choose = (chosen: File | null): void => {
    file.choose(chosen);
    if (chosen === null) {
      set({ of: "" });
      return;
    }
    const name = form.name === "" ? nameOfHarvested(chosen.name.replace(/\.(?:qcow2?|img|raw)$/i, "")) : form.name;
    set({ of: chosen.name, format: formatOf(chosen.name), name });
  };
  return (
    <>
      <label>
        File
        <input
          type="file"
          required
          disabled={busy}
          key={file.made}
          onChange={(event) => choose(event.target.files?.[0] ?? null)}
        />
      </label>
      <label>
        Its format
        <select value={form.format} disabled={busy} onChange={(event) => set({ format: event.target.value as Format })}>
          <option>qcow2</option>
          <option>raw</option>
        </select>
      </label>
      {file.chosen !== null && (
        <p className="hint">
          {file.chosen.name} has {sizeText(file.chosen.size)}. Stay on this page until it is sent.
        </p>
      )}
      <Waiting changes={file.changes} isBusy={busy} />
    </>
  );
}

/** What the account has brought, of which there is no volume yet. */
function Waiting({ changes, isBusy }: { changes: number; isBusy: boolean }) {
  const { value, again } = useAsked(
    `uploads ${changes}`,
    async () => (await ask("listUploads", "GET", "/uploads")).value,
  );
  const remove = async (id: string): Promise<void> => {
    await ask("removeUpload", "DELETE", `/uploads/${id}`).catch(() => undefined);
    await again();
  };
  if (isBusy || value === null || value.length === 0) return null;
  return (
    <ul className="lines" aria-label="Brought, and of no volume yet">
      {value.map(({ id, sizeMiB, sha256 }) => (
        <li key={id}>
          {sizeMiB} MiB were brought, and are of no volume yet (SHA-256 {sha256.slice(0, 12)}…).{" "}
          <button type="button" aria-label={`Take ${id} away`} onClick={() => void remove(id)}>
            Take them away
          </button>
        </li>
      ))}
    </ul>
  );
}

export const FileSent = ({ file: { sent, broke, leave } }: { file: ChosenFile }) => (
  <>
    {sent !== null && (
      <>
        <button type="button" onClick={leave}>
          Leave it
        </button>
        <p role="status">
          <progress max={Math.max(sent.all, 1)} value={sent.sent} aria-label="Sent" /> {sentText(sent.sent, sent.all)}
        </p>
      </>
    )}
    {broke !== null && <p role="status">The connection broke off: it went on at {sizeText(broke)}.</p>}
  </>
);
