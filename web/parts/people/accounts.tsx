import type { FormEvent } from "react";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import type { QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import type { AccountSummary, UserSummary } from "../../../model/contract/tenancy/tenancy.ts";
import { ask } from "../../data/api.ts";
import { Act, Failed, useDoing } from "../act.tsx";
import { Phase } from "../bits.tsx";
import { Quota } from "./quota.tsx";
import { Removal } from "./removal.tsx";

interface AccountProps {
  readonly account: AccountSummary;
  readonly users: readonly UserSummary[];
  /** What of it is limited; null: nothing. */
  readonly quota: QuotaSummary | null;
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
/** One account, its cells and its users, and what may be done to them. */
export function Account({ account, users, quota, asker, onDone }: AccountProps) {
  const { uid, path, state, cells } = account;
  const subject = { party: path, state };
  const at = `/accounts/${encodeURIComponent(uid)}`;
  const change = async (wanted: string): Promise<void> => {
    await ask("changeAccount", "PUT", at, { body: JSON.stringify({ state: wanted }) });
    await onDone();
  };
  return (
    <li className="card">
      <strong>{path}</strong> <Phase phase={state} />
      <p>{cells.length === 0 ? "It has no cells." : `Its cells: ${cells.join(", ")}.`}</p>
      <ul className="lines">
        {users.map((user) => (
          <User key={user.uid} user={user} asker={asker} onDone={onDone} />
        ))}
      </ul>
      <NewUser account={path} onDone={onDone} />
      <Quota
        key={JSON.stringify(quota)}
        uid={uid}
        path={path}
        state={state}
        quota={quota}
        asker={asker}
        onDone={onDone}
      />
      <div className="buttons">
        {state === "enabled" ? (
          <Act
            name="disableAccount"
            of={path}
            asker={asker}
            subject={subject}
            run={() => change("disabled")}
            says={<p>Its users are out within a second, and its cells go on.</p>}
          />
        ) : (
          <Act name="enableAccount" of={path} asker={asker} subject={subject} run={() => change("enabled")} />
        )}
        <Removal name="deleteAccount" subject={subject} at={at} lost={cells} asker={asker} onDone={onDone} />
      </div>
    </li>
  );
}

interface UserProps extends Pick<AccountProps, "asker" | "onDone"> {
  readonly user: UserSummary;
}
function User({ user: { uid, name, domain, role, state }, asker, onDone }: UserProps) {
  const party = `${name}@${domain}`;
  const subject = { party, state };
  const at = `/users/${encodeURIComponent(uid)}`;
  const change = async (wanted: string): Promise<void> => {
    await ask("changeUser", "PUT", at, { body: JSON.stringify({ state: wanted }) });
    await onDone();
  };
  return (
    <li>
      <strong>{party}</strong> <Phase phase={state} /> <span className="hint">{role}</span>
      <span className="buttons">
        {state === "enabled" ? (
          <Act
            name="disableUser"
            of={party}
            asker={asker}
            subject={subject}
            run={() => change("disabled")}
            says={<p>Who is in is out within a second; keys and cells stay.</p>}
          />
        ) : (
          <Act name="enableUser" of={party} asker={asker} subject={subject} run={() => change("enabled")} />
        )}
        <Act
          name="deleteUser"
          of={party}
          asker={asker}
          subject={subject}
          run={async () => {
            await ask("deleteUser", "DELETE", at);
            await onDone();
          }}
          says={<p>Who is in is out within a second. Cells are the account's, and stay.</p>}
        />
      </span>
    </li>
  );
}

function NewUser({ account, onDone }: { account: string; onDone: () => Promise<void> }) {
  const { busy, failed, run } = useDoing();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const text = (name: string): string => String(fields.get(name) ?? "");
    const password = text("password");
    const body = { account, name: text("name"), role: text("role"), ...(password === "" ? {} : { password }) };
    void run(async () => {
      await ask("addUser", "POST", "/users", { body: JSON.stringify(body) });
      await onDone();
      form.reset();
    });
  };
  return (
    <details>
      <summary>Add a user to {account}</summary>
      <form className="filters" onSubmit={submit}>
        <label>
          Name
          <input name="name" required maxLength={64} spellCheck={false} autoComplete="off" />
        </label>
        <label>
          Role
          <select name="role" defaultValue="user">
            {["account-admin", "user", "reader", "domain-admin", "root-admin"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          Password
          <input name="password" type="password" maxLength={1024} autoComplete="new-password" />
        </label>
        <button type="submit" disabled={busy}>
          Add
        </button>
        <Failed why={failed} />
      </form>
    </details>
  );
}
