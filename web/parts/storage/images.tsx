import { type FormEvent, useEffect, useRef, useState } from "react";
import type { ImageAdded, ImageSummary } from "../../../model/api.ts";
import { ask, upload } from "../../data/api.ts";
import { commandOf } from "../../state/command.ts";
import { formatOf, imageNameOf, sentText } from "../../state/storage/volumes.ts";
import { Failed, useDoing } from "../act.tsx";
import { Command, Waiting } from "../bits.tsx";
import { useAsked } from "../use-known.ts";

/** Images of the installation, which machines begin with: the operator's. */
export function Images() {
  const { value, failed, again } = useAsked("images", async () => (await ask("listImages", "GET", "/images")).value);
  return (
    <section aria-labelledby="images">
      <h2 id="images">Images</h2>
      {value === null && failed === null && <Waiting what="the storage servers" />}
      {value?.length === 0 && <p>No storage server has an image.</p>}
      <Failed why={failed} />
      <ul className="lines">
        {(value ?? []).map((image) => (
          <Image key={`${image.name} ${image.digest}`} image={image} onDone={again} />
        ))}
      </ul>
      <Upload onDone={again} />
    </section>
  );
}

function Image({ image, onDone }: { image: ImageSummary; onDone: () => Promise<void> }) {
  const { name, sizeMiB, servers, provided } = image;
  const { busy, failed, run } = useDoing();
  const dialog = useRef<HTMLDialogElement>(null);
  const remove = (): void => {
    dialog.current?.close();
    void run(async () => {
      await ask("removeImage", "DELETE", `/images/${encodeURIComponent(name)}`);
      await onDone();
    });
  };
  return (
    <li>
      <strong>{name}</strong>{" "}
      <span className="reason">
        {sizeMiB} MiB, at {servers.join(", ")}
        {provided ? "; it comes with the installation" : ""}
      </span>
      {!provided && (
        <button
          type="button"
          disabled={busy}
          aria-label={`Delete the image ${name}`}
          onClick={() => dialog.current?.showModal()}
        >
          Delete
        </button>
      )}
      <dialog ref={dialog} aria-label={`Delete the image ${name}?`}>
        <h2>Delete the image {name}?</h2>
        <p>Volumes that were made of it are copies, and stay as they are.</p>
        <p className="buttons">
          <button type="button" className="main" onClick={remove}>
            Delete
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Leave it as it is
          </button>
        </p>
      </dialog>
      <Failed why={failed} />
    </li>
  );
}

interface Uploading {
  readonly busy: boolean;
  readonly failed: string | null;
  /** Null: nothing is on its way. */
  readonly sent: { readonly sent: number; readonly all: number } | null;
  /** What came of the last one; null: nothing yet. */
  readonly made: ImageAdded | null;
  /** Resolves to whether it is there. */
  readonly send: (file: File, name: string, format: string) => Promise<boolean>;
  readonly leave: () => void;
}
/** Whoever goes to another page leaves it. */
function useUpload(onDone: () => Promise<void>): Uploading {
  const { busy, failed, run } = useDoing();
  const [sent, setSent] = useState<Uploading["sent"]>(null);
  const [made, setMade] = useState<ImageAdded | null>(null);
  const leaving = useRef<AbortController | null>(null);
  const leave = (): void => leaving.current?.abort();
  useEffect(() => leave, []);
  const send = async (file: File, name: string, format: string): Promise<boolean> => {
    const left = new AbortController();
    leaving.current = left;
    setMade(null);
    setSent({ sent: 0, all: file.size });
    const isDone = await run(async () => {
      const path = `/images/${encodeURIComponent(name)}?format=${format}`;
      const told = (octets: number, all: number): void => setSent({ sent: octets, all });
      setMade((await upload(path, file, { told, signal: left.signal })) as ImageAdded);
      await onDone();
    });
    setSent(null);
    return isDone;
  };
  return { busy, failed, sent, made, send, leave };
}

/** The bytes go to every storage server, each of which makes up its own mind about them. */
function Upload({ onDone }: { onDone: () => Promise<void> }) {
  const { busy, failed, sent, made, send, leave } = useUpload(onDone);
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState("");
  const [format, setFormat] = useState<"raw" | "qcow2">("qcow2");
  const choose = (chosen: File | null): void => {
    setFile(chosen);
    if (chosen === null) return;
    setFormat(formatOf(chosen.name));
    if (name === "") setName(imageNameOf(chosen.name));
  };
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget;
    if (file === null || !(await send(file, name, format))) return;
    form.reset();
    setFile(null);
    setName("");
  };
  return (
    <form className="filters" onSubmit={(event) => void submit(event)} aria-label="Upload an image">
      <label>
        A file
        <input type="file" required onChange={(event) => choose(event.target.files?.[0] ?? null)} />
      </label>
      <label>
        The image is called
        <input
          value={name}
          required
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,62}"
          title="letters, digits, points, hyphens and underscores, at most 63, the first a letter or a digit"
          maxLength={63}
          spellCheck={false}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label>
        Its format
        <select value={format} onChange={(event) => setFormat(event.target.value as "raw" | "qcow2")}>
          <option>qcow2</option>
          <option>raw</option>
        </select>
      </label>
      <button type="submit" disabled={busy}>
        Upload it
      </button>
      {busy && (
        <button type="button" onClick={leave}>
          Leave it
        </button>
      )}
      {file !== null && <Command text={commandOf(`cells image add --format ${format}`, name, file.name)} />}
      <HowFar sent={sent} made={made} />
      <Failed why={failed} />
    </form>
  );
}
const HowFar = ({ sent, made }: Pick<Uploading, "sent" | "made">) => (
  <>
    {sent !== null && (
      <p role="status">
        <progress max={Math.max(sent.all, 1)} value={sent.sent} aria-label="Sent" /> {sentText(sent.sent, sent.all)}
      </p>
    )}
    {made !== null && (
      <p role="status">
        {made.name} is at {made.servers.join(", ")}, {made.sizeMiB} MiB
        {made.missing.map(({ server, why }) => `; not at ${server}: ${why}`).join("")}.
      </p>
    )}
  </>
);
