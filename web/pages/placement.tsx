import { type DragEvent, useEffect, useRef, useState } from "react";
import { type Asker, whyNot } from "../../model/contract/actions/actions.ts";
import type { TrialAnswer } from "../../model/contract/operator/placement.ts";
import { ask, askOnce } from "../data/api.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Share, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { useAsked, useAsker, useKnown } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";
import {
  type Foretold,
  foretoldBy,
  type StandingHost,
  type StandingMachine,
  standingIn,
} from "../state/hosts/placement.ts";
import { statusIn } from "../state/known.ts";

/** Where does each machine stand, and what if it goes elsewhere? */
export function Placement({ who }: PageProps) {
  const { followed } = useKnown();
  const asker = useAsker(who);
  const status = statusIn(followed);
  const [chosen, setChosen] = useState<StandingMachine | null>(null);
  const [target, setTarget] = useState<string | null>(null);
  // What would be said of each host waits meanwhile: the host that it is to be dropped on would move away.
  const [isDragged, setDragged] = useState(false);
  const [ordered, setOrdered] = useState<{ readonly vm: string; readonly to: string } | null>(null);
  const trial = useTrial(chosen?.vm ?? null);
  if (status === null)
    return (
      <>
        <h1>Placement</h1>
        <Waiting what="the installation's status" />
      </>
    );
  const hosts = standingIn(status);
  const from = hosts.find(({ machines }) => machines.some(({ vm }) => vm === chosen?.vm))?.host ?? null;
  const move = async (): Promise<void> => {
    if (chosen === null || target === null) return;
    const body = JSON.stringify({ vm: chosen.path, to: target });
    await askOnce("moveVm", "POST", `/cells/${encodeURIComponent(chosen.cell)}/moves`, { body });
    setOrdered({ vm: chosen.vm, to: target });
    setTarget(null);
    setChosen(null);
  };
  return (
    <>
      <h1>Placement</h1>
      <p className="hint">
        Choose a machine and then a host, or drag it there. Before it goes you are told what comes of it.
      </p>
      {ordered !== null && <Ordered {...ordered} hosts={hosts} />}
      <Failed why={trial.failed} />
      {trial.failed !== null && (
        <button type="button" onClick={() => void trial.again()}>
          Ask the Placer again
        </button>
      )}
      <ul className="cards">
        {hosts.map((host) => (
          <li key={host.host}>
            <Host
              host={host}
              asker={asker}
              chosen={chosen}
              foretold={from === host.host ? null : trial.of(host.host)}
              onChoose={(machine) => setChosen(machine?.vm === chosen?.vm ? null : machine)}
              isDragged={isDragged}
              onDrag={(machine) => {
                if (machine !== null) setChosen(machine);
                setDragged(machine !== null);
              }}
              onTarget={() => setTarget(host.host)}
              isOwn={from === host.host}
            />
          </li>
        ))}
      </ul>
      {chosen !== null && target !== null && target !== from && (
        <Confirm
          vm={chosen.vm}
          from={from}
          to={target}
          foretold={trial.of(target)}
          run={move}
          leave={() => setTarget(null)}
        />
      )}
    </>
  );
}

interface Tried {
  readonly failed: string | null;
  /** Null: it is not known yet. */
  readonly of: (host: string) => Foretold | null;
  readonly again: () => Promise<void>;
}
/** A sentence: why it is not known. */
const trialOf = (vm: string): Promise<TrialAnswer | string> =>
  ask("tryPlacement", "GET", `/placement/try?${new URLSearchParams({ vm })}`).then(
    ({ value }) => value,
    (error: Error) => error.message,
  );
/** What the Placer says of each host, asked as soon as a machine is chosen. */
function useTrial(vm: string | null): Tried {
  const { value, again } = useAsked(vm ?? "", async () => (vm === null ? null : { vm, said: await trialOf(vm) }));
  const said = value?.vm === vm ? value.said : null;
  return {
    failed: typeof said === "string" ? said : null,
    again,
    of: (host) => {
      const found = typeof said === "string" ? undefined : said?.hosts.find((each) => each.host === host);
      return found === undefined ? null : foretoldBy(found);
    },
  };
}

/** Where it has gone meanwhile: the stream says so. */
function Ordered({ vm, to, hosts }: { vm: string; to: string; hosts: readonly StandingHost[] }) {
  const there = hosts.find(({ host }) => host === to)?.machines.find((each) => each.vm === vm);
  return (
    <p className="notice" role="status">
      {there?.isRunning === true ? `${vm} runs at ${to}.` : `${vm} is to go to ${to}, and runs on until there is room.`}{" "}
      <Command text={commandOf("cells why", vm)} />
    </p>
  );
}

interface HostProps {
  readonly host: StandingHost;
  readonly asker: Asker | null;
  readonly chosen: StandingMachine | null;
  readonly foretold: Foretold | null;
  readonly isOwn: boolean;
  readonly onChoose: (machine: StandingMachine) => void;
  /** Some machine is, just now. */
  readonly isDragged: boolean;
  /** Null: not any more. */
  readonly onDrag: (machine: StandingMachine | null) => void;
  readonly onTarget: () => void;
}
function Host({ host, asker, chosen, foretold, isOwn, isDragged, onChoose, onDrag, onTarget }: HostProps) {
  const { host: name, isHeard, administration, usedMiB, memoryMiB, machines } = host;
  const over = (event: DragEvent): void => {
    // Where it stands already it cannot be dropped.
    if (!isOwn) event.preventDefault();
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    if (!isOwn) onTarget();
  };
  return (
    <section className="card" aria-label={name} onDragOver={over} onDrop={drop}>
      <strong>{name}</strong> {!isHeard && <span className="danger">it is not heard</span>}{" "}
      {administration !== null && <span className="hint">{administration}</span>}
      <Share used={usedMiB} all={memoryMiB} unit="MiB" />
      {chosen !== null && !isOwn && !isDragged && (
        <div>
          {foretold === null ? <span className="hint">What comes of it is being asked …</span> : <Said {...foretold} />}
          <button type="button" onClick={onTarget} aria-label={`Move ${chosen.vm} to ${name}`}>
            Move it here
          </button>
        </div>
      )}
      <ul className="lines">
        {machines.map((machine) => (
          <li key={machine.vm}>
            <Machine
              machine={machine}
              host={name}
              asker={asker}
              isChosen={chosen?.vm === machine.vm}
              onChoose={() => onChoose(machine)}
              onDrag={(begins) => onDrag(begins ? machine : null)}
            />
          </li>
        ))}
        {machines.length === 0 && <li className="hint">No machine is here.</li>}
      </ul>
    </section>
  );
}

interface MachineProps {
  readonly machine: StandingMachine;
  readonly host: string;
  readonly asker: Asker | null;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
  readonly onDrag: (begins: boolean) => void;
}
function Machine({ machine, host, asker, isChosen, onChoose, onDrag }: MachineProps) {
  const { vm, path, memoryMiB, isRunning } = machine;
  const power = isRunning ? "on" : "off";
  const subject = { path, phase: "", reason: null, wanted: null, power, host, isHostHeard: null } as const;
  const verdict = whyNot("move", asker, subject);
  return (
    <button
      type="button"
      className="quiet"
      draggable={verdict === null}
      disabled={asker === null || verdict !== null}
      title={verdict?.why}
      aria-pressed={isChosen}
      onClick={onChoose}
      onDragStart={() => onDrag(true)}
      onDragEnd={() => onDrag(false)}
    >
      {vm} <span className="hint">{memoryMiB} MiB</span>
    </button>
  );
}

const Said = ({ waits, alerts }: Foretold) => (
  <>
    {waits === null && alerts.length === 0 && <p className="hint">It takes it, and nobody is alerted.</p>}
    {waits !== null && <p className="danger">{waits}.</p>}
    {alerts.map((alert) => (
      <p key={alert} className="danger">
        {alert}.
      </p>
    ))}
  </>
);

interface ConfirmProps {
  readonly vm: string;
  readonly from: string | null;
  readonly to: string;
  readonly foretold: Foretold | null;
  readonly run: () => Promise<void>;
  readonly leave: () => void;
}
function Confirm({ vm, from, to, foretold, run, leave }: ConfirmProps) {
  const { busy, failed, run: doing } = useDoing();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const command = commandOf("cells move", vm);
  return (
    <dialog ref={dialog} aria-label={`Move ${vm}?`} onClose={leave}>
      <h2>Move {vm}?</h2>
      <p>
        {vm} is stopped in order at {from ?? "its host"}, and starts at {to} with its data.
      </p>
      {foretold === null ? <Waiting what="the Placer" /> : <Said {...foretold} />}
      <Failed why={failed} />
      <p className="buttons">
        <button type="button" className="main" disabled={busy || foretold === null} onClick={() => void doing(run)}>
          Move
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          Leave it as it is
        </button>
        <Command text={command === null ? null : commandOf(`${command} --to`, to)} />
      </p>
    </dialog>
  );
}
