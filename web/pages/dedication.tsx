import { useState } from "react";
import { groupOf, type Owner, ownerText } from "../../model/cell/tenants/dedication/dedication.ts";
import { dedicationElement, freeName, type Written, writtenIn } from "../../model/cell/tenants/dedication/written.ts";
import type { Asker } from "../../model/contract/actions/actions.ts";
import { whyNot } from "../../model/contract/actions/actions.ts";
import { ask } from "../data/api.ts";
import { Act, Failed, useDoing } from "../parts/act.tsx";
import { Command, Waiting } from "../parts/bits.tsx";
import { Offerings } from "../parts/offerings.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { useAsked, useAsker, useKnown } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";
import { foreseen, guestsOf, linesOf, type PlaceLine } from "../state/hosts/hardware.ts";
import { statusIn } from "../state/known.ts";

/** Which hardware is whose, and what if that changes? */
export function Dedication({ who }: PageProps) {
  return (
    <>
      <h1>Dedication</h1>
      {who.kind === "operator" ? <All who={who} /> : <Own />}
    </>
  );
}

/** What is an account's, or a domain's above it; hosts are the operator's to know. */
function Own() {
  const { value, failed } = useAsked("own", async () => (await ask("listDedications", "GET", "/dedications")).value);
  if (failed !== null) return <p className="hint">{failed}</p>;
  if (value === null) return <Waiting what="the root controller" />;
  if (value.length === 0) return <p>Nothing is dedicated to your account, or to a domain above it.</p>;
  return (
    <ul className="lines">
      {value.map(({ of, level, to }, at) => (
        // Several hosts of one owner have no names of their own here.
        <li key={at}>
          {of === null ? `a ${level}` : `the ${level} ${of}`} is {ownerText(to)}'s:{" "}
          <code>x.placement.groups "{groupOf(to)}"</code>
        </li>
      ))}
    </ul>
  );
}

const model = async () => {
  const { value, version } = await ask("readModel", "GET", "/cells/root/model");
  return { hardware: writtenIn(value), model: value, version };
};

function All({ who }: Pick<PageProps, "who">) {
  const { followed } = useKnown();
  const asker = useAsker(who);
  // Whenever the root cell changes.
  const at = followed.topics.get("cell:root");
  const { value, failed, again } = useAsked(`${at?.run} ${at?.n}`, model);
  const owners = useAsked("owners", async (): Promise<readonly Owner[]> => {
    const [domains, accounts] = await Promise.all([
      ask("listDomains", "GET", "/domains"),
      ask("listAccounts", "GET", "/accounts"),
    ]);
    return [
      ...domains.value.map(({ path }) => ({ kind: "domain", path }) as const),
      ...accounts.value.map(({ path }) => ({ kind: "account", path }) as const),
    ];
  });
  const [chosen, setChosen] = useState<string | null>(null);
  if (failed !== null && value === null) return <p className="wrong">{failed}</p>;
  if (value === null) return <Waiting what="the root cell's controller" />;
  const { hardware, version } = value;
  const lines = linesOf(hardware);
  return (
    <>
      <p role="status">
        {hardware.dedications.size === 0
          ? "Nothing is dedicated: every host is everybody's."
          : `${hardware.dedications.size} ${hardware.dedications.size === 1 ? "place is" : "places are"} dedicated.`}
      </p>
      <ul className="tree" aria-label="Zones, pods, clusters and hosts">
        {lines.map((line) => (
          <li key={line.place} className={`deep-${Math.min(line.depth, 3)}`}>
            <Line
              line={line}
              hardware={hardware}
              asker={asker}
              version={version}
              isChosen={chosen === line.place}
              onChoose={(isChosen) => setChosen(isChosen ? line.place : null)}
              onDone={again}
              owners={owners.value ?? []}
            />
          </li>
        ))}
      </ul>
      <Failed why={owners.failed} />
      <Lists hardware={hardware} />
      <Offerings model={value.model} version={version} onDone={again} />
    </>
  );
}

interface LineProps {
  readonly line: PlaceLine;
  readonly hardware: Written;
  readonly asker: Asker | null;
  readonly version: number | null;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly onDone: () => Promise<void>;
  readonly owners: readonly Owner[];
}
const headersOf = (version: number | null) => (version === null ? {} : { headers: { "if-match": `"${version}"` } });
const at = "/cells/root/model/root/dedications";

function Line(props: LineProps) {
  const { line, hardware, asker, version, isChosen, onChoose, onDone } = props;
  const { place, level, owner, above } = line;
  const subject = { place, dedicatedTo: owner === null ? null : ownerText(owner) };
  const verdict = whyNot("dedicate", asker, subject);
  const release = async (): Promise<void> => {
    const name = encodeURIComponent(hardware.names.get(place) ?? "");
    await ask("deleteElement", "DELETE", `${at}/${name}`, headersOf(version));
    await onDone();
  };
  return (
    <>
      <strong>{place}</strong> <span className="hint">{level}</span>{" "}
      {owner !== null && <span>is dedicated to {ownerText(owner)}</span>}
      {owner === null && above !== null && (
        <span className="hint">
          {ownerText(above.owner)}'s, for it stands in {above.place}
        </span>
      )}
      <span className="buttons">
        {owner === null ? (
          <button
            type="button"
            className="quiet"
            disabled={asker === null || verdict !== null}
            aria-expanded={isChosen}
            aria-label={`Dedicate ${place}`}
            onClick={() => onChoose(!isChosen)}
          >
            Dedicate
          </button>
        ) : (
          <Act
            name="release"
            of={place}
            asker={asker}
            subject={subject}
            run={release}
            says={
              <p>
                {place} is everybody's again{above === null ? "" : ` within what ${above.place} is`}; machines that run
                there stay.
              </p>
            }
          />
        )}
      </span>
      {isChosen && owner === null && <Dedicating {...props} />}
    </>
  );
}

/** To whom; and what would come of it, before it is said. */
function Dedicating({ line: { place }, hardware, version, owners, onChoose, onDone }: LineProps) {
  const { followed } = useKnown();
  const [chosen, setChosen] = useState("");
  const { busy, failed, run } = useDoing();
  const owner = owners.find(({ kind, path }) => `${kind} ${path}` === chosen) ?? null;
  const would = owner === null ? null : foreseen(hardware, place, owner, guestsOf(hardware, statusIn(followed)));
  const send = () =>
    run(async () => {
      if (owner === null) return;
      const path = `${at}/${encodeURIComponent(freeName(place, hardware))}`;
      const body = JSON.stringify(dedicationElement(place, owner));
      await ask("putElement", "PUT", path, { body, ...headersOf(version) });
      await onDone();
      onChoose(false);
    });
  return (
    <fieldset className="card" aria-label={`Dedicate ${place}`}>
      <label>
        To{" "}
        <select value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <option value="">choose a domain or an account</option>
          {owners.map(({ kind, path }) => (
            <option key={`${kind} ${path}`} value={`${kind} ${path}`}>
              {path} ({kind})
            </option>
          ))}
        </select>
      </label>
      {would?.isAllowed === true && owner !== null && (
        <>
          <p>
            {place} takes machines of {ownerText(owner)} alone; they ask for it with{" "}
            <code>x.placement.groups "{groupOf(owner)}"</code>.
          </p>
          {would.released.length > 0 && <p>Goes into it by itself: {would.released.join(", ")}.</p>}
        </>
      )}
      {would?.isAllowed === false && (
        <p className="danger" role="alert">
          {would.refused.why}. {would.refused.hint}
        </p>
      )}
      <div className="buttons">
        <button type="button" className="main" disabled={busy || would?.isAllowed !== true} onClick={() => void send()}>
          Dedicate {place}
        </button>
        <button type="button" onClick={() => onChoose(false)}>
          Leave it as it is
        </button>
        {owner !== null && <Command text={dedicateCommand(place, owner.path)} />}
      </div>
      <Failed why={failed} />
    </fieldset>
  );
}

/** An option of its own stands between two words of which nothing is known. */
function dedicateCommand(place: string, owner: string): string | null {
  const first = commandOf("cells dedicate", place);
  return first === null ? null : commandOf(`${first} --to`, owner);
}

/** By domain and account. */
function Lists({ hardware: { dedications } }: { hardware: Written }) {
  const byOwner = Map.groupBy([...dedications], ([, to]) => ownerText(to));
  if (byOwner.size === 0) return null;
  return (
    <section aria-labelledby="by-owner">
      <h2 id="by-owner">By owner</h2>
      <ul className="lines">
        {[...byOwner].sort().map(([owner, all]) => (
          <li key={owner}>
            <strong>{owner}</strong>: {all.map(([place]) => place).join(", ")}
            <span className="reason">
              group {all[0] === undefined ? "" : groupOf(all[0][1])}, which goes with the last of them
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
