import { type FormEvent, useState } from "react";
import type { Asker } from "../../model/contract/actions/actions.ts";
import type { AccountSummary, DomainSummary, UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import { ask } from "../data/api.ts";
import { Act, Failed, useDoing } from "../parts/act.tsx";
import { Command, Phase, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { DelegationsOf } from "../parts/people/delegations.tsx";
import { Invitations } from "../parts/people/invitations.tsx";
import { Keys } from "../parts/people/keys.tsx";
import { useAsked, useAsker } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";

interface Everybody {
  readonly domains: readonly DomainSummary[];
  readonly accounts: readonly AccountSummary[];
  readonly users: readonly UserSummary[];
}

/** Who may do what, and whose is it? */
export function People({ who }: PageProps) {
  const asker = useAsker(who);
  const { value, failed, again } = useAsked("people", async (): Promise<Everybody> => {
    const [domains, accounts, users] = await Promise.all([
      ask("listDomains", "GET", "/domains"),
      ask("listAccounts", "GET", "/accounts"),
      ask("listUsers", "GET", "/users"),
    ]);
    return { domains: domains.value, accounts: accounts.value, users: users.value };
  });
  return (
    <>
      <h1>People</h1>
      <Failed why={failed} />
      {value === null ? (
        failed === null && <Waiting what="the service tenancy" />
      ) : (
        <>
          <All everybody={value} asker={asker} onDone={again} />
          <Invitations domains={value.domains.map(({ path }) => path)} onDone={again} />
          <DelegationsOf accounts={value.accounts} />
          <Keys isUser={who.kind === "user"} />
        </>
      )}
    </>
  );
}

function All({ everybody, asker, onDone }: { everybody: Everybody; asker: Asker | null; onDone: () => Promise<void> }) {
  const { domains, accounts, users } = everybody;
  return (
    <>
      <p role="status">
        {domains.length} domains, {accounts.length} accounts, {users.length} users that you may see.
      </p>
      <section aria-labelledby="domains">
        <h2 id="domains">Domains</h2>
        <ul className="lines">
          {domains.map(({ uid, path, state }) => (
            <li key={uid}>
              <strong>{path}</strong> <Phase phase={state} />
            </li>
          ))}
        </ul>
        <New
          what="domain"
          example="ROOT/acme"
          onDone={onDone}
          send={(path) => ask("addDomain", "POST", "/domains", { body: JSON.stringify({ path }) })}
        />
      </section>
      <section aria-labelledby="accounts">
        <h2 id="accounts">Accounts</h2>
        <ul className="cards">
          {accounts.map((account) => (
            <Account
              key={account.uid}
              account={account}
              users={users.filter((user) => user.account === account.path)}
              asker={asker}
              onDone={onDone}
            />
          ))}
        </ul>
        <New
          what="account"
          example="ROOT/acme/dev"
          onDone={onDone}
          send={(path) => ask("addAccount", "POST", "/accounts", { body: JSON.stringify({ path }) })}
        />
      </section>
    </>
  );
}

interface NewProps {
  readonly what: "domain" | "account";
  readonly example: string;
  readonly send: (path: string) => Promise<unknown>;
  readonly onDone: () => Promise<void>;
}
function New({ what, example, send, onDone }: NewProps) {
  const [path, setPath] = useState("");
  const { busy, failed, run } = useDoing();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      await send(path.trim());
      await onDone();
      setPath("");
    });
  };
  return (
    <form className="filters" onSubmit={submit}>
      <label>
        A new {what}
        <input
          value={path}
          required
          maxLength={2048}
          spellCheck={false}
          placeholder={example}
          onChange={(event) => setPath(event.target.value)}
        />
      </label>
      <button type="submit" disabled={busy}>
        Make the {what}
      </button>
      {path !== "" && <Command text={commandOf(`cells ${what} add`, path.trim())} />}
      <Failed why={failed} />
    </form>
  );
}

interface AccountProps {
  readonly account: AccountSummary;
  readonly users: readonly UserSummary[];
  readonly asker: Asker | null;
  readonly onDone: () => Promise<void>;
}
function Account({ account, users, asker, onDone }: AccountProps) {
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
        {users.map(({ uid: user, name, domain, role, state: of }) => (
          <li key={user}>
            <strong>
              {name}@{domain}
            </strong>{" "}
            <Phase phase={of} /> <span className="hint">{role}</span>
          </li>
        ))}
      </ul>
      <NewUser account={path} onDone={onDone} />
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
        <Deletion account={account} asker={asker} onDone={onDone} />
      </div>
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

/** All that goes with it is said by the service, in its order, before anything does. */
function Deletion({ account: { uid, path, state, cells }, asker, onDone }: Omit<AccountProps, "users">) {
  const [plan, setPlan] = useState<readonly string[] | null>(null);
  const { busy, failed, run } = useDoing();
  const lost = cells.map((cell) => ["allowDestroy", cell]);
  const send = (dryRun: boolean) =>
    ask(
      "deleteAccount",
      "DELETE",
      `/accounts/${encodeURIComponent(uid)}?${new URLSearchParams([["dryRun", String(dryRun)], ...lost])}`,
    );
  if (plan === null)
    return (
      <Act
        name="deleteAccount"
        of={path}
        asker={asker}
        subject={{ party: path, state }}
        run={async () => setPlan((await send(true)).value.plan ?? [])}
      />
    );
  return (
    <fieldset className="danger-box" aria-label={`Delete ${path}?`}>
      <strong>With {path} goes, in this order:</strong>
      <ul className="lines">
        {plan.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <button
        type="button"
        className="main"
        disabled={busy}
        onClick={() =>
          void run(async () => {
            await send(false);
            await onDone();
            setPlan(null);
          })
        }
      >
        Delete {path}
        {cells.length > 0 && ` with all data of ${cells.join(", ")}`}
      </button>{" "}
      <button type="button" onClick={() => setPlan(null)}>
        Leave it as it is
      </button>
      <Failed why={failed} />
    </fieldset>
  );
}
