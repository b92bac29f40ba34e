import { type FormEvent, useEffect, useState } from "react";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import {
  type GranteeKind,
  granteeKinds,
  type PersistentVolume,
  type VolumeChange,
  type VolumeDeletion,
  type VolumeDetails,
  type VolumeRight,
  volumeRights,
} from "../../../model/contract/tenancy/volumes/volumes.ts";
import { ask, askOnce } from "../../data/api.ts";
import { commandOf } from "../../state/command.ts";
import {
  type ChangeForm,
  changeOf,
  commandOfShare,
  isBecoming,
  newShareOf,
  shareText,
} from "../../state/storage/volumes.ts";
import { Act, Failed, useDoing } from "../act.tsx";
import { Command, Phase, Waiting } from "../bits.tsx";
import { useAsked } from "../use-known.ts";
import { labelPattern, labelRule } from "./new-volume.tsx";

interface VolumeProps {
  readonly volume: PersistentVolume;
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** One of the list; what it has, and what can be done with it, once somebody opens it. */
export function Volume({ volume, asker, onDone }: VolumeProps) {
  const { name, account, sizeMiB, tags, text, rights } = volume;
  const [isOpen, setOpen] = useState(false);
  return (
    <li className="card">
      <strong>{name}</strong> {sizeMiB === null ? "" : `${sizeMiB} MiB`}
      <p className="hint">
        of {account ?? "the operator"}; you may {rights.join(", ")}
        {tags.length === 0 ? "" : `; ${tags.join(" ")}`}
      </p>
      {text !== "" && <p>{text}</p>}
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Versions, shares and changes of {name}</summary>
        {isOpen && <Opened volume={volume} asker={asker} onDone={onDone} />}
      </details>
    </li>
  );
}

const addressOf = (uid: string): string => `/volumes/${encodeURIComponent(uid)}`;
const againMs = 2000;
function Opened({ volume, asker, onDone }: VolumeProps) {
  const { uid } = volume;
  const { value, failed, again } = useAsked(uid, async () => (await ask("readVolume", "GET", addressOf(uid))).value);
  // No stream tells of these: while somebody looks at what is still to become so, it is asked again.
  useEffect(() => {
    if (value === null || !isBecoming(value)) return;
    const timer = setTimeout(() => void again(), againMs);
    return () => clearTimeout(timer);
  }, [value]);
  const done = async (): Promise<void> => {
    await again();
    await onDone();
  };
  if (value === null) return failed === null ? <Waiting what="CaaS" /> : <Failed why={failed} />;
  return (
    <>
      <Versions volume={value} asker={asker} onDone={done} />
      {value.shares !== null && <Shares volume={value} asker={asker} onDone={done} />}
      <Change volume={value} asker={asker} onDone={done} />
      <Clone volume={value} asker={asker} onDone={onDone} />
      <Deletion volume={value} asker={asker} onDone={onDone} />
      <Failed why={failed} />
    </>
  );
}

interface DetailsProps extends Omit<VolumeProps, "volume"> {
  readonly volume: VolumeDetails;
}
const subjectOf = ({ name, rights }: PersistentVolume) => ({ volume: name, rights });
const change = (uid: string, wanted: VolumeChange) =>
  ask("changeVolume", "PATCH", addressOf(uid), { body: JSON.stringify(wanted) });

function Versions({ volume, asker, onDone }: DetailsProps) {
  const { uid, name, version: now, versions } = volume;
  return (
    <ul className="lines">
      {versions.map(({ number, sizeMiB, phase, reason, reference }) => (
        <li key={number}>
          <strong>version {number}</strong> <Phase phase={phase} />{" "}
          <span className="reason">
            {sizeMiB === null ? "" : `${sizeMiB} MiB`}
            {number === now ? `, which ${name} stands for` : ""}
            {reason === null ? "" : `: ${reason}`}
          </span>
          <code>{reference}</code>
          {number !== now && (
            <Act
              name="changeVolume"
              of={`${name} to version ${number}`}
              asker={asker}
              subject={subjectOf(volume)}
              run={async () => {
                await change(uid, { version: number });
                await onDone();
              }}
            />
          )}
        </li>
      ))}
    </ul>
  );
}

function Shares({ volume, asker, onDone }: DetailsProps) {
  const { uid, name, access, shares } = volume;
  const [kind, setKind] = useState<GranteeKind>("account");
  const [path, setPath] = useState("");
  const [right, setRight] = useState<VolumeRight>("copy");
  const share = newShareOf(kind, path, right);
  // To read and to write: one of the two there is.
  const rights = volumeRights.filter((each) => each !== (access === "rw" ? "read" : "write"));
  return (
    <>
      <ul className="lines">
        {(shares ?? []).map(({ id, ...each }) => (
          <li key={id}>
            {shareText(each)}{" "}
            <Act
              name="unshareVolume"
              of={shareText(each)}
              asker={asker}
              subject={subjectOf(volume)}
              run={async () => {
                await ask("unshareVolume", "DELETE", `${addressOf(uid)}/shares/${encodeURIComponent(id)}`);
                await onDone();
              }}
              says={<p>Nobody has it newly by that. Copies that were made stay whose they are.</p>}
            />
          </li>
        ))}
        {shares?.length === 0 && <li>It is shared with nobody.</li>}
      </ul>
      <div className="filters">
        <label>
          With
          <select value={kind} onChange={(event) => setKind(event.target.value as GranteeKind)}>
            {granteeKinds.map((each) => (
              <option key={each} value={each}>
                {each === "all" ? "everybody" : `the ${each}`}
              </option>
            ))}
          </select>
        </label>
        {kind !== "all" && (
          <label>
            {kind === "cell" ? "Name of the cell" : "Path"}
            <input
              value={path}
              maxLength={2048}
              spellCheck={false}
              placeholder={kind === "cell" ? "shop" : kind === "account" ? "ROOT/acme/dev" : "ROOT/acme"}
              onChange={(event) => setPath(event.target.value)}
            />
          </label>
        )}
        <label>
          To
          <select value={right} onChange={(event) => setRight(event.target.value as VolumeRight)}>
            {rights.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <Act
          name="shareVolume"
          of={name}
          asker={asker}
          subject={subjectOf(volume)}
          run={async () => {
            await ask("shareVolume", "POST", `${addressOf(uid)}/shares`, { body: JSON.stringify(share) });
            await onDone();
            setPath("");
          }}
        />
        {(kind === "all" || path !== "") && <Command text={commandOfShare(name, "share", share)} />}
      </div>
    </>
  );
}

function Change({ volume, asker, onDone }: DetailsProps) {
  const { uid, name, text, tags, sizeMiB } = volume;
  const [before, setBefore] = useState<ChangeForm>({ name, text, tags: tags.join(" "), size: "" });
  const [wanted, setWanted] = useState(before);
  const set = (more: Partial<typeof wanted>): void => setWanted((before) => ({ ...before, ...more }));
  return (
    <fieldset className="filters" aria-label={`Change ${name}`}>
      <label>
        Name
        <input
          value={wanted.name}
          pattern={labelPattern}
          title={labelRule}
          maxLength={63}
          spellCheck={false}
          onChange={(event) => set({ name: event.target.value })}
        />
      </label>
      <label>
        What it is for
        <input value={wanted.text} maxLength={4096} onChange={(event) => set({ text: event.target.value })} />
      </label>
      <label>
        Tags
        <input
          value={wanted.tags}
          maxLength={1024}
          spellCheck={false}
          onChange={(event) => set({ tags: event.target.value })}
        />
      </label>
      <label>
        It grows to, in MiB
        <input
          value={wanted.size}
          type="number"
          min={sizeMiB ?? 1}
          max={2 ** 31 - 1}
          placeholder={sizeMiB === null ? "" : String(sizeMiB)}
          onChange={(event) => set({ size: event.target.value })}
        />
      </label>
      <Act
        name="changeVolume"
        of={name}
        asker={asker}
        subject={subjectOf(volume)}
        run={async () => {
          await change(uid, changeOf(before, wanted));
          setBefore({ ...wanted, size: "" });
          await onDone();
          set({ size: "" });
        }}
      />
    </fieldset>
  );
}

function Clone({ volume, asker, onDone }: DetailsProps) {
  const { uid, name } = volume;
  const [called, setCalled] = useState("");
  const send = (event: FormEvent): void => event.preventDefault();
  const body = JSON.stringify({ name: called.trim(), from: { volume: uid } });
  return (
    <form className="filters" onSubmit={send}>
      <label>
        The clone is called
        <input
          value={called}
          required
          pattern={labelPattern}
          title={labelRule}
          maxLength={63}
          spellCheck={false}
          onChange={(event) => setCalled(event.target.value)}
        />
      </label>
      <Act
        name="cloneVolume"
        of={name}
        asker={asker}
        subject={subjectOf(volume)}
        run={async () => {
          await askOnce("addVolume", "POST", "/volumes", { body });
          await onDone();
          setCalled("");
        }}
      />
      {called !== "" && <Command text={commandOf(`cells volume create --of ${uid}`, called.trim())} />}
    </form>
  );
}

/** Who uses it is said before anything goes. */
function Deletion({ volume, asker, onDone }: DetailsProps) {
  const { uid, name } = volume;
  const [asked, setAsked] = useState<VolumeDeletion | null>(null);
  const { busy, failed, run } = useDoing();
  const send = (query: Readonly<Record<string, string>>) =>
    ask("deleteVolume", "DELETE", `${addressOf(uid)}?${new URLSearchParams(query)}`);
  if (asked === null)
    return (
      <Act
        name="deleteVolume"
        of={name}
        asker={asker}
        subject={subjectOf(volume)}
        run={async () => setAsked((await send({ dryRun: "true" })).value)}
      />
    );
  const { versions, users } = asked;
  return (
    <fieldset className="danger-box" aria-label={`Delete ${name}?`}>
      <strong>
        {versions.length === 1 ? "Its data is" : `The data of its ${versions.length} versions is`} lost. Copies of it
        stay.
      </strong>
      {users.length === 0 ? (
        <p>No cell that you may see uses it.</p>
      ) : (
        <ul className="lines" aria-label="Who uses it">
          {users.map((user) => (
            <li key={user}>{user}</li>
          ))}
        </ul>
      )}
      <button
        type="button"
        className="main"
        disabled={busy}
        onClick={() =>
          void run(async () => {
            await send({ allowDestroy: uid });
            await onDone();
          })
        }
      >
        Delete {name} with all its data
      </button>{" "}
      <button type="button" onClick={() => setAsked(null)}>
        Leave it as it is
      </button>
      <Failed why={failed} />
    </fieldset>
  );
}
