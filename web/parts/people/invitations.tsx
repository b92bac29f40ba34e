import { useState } from "react";
import type { MadeInvitation } from "../../../model/contract/tenancy/tenancy.ts";
import { ask } from "../../data/api.ts";
import { commandOf } from "../../state/command.ts";
import { Failed, useDoing } from "../act.tsx";
import { Command } from "../bits.tsx";
import { useAsked } from "../use-known.ts";

/** Links by which people make themselves accounts in a domain: each opens once, and is shown once. */
export function Invitations({ domains, onDone }: { domains: readonly string[]; onDone: () => Promise<void> }) {
  const open = useAsked("invitations", async () => (await ask("listInvitations", "GET", "/invitations")).value);
  const { busy, failed, run } = useDoing();
  const [domain, setDomain] = useState("");
  const [role, setRole] = useState("account-admin");
  const [made, setMade] = useState<MadeInvitation | null>(null);
  const again = async (): Promise<void> => {
    await open.again();
    await onDone();
  };
  const invite = (): void =>
    void run(async () => {
      const body = JSON.stringify({ domain, role });
      setMade((await ask("addInvitation", "POST", "/invitations", { body })).value);
      await again();
    });
  const takeBack = (uid: string): void =>
    void run(async () => {
      await ask("deleteInvitation", "DELETE", `/invitations/${encodeURIComponent(uid)}`);
      await again();
    });
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">Invitations</h2>
      <Failed why={open.failed} />
      <ul className="lines">
        {(open.value ?? []).map(({ uid, domain: to, role: as, by, expires }) => (
          <li key={uid}>
            <strong>{to}</strong> <span className="reason">{`${as}, by ${by}, until ${expires.slice(0, 10)}`}</span>
            <button type="button" disabled={busy} aria-label={`Take back ${uid}`} onClick={() => takeBack(uid)}>
              Take back
            </button>
          </li>
        ))}
        {open.value?.length === 0 && <li>Nobody is invited.</li>}
      </ul>
      <div className="filters">
        <label>
          Invite to
          <select value={domain} onChange={(event) => setDomain(event.target.value)}>
            <option value="">choose a domain</option>
            {domains.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          As
          <select value={role} onChange={(event) => setRole(event.target.value)}>
            {["account-admin", "user", "reader"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="button" disabled={busy || domain === ""} onClick={invite}>
          Make a link
        </button>
        {domain !== "" && <Command text={commandOf(`cells invitation add --role ${role}`, domain)} />}
      </div>
      <Failed why={failed} />
      {made !== null && (
        <div className="notice" role="status">
          <p>This address lets one person in, once. It is shown here and nowhere else:</p>
          <code className="secret">{`${location.origin}/ui/#invitation=${encodeURIComponent(made.link)}`}</code>
        </div>
      )}
    </section>
  );
}
