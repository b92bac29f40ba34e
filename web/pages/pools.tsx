import { type FormEvent, useState } from "react";
import type { Asker } from "../../model/contract/actions/actions.ts";
import type { ListedFlavor, PoolHostSummary, PoolSummary } from "../../model/contract/tenancy/pools.ts";
import { ask } from "../data/api.ts";
import { Act, Failed, useDoing } from "../parts/act.tsx";
import { Command, Phase, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { Flavors } from "../parts/pools/flavors.tsx";
import { PoolUse } from "../parts/pools/use.tsx";
import { useAsked, useAsker, useKnown } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";
import { cellsIn } from "../state/known.ts";
import { unitsSay } from "../state/people/quotas.ts";

/** Which whole hosts do I have, by my own names? */
export function Pools({ who }: PageProps) {
  const { followed } = useKnown();
  const asker = useAsker(who);
  const cells = followed.topics.get("cells");
  // Whenever a cell changes.
  const pools = useAsked(`${cells?.run} ${cells?.n}`, async () => (await ask("listPools", "GET", "/pools")).value);
  const quotas = useAsked(`quotas ${cells?.run} ${cells?.n}`, async () =>
    who.kind === "cell" ? [] : (await ask("listQuotas", "GET", "/quotas")).value,
  );
  const flavors = useAsked("flavors", async () => (await ask("listFlavors", "GET", "/flavors")).value);
  return (
    <>
      <h1>Pools</h1>
      {pools.value === null ? (
        pools.failed === null && <Waiting what="the cells' controllers" />
      ) : (
        <p role="status">
          {pools.value.length === 0
            ? "There is no pool yet."
            : `${pools.value.length} ${pools.value.length === 1 ? "pool" : "pools"}.`}
        </p>
      )}
      <Failed why={pools.failed} />
      {unitsSay(quotas.value ?? []).map((line) => (
        <p key={line}>{line}</p>
      ))}
      <ul className="cards">
        {(pools.value ?? []).map((pool) => (
          <Pool key={pool.uid} pool={pool} asker={asker} flavors={flavors.value ?? []} onDone={pools.again} />
        ))}
      </ul>
      <NewPool onDone={pools.again} />
      <Flavors flavors={flavors.value} failed={flavors.failed} asker={asker} onDone={flavors.again} />
    </>
  );
}

interface PoolProps {
  readonly pool: PoolSummary;
  readonly asker: Asker | null;
  readonly flavors: readonly ListedFlavor[];
  readonly onDone: () => Promise<void>;
}
function Pool({ pool, asker, flavors, onDone }: PoolProps) {
  const at = `/pools/${encodeURIComponent(pool.uid)}`;
  const hosts = useAsked(
    `${pool.uid} ${pool.hosts}`,
    async () => (await ask("listPoolHosts", "GET", `${at}/hosts`)).value,
  );
  const members = hosts.value ?? [];
  const again = async (): Promise<void> => {
    await hosts.again();
    await onDone();
  };
  const { cpuRatio, memoryPercent, fill, authorised } = pool;
  return (
    <li className="card">
      <strong>{pool.path}</strong>
      <p className="hint">
        {[
          ...(cpuRatio === undefined ? [] : [`${cpuRatio} virtual processors for each one`]),
          ...(memoryPercent === undefined ? [] : [`${memoryPercent} % of the memory`]),
          ...(fill === undefined
            ? []
            : [fill === "pack" ? "fills one host before the next" : "spreads over its hosts"]),
          authorised === null
            ? "for the account of its cell"
            : authorised.length === 0
              ? "for nobody"
              : `for ${authorised.join(", ")}`,
        ].join("; ")}
      </p>
      {hosts.value === null && hosts.failed === null && <Waiting what="its hosts" />}
      <Failed why={hosts.failed} />
      <ul className="lines">
        {members.map((host) => (
          <Member key={host.uid} pool={pool} host={host} asker={asker} onDone={again} />
        ))}
        {hosts.value !== null && members.length === 0 && <li>It has no hosts.</li>}
      </ul>
      <PoolUse key={JSON.stringify(pool)} pool={pool} onDone={onDone} />
      <NewHost pool={pool} flavors={flavors} onDone={again} />
      <div className="buttons">
        <Act
          name="deletePool"
          of={pool.path}
          asker={asker}
          subject={{ pool: pool.name, hosts: members.map(({ name }) => name) }}
          run={async () => {
            await ask("deletePool", "DELETE", at);
            await onDone();
          }}
          says={<p>The pool {pool.path} is no more. It has no hosts, so no machine is touched.</p>}
        />
      </div>
    </li>
  );
}

function Member({ pool, host, asker, onDone }: Omit<PoolProps, "flavors"> & { host: PoolHostSummary }) {
  const { name, flavor, zone, enabled, phase, reason, vms } = host;
  const at = `/pools/${encodeURIComponent(pool.uid)}/hosts/${encodeURIComponent(name)}`;
  const subject = { name, isEnabled: enabled, vms };
  const enable = async (wanted: boolean): Promise<void> => {
    await ask("changePoolHost", "PUT", at, { body: JSON.stringify({ enabled: wanted }) });
    await onDone();
  };
  return (
    <li>
      <strong>{name}</strong> <Phase phase={phase === "ready" ? (enabled ? "enabled" : "disabled") : phase} />
      <span className="reason">
        {flavor}
        {zone === null ? "" : `, ${zone}`}, {vms.length === 0 ? "no machines" : `${vms.length} machines`}
        {reason === null ? "" : `: ${reason}`}
      </span>
      <span className="buttons">
        {enabled ? (
          <Act name="disablePoolHost" of={name} asker={asker} subject={subject} run={() => enable(false)} />
        ) : (
          <Act name="enablePoolHost" of={name} asker={asker} subject={subject} run={() => enable(true)} />
        )}
        <Act
          name="removePoolHost"
          of={name}
          asker={asker}
          subject={subject}
          run={async () => {
            await ask("removePoolHost", "DELETE", at);
            await onDone();
          }}
          says={<p>It leaves the pool, and may become another account's.</p>}
        />
      </span>
    </li>
  );
}

const labelPattern = "[a-z](?:[a-z0-9\\-]{0,51}[a-z0-9])?";
const labelRule = "small letters, digits and -, the first a letter";

function NewHost({ pool, flavors, onDone }: Omit<PoolProps, "asker">) {
  const { busy, failed, run } = useDoing();
  const [flavor, setFlavor] = useState("");
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const name = String(new FormData(form).get("name") ?? "");
    void run(async () => {
      const at = `/pools/${encodeURIComponent(pool.uid)}/hosts`;
      await ask("addPoolHost", "POST", at, { body: JSON.stringify({ name, flavor }) });
      await onDone();
      form.reset();
    });
  };
  const chosen = flavors.find(({ name }) => name === flavor);
  return (
    <details>
      <summary>Add a host to {pool.path}</summary>
      <form className="filters" onSubmit={send}>
        <label>
          Its name here
          <input name="name" required pattern={labelPattern} title={labelRule} maxLength={53} spellCheck={false} />
        </label>
        <label>
          Flavour
          <select value={flavor} required onChange={(event) => setFlavor(event.target.value)}>
            <option value="">choose one</option>
            {flavors.map(({ name, free, units }) => (
              <option key={name} value={name}>
                {name}: {units} units, {free} free
              </option>
            ))}
          </select>
        </label>
        <button type="submit" disabled={busy}>
          {busy ? "Asking for one …" : "Add"}
        </button>
      </form>
      <p className="hint">
        {flavors.length === 0
          ? "The operator has defined no flavour."
          : chosen === undefined
            ? "It comes disabled; enable it to have machines there."
            : `${chosen.description}. It counts ${chosen.units} of your account's units.`}
      </p>
      <Failed why={failed} />
    </details>
  );
}

function NewPool({ onDone }: { onDone: () => Promise<void> }) {
  const cells = (cellsIn(useKnown().followed) ?? []).map(({ cell }) => cell).filter((cell) => cell !== "root");
  const { busy, failed, run } = useDoing();
  const [cell, setCell] = useState("");
  const [name, setName] = useState("");
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    void run(async () => {
      await ask("addPool", "POST", "/pools", { body: JSON.stringify({ cell, name }) });
      await onDone();
      setName("");
    });
  };
  return (
    <section aria-labelledby="new-pool">
      <h2 id="new-pool">A new pool</h2>
      <form className="filters" onSubmit={send}>
        <label>
          In the cell
          <select value={cell} required onChange={(event) => setCell(event.target.value)}>
            <option value="">choose one</option>
            {cells.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          Name
          <input
            value={name}
            required
            pattern={labelPattern}
            title={labelRule}
            maxLength={53}
            spellCheck={false}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <button type="submit" disabled={busy}>
          Make it
        </button>
        {cell !== "" && name !== "" && <Command text={commandOf("cells pool create", `${cell}/${name}`)} />}
      </form>
      <Failed why={failed} />
    </section>
  );
}
