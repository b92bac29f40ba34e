import type { ReactNode } from "react";
import type { Changed } from "../../model/api.ts";
import { besideLines } from "../../model/plan/beside.ts";
import { openedSays, openedTitle } from "../../model/plan/opened.ts";
import { Refused } from "../data/api.ts";
import { inShort, linesOf } from "../state/cell/plan.ts";

export const refusedBy = (error: unknown): Refused =>
  error instanceof Refused ? error : new Refused(0, { code: "page", message: (error as Error).message });

/** What was refused: where, why, and what would be right. */
export function Fault({ said, onReload }: { said: Refused; onReload?: (() => void) | undefined }) {
  const { diagnostics = [] } = said.refusal;
  return (
    <div className="wrong" role="alert">
      {diagnostics.length === 0 && <p>{said.message}</p>}
      <ul className="lines">
        {diagnostics.map(({ code, message, hint, position }) => (
          <li key={`${code} ${message} ${position?.line}`}>
            {position !== undefined && <strong>line {position.line}: </strong>}
            {message}
            {hint !== undefined && <span className="reason">{hint}</span>}
          </li>
        ))}
      </ul>
      {onReload !== undefined && (
        <p className="buttons">
          <button type="button" onClick={onReload}>
            Load the present text
          </button>
          <span className="hint">Yours is replaced by it: copy it first.</span>
        </p>
      )}
    </div>
  );
}

export function PlanShown({ changed, children }: { changed: Changed; children?: ReactNode }) {
  const lines = linesOf(changed.plan);
  return (
    <>
      <p role="status">
        <strong>{inShort(changed.plan)}.</strong>
      </p>
      <ul className="plan">
        {lines.map(({ path, action, sign, says, causes, losesData }) => (
          <li key={`${path} ${action}`} className={`plan-${action}`}>
            <span aria-hidden="true" className="sign">
              {sign}
            </span>
            <span>
              <code>{path}</code> {says}
              {losesData && <strong className="danger"> Its data is lost.</strong>}
              {causes.map((cause) => (
                <span key={cause} className="reason">
                  {cause}
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
      {(changed.foreseen ?? []).map(({ path, says }) => (
        <p key={path} className="hint">
          <code>{path}</code> {says}
        </p>
      ))}
      <OpenedShown changed={changed} />
      {(changed.failed ?? []).map(({ path, reason }) => (
        <p key={path} className="notice">
          <code>{path}</code> has failed, and this leaves it so{reason === null ? "" : `: ${reason}`}.
        </p>
      ))}
      {besideLines(changed).map((lines) => (
        <p key={lines[0]} className="hint">
          {lines.join(" ")}
        </p>
      ))}
      {children}
    </>
  );
}

/** What is open without a rule from then on. */
export function OpenedShown({ changed: { opened = [] } }: { changed: Changed }) {
  if (opened.length === 0) return null;
  return (
    <>
      <p>{openedTitle}</p>
      <ul className="lines">
        {openedSays(opened).map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  );
}

interface LossesProps {
  readonly lost: readonly { readonly path: string }[];
  readonly allowed: readonly string[];
  readonly onAllow: (allowed: readonly string[]) => void;
}
/** Each volume whose data would go is said by the person. */
export const Losses = ({ lost, allowed, onAllow }: LossesProps) =>
  lost.map(({ path }) => (
    <label key={path} className="danger">
      <input
        type="checkbox"
        checked={allowed.includes(path)}
        onChange={({ target: { checked } }) =>
          onAllow(checked ? [...allowed, path] : allowed.filter((each) => each !== path))
        }
      />
      All data of {path} is lost
    </label>
  ));
