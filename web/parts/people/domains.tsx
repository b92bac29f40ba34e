import type { Asker } from "../../../model/contract/actions/actions.ts";
import type { QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import type { DomainSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { ask } from "../../data/api.ts";
import { Act } from "../act.tsx";
import { Phase } from "../bits.tsx";
import { Quota } from "./quota.tsx";
import { Removal } from "./removal.tsx";

interface DomainProps {
  readonly domain: DomainSummary;
  /** Of accounts in it, as far as whoever looks may see them. */
  readonly cells: readonly string[];
  /** What of it is limited; null: nothing. */
  readonly quota: QuotaSummary | null;
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** One domain, and what may be done to it with all that is in it. That of everybody, `ROOT`, stays. */
export function Domain({
  domain: { uid, path, state, declared, deleting = false },
  cells,
  quota,
  asker,
  onDone,
}: DomainProps) {
  const subject = { party: path, state: deleting ? "deleting" : state };
  const at = `/domains/${encodeURIComponent(uid)}`;
  const change = async (wanted: string): Promise<void> => {
    await ask("changeDomain", "PUT", at, { body: JSON.stringify({ state: wanted }) });
    await onDone();
  };
  return (
    <li>
      <strong>{path}</strong> <Phase phase={subject.state} />
      {declared !== undefined && (
        <span className="reason">It stands in the root cell's specification at {declared}, and is changed there.</span>
      )}
      {path !== "ROOT" && declared === undefined && (
        <div className="buttons">
          {state === "enabled" ? (
            <Act
              name="disableDomain"
              of={path}
              asker={asker}
              subject={subject}
              run={() => change("disabled")}
              says={<p>All users in it are out within a second, and their cells go on.</p>}
            />
          ) : (
            <Act name="enableDomain" of={path} asker={asker} subject={subject} run={() => change("enabled")} />
          )}
          <Removal name="deleteDomain" subject={subject} at={at} lost={cells} asker={asker} onDone={onDone} />
        </div>
      )}
      {declared === undefined && (
        <Quota
          key={JSON.stringify(quota)}
          uid={uid}
          path={path}
          state={subject.state}
          quota={quota}
          asker={asker}
          onDone={onDone}
        />
      )}
    </li>
  );
}
