import { type FormEvent, useState } from "react";
import type { Asker } from "../../model/contract/actions/actions.ts";
import type { QuotaSummary } from "../../model/contract/tenancy/quotas.ts";
import type { AccountSummary, DomainSummary, UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import { ask } from "../data/api.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { Account } from "../parts/people/accounts.tsx";
import { DelegationsOf } from "../parts/people/delegations.tsx";
import { Domain } from "../parts/people/domains.tsx";
import { Invitations } from "../parts/people/invitations.tsx";
import { Keys } from "../parts/people/keys.tsx";
import { useAsked, useAsker } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";

interface Everybody {
  readonly domains: readonly DomainSummary[];
  readonly accounts: readonly AccountSummary[];
  readonly users: readonly UserSummary[];
  readonly quotas: readonly QuotaSummary[];
}

/** Who may do what, and whose is it? */
export function People({ who }: PageProps) {
  const asker = useAsker(who);
  const { value, failed, again } = useAsked("people", async (): Promise<Everybody> => {
    const [domains, accounts, users, quotas] = await Promise.all([
      ask("listDomains", "GET", "/domains"),
      ask("listAccounts", "GET", "/accounts"),
      ask("listUsers", "GET", "/users"),
      ask("listQuotas", "GET", "/quotas"),
    ]);
    return { domains: domains.value, accounts: accounts.value, users: users.value, quotas: quotas.value };
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
  const { domains, accounts, users, quotas } = everybody;
  const quotaOf = (uid: string) => quotas.find((each) => each.uid === uid) ?? null;
  return (
    <>
      <p role="status">
        {domains.length} domains, {accounts.length} accounts, {users.length} users that you may see.
      </p>
      <section aria-labelledby="domains">
        <h2 id="domains">Domains</h2>
        <ul className="lines">
          {domains.map((domain) => (
            <Domain
              key={domain.uid}
              domain={domain}
              cells={accounts.filter((each) => each.path.startsWith(`${domain.path}/`)).flatMap((each) => each.cells)}
              quota={quotaOf(domain.uid)}
              asker={asker}
              onDone={onDone}
            />
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
              quota={quotaOf(account.uid)}
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
