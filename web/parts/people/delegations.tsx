import { type FormEvent, useState } from "react";
import type { DelegationSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { ask } from "../../data/api.ts";
import { withOptions } from "../../state/command.ts";
import { Failed, useDoing } from "../act.tsx";
import { Command } from "../bits.tsx";
import { useAsked } from "../use-known.ts";

interface DelegationsProps {
  /** Paths, with the names of their cells. */
  readonly accounts: readonly { readonly path: string; readonly cells: readonly string[] }[];
}
/** Roles on cells that accounts give others, and are given. */
export function DelegationsOf({ accounts }: DelegationsProps) {
  const given = useAsked("delegations", async () => (await ask("listDelegations", "GET", "/delegations")).value);
  const { busy, failed, run } = useDoing();
  const [account, setAccount] = useState("");
  const [cell, setCell] = useState("");
  const [to, setTo] = useState("");
  const [role, setRole] = useState("reader");
  const cells = accounts.find(({ path }) => path === account)?.cells ?? [];
  const send = (event: FormEvent): void => {
    event.preventDefault();
    const body = JSON.stringify({ account, to: to.trim(), role, ...(cell === "" ? {} : { cells: [cell] }) });
    void run(async () => {
      await ask("addDelegation", "POST", "/delegations", { body });
      await given.again();
      setTo("");
    });
  };
  const takeBack = (uid: string): void =>
    void run(async () => {
      await ask("deleteDelegation", "DELETE", `/delegations/${encodeURIComponent(uid)}`);
      await given.again();
    });
  return (
    <section aria-labelledby="delegations">
      <h2 id="delegations">Cells that others may use</h2>
      <Failed why={given.failed} />
      <Given given={given.value} busy={busy} takeBack={takeBack} />
      <form className="filters" onSubmit={send}>
        <label>
          Cells of
          <select
            value={account}
            required
            onChange={(event) => {
              setAccount(event.target.value);
              setCell("");
            }}
          >
            <option value="">choose an account</option>
            {accounts.map(({ path }) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
        <label>
          Which
          <select value={cell} onChange={(event) => setCell(event.target.value)}>
            <option value="">all that it has and will have</option>
            {cells.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          To
          <input
            value={to}
            required
            maxLength={2048}
            spellCheck={false}
            placeholder="ROOT/acme/ops, or joe@ROOT/acme"
            onChange={(event) => setTo(event.target.value)}
          />
        </label>
        <label>
          As
          <select value={role} onChange={(event) => setRole(event.target.value)}>
            {["reader", "user", "account-admin"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="submit" disabled={busy}>
          Give it
        </button>
        {account !== "" && to !== "" && <GivenBy account={account} to={to} role={role} cell={cell} />}
      </form>
      <Failed why={failed} />
    </section>
  );
}
interface GivenProps {
  /** Null: it is not known yet. */
  readonly given: readonly DelegationSummary[] | null;
  readonly busy: boolean;
  readonly takeBack: (uid: string) => void;
}
const Given = ({ given, busy, takeBack }: GivenProps) => (
  <ul className="lines">
    {(given ?? []).map(({ uid, account, cells, to, role }) => (
      <li key={uid}>
        <strong>{to}</strong>{" "}
        <span className="reason">{`${role} of ${cells.length === 0 ? "all cells" : cells.join(", ")} of ${account}`}</span>
        <button type="button" disabled={busy} aria-label={`Take back from ${to}`} onClick={() => takeBack(uid)}>
          Take back
        </button>
      </li>
    ))}
    {given?.length === 0 && <li>Nothing is given to anybody.</li>}
  </ul>
);
function GivenBy({ account, to, role, cell }: Readonly<Record<"account" | "to" | "role" | "cell", string>>) {
  const options = [["--to", to.trim()], ["--role", role], ...(cell === "" ? [] : [["--cell", cell]])];
  return <Command text={withOptions("cells delegation add", account, options)} />;
}
