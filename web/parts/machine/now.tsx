import type { ElementAnswer } from "../../../model/api.ts";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import { ask } from "../../data/api.ts";
import { addressesOf, lastEndOf, type Part, partsOf, placeOfData } from "../../state/cell/machine-parts.ts";
import { commandOf } from "../../state/command.ts";
import { elementsIn } from "../../state/known.ts";
import type { Machine } from "../../state/machines.ts";
import { Failed } from "../act.tsx";
import { Command, clock, Phase, Waiting } from "../bits.tsx";
import { useAsked, useKnown } from "../use-known.ts";
import { Power } from "./power.tsx";

/** Why one machine is so, what it is made of, and what may be had of it: by what is known now. */
export function MachineNow({ machine, asker }: { machine: Machine; asker: Asker | null }) {
  const { cell, path, phase } = machine;
  const { followed } = useKnown();
  const { version = null } = followed.topics.get(`cell:${cell}`) ?? {};
  const model = useAsked(`${cell} ${version}`, async () => {
    const { value } = await ask("readModel", "GET", `/cells/${encodeURIComponent(cell)}/model`);
    return value;
  });
  const elements = elementsIn(followed).filter((each) => each.cell === cell);
  const state = elements.find((each) => each.path === path)?.state;
  const parts = model.value === null ? null : partsOf(model.value, elements, path);
  const ended = state === undefined ? null : lastEndOf(state);
  return (
    <>
      <Why machine={machine} />
      {state !== undefined && (
        <p>
          <Phase phase={phase} />{" "}
          {machine.incarnation === null
            ? "It was never started."
            : `Incarnation ${machine.incarnation}${machine.host === null ? "" : `, at ${machine.host}`}; so since ${clock(new Date(state.since))}.`}
          {ended !== null && <span className="reason">{ended}</span>}
        </p>
      )}
      <Failed why={model.failed} />
      {parts !== null && (
        <>
          <Parts of="Cards" none="It has no card: nothing reaches it." parts={parts.cards} says={addressesOf} />
          <Parts of="Disks" none="It has no disk." parts={parts.disks} says={placeOfData} />
          <Power cell={cell} path={path} state={state} parts={parts} asker={asker} />
        </>
      )}
    </>
  );
}

/** As the cell's controller says it, anew whenever the machine's state is another one. */
function Why({ machine: { cell, path, phase, reason, host } }: { machine: Machine }) {
  const { value, failed } = useAsked(JSON.stringify([cell, path, phase, reason, host]), async () => {
    const query = new URLSearchParams({ element: path });
    const { value } = await ask("explain", "GET", `/cells/${encodeURIComponent(cell)}/why?${query}`);
    return value as unknown as ElementAnswer;
  });
  return (
    <>
      {value === null && failed === null && <Waiting what={`the controller of ${cell}`} />}
      <Failed why={failed} />
      {value !== null && <p>{value.verdict}</p>}
      <details>
        <summary>What {path} rests on</summary>
        <ul className="lines">
          {(value?.checks ?? []).map(({ check, passes, detail, lifts }) => (
            <li key={check}>
              <span aria-hidden="true">{passes ? "✓" : "✕"}</span> {check} {passes ? "" : <strong>is not so</strong>}
              <span className="reason">{lifts === null ? detail : `${detail} (${lifts})`}</span>
            </li>
          ))}
        </ul>
        <Command text={commandOf("cells why", path)} />
      </details>
    </>
  );
}

interface PartsProps {
  readonly of: string;
  readonly none: string;
  readonly parts: readonly Part[];
  readonly says: (part: Part) => string;
}
function Parts({ of, none, parts, says }: PartsProps) {
  if (parts.length === 0) return <p className="hint">{none}</p>;
  return (
    <ul className="lines" aria-label={of}>
      {parts.map((part) => (
        <li key={part.path}>
          <code>{part.path}</code> of <code>{part.to}</code> {says(part)}
          {part.state !== null && part.state.phase !== "ready" && <Phase phase={part.state.phase} />}
          {part.state?.reason != null && <span className="reason">{part.state.reason}</span>}
        </li>
      ))}
    </ul>
  );
}
