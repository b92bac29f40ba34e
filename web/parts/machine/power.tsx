import { useId, useState } from "react";
import type { Changed, ElementState } from "../../../model/api.ts";
import { type Asker, actions, whyNot } from "../../../model/contract/actions/actions.ts";
import { type PowerVerb, powerOrder, powerVerbs } from "../../../model/contract/actions/power.ts";
import { ask, askOnce, type Refused } from "../../data/api.ts";
import type { MachineParts } from "../../state/cell/machine-parts.ts";
import { commandOf } from "../../state/command.ts";
import { useDoing } from "../act.tsx";
import { Command, Waiting } from "../bits.tsx";
import { Fault, PlanShown, refusedBy } from "../plan.tsx";

interface PowerProps {
  readonly cell: string;
  readonly path: string;
  readonly state: ElementState | undefined;
  readonly parts: MachineParts;
  readonly asker: Asker | null;
}
/** What was planned is what is put, whatever becomes of the machine meanwhile. */
interface Order {
  readonly verb: PowerVerb;
  readonly attribute: string;
  readonly value: string | number;
}
/** One attribute of the machine, put once its plan was seen: what comes of it stands in the list. */
function useOrder({ cell, path, state, parts }: PowerProps) {
  const [order, setOrder] = useState<Order | null>(null);
  const [planned, setPlanned] = useState<Changed | null>(null);
  const [said, setSaid] = useState<Refused | null>(null);
  const { busy, run } = useDoing();
  const leave = (): void => {
    setOrder(null);
    setPlanned(null);
    setSaid(null);
  };
  const send = ({ attribute, value }: Order, version: number | null) =>
    run(async () => {
      const at = [...path.split("/"), attribute].map(encodeURIComponent).join("/");
      const address = `/cells/${encodeURIComponent(cell)}/model/${at}`;
      const body = JSON.stringify(value);
      try {
        if (version === null) setPlanned((await ask("putElement", "PUT", `${address}?dryRun=true`, { body })).value);
        else {
          await askOnce("putElement", "PUT", address, { body, headers: { "if-match": `"${version}"` } });
          leave();
        }
      } catch (error) {
        setPlanned(null);
        setSaid(refusedBy(error));
      }
    });
  const plan = (verb: PowerVerb): void => {
    const [attribute, value] = powerOrder(verb, { phase: state?.phase ?? "", ...parts });
    const wanted = { verb, attribute, value };
    leave();
    setOrder(wanted);
    void send(wanted, null);
  };
  return { order, planned, said, busy, leave, plan, send };
}

export function Power(props: PowerProps) {
  const { path, state, parts, asker } = props;
  const { order, planned, said, busy, leave, plan, send } = useOrder(props);
  const id = useId();
  const subject = {
    path,
    phase: state?.phase ?? "",
    reason: state?.reason ?? null,
    wanted: parts.wanted,
    power: state?.power ?? null,
    host: state?.host ?? null,
    isHostHeard: null,
  };
  return (
    <>
      <p className="buttons">
        {powerVerbs.map((each) => {
          const verdict = whyNot(each, asker, subject);
          return (
            <span key={each} className="act">
              <button
                type="button"
                disabled={busy || asker === null || verdict !== null}
                aria-label={`${actions[each].label} ${path}`}
                aria-describedby={verdict === null ? undefined : `${id}-${each}`}
                onClick={() => plan(each)}
              >
                {actions[each].label}
              </button>
              {verdict !== null && (
                <span className="hint" id={`${id}-${each}`}>
                  {verdict.why}
                </span>
              )}
            </span>
          );
        })}
      </p>
      {order !== null && (
        <fieldset className="card" aria-label={`${actions[order.verb].label} ${path}?`}>
          {busy && <Waiting what="the controller" />}
          {said !== null && <Fault said={said} />}
          {planned !== null && <PlanShown changed={planned} />}
          <div className="buttons">
            <button
              type="button"
              className="main"
              disabled={busy || planned === null}
              onClick={() => void send(order, planned?.version ?? null)}
            >
              {actions[order.verb].label} it
            </button>
            <button type="button" onClick={leave}>
              Leave it as it is
            </button>
            <Command text={commandOf(`cells ${order.verb}`, path)} />
          </div>
        </fieldset>
      )}
    </>
  );
}
