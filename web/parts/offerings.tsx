import { type FormEvent, useState } from "react";
import type { Json } from "../../model/json/json.ts";
import { ask } from "../data/api.ts";
import { commandOf } from "../state/command.ts";
import {
  modeSays,
  offeringElement,
  offeringModes,
  offeringsIn,
  plannerSays,
  planners,
  type WantedOffering,
} from "../state/hosts/offerings.ts";
import { Failed, useDoing } from "./act.tsx";
import { ChangeShown, useChange } from "./change.tsx";

interface OfferingsProps {
  /** Of the root cell. */
  readonly model: Json;
  readonly version: number | null;
  readonly onDone: () => Promise<void>;
}
/** What machines of one kind have and where they stand, as the operator offers it by a name. */
export function Offerings({ model, version, onDone }: OfferingsProps) {
  const { busy, failed, run } = useDoing();
  const all = offeringsIn(model);
  const offer = (wanted: WantedOffering): Promise<boolean> =>
    run(async () => {
      const { name } = wanted;
      if (all.some((each) => each.name === name)) throw new Error(`there is an offering ${name} already`);
      const element = offeringElement(wanted);
      if (!element.ok) throw new Error(element.error);
      await ask("putElement", "PUT", `/cells/root/model/root/offerings/${encodeURIComponent(name)}`, {
        body: JSON.stringify(element.value),
        ...(version === null ? {} : { headers: { "if-match": `"${version}"` } }),
      });
      await onDone();
    });
  return (
    <section aria-labelledby="offerings">
      <h2 id="offerings">Offerings</h2>
      {all.length === 0 && (
        <p className="hint">Nothing is offered by a name: machines say themselves what they have.</p>
      )}
      {all.length > 0 && (
        <ul className="lines">
          {all.map(({ name, says }) => (
            <li key={name}>
              <strong>{name}</strong> {says}
              <span className="reason">
                asked for with <code>x.placement.offering "{name}"</code>
              </span>
              <TakeBack name={name} onDone={onDone} />
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>A new offering</summary>
        <NewOffering busy={busy} offer={offer} />
        <Failed why={failed} />
      </details>
    </section>
  );
}

function TakeBack({ name, onDone }: { name: string; onDone: () => Promise<void> }) {
  const changing = useChange("root", onDone);
  const path = `root/offerings/${name}`;
  return (
    <>
      <button
        type="button"
        className="quiet"
        disabled={changing.busy}
        onClick={() => changing.plan([{ kind: "remove", path }])}
      >
        Take {name} back
      </button>
      <ChangeShown
        changing={changing}
        label={`Take ${name} back`}
        says={
          <p>
            Machines of it that run go on; one that is to start, or to start again, waits until there is such an
            offering.
          </p>
        }
        commands={[commandOf("cells delete", path)]}
      />
    </>
  );
}

interface NewOfferingProps {
  readonly busy: boolean;
  /** Resolves to whether it was made. */
  readonly offer: (wanted: WantedOffering) => Promise<boolean>;
}
function NewOffering({ busy, offer }: NewOfferingProps) {
  const [planner, setPlanner] = useState<string>(planners[0]);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const text = (name: string): string => String(fields.get(name) ?? "").trim();
    const wanted: WantedOffering = {
      name: text("name"),
      says: text("says"),
      memoryMiB: Number(text("memory")),
      cpus: Number(text("cpus")),
      tags: text("tags")
        .split(/[\s,]+/)
        .filter((tag) => tag !== ""),
      planner,
      mode: text("mode"),
      ha: fields.get("ha") !== null,
    };
    void offer(wanted).then((isMade) => {
      if (!isMade) return;
      form.reset();
      setPlanner(planners[0]);
    });
  };
  return (
    <form className="filters" onSubmit={submit} aria-label="An offering">
      <What />
      <Where planner={planner} setPlanner={setPlanner} />
      <button type="submit" disabled={busy}>
        Offer it
      </button>
    </form>
  );
}

const What = () => (
  <>
    <label>
      Name
      <input name="name" required maxLength={63} spellCheck={false} autoComplete="off" />
    </label>
    <label>
      What it is
      <input name="says" maxLength={200} autoComplete="off" />
    </label>
    <label>
      Memory in MiB
      <input name="memory" type="number" required min={16} max={1_048_576} defaultValue={256} />
    </label>
    <label>
      Processors
      <input name="cpus" type="number" required min={1} max={1024} defaultValue={1} />
    </label>
  </>
);
const Where = ({ planner, setPlanner }: { planner: string; setPlanner: (planner: string) => void }) => (
  <>
    <label>
      Tags of its host
      <input name="tags" maxLength={1000} spellCheck={false} autoComplete="off" />
    </label>
    <label>
      Planner
      <select value={planner} onChange={(event) => setPlanner(event.target.value)}>
        {planners.map((each) => (
          <option key={each} value={each}>
            {each}: {plannerSays[each]}
          </option>
        ))}
      </select>
    </label>
    {planner === "ImplicitDedicationPlanner" && (
      <label>
        Mode
        <select name="mode">
          {offeringModes.map((each) => (
            <option key={each} value={each}>
              {each}: {modeSays[each]}
            </option>
          ))}
        </select>
      </label>
    )}
    <label>
      <input name="ha" type="checkbox" /> started elsewhere when its host is lost
    </label>
  </>
);
